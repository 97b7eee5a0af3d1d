/* Handlers that the program installs at the very moment at which the library installs its own. What another thread would do then is done by library.c, between the library and libc. */
#include "common.h"
#include <dlfcn.h>

static byte *const NOWHERE = (byte *)8;
static volatile sig_atomic_t caught;

static void on_fault(int signal)
{
    (void)signal;
    /* A fault comes again and again. */
    if (++caught == 10)
        _exit(3);
}

static void before_change(void (*what)(int signal))
{
    void (**place)(int) = dlsym(RTLD_DEFAULT, "library_before_change");
    CHECK(place);
    *place = what;
}

static void handle(int signal)
{
    struct sigaction action = {.sa_handler = on_fault};
    CHECK(sigaction(signal, &action, NULL) == 0);
}

static void (*handler_of(int signal))(int)
{
    struct sigaction action;
    CHECK(sigaction(signal, NULL, &action) == 0);
    return action.sa_handler;
}

/* Bad pointers are errors, and no business of the program's handlers. */
static void works_without_ours(int fd)
{
    uint32_t ses = session(fd);
    byte out[16];
    FAILS(encrypt(fd, ses, NOWHERE, 16, out, IV), EFAULT);
    FAILS(encrypt(fd, ses, PLAIN, 16, NOWHERE, IV), EFAULT);
    CHECK(caught == 0);
    works(fd, ses);
}

/* The action was free when it was looked at, and is not when it is taken. */
static void handle_this(int signal)
{
    before_change(NULL);
    handle(signal);
}

static void handler_first(void)
{
    before_change(handle_this);
    int fd = device();
    CHECK(handler_of(SIGSEGV) == on_fault && handler_of(SIGBUS) == SIG_DFL);
    works_without_ours(fd);
}

/* Once more while the first is put back: the last is the one that stays. */
static void on_another(int signal) { on_fault(signal); }

static int changes;

static void handle_twice(int number)
{
    if (changes++ == 0)
        handle(number);
    else if (changes == 2)
        CHECK(signal(number, on_another) != SIG_ERR);
}

static void handler_twice(void)
{
    before_change(handle_twice);
    int fd = device();
    before_change(NULL);
    CHECK(changes > 2 && handler_of(SIGSEGV) == on_another);
    works_without_ours(fd);
}

/* One is ours already, and is the program's again before the other is. */
static void handle_the_first(int signal)
{
    if (signal == SIGBUS) {
        before_change(NULL);
        handle(SIGSEGV);
    }
}

static void handler_between(void)
{
    before_change(handle_the_first);
    int fd = device();
    CHECK(handler_of(SIGSEGV) == on_fault);
    works_without_ours(fd);
}

/* The program's call has begun when the device is opened, and comes to libc after that. */
static int opened = -1;

static void *open_now(void *unused)
{
    opened = device();
    return unused;
}

static void open_meanwhile(int signal)
{
    (void)signal;
    pthread_t thread;
    before_change(NULL);
    CHECK(pthread_create(&thread, NULL, open_now, NULL) == 0 && pthread_join(thread, NULL) == 0);
}

static void handler_begun(void)
{
    before_change(open_meanwhile);
    handle(SIGSEGV);
    CHECK(opened >= 0 && handler_of(SIGSEGV) == on_fault);
    works_without_ours(opened);
}

int main(int argc, char **argv)
{
    const struct scenario all[] = {{"first", handler_first}, {"twice", handler_twice}, {"between", handler_between}, {"begun", handler_begun}, {0}};
    return chosen(all, argc, argv);
}
