/* Runs sequences in several threads, then in a forked child and in its parent, and prints what they printed in a fixed order. Arguments: seed, count, and with LATE the library, which is then
   loaded when there is another thread already. */
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#ifdef LATE
static char* (*sequences)(uint64_t seed, unsigned count);
static int (*random_iv)(unsigned char* iv);

static void* sleeps(void* forever)
{
    for (;;)
    {
        pause();
    }
    return forever;
}

static int load(const char* path)
{
    pthread_t other;
    pthread_create(&other, NULL, sleeps, NULL);
    void* library = dlopen(path, RTLD_LAZY);
    if (library == NULL)
    {
        fprintf(stderr, "%s\n", dlerror());
        return 0;
    }
    *(void**)&sequences = dlsym(library, "sequences");
    *(void**)&random_iv = dlsym(library, "random_iv");
    return sequences != NULL && random_iv != NULL;
}
#else
char* sequences(uint64_t seed, unsigned count);
int random_iv(unsigned char* iv);

static int load(const char* path)
{
    return path == NULL;
}
#endif

static uint64_t seed;
static unsigned count;

static void* thread(void* number)
{
    return sequences(seed + (uintptr_t)number, count);
}

static void print(void* text)
{
    fputs(text, stdout);
    free(text);
}

int main(int arguments, char** argument)
{
    enum { THREADS = 4, IVS = 64 };
    pthread_t threads[THREADS];
    if (arguments < 3 || !load(argument[3]))
    {
        return 2;
    }
    seed = strtoull(argument[1], NULL, 10);
    count = (unsigned)strtoul(argument[2], NULL, 10);
    for (uintptr_t i = 0; i < THREADS; ++i)
    {
        pthread_create(&threads[i], NULL, thread, (void*)i);
    }
    for (int i = 0; i < THREADS; ++i)
    {
        void* text;
        pthread_join(threads[i], &text);
        print(text);
    }
    print(sequences(seed + 100, count));
    fflush(stdout);
    int pipe_of[2];
    unsigned char ivs[2][IVS][8];
    if (pipe(pipe_of) != 0)
    {
        return 2;
    }
    pid_t child = fork();
    for (int i = 0; i < IVS; ++i)
    {
        if (random_iv(ivs[0][i]) != 1)
        {
            return 3;
        }
    }
    if (child == 0)
    {
        ssize_t written = write(pipe_of[1], ivs[0], sizeof ivs[0]);
        print(sequences(seed + 200, count));
        fflush(stdout);
        exit(written == (ssize_t)sizeof ivs[0] ? 0 : 4);
    }
    int status;
    waitpid(child, &status, 0);
    if (status != 0 || read(pipe_of[0], ivs[1], sizeof ivs[1]) != (ssize_t)sizeof ivs[1])
    {
        return 5;
    }
    for (int i = 0; i < 2 * IVS; ++i)
    {
        for (int j = 0; j < i; ++j)
        {
            if (memcmp(ivs[0][0] + 8 * i, ivs[0][0] + 8 * j, 8) == 0)
            {
                fprintf(stderr, "the same IV twice: %d and %d\n", i, j);
                return 6;
            }
        }
    }
    print(sequences(seed + 300, count));
    return 0;
}
