/* Bad pointers, signals, forks and threads. */
#include "common.h"
#include <dlfcn.h>
#include <setjmp.h>

static byte *const NOWHERE = (byte *)8;
/* Not even an address. */
static byte *const NO_ADDRESS = (byte *)0x8000000000000000ULL;

static void refuses_bad_pointers(int fd)
{
    uint32_t ses = session(fd);
    byte out[32];
    FAILS(ioctl(fd, CIOCGSESSION, NOWHERE), EFAULT);
    FAILS(ioctl(fd, CIOCCRYPT, NULL), EFAULT);
    FAILS(ioctl(fd, CIOCCRYPT, NO_ADDRESS), EFAULT);
    FAILS(ioctl(fd, CRIOGET, NOWHERE), EFAULT);
    struct session_op op = asking(CRYPTO_AES_CBC);
    op.key = NOWHERE;
    FAILS(ioctl(fd, CIOCGSESSION, &op), EFAULT);
    FAILS(encrypt(fd, ses, NOWHERE, 16, out, IV), EFAULT);
    FAILS(encrypt(fd, ses, PLAIN, 16, NOWHERE, IV), EFAULT);
    FAILS(encrypt(fd, ses, PLAIN, 16, out, NOWHERE), EFAULT);
    FAILS(encrypt(fd, ses, NO_ADDRESS, 1 << 20, out, IV), EFAULT);
    FAILS(encrypt(fd, ses, NULL, 16, out, IV), EFAULT);
    /* From one page into the next, which is not there; and to one that may only be read. */
    long page = sysconf(_SC_PAGESIZE);
    byte *two = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(two != MAP_FAILED && munmap(two + page, page) == 0);
    FAILS(encrypt(fd, ses, two + page - 16, 32, out, IV), EFAULT);
    FAILS(encrypt(fd, ses, two, 1 << 24, two, IV), EFAULT);
    CHECK(encrypt(fd, ses, two + page - 32, 32, out, IV) == 0);
    FAILS(encrypt(fd, ses, PLAIN, 32, two + page - 16, IV), EFAULT);
    static byte text[2048];
    FAILS(encrypt(fd, ses, text, sizeof text, two + page - 1040, IV), EFAULT);
    FAILS(encrypt(fd, ses, two + page - 1040, sizeof text, text, IV), EFAULT);
    CHECK(mprotect(two, page, PROT_READ) == 0);
    FAILS(encrypt(fd, ses, PLAIN, 32, two, IV), EFAULT);
    munmap(two, page);
    /* A file that ends before its mapping does: SIGBUS. */
    FILE *file = tmpfile();
    CHECK(file && ftruncate(fileno(file), page) == 0);
    byte *mapped = mmap(NULL, 2 * page, PROT_READ | PROT_WRITE, MAP_SHARED, fileno(file), 0);
    CHECK(mapped != MAP_FAILED);
    FAILS(encrypt(fd, ses, mapped + page, 16, out, IV), EFAULT);
    FAILS(encrypt(fd, ses, PLAIN, 16, mapped + page, IV), EFAULT);
    munmap(mapped, 2 * page);
    fclose(file);
    works(fd, ses);
}

/* Texts of every length from and to wherever, through a cipher that changes nothing: whole, and nothing beside them is touched. */
static void lengths(void)
{
    int fd = device();
    struct session_op op = {.cipher = CRYPTO_NULL};
    CHECK(ioctl(fd, CIOCGSESSION, &op) == 0);
    byte text[1100], out[1100], expected[1100];
    for (size_t i = 0; i < sizeof text; i++)
        text[i] = i * 167 >> 3;
    for (uint32_t length = 0; length <= 1000; length++) {
        size_t from = length % 37, to = length % 61;
        memset(out, 0xee, sizeof out);
        memset(expected, 0xee, sizeof expected);
        memcpy(expected + to, text + from, length);
        CHECK(encrypt(fd, op.ses, text + from, length, out + to, NULL) == 0);
        CHECK(memcmp(out, expected, sizeof out) == 0);
    }
}

static void pointers(void)
{
    refuses_bad_pointers(device());
    struct sigaction action;
    CHECK(sigaction(SIGSEGV, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
    CHECK(sigaction(SIGBUS, NULL, &action) == 0 && action.sa_handler == SIG_DFL);
}

static sigjmp_buf back;
static volatile sig_atomic_t caught;

static void on_fault(int signal)
{
    caught++;
    siglongjmp(back, signal);
}

/* The program's own faults reach its own handler, and ours do not. */
static void has_its_own_handler(void)
{
    caught = 0;
    if (sigsetjmp(back, 1) == 0)
        *(volatile byte *)NOWHERE = 1;
    CHECK(caught == 1);
}

static void handler_before(void)
{
    signal(SIGSEGV, on_fault);
    signal(SIGBUS, on_fault);
    refuses_bad_pointers(device());
    CHECK(caught == 0);
    has_its_own_handler();
    CHECK(signal(SIGSEGV, SIG_DFL) == on_fault);
}

static void handler_after(void)
{
    int fd = device();
    refuses_bad_pointers(fd);
    struct sigaction action = {.sa_handler = on_fault}, old;
    CHECK(sigaction(SIGSEGV, &action, &old) == 0 && old.sa_handler == SIG_DFL && !(old.sa_flags & SA_SIGINFO));
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == on_fault);
    CHECK(signal(SIGBUS, on_fault) == SIG_DFL);
    refuses_bad_pointers(fd);
    CHECK(caught == 0);
    has_its_own_handler();
    CHECK(signal(SIGSEGV, SIG_DFL) == on_fault);
    refuses_bad_pointers(fd);
}

static void dies(int by, void (*how)(void))
{
    pid_t child = fork();
    if (child == 0) {
        int fd = device();
        refuses_bad_pointers(fd);
        how();
        _exit(0);
    }
    int status = ended(child);
    CHECK(WIFSIGNALED(status) && WTERMSIG(status) == by);
}

static void by_a_fault(void) { *(volatile byte *)NOWHERE = 1; }
static void by_kill(void) { kill(getpid(), SIGSEGV); }
static void by_raise(void) { raise(SIGBUS); }

static void deaths(void)
{
    dies(SIGSEGV, by_a_fault);
    dies(SIGSEGV, by_kill);
    dies(SIGBUS, by_raise);
    /* Ignored stays ignored, also for programs that are executed. */
    signal(SIGSEGV, SIG_IGN);
    int fd = device();
    refuses_bad_pointers(fd);
    by_kill();
    struct sigaction old;
    CHECK(sigaction(SIGSEGV, NULL, &old) == 0 && old.sa_handler == SIG_IGN);
}

/* Parent and child both go on in the midst of a chain of blocks, and end their sessions by themselves. */
static void fork_goes_on(void)
{
    int fd = device();
    uint32_t ses = session(fd);
    byte out[32];
    CHECK(encrypt(fd, ses, PLAIN, 16, out, IV) == 0);
    pid_t child = fork();
    CHECK(encrypt(fd, ses, PLAIN + 16, 16, out + 16, NULL) == 0 && memcmp(out, CIPHER, 32) == 0);
    works(fd, ses);
    if (child == 0) {
        CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0);
        FAILS(encrypt(fd, ses, PLAIN, 16, out, IV), EINVAL);
        works(fd, session(fd));
        CHECK(close(fd) == 0);
        fd = device();
        works(fd, session(fd));
        _exit(0);
    }
    CHECK(ended(child) == 0);
    works(fd, ses);
    child = _Fork();
    if (child == 0) {
        works(fd, ses);
        _exit(0);
    }
    CHECK(ended(child) == 0);
}

/* Both going on from the position where they stand would use one part of the keystream twice. */
static void fork_in_counter_mode(void)
{
    int fd = device();
    uint32_t ses = session_of(fd, CRYPTO_AES_CTR);
    byte whole[32], out[32];
    CHECK(encrypt(fd, ses, PLAIN, 32, whole, IV) == 0);
    CHECK(encrypt(fd, ses, PLAIN, 16, out, IV) == 0);
    pid_t child = fork();
    if (child == 0) {
        FAILS(encrypt(fd, ses, PLAIN + 16, 16, out + 16, NULL), EINVAL);
        CHECK(encrypt(fd, ses, PLAIN, 16, out, IV) == 0);
        CHECK(encrypt(fd, ses, PLAIN + 16, 16, out + 16, NULL) == 0 && memcmp(out, whole, 32) == 0);
        _exit(0);
    }
    CHECK(ended(child) == 0);
    CHECK(encrypt(fd, ses, PLAIN + 16, 16, out + 16, NULL) == 0 && memcmp(out, whole, 32) == 0);
}

/* A child of vfork closes its own descriptors, not its parent's. */
static void vfork_closes(void)
{
    int fd = device();
    uint32_t ses = session(fd);
    pid_t child = vfork();
    if (child == 0) {
        close(fd);
        close_range(3, ~0U, 0);
        _exit(0);
    }
    CHECK(ended(child) == 0);
    works(fd, ses);
}

/* Nor may it open one: what it would change is its parent's. */
static void vfork_opens(void)
{
    if (syscall(SYS_kcmp, getpid(), getpid(), 1, 0, 0) != 0) {
        fprintf(stderr, "skipped: kcmp(2) is missing or forbidden here\n");
        return;
    }
    for (int is_loaded = 0; is_loaded < 2; is_loaded++) {
        volatile int opened = 0, number = 0;
        pid_t child = vfork();
        if (child == 0) {
            opened = open("/dev/crypto", O_RDWR);
            number = errno;
            _exit(0);
        }
        CHECK(ended(child) == 0 && opened == -1 && number == EBUSY);
        int fd = device();
        works(fd, session(fd));
    }
}

/* A fork that libc knows nothing of: whole from its first open on, and no keystream is used twice then. */
static void fork_by_system_call(void)
{
    int fd = device();
    uint32_t ses = session_of(fd, CRYPTO_AES_CTR);
    byte out[16];
    CHECK(encrypt(fd, ses, PLAIN, 16, out, IV) == 0);
    pid_t child = syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0);
    if (child == 0) {
        int own = device();
        works(own, session(own));
        FAILS(encrypt(fd, ses, PLAIN, 16, out, NULL), EINVAL);
        CHECK(close(fd) == 0 && close(own) == 0);
        _exit(0);
    }
    CHECK(ended(child) == 0);
    CHECK(encrypt(fd, ses, PLAIN, 16, out, NULL) == 0);
}

static int shared;
static volatile int stop;

static void *work(void *own)
{
    int fd = own ? device() : shared;
    uint32_t ses = session(fd);
    for (unsigned turn = 0; !stop; turn++) {
        works(fd, ses);
        if (turn % 64 == 0) {
            CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0);
            ses = session(fd);
            int another = device();
            works(another, session(another));
            CHECK(close(another) == 0);
        }
    }
    return NULL;
}

/* A lock of the program's own, held around its requests and taken before a fork: the use that pthread_atfork was made for. */
static pthread_mutex_t program_lock = PTHREAD_MUTEX_INITIALIZER;
static void lock(void) { pthread_mutex_lock(&program_lock); }
static void unlock(void) { pthread_mutex_unlock(&program_lock); }

static void *work_locked(void *unused)
{
    (void)unused;
    uint32_t ses = session(shared);
    while (!stop) {
        lock();
        works(shared, ses);
        unlock();
    }
    return NULL;
}

static void forks_while_threads_work(void)
{
    pthread_atfork(lock, unlock, unlock);
    shared = device();
    uint32_t ses = session(shared);
    pthread_t threads[5];
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, work, i % 2 ? &threads[i] : NULL) == 0);
    CHECK(pthread_create(&threads[4], NULL, work_locked, NULL) == 0);
    for (int i = 0; i < 40; i++) {
        pid_t child = fork();
        if (child == 0) {
            alarm(30);
            for (int turn = 0; turn < 20; turn++)
                works(shared, ses);
            int fd = device();
            works(fd, session(fd));
            pid_t grandchild = fork();
            if (grandchild == 0) {
                works(shared, ses);
                _exit(0);
            }
            _exit(ended(grandchild) != 0);
        }
        CHECK(ended(child) == 0);
    }
    stop = 1;
    for (int i = 0; i < 5; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    works(shared, ses);
}

/* The same with a lock of a library, which its constructor has registered for forks before main began. */
static void (*library_lock)(void), (*library_unlock)(void);

static void *work_in_library(void *unused)
{
    (void)unused;
    uint32_t ses = session(shared);
    while (!stop) {
        library_lock();
        works(shared, ses);
        library_unlock();
    }
    return NULL;
}

static void forks_with_a_library(void)
{
    library_lock = dlsym(RTLD_DEFAULT, "library_lock");
    library_unlock = dlsym(RTLD_DEFAULT, "library_unlock");
    CHECK(library_lock && library_unlock);
    shared = device();
    uint32_t ses = session(shared);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, work_in_library, NULL) == 0);
    for (int i = 0; i < 100; i++) {
        pid_t child = fork();
        if (child == 0) {
            library_lock();
            works(shared, ses);
            library_unlock();
            _exit(0);
        }
        CHECK(ended(child) == 0);
    }
    stop = 1;
    CHECK(pthread_join(thread, NULL) == 0);
}

/* Many threads arrive while a fork waits for the end of a long request: they count neither as requests under way nor as time. */
enum { LONG = 64 << 20 };

static void *work_long(void *unused)
{
    (void)unused;
    uint32_t ses = session(shared);
    byte *text = mmap(NULL, LONG, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(text != MAP_FAILED);
    while (!stop)
        CHECK(encrypt(shared, ses, text, LONG, text, IV) == 0);
    return NULL;
}

static void *work_shortly(void *ses)
{
    while (!stop) {
        works(shared, *(uint32_t *)ses);
        usleep(200);
    }
    return NULL;
}

static void forks_in_a_crowd(void)
{
    shared = device();
    uint32_t ses = session(shared);
    pthread_t threads[129];
    for (int i = 0; i < 129; i++)
        CHECK(pthread_create(&threads[i], NULL, i ? work_shortly : work_long, &ses) == 0);
    for (int i = 0; i < 12; i++) {
        usleep(20000);
        pid_t child = fork();
        if (child == 0) {
            works(shared, ses);
            int fd = device();
            works(fd, session(fd));
            _exit(0);
        }
        CHECK(ended(child) == 0);
    }
    stop = 1;
    for (int i = 0; i < 129; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* A handler that closes, the last descriptor of a device too, while the thread that it has interrupted holds a lock of malloc's and another thread forks. */
enum { LAST = 400, MOST = 1024 };
static int last[LAST];
static volatile sig_atomic_t lasts, opened;

static void on_signal(int signal)
{
    (void)signal;
    int before = errno;
    close(dup(shared));
    if (lasts > 0 && lasts <= LAST)
        close(last[--lasts]);
    errno = before;
}

static void *allocate(void *unused)
{
    (void)unused;
    while (!stop) {
        /* Made by this thread, so that they lie where it allocates; in all more than there may be at once, so that those that were closed must have ended. */
        if (lasts == 0 && opened <= MOST) {
            for (int i = 0; i < LAST; i++)
                session(last[i] = device());
            opened += LAST;
            lasts = LAST;
        }
        void *all[64];
        for (int i = 0; i < 64; i++)
            all[i] = malloc(2000 + 100 * i);
        for (int i = 0; i < 64; i++)
            free(all[(i * 7) % 64]);
    }
    return NULL;
}

static void *interrupt(void *thread)
{
    while (!stop) {
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        usleep(20);
    }
    return NULL;
}

static void closes_in_signal_handlers(void)
{
    shared = device();
    uint32_t ses = session(shared);
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t worker, other;
    CHECK(pthread_create(&worker, NULL, allocate, NULL) == 0);
    CHECK(pthread_create(&other, NULL, interrupt, &worker) == 0);
    for (int i = 0; i < 1500 || opened <= MOST || lasts > 0; i++) {
        pid_t child = fork();
        if (child == 0)
            _exit(0);
        CHECK(ended(child) == 0);
    }
    stop = 1;
    CHECK(pthread_join(other, NULL) == 0 && pthread_join(worker, NULL) == 0);
    works(shared, ses);
}

/* See plugin.c, whose path is in the environment. */
static void loads_a_plugin(void)
{
    CHECK(getenv("PLUGIN") && dlopen(getenv("PLUGIN"), RTLD_NOW));
}

static uint32_t shared_ses;
static volatile sig_atomic_t forks, refused;

/* Interrupts a request, or not; forks either way. The child asks something of its own, and returns into what was interrupted. */
static void on_alarm(int signal)
{
    (void)signal;
    int before = errno;
    pid_t child = fork();
    if (child == 0) {
        byte out[32];
        alarm(30);
        if (encrypt(shared, shared_ses, PLAIN, 32, out, IV) != 0) {
            CHECK(errno == EBUSY);
            _exit(3);
        }
        CHECK(memcmp(out, CIPHER, 32) == 0);
        _exit(4);
    }
    int status = ended(child);
    CHECK(WIFEXITED(status) && (WEXITSTATUS(status) == 3 || WEXITSTATUS(status) == 4));
    refused += WEXITSTATUS(status) == 3;
    forks++;
    close(dup(shared));
    errno = before;
}

static void forks_in_signal_handlers(void)
{
    shared = device();
    shared_ses = session(shared);
    static byte long_text[1 << 20], out[1 << 20];
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0);
    struct itimerval often = {{0, 2000}, {0, 2000}};
    CHECK(setitimer(ITIMER_REAL, &often, NULL) == 0);
    while (forks < 200 || (refused == 0 && forks < 5000))
        CHECK(encrypt(shared, shared_ses, long_text, sizeof long_text, out, IV) == 0);
    CHECK(setitimer(ITIMER_REAL, &(struct itimerval){0}, NULL) == 0);
    CHECK(refused > 0);
    works(shared, shared_ses);
}

/* A handler that forks, sent to a thread that itself waits to fork until another's long request has ended. */
static volatile sig_atomic_t forks_within;

static void on_user(int signal)
{
    (void)signal;
    int before = errno;
    pid_t child = fork();
    if (child == 0) {
        alarm(30);
        int fd = device();
        works(fd, session(fd));
        _exit(0);
    }
    CHECK(ended(child) == 0);
    forks_within++;
    errno = before;
}

/* Sends the next signal a moment after the last has been served, so that the thread comes to do something else. */
static void *interrupt_now_and_then(void *thread)
{
    while (!stop) {
        sig_atomic_t before = forks_within;
        pthread_kill(*(pthread_t *)thread, SIGUSR1);
        while (!stop && forks_within == before)
            usleep(1000);
        usleep(5000);
    }
    return NULL;
}

static void forks_within_forks(void)
{
    shared = device();
    uint32_t ses = session(shared);
    struct sigaction action = {.sa_handler = on_user, .sa_flags = SA_RESTART};
    CHECK(sigaction(SIGUSR1, &action, NULL) == 0);
    pthread_t own = pthread_self(), worker, other;
    CHECK(pthread_create(&worker, NULL, work_long, NULL) == 0);
    CHECK(pthread_create(&other, NULL, interrupt_now_and_then, &own) == 0);
    for (int i = 0; i < 10 || forks_within < 5; i++) {
        pid_t child = fork();
        if (child == 0) {
            works(shared, ses);
            _exit(0);
        }
        CHECK(ended(child) == 0);
    }
    stop = 1;
    CHECK(pthread_join(other, NULL) == 0 && pthread_join(worker, NULL) == 0);
    sigset_t blocked;
    CHECK(pthread_sigmask(SIG_BLOCK, NULL, &blocked) == 0 && !sigismember(&blocked, SIGUSR1) && !sigismember(&blocked, SIGTERM));
}

/* A request of a thread that is to be cancelled is done, and the thread is cancelled after it. */
static uint32_t cancelled_ses;

static void *asks_and_is_cancelled(void *unused)
{
    (void)unused;
    byte out[32];
    struct crypt_op op = encrypting(cancelled_ses, PLAIN, 32, out, IV);
    CHECK(pthread_cancel(pthread_self()) == 0);
    CHECK(ioctl(shared, CIOCASYNCCRYPT, &op) == 0);
    CHECK(ioctl(shared, CIOCASYNCFETCH, &op) == 0 && memcmp(out, CIPHER, 32) == 0);
    pthread_testcancel();
    CHECK(!"cancelled");
    return NULL;
}

static void cancelled_threads(void)
{
    shared = device();
    cancelled_ses = session(shared);
    for (int i = 0; i < 20; i++) {
        pthread_t thread;
        void *result;
        CHECK(pthread_create(&thread, NULL, asks_and_is_cancelled, NULL) == 0);
        CHECK(pthread_join(thread, &result) == 0 && result == PTHREAD_CANCELED);
        byte out[32];
        struct crypt_op op = encrypting(cancelled_ses, PLAIN, 32, out, IV);
        CHECK(ioctl(shared, CIOCASYNCCRYPT, &op) == 0 && ioctl(shared, CIOCASYNCFETCH, &op) == 0);
    }
    pid_t child = fork();
    if (child == 0) {
        works(shared, cancelled_ses);
        _exit(0);
    }
    CHECK(ended(child) == 0);
}

static void *open_and_close(void *unused)
{
    (void)unused;
    for (int turn = 0; turn < 300; turn++) {
        int fd = device(), copy = dup(fd);
        uint32_t ses = session(fd);
        CHECK(close(fd) == 0);
        works(copy, ses);
        CHECK(close(copy) == 0);
    }
    return NULL;
}

/* Descriptors that one thread closes while others use them. */
static void *close_others(void *unused)
{
    (void)unused;
    byte out[32];
    for (int turn = 0; turn < 3000; turn++) {
        int fd = shared;
        encrypt(fd, 1, PLAIN, 32, out, IV);
        struct session_op op = asking(CRYPTO_AES_CBC);
        ioctl(fd, CIOCGSESSION, &op);
        if (turn % 16 == 0) {
            dup2(fd, 700);
            close(700);
        }
    }
    return NULL;
}

static void threads_open_and_close(void)
{
    pthread_t threads[4];
    shared = 701;
    for (int i = 0; i < 4; i++)
        CHECK(pthread_create(&threads[i], NULL, i < 2 ? open_and_close : close_others, NULL) == 0);
    for (int turn = 0; turn < 300; turn++) {
        int fd = device();
        CHECK(dup2(fd, 701) == 701 && close(fd) == 0);
        usleep(100);
    }
    for (int i = 0; i < 4; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
    CHECK(close(701) == 0);
    int fd = device();
    works(fd, session(fd));
}

/* Something to explain. */
static void refused_request(void)
{
    int fd = device();
    struct session_op op = asking(9999);
    FAILS(ioctl(fd, CIOCGSESSION, &op), EINVAL);
    FAILS(encrypt(fd, 77777, PLAIN, 16, (byte[16]){0}, IV), EINVAL);
}

/* What was wrong is no business of a file that has taken the number of standard error. */
static void refused_without_standard_error(void)
{
    CHECK(close(2) == 0 && memfd_create("data", 0) == 2);
    refused_request();
    struct stat data;
    CHECK(fstat(2, &data) == 0 && data.st_size == 0);
}

int main(int argc, char **argv)
{
    const struct scenario all[] = {{"pointers", pointers},
                                   {"lengths", lengths},
                                   {"handler-before", handler_before},
                                   {"handler-after", handler_after},
                                   {"deaths", deaths},
                                   {"fork", fork_goes_on},
                                   {"fork-ctr", fork_in_counter_mode},
                                   {"vfork", vfork_closes},
                                   {"vfork-open", vfork_opens},
                                   {"fork-syscall", fork_by_system_call},
                                   {"fork-threads", forks_while_threads_work},
                                   {"fork-handler", forks_in_signal_handlers},
                                   {"fork-fork", forks_within_forks},
                                   {"cancel", cancelled_threads},
                                   {"fork-library", forks_with_a_library},
                                   {"fork-crowd", forks_in_a_crowd},
                                   {"close-handler", closes_in_signal_handlers},
                                   {"plugin", loads_a_plugin},
                                   {"threads", threads_open_and_close},
                                   {"refused", refused_request},
                                   {"refused-taken", refused_without_standard_error},
                                   {0}};
    return chosen(all, argc, argv);
}
