/* A library of the program's, behind ours: with a lock that it takes before a fork, as constructors register it; and between ours and libc, to do something at the moment of a call. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stddef.h>

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

void library_lock(void) { pthread_mutex_lock(&own); }
void library_unlock(void) { pthread_mutex_unlock(&own); }

__attribute__((constructor)) static void begin(void) { pthread_atfork(library_lock, library_unlock, library_unlock); }

/* Is called before an action is changed; not when it changes one itself. */
void (*library_before_change)(int signal);
static int within;

int sigaction(int signal, const struct sigaction *new, struct sigaction *old)
{
    int (*next)(int, const struct sigaction *, struct sigaction *) = dlsym(RTLD_NEXT, "sigaction");
    if (library_before_change && new && !within) {
        within = 1;
        library_before_change(signal);
        within = 0;
    }
    return next(signal, new, old);
}
