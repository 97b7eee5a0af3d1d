/* A library of the program's: with a lock that it takes before a fork, as constructors register it. */
#include <pthread.h>

static pthread_mutex_t own = PTHREAD_MUTEX_INITIALIZER;

void library_lock(void) { pthread_mutex_lock(&own); }
void library_unlock(void) { pthread_mutex_unlock(&own); }

__attribute__((constructor)) static void begin(void) { pthread_atfork(library_lock, library_unlock, library_unlock); }
