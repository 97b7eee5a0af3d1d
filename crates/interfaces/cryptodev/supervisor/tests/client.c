// A program that nothing can be loaded into: linked statically by the tests, which run it under the supervisor.
//
// Each part says what is wrong on stderr and exits with 1; what the dispatcher does not know is exit status 77.
#define _GNU_SOURCE
#include <crypto/cryptodev.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define CHECK(what) do { if (!(what)) { fprintf(stderr, "client.c:%d: %s: %s\n", __LINE__, #what, strerror(errno)); exit(1); } } while (0)
#define FAILS(call, number) do { errno = 0; CHECK((call) == -1 && errno == (number)); } while (0)

// SP 800-38A F.2.1: AES-128-CBC, first block.
static const uint8_t KEY[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const uint8_t IV[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const uint8_t PLAIN[16] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a};
static const uint8_t CIPHER[16] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d};

static int device(void) {
    int fd = open("/dev/crypto", O_RDWR);
    CHECK(fd >= 0);
    return fd;
}

static uint32_t session(int fd) {
    struct session_op op = {.cipher = CRYPTO_AES_CBC, .keylen = 16, .key = (void *)KEY};
    CHECK(ioctl(fd, CIOCGSESSION, &op) == 0);
    return op.ses;
}

static int encrypt(int fd, uint32_t ses, const uint8_t *in, uint8_t *out, size_t length) {
    struct crypt_op op = {.ses = ses, .op = COP_ENCRYPT, .len = length, .src = (void *)in, .dst = out, .iv = (void *)IV};
    return ioctl(fd, CIOCCRYPT, &op);
}

static void right(int fd, uint32_t ses) {
    uint8_t out[16];
    CHECK(encrypt(fd, ses, PLAIN, out, 16) == 0);
    CHECK(memcmp(out, CIPHER, 16) == 0);
}

static void once(void) {
    int fd = device();
    right(fd, session(fd));
    struct stat stat;
    CHECK(fstat(fd, &stat) == 0);
    CHECK((fcntl(fd, F_GETFD) & FD_CLOEXEC) == 0);
    CHECK(close(fd) == 0);
    fd = syscall(SYS_openat, AT_FDCWD, "/dev/crypto", O_RDWR | O_CLOEXEC, 0);
    CHECK(fd >= 0 && (fcntl(fd, F_GETFD) & FD_CLOEXEC));
    uint64_t how[3] = {O_RDWR};
    fd = syscall(SYS_openat2, AT_FDCWD, "/dev/crypto", how, sizeof how);
    CHECK(fd >= 0);
    right(fd, session(fd));
#ifdef SYS_creat
    fd = syscall(SYS_creat, "/dev/crypto", 0600);
    CHECK(fd >= 0);
    right(fd, session(fd));
    CHECK(access("/dev/crypto", F_OK) == -1); // No file was made.
#endif
}

static void elsewhere(void) {
    struct crypt_op op = {0};
    int null = open("/dev/null", O_RDWR), fd = device();
    CHECK(null >= 0);
    FAILS(ioctl(null, CIOCCRYPT, &op), ENOTTY);
    FAILS(ioctl(-1, CIOCCRYPT, &op), EBADF);
    FAILS(ioctl(1000, CIOCCRYPT, &op), EBADF);
    FAILS(ioctl(fd, _IOWR('c', 250, uint32_t), &op), EINVAL);
    FAILS(open("/dev/crypto", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    FAILS(open("/dev/crypto", O_RDONLY | O_DIRECTORY), ENOTDIR);
    FAILS(open("/dev/crypto-not", O_RDWR), ENOENT);
    FAILS(open((char *)16, O_RDWR), EFAULT);
    // In a folder that is taken for the root, and with a structure that is none.
    int folder = open("/tmp", O_RDONLY | O_DIRECTORY);
    uint64_t how[3] = {O_RDWR, 0, 0x10};
    CHECK(folder >= 0);
    FAILS(syscall(SYS_openat2, folder, "/dev/crypto", how, sizeof how), ENOENT);
    how[2] = 0;
    FAILS(syscall(SYS_openat2, folder, "/dev/crypto", how, 8), EINVAL);
    // The number now means another description: the request follows it.
    int other = device();
    uint32_t ses = session(other);
    session(fd), session(fd);
    int kept = dup(fd);
    CHECK(dup2(other, fd) == fd);
    right(fd, ses);
    CHECK(dup2(null, fd) == fd);
    FAILS(ioctl(fd, CIOCCRYPT, &op), ENOTTY);
    session(kept);
}

static void faults(void) {
    int fd = device();
    uint32_t ses = session(fd);
    uint8_t out[16];
    FAILS(ioctl(fd, CIOCCRYPT, NULL), EFAULT);
    FAILS(ioctl(fd, CIOCCRYPT, (void *)8), EFAULT);
    FAILS(encrypt(fd, ses, (void *)64, out, 16), EFAULT);
    FAILS(encrypt(fd, ses, PLAIN, (void *)64, 16), EFAULT);
    FAILS(encrypt(fd, ses, PLAIN, (void *)PLAIN, 16), EFAULT);  // read-only memory
    FAILS(encrypt(fd, ses, PLAIN, out, 15), EINVAL);
    FAILS(encrypt(fd, ses + 1000, PLAIN, out, 16), EINVAL);
    // A text that begins just before a page that is not there.
    uint8_t *pages = mmap(NULL, 8192, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(pages != MAP_FAILED && munmap(pages + 4096, 4096) == 0);
    FAILS(encrypt(fd, ses, pages + 4088, out, 16), EFAULT);
    memcpy(pages + 4080, PLAIN, 16);
    CHECK(encrypt(fd, ses, pages + 4080, out, 16) == 0 && memcmp(out, CIPHER, 16) == 0);
    // The structure itself at the end of a page, and in the first bytes of one.
    struct crypt_op op = {.ses = ses, .len = 16, .src = (void *)PLAIN, .dst = out, .iv = (void *)IV};
    memcpy(pages + 4096 - sizeof op, &op, sizeof op);
    CHECK(ioctl(fd, CIOCCRYPT, pages + 4096 - sizeof op) == 0);
    memcpy(pages, &op, sizeof op);
    CHECK(ioctl(fd, CIOCCRYPT, pages) == 0);
    FAILS(ioctl(fd, CIOCCRYPT, pages + 4096 - sizeof op + 1), EFAULT);
    right(fd, ses);
}

// One field after the other points to memory that cannot be written, the last time the structure itself.
static void unwritable(void) {
    int fd = device();
    uint32_t ses = session(fd);
    uint8_t out[16], *page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    struct session_op hash = {.mac = CRYPTO_SHA1};
    CHECK(page != MAP_FAILED && ioctl(fd, CIOCGSESSION, &hash) == 0);
    struct crypt_op op = {.ses = ses, .len = 16, .src = (void *)PLAIN, .dst = (void *)64, .iv = (void *)IV};
    FAILS(ioctl(fd, CIOCCRYPT, &op), EFAULT);
    struct crypt_op digest = {.ses = hash.ses, .len = 16, .src = (void *)PLAIN, .mac = (void *)128};
    FAILS(ioctl(fd, CIOCCRYPT, &digest), EFAULT);
    op.dst = out, op.iv = page, op.flags = COP_FLAG_WRITE_IV;
    memcpy(page + 64, &op, sizeof op);
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    FAILS(ioctl(fd, CIOCCRYPT, &op), EFAULT);
    CHECK(mprotect(page, 4096, PROT_READ | PROT_WRITE) == 0);
    ((struct crypt_op *)(page + 64))->flags = 0;
    CHECK(mprotect(page, 4096, PROT_READ) == 0);
    FAILS(ioctl(fd, CIOCCRYPT, page + 64), EFAULT);
}

// The same buffers again and again, with other texts in them, other lengths, and then without memory behind them: where the next request's text may be is guessed.
static void again(void) {
    enum { AGAIN = 4, MOST = 4096 };
    int fd = device();
    uint32_t ses = session(fd);
    static uint8_t first[MOST], out[MOST];
    uint8_t *page = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    uint8_t *iv = mmap(NULL, MOST, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    CHECK(page != MAP_FAILED && iv != MAP_FAILED);
    struct crypt_op op = {.ses = ses, .src = page, .dst = out, .iv = iv};
    for (op.len = 16; op.len <= MOST; op.len += op.len < 256 ? 16 : 768) {
        for (int i = 0; i < AGAIN; i++) {
            memcpy(page, PLAIN, 16), memcpy(iv, IV, 16);
            page[0] ^= i, iv[0] ^= i;
            memset(out, 0, sizeof out);
            CHECK(ioctl(fd, CIOCCRYPT, &op) == 0);
            // What both change is the same for the cipher, block after block.
            CHECK(memcmp(out, CIPHER, 16) == 0 && memcmp(out, i ? first : out, op.len) == 0);
            memcpy(first, out, op.len);
        }
    }
    op.len = 16, op.src = page + MOST - 16;
    memcpy(op.src, PLAIN, 16), memcpy(iv, IV, 16);
    for (int i = 0; i < AGAIN; i++)
        CHECK(ioctl(fd, CIOCCRYPT, &op) == 0 && memcmp(out, CIPHER, 16) == 0);
    op.len = 32;
    FAILS(ioctl(fd, CIOCCRYPT, &op), EFAULT);
    op.len = 16;
    for (int i = 0; i < AGAIN; i++)
        CHECK(ioctl(fd, CIOCCRYPT, &op) == 0 && memcmp(out, CIPHER, 16) == 0);
    CHECK(mprotect(page, MOST, PROT_NONE) == 0);
    FAILS(ioctl(fd, CIOCCRYPT, &op), EFAULT);
    right(fd, ses);
    CHECK(mprotect(page, MOST, PROT_READ) == 0 && mprotect(iv, MOST, PROT_NONE) == 0);
    FAILS(ioctl(fd, CIOCCRYPT, &op), EFAULT);
    right(fd, ses);
    CHECK(mprotect(iv, MOST, PROT_READ) == 0);
    CHECK(ioctl(fd, CIOCCRYPT, &op) == 0 && memcmp(out, CIPHER, 16) == 0);
}

// Nobody is there to answer.
static void unanswered(void) {
    FAILS(open("/dev/crypto", O_RDWR), ENOSYS);
    FAILS(open("/dev/null", O_RDWR), ENOSYS);
}

static void forks(void) {
    int fd = device();
    uint32_t ses = session(fd);
    right(fd, ses);
    pid_t child = fork();
    for (int i = 0; i < 200; i++)
        right(fd, ses);
    if (child == 0)
        _exit(0);
    int status;
    CHECK(waitpid(child, &status, 0) == child && status == 0);
    right(fd, ses);
    // The child's copy keeps the description alive after ours is closed.
    int pipes[2];
    CHECK(pipe(pipes) == 0);
    child = fork();
    if (child == 0) {
        char byte;
        CHECK(read(pipes[0], &byte, 1) == 1);
        right(fd, ses);
        _exit(0);
    }
    close(fd);
    CHECK(write(pipes[1], "x", 1) == 1);
    CHECK(waitpid(child, &status, 0) == child && status == 0);
}

static void dups(void) {
    int fd = device(), copy = dup(fd), clone = -1;
    uint32_t ses = session(copy);
    CHECK(ioctl(fd, CRIOGET, &clone) == 0 && clone > copy);
    FAILS(ioctl(fd, CRIOGET, (void *)8), EFAULT);
    right(fd, ses), right(copy, ses), right(clone, ses);
    close(fd), close(copy);
    right(clone, ses);
    int stranger = device();
    uint8_t out[16];
    FAILS(encrypt(stranger, ses, PLAIN, out, 16), EINVAL);
    close(clone);
    // Descriptors that must be free again.
    CHECK(device() == copy);
}

static void *work(void *shared) {
    int fd = shared ? *(int *)shared : device();
    uint32_t ses = session(fd);
    uint8_t big[16384] = {0}, out[16384];
    for (int i = 0; i < 300; i++) {
        right(fd, ses);
        if (i % 30 == 0)
            CHECK(encrypt(fd, ses, big, out, sizeof big) == 0);
    }
    return NULL;
}

static void threads(void) {
    pthread_t all[16];
    int fd = device();
    for (int i = 0; i < 16; i++)
        CHECK(pthread_create(&all[i], NULL, work, i % 2 ? &fd : NULL) == 0);
    for (int i = 0; i < 16; i++)
        pthread_join(all[i], NULL);
}

static void asynchronous(void) {
    int fd = device();
    uint32_t ses = session(fd);
    struct pollfd poller = {.fd = fd, .events = POLLIN | POLLOUT};
    CHECK(poll(&poller, 1, 0) == 1 && poller.revents == POLLOUT);
    uint8_t out[64][16];
    for (int round = 0; round < 2; round++) {
        int taken = 0;
        for (; taken <= 64; taken++) {
            struct crypt_op op = {.ses = ses, .op = COP_ENCRYPT, .len = 16, .src = (void *)PLAIN, .dst = out[taken % 64], .iv = (void *)IV};
            if (ioctl(fd, CIOCASYNCCRYPT, &op) != 0) {
                if (taken == 0 && errno == EINVAL)
                    exit(77);
                CHECK(errno == EBUSY);
                break;
            }
        }
        CHECK(taken == 64);
        CHECK(poll(&poller, 1, 10000) == 1 && (poller.revents & POLLIN));
        for (int i = 0; i < 64; i++) {
            struct crypt_op op = {0};
            struct pollfd done = {.fd = fd, .events = POLLIN};
            CHECK(poll(&done, 1, 10000) == 1 && done.revents == POLLIN);
            CHECK(ioctl(fd, CIOCASYNCFETCH, &op) == 0);
            CHECK(memcmp(out[i], CIPHER, 16) == 0);
        }
        CHECK(poll(&poller, 1, 0) == 1 && poller.revents == POLLOUT);
        struct crypt_op op = {0};
        FAILS(ioctl(fd, CIOCASYNCFETCH, &op), EBUSY);
    }
}

static void submit(int fd, uint32_t ses, uint8_t *out) {
    struct crypt_op op = {.ses = ses, .op = COP_ENCRYPT, .len = 16, .src = (void *)PLAIN, .dst = out, .iv = (void *)IV};
    if (ioctl(fd, CIOCASYNCCRYPT, &op) != 0)
        exit(errno == EINVAL ? 77 : 1);
}

// What the program itself reads and writes of the socket spoils poll no longer than until the next request.
static void reads(void) {
    int fd = device();
    uint32_t ses = session(fd);
    uint8_t out[2][16], bytes[4096] = {0};
    struct pollfd poller = {.fd = fd, .events = POLLIN | POLLOUT};
    submit(fd, ses, out[0]);
    CHECK(read(fd, bytes, sizeof bytes) > 0);
    FAILS(read(fd, bytes, sizeof bytes), EAGAIN);
    while (write(fd, bytes, sizeof bytes) > 0);
    CHECK(errno == EAGAIN);
    submit(fd, ses, out[1]);
    CHECK(poll(&poller, 1, 10000) == 1 && poller.revents == (POLLIN | POLLOUT));
    for (int i = 0; i < 2; i++) {
        struct crypt_op op = {0};
        CHECK(ioctl(fd, CIOCASYNCFETCH, &op) == 0);
    }
    CHECK(memcmp(out[0], CIPHER, 16) == 0 && memcmp(out[1], CIPHER, 16) == 0);
    CHECK(poll(&poller, 1, 0) == 1 && poller.revents == POLLOUT);
}

static void need_linux(int major, int minor) {
    struct utsname name;
    int numbers[2] = {0};
    CHECK(uname(&name) == 0 && sscanf(name.release, "%d.%d", &numbers[0], &numbers[1]) == 2);
    if (numbers[0] < major || (numbers[0] == major && numbers[1] < minor)) {
        fprintf(stderr, "client.c: this part needs Linux %d.%d\n", major, minor);
        exit(77);
    }
}

static void *own_table(void *unused) {
    CHECK(unshare(CLONE_FILES) == 0);
    dups();
    return unused;
}

// A thread whose process has lost its first one.
static void *survives(void *unused) {
    char text[512], state = 0;
    while (state != 'Z') {
        int stat = open("/proc/self/stat", O_RDONLY);
        ssize_t length = read(stat, text, sizeof text - 1);
        CHECK(length > 0);
        text[length] = 0;
        state = strrchr(text, ')')[2];
        close(stat);
        usleep(1000);
    }
    dups();
    exit(0);
    return unused;
}

static void survivors(void) {
    pthread_t thread;
    need_linux(6, 9);
    CHECK(pthread_create(&thread, NULL, own_table, NULL) == 0 && pthread_join(thread, NULL) == 0);
    CHECK(pthread_create(&thread, NULL, survives, NULL) == 0);
    pthread_exit(NULL);
}

// At the same address in this program when it executes itself.
static volatile uint8_t arena[16 << 20];
static int arena_fd;
static uint32_t arena_ses;

static void *executes(void *unused) {
    while (arena[0] == 0);
    char fd[16], ses[16];
    snprintf(fd, sizeof fd, "%d", arena_fd), snprintf(ses, sizeof ses, "%u", arena_ses);
    execl("/proc/self/exe", "client", "executed", fd, ses, NULL);
    perror("execl"), exit(1);
    return unused;
}

// The first thread's number passes to the thread that executes, in the middle of a request.
static void execute(void) {
    pthread_t thread;
    arena_fd = device(), arena_ses = session(arena_fd);
    CHECK(pthread_create(&thread, NULL, executes, NULL) == 0);
    encrypt(arena_fd, arena_ses, (uint8_t *)arena, (uint8_t *)arena, sizeof arena);
    pause();
}

static void executed(int fd, uint32_t ses) {
    // The session does one thing after the other: behind this, the request of before is over.
    right(fd, ses);
    // A piece may have been on its way at that very moment; of thousands.
    size_t written = 0;
    for (size_t i = 0; i < sizeof arena; i++)
        written += arena[i] != 0;
    CHECK(written <= 8192);
}

static volatile sig_atomic_t alarms;
static void on_alarm(int number) { alarms += number == SIGALRM; }

static void interrupted(void) {
    struct sigaction action = {.sa_handler = on_alarm, .sa_flags = SA_RESTART};
    struct itimerval timer = {.it_interval = {.tv_usec = 200}, .it_value = {.tv_usec = 200}};
    CHECK(sigaction(SIGALRM, &action, NULL) == 0 && setitimer(ITIMER_REAL, &timer, NULL) == 0);
    int fd = device();
    uint32_t ses = session(fd);
    uint8_t big[65536] = {0}, out[65536];
    for (int i = 0; i < 500 || alarms < 20; i++) {
        right(fd, ses);
        CHECK(encrypt(fd, ses, big, out, sizeof big) == 0);
        CHECK(session(fd) != ses);
    }
}

static void leak(void) {
    for (int i = 0; i < 10000; i++) {
        int fd = device();
        uint32_t ses = session(fd);
        if (i % 100 == 0)
            right(fd, ses);
        CHECK(close(fd) == 0);
    }
}

// What is opened is a descriptor of its own, and closed again, whatever becomes of who answers meanwhile; for as many seconds as a test takes.
static void *opens(void *end) {
    while (time(NULL) < *(time_t *)end) {
        int fd = device();
        CHECK(fd > 2 && close(fd) == 0);
    }
    return NULL;
}

static void storm(void) {
    pthread_t all[8];
    time_t end = time(NULL) + 4;
    for (int i = 0; i < 8; i++)
        CHECK(pthread_create(&all[i], NULL, opens, &end) == 0);
    for (int i = 0; i < 8; i++)
        pthread_join(all[i], NULL);
}

// Tells that it is there, waits for a line, and goes on: for tests that kill somebody meanwhile.
static void waits(void) {
    int fd = device();
    uint32_t ses = session(fd);
    right(fd, ses);
    puts("ready"), fflush(stdout);
    getchar();
    uint8_t out[16];
    errno = 0;
    int result = encrypt(fd, ses, PLAIN, out, 16);
    printf("%s\n", result == 0 ? "answered" : strerror(errno));
    errno = 0;
    result = open("/etc/passwd", O_RDONLY);
    printf("%s\n", result >= 0 ? "opened" : strerror(errno));
}

static void forever(void) {
    int fd = device();
    uint32_t ses = session(fd);
    uint8_t big[65536] = {0}, out[65536];
    puts("ready"), fflush(stdout);
    for (;;)
        CHECK(encrypt(fd, ses, big, out, sizeof big) == 0);
}

static int by_number(const void *a, const void *b) {
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

// Median nanoseconds of a call, by batches of 100.
static void bench(size_t length) {
    enum { BATCHES = 201, CALLS = 100 };
    int fd = device();
    uint32_t ses = session(fd);
    uint8_t *text = calloc(2, length);
    double times[BATCHES];
    for (int batch = 0; batch < BATCHES; batch++) {
        struct timespec begin, end;
        clock_gettime(CLOCK_MONOTONIC, &begin);
        for (int i = 0; i < CALLS; i++)
            CHECK(encrypt(fd, ses, text, text + length, length) == 0);
        clock_gettime(CLOCK_MONOTONIC, &end);
        times[batch] = ((end.tv_sec - begin.tv_sec) * 1e9 + (end.tv_nsec - begin.tv_nsec)) / CALLS;
    }
    qsort(times, BATCHES, sizeof *times, by_number);
    printf("%.0f\n", times[BATCHES / 2]);
}

int main(int count, char **words) {
    const struct { const char *name; void (*part)(void); } PARTS[] = {
        {"once", once}, {"elsewhere", elsewhere}, {"faults", faults}, {"forks", forks}, {"dups", dups}, {"threads", threads},
        {"asynchronous", asynchronous}, {"interrupted", interrupted}, {"leak", leak}, {"waits", waits}, {"forever", forever},
        {"unwritable", unwritable}, {"again", again}, {"unanswered", unanswered}, {"reads", reads}, {"survivors", survivors}, {"execute", execute},
        {"storm", storm},
    };
    if (count == 3 && strcmp(words[1], "bench") == 0)
        return bench(strtoul(words[2], NULL, 10)), 0;
    if (count == 4 && strcmp(words[1], "executed") == 0)
        return executed(atoi(words[2]), strtoul(words[3], NULL, 10)), 0;
    for (size_t i = 0; count == 2 && i < sizeof PARTS / sizeof *PARTS; i++)
        if (strcmp(words[1], PARTS[i].name) == 0)
            return PARTS[i].part(), 0;
    fprintf(stderr, "client: no such part\n");
    return 2;
}
