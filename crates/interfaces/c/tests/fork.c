/* Forks again and again while other threads compute through the broker; every child and every thread must get right bytes. */
#define _GNU_SOURCE
#include "bywash.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { THREADS = 6, CHILD_ROUNDS = 100 };

static bywash_session *session;
static uint8_t key[32] = {1}, iv[12] = {2}, text[4096] = {3}, wanted[4096], wanted_tag[16];
static atomic_int over, failures;
static atomic_long done;

static bywash_operation encryption(uint8_t *output, uint8_t *tag)
{
    bywash_operation op = {.direction = BYWASH_ENCRYPT, .iv = iv, .iv_len = sizeof iv, .input = text, .input_len = sizeof text,
                           .output = output, .output_len = sizeof text, .tag = tag, .tag_len = 16};
    return op;
}

static int right(const uint8_t *output, const uint8_t *tag)
{
    return memcmp(output, wanted, sizeof wanted) == 0 && memcmp(tag, wanted_tag, sizeof wanted_tag) == 0;
}

/* One operation waited for, one handed over. */
static int round_trip(void)
{
    uint8_t output[4096] = {0}, tag[16] = {0};
    bywash_operation op = encryption(output, tag);
    if (bywash_run(session, &op) != BYWASH_STATUS_OK || !right(output, tag))
        return 0;
    bywash_pending *pending;
    memset(output, 0, sizeof output);
    memset(tag, 0, sizeof tag);
    op = encryption(output, tag);
    if (bywash_submit(session, &op, &pending) != BYWASH_STATUS_OK)
        return 0;
    bywash_status status = bywash_wait(pending, 30000, &op);
    bywash_pending_free(pending);
    return status == BYWASH_STATUS_OK && right(output, tag);
}

static void *work(void *unused)
{
    (void)unused;
    while (!atomic_load(&over)) {
        if (!round_trip()) {
            fprintf(stderr, "thread: %s\n", bywash_error_message());
            atomic_fetch_add(&failures, 1);
        }
        atomic_fetch_add(&done, 1);
    }
    return NULL;
}

static void too_late(int unused)
{
    (void)unused;
    _exit(2);
}

static void child(void)
{
    /* A child that waits for a lock of its parent's threads ends by this and is counted. By a handler: a namespace's first process does not die of a signal. */
    signal(SIGALRM, too_late);
    alarm(60);
    for (int i = 0; i < CHILD_ROUNDS; i++)
        if (!round_trip())
            _exit(1);
    _exit(0);
}

/* fork FORKS [nested]: a nested child is the first process of a PID namespace of its own. */
int main(int argc, char **argv)
{
    int forks = argc > 1 ? atoi(argv[1]) : 1, nested = argc > 2;
    bywash_client *client;
    if (bywash_client_new(NULL, &client) != BYWASH_STATUS_OK ||
        bywash_session_symmetric(client, "AES-256-GCM", key, sizeof key, 16, &session) != BYWASH_STATUS_OK) {
        fprintf(stderr, "%s\n", bywash_error_message());
        return 1;
    }
    bywash_operation op = encryption(wanted, wanted_tag);
    if (bywash_run(session, &op) != BYWASH_STATUS_OK)
        return 1;
    pthread_t threads[THREADS];
    for (int i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, work, NULL);
    /* Once it has asked for a namespace it can start no more threads, so the library's come first. */
    if (nested && (!round_trip() || unshare(CLONE_NEWPID) != 0))
        return 1;
    int bad = 0;
    for (int i = 0; i < forks; i++) {
        pid_t pid = fork();
        if (pid == 0 && nested && getpid() != 1)
            _exit(3);
        if (pid == 0)
            child();
        int status = 0;
        if (pid < 0 || waitpid(pid, &status, 0) != pid || status != 0) {
            fprintf(stderr, "fork %d: status %#x\n", i, status);
            bad++;
        }
    }
    atomic_store(&over, 1);
    for (int i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    printf("%d forks, %d bad; %ld rounds in threads, %d bad\n", forks, bad, atomic_load(&done), atomic_load(&failures));
    return bad || atomic_load(&failures);
}
