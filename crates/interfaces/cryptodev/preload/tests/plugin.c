/* A plugin whose constructor, under dlopen, waits until a thread of its own has made some calls that any thread makes. */
#include <fcntl.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>
#include <sys/ioctl.h>
#include <sys/stat.h>
#include <unistd.h>

static void *calls(void *unused)
{
    int ends[2], room;
    struct stat status;
    struct sigaction action;
    if (pipe(ends) == 0) {
        char byte = 0;
        if (write(ends[1], &byte, 1) == 1 && read(ends[0], &byte, 1) == 1)
            ioctl(ends[0], FIONREAD, &room);
        fcntl(ends[0], F_GETFD);
        fstat(ends[0], &status);
        close(dup(ends[0]));
        close(ends[0]);
        close(ends[1]);
    }
    close(open("/", O_RDONLY));
    sigaction(SIGUSR1, NULL, &action);
    return unused;
}

__attribute__((constructor)) static void begin(void)
{
    pthread_t thread;
    if (pthread_create(&thread, NULL, calls, NULL) == 0)
        pthread_join(thread, NULL);
}
