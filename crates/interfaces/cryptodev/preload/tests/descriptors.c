/* Descriptors: opening, copying, closing, polling, inheriting them. */
#include "common.h"
#include <sys/sysmacros.h>
#include <sys/xattr.h>

/* What programs of before glibc 2.33 call. */
extern int __xstat(int version, const char *path, struct stat *status);
extern int __fxstat(int version, int fd, struct stat *status);

static char *self;

static void cipher(void)
{
    int fd = device();
    uint32_t ses = session(fd);
    works(fd, ses);
    byte halves[32];
    CHECK(encrypt(fd, ses, PLAIN, 16, halves, IV) == 0);
    CHECK(encrypt(fd, ses, PLAIN + 16, 16, halves + 16, NULL) == 0);
    CHECK(memcmp(halves, CIPHER, 32) == 0);
    CHECK(ioctl(fd, CIOCFSESSION, &ses) == 0);
    FAILS(encrypt(fd, ses, PLAIN, 16, halves, IV), EINVAL);
    CHECK(close(fd) == 0);
    FAILS(close(fd), EBADF);
}

static void copies(void)
{
    int fd = device(), other = device();
    uint32_t ses = session(fd);
    FAILS(encrypt(other, ses + 1000, PLAIN, 16, (byte[16]){0}, IV), EINVAL);
    int made = -1;
    CHECK(ioctl(fd, CRIOGET, &made) == 0 && made >= 0 && made != fd);
    int all[] = {dup(fd), dup2(fd, 100), dup3(fd, 101, O_CLOEXEC), fcntl(fd, F_DUPFD, 200), fcntl(fd, F_DUPFD_CLOEXEC, 300), made};
    CHECK(fcntl(all[2], F_GETFD) == FD_CLOEXEC && fcntl(all[4], F_GETFD) == FD_CLOEXEC && fcntl(all[0], F_GETFD) == 0);
    CHECK(all[3] >= 200 && all[4] >= 300);
    CHECK(close(fd) == 0);
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        works(all[i], ses);
        CHECK(close(all[i]) == 0);
        FAILS(encrypt(all[i], ses, PLAIN, 16, (byte[16]){0}, IV), EBADF);
    }
    /* A copy over a descriptor of ours ends what it was. */
    fd = device();
    ses = session(fd);
    CHECK(dup2(STDIN_FILENO, fd) == fd);
    FAILS(encrypt(fd, ses, PLAIN, 16, (byte[16]){0}, IV), ENOTTY);
    CHECK(dup2(other, other) == other);
    works(other, session(other));
    FAILS(dup3(other, other, 0), EINVAL);
}

static void separate_opens(void)
{
    int one = device(), two = device();
    uint32_t ses = session(one);
    uint32_t theirs = session(two);
    CHECK(ioctl(two, CIOCFSESSION, &theirs) == 0);
    FAILS(encrypt(two, ses == theirs ? theirs : ses, PLAIN, 16, (byte[16]){0}, IV), EINVAL);
    works(one, ses);
}

/* Closes this thread's copies of the descriptors; its process goes on with them. */
static void *closes_its_own(void *unused)
{
    (void)unused;
    CHECK(close_range(3, ~0U, CLOSE_RANGE_UNSHARE) == 0);
    return NULL;
}

static void ranges(void)
{
    int fd = device(), kept = device();
    uint32_t ses = session(fd), kept_ses = session(kept);
    CHECK(dup2(fd, 500) == 500 && dup2(fd, 501) == 501);
    FAILS(close_range(400, 600, 0x80), EINVAL);
    FAILS(close_range(600, 400, 0), EINVAL);
    pthread_t thread;
    CHECK(pthread_create(&thread, NULL, closes_its_own, NULL) == 0 && pthread_join(thread, NULL) == 0);
    works(500, ses);
    CHECK(close_range(400, 600, 0) == 0);
    FAILS(ioctl(500, CIOCCRYPT, NULL), EBADF);
    works(fd, ses);
    CHECK(close_range(fd, fd, CLOSE_RANGE_CLOEXEC) == 0);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC);
    works(fd, ses);
    CHECK(dup2(kept, 3) == 3 || kept == 3);
    closefrom(4);
    if (fd > 3)
        FAILS(encrypt(fd, ses, PLAIN, 16, (byte[16]){0}, IV), EBADF);
    works(3, kept == 3 ? kept_ses : session(3));
    closefrom(3);
    FAILS(ioctl(3, CIOCCRYPT, NULL), EBADF);
    fd = device();
    works(fd, session(fd));
}

/* A close that the library cannot see, and another file under the number. */
static void behind_our_back(void)
{
    int fd = device();
    session(fd);
    CHECK(syscall(SYS_close, fd) == 0);
    int null = open("/dev/null", O_RDWR);
    CHECK(null == fd);
    char nothing;
    CHECK(read(fd, &nothing, 1) == 0 && write(fd, "x", 1) == 1);
    struct session_op op = asking(CRYPTO_AES_CBC);
    FAILS(ioctl(fd, CIOCGSESSION, &op), ENOTTY);
    int copy = dup(fd);
    FAILS(ioctl(copy, CIOCGSESSION, &op), ENOTTY);
    CHECK(close(fd) == 0 && close(copy) == 0);
    fd = device();
    works(fd, session(fd));
    CHECK(syscall(SYS_close, fd) == 0);
    FAILS(ioctl(fd, CIOCGSESSION, &op), EBADF);
}

static void transfers(void)
{
    int fd = device();
    char some[4] = {0};
    FAILS(read(fd, some, 4), EINVAL);
    FAILS(write(fd, some, 4), EINVAL);
    FAILS(ioctl(fd, 0x1234, some), EINVAL);
    FAILS(ioctl(fd, _IOWR('c', 200, int), some), EINVAL);
    FAILS(ioctl(STDIN_FILENO, CIOCGSESSION, some), ENOTTY);
    int yes = 1;
    CHECK(ioctl(fd, FIONBIO, &yes) == 0 && (fcntl(fd, F_GETFL) & O_NONBLOCK));
    CHECK(ioctl(fd, FIOCLEX) == 0 && fcntl(fd, F_GETFD) == FD_CLOEXEC);
    /* A request that a program keeps in an int. */
    int number = (int)CIOCGSESSION;
    struct session_op op = asking(CRYPTO_AES_CBC);
    CHECK(ioctl(fd, (unsigned long)number, &op) == 0);
}

static void opens(const char *path, int fd)
{
    if (fd < 0)
        fprintf(stderr, "%s: ", path);
    CHECK(fd >= 0);
    works(fd, session(fd));
    CHECK(close(fd) == 0);
}

/* By whatever call, of the path or of an open descriptor: one and the same character device. */
static void looks(void)
{
    int fd = device(), other = open("/dev/null", O_RDONLY);
    struct stat by[7];
    struct statx status;
    CHECK(stat("/dev/crypto", &by[0]) == 0 && lstat("/dev/crypto", &by[1]) == 0 && fstat(fd, &by[2]) == 0);
    CHECK(fstatat(AT_FDCWD, "/dev/crypto", &by[3], AT_SYMLINK_NOFOLLOW) == 0 && fstatat(fd, "", &by[4], AT_EMPTY_PATH) == 0);
    CHECK(__xstat(1, "/dev/crypto", &by[5]) == 0 && __fxstat(1, fd, &by[6]) == 0);
    for (int i = 0; i < 7; i++) {
        CHECK(by[i].st_mode == (S_IFCHR | 0666) && major(by[i].st_rdev) == 10 && by[i].st_size == 0);
        CHECK(by[i].st_ino == by[0].st_ino && by[i].st_dev == by[0].st_dev && by[i].st_rdev == by[0].st_rdev);
    }
    for (int i = 0; i < 2; i++) {
        memset(&status, 0, sizeof status);
        CHECK((i ? statx(fd, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) : statx(AT_FDCWD, "/dev/crypto", 0, STATX_BASIC_STATS, &status)) == 0);
        CHECK(status.stx_mode == (S_IFCHR | 0666) && status.stx_rdev_major == 10 && status.stx_ino == by[0].st_ino);
    }
    struct stat null, open_null;
    CHECK(stat("/dev/null", &null) == 0 && fstat(other, &open_null) == 0 && null.st_ino == open_null.st_ino && null.st_ino != by[0].st_ino);
    CHECK(statx(other, "", AT_EMPTY_PATH, STATX_BASIC_STATS, &status) == 0 && status.stx_ino == null.st_ino);
    FAILS(statx(AT_FDCWD, "/dev/crypto-not", 0, STATX_BASIC_STATS, &status), ENOENT);
    FAILS(statx(AT_FDCWD, "/dev/crypto", 0, STATX_BASIC_STATS, (struct statx *)8), EFAULT);
    FAILS(stat("/dev/crypto", (struct stat *)8), EFAULT);
    FAILS(getxattr("/dev/crypto-not", "user.any", NULL, 0), ENOENT);
    CHECK(close(fd) == 0 && close(other) == 0);
}

static void paths(void)
{
    const char *const names[] = {"/dev/crypto", "/dev//crypto", "//dev/./crypto", "/dev/../dev/crypto", "/proc/self/root/dev/crypto"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        opens(names[i], open(names[i], O_RDWR));
        opens(names[i], open64(names[i], O_RDONLY | O_CLOEXEC));
        opens(names[i], openat(AT_FDCWD, names[i], O_RDWR));
        struct stat there;
        CHECK(access(names[i], R_OK | W_OK) == 0 && euidaccess(names[i], R_OK) == 0 && stat(names[i], &there) == 0 && S_ISCHR(there.st_mode));
        CHECK(getxattr(names[i], "user.any", NULL, 0) == -1 && errno == ENODATA && llistxattr(names[i], NULL, 0) == 0);
    }
    looks();
    FAILS(access("/dev/crypto", X_OK), EACCES);
    int folder = open("/dev", O_RDONLY | O_DIRECTORY);
    CHECK(folder >= 0);
    opens("crypto at /dev", openat(folder, "crypto", O_RDWR));
    struct stat there;
    CHECK(fstatat(folder, "crypto", &there, 0) == 0 && S_ISCHR(there.st_mode));
    CHECK(chdir("/dev") == 0);
    opens("crypto", open("crypto", O_RDWR));
    opens("./crypto", open("./crypto", O_RDWR));
    CHECK(chdir("/tmp") == 0);
    FAILS(open("crypto", O_RDWR), ENOENT);
    FAILS(open("/tmp/crypto", O_RDWR), ENOENT);
    FAILS(open("/dev/xcrypto", O_RDWR), ENOENT);
    FAILS(open("/dev/crypto", O_RDWR | O_DIRECTORY), ENOTDIR);
    FAILS(open((const char *)8, O_RDWR), EFAULT);
    FAILS(openat(AT_FDCWD, (const char *)8, O_RDWR), EFAULT);
    FAILS(access((const char *)8, R_OK), EFAULT);
    FAILS(open((const char *)8, O_RDWR | O_CREAT, 0600), EFAULT);
    opens("one to be made", open("/dev/crypto", O_RDWR | O_CREAT, 0600));
    opens("one to be cut", open("/dev//crypto", O_RDWR | O_CREAT | O_TRUNC, 0600));
    FAILS(open("/dev/crypto", O_RDWR | O_CREAT | O_EXCL, 0600), EEXIST);
    opens("one made by its own call", creat("/dev/crypto", 0600));
    opens("one made by its own call, large", creat64("/dev//crypto", 0600));
    FAILS(creat((const char *)8, 0600), EFAULT);
    FILE *written = fopen("/dev/crypto", "w");
    CHECK(written);
    works(fileno(written), session(fileno(written)));
    CHECK(fclose(written) == 0 && (errno = 0, !fopen("/dev/crypto", "wx") && errno == EEXIST));
    /* The kernel has made no file. */
    CHECK(syscall(SYS_faccessat, AT_FDCWD, "/dev/crypto", F_OK) == -1 && errno == ENOENT);
    FILE *stream = fopen("/dev/crypto", "r+");
    CHECK(stream);
    works(fileno(stream), session(fileno(stream)));
    CHECK(fclose(stream) == 0);
    int fd = open("/dev/crypto", O_RDWR | O_CLOEXEC | O_NONBLOCK);
    CHECK(fcntl(fd, F_GETFD) == FD_CLOEXEC && (fcntl(fd, F_GETFL) & O_NONBLOCK));
    CHECK(fstat(fd, &there) == 0 && S_ISCHR(there.st_mode));
    close(fd);
    fd = device();
    CHECK(fcntl(fd, F_GETFD) == 0);
}

static void errno_stays(void)
{
    errno = 77;
    int fd = open("/dev/crypto", O_RDWR);
    CHECK(fd >= 0 && errno == 77);
    struct session_op op = asking(CRYPTO_AES_CBC);
    CHECK(ioctl(fd, CIOCGSESSION, &op) == 0 && errno == 77);
    works(fd, op.ses);
    CHECK(errno == 77);
    int copy = dup(fd);
    CHECK(errno == 77 && close(copy) == 0 && errno == 77 && close(fd) == 0 && errno == 77);
}

/* The asynchronous pair, as poll, select and epoll see it. */
static void polling(void)
{
    int fd = device();
    uint32_t ses = session(fd);
    CHECK(polled(fd) == POLLOUT);
    int set = epoll_create1(0);
    struct epoll_event event = {.events = EPOLLIN, .data.fd = fd};
    CHECK(epoll_ctl(set, EPOLL_CTL_ADD, fd, &event) == 0 && epoll_wait(set, &event, 1, 0) == 0);
    byte out[64][32];
    struct crypt_op fetched;
    FAILS(ioctl(fd, CIOCASYNCFETCH, &fetched), EBUSY);
    for (int i = 0; i < 64; i++) {
        struct crypt_op op = encrypting(ses, PLAIN, 32, out[i], IV);
        CHECK(ioctl(fd, CIOCASYNCCRYPT, &op) == 0);
    }
    struct pollfd one = {.fd = fd, .events = POLLIN};
    CHECK(poll(&one, 1, 10000) == 1);
    CHECK(epoll_wait(set, &event, 1, 10000) == 1);
    fd_set read_set, write_set;
    FD_ZERO(&read_set);
    FD_ZERO(&write_set);
    FD_SET(fd, &read_set);
    FD_SET(fd, &write_set);
    CHECK(select(fd + 1, &read_set, &write_set, NULL, &(struct timeval){0}) == 1 && FD_ISSET(fd, &read_set) && !FD_ISSET(fd, &write_set));
    struct crypt_op more = encrypting(ses, PLAIN, 32, out[0], IV);
    FAILS(ioctl(fd, CIOCASYNCCRYPT, &more), EBUSY);
    for (int i = 0; i < 64; i++) {
        CHECK(poll(&one, 1, 10000) == 1);
        CHECK(ioctl(fd, CIOCASYNCFETCH, &fetched) == 0 && memcmp(out[i], CIPHER, 32) == 0);
        CHECK(polled(fd) & POLLOUT);
    }
    CHECK(polled(fd) == POLLOUT && epoll_wait(set, &event, 1, 0) == 0);
}

/* What one of parent and child has under way, the other does not see. */
static void polling_after_fork(void)
{
    int fd = device();
    uint32_t ses = session(fd);
    byte out[32];
    struct crypt_op op = encrypting(ses, PLAIN, 32, out, IV);
    pid_t child = fork();
    if (child == 0) {
        CHECK(ioctl(fd, CIOCASYNCCRYPT, &op) == 0);
        CHECK(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1);
        usleep(100000);
        _exit(0);
    }
    usleep(50000);
    CHECK(polled(fd) == POLLOUT);
    CHECK(ended(child) == 0 && polled(fd) == POLLOUT);
    CHECK(ioctl(fd, CIOCASYNCCRYPT, &op) == 0);
    CHECK(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1);
    /* A child sees what was done when it was made, and takes it without taking it away. */
    child = fork();
    if (child == 0) {
        CHECK((polled(fd) & POLLIN) && ioctl(fd, CIOCASYNCFETCH, &op) == 0 && polled(fd) == POLLOUT);
        _exit(0);
    }
    CHECK(ended(child) == 0 && (polled(fd) & POLLIN));
}

static void executes(const char *how, int fd, int closed)
{
    char number[16], gone[16];
    snprintf(number, sizeof number, "%d", fd);
    snprintf(gone, sizeof gone, "%d", closed);
    execl(self, self, how, number, gone, NULL);
    CHECK(!"exec");
}

/* A program that has inherited the descriptor by exec can use it; the sessions are not its own, nor what was under way. */
static void exec(void)
{
    int fd = device(), closed = open("/dev/crypto", O_RDWR | O_CLOEXEC);
    uint32_t ses = session(fd);
    byte out[32];
    for (int i = 0; i < 64; i++) {
        struct crypt_op op = encrypting(ses, PLAIN, 32, out, IV);
        CHECK(ioctl(fd, CIOCASYNCCRYPT, &op) == 0);
    }
    CHECK(!(polled(fd) & POLLOUT));
    executes("inherited", fd, closed);
}

static void inherited(int fd, int closed)
{
    FAILS(ioctl(closed, CIOCGSESSION, NULL), EBADF);
    works(fd, session(fd));
    CHECK(polled(fd) == POLLOUT);
    int copy = dup(fd);
    CHECK(close(fd) == 0);
    works(copy, session(copy));
}

/* One that reads and writes it before it asks anything waits for nothing. */
static void exec_to_read(void) { executes("inherited-idle", device(), 999); }

static void inherited_idle(int fd)
{
    byte text[1000] = {0};
    FAILS(read(fd, text, 1), EAGAIN);
    while (write(fd, text, sizeof text) > 0)
        ;
    CHECK(errno == EAGAIN);
    works(fd, session(fd));
    CHECK(polled(fd) == POLLOUT);
}

/* The parent of one that was not forked but started goes on with the same socket: what it has under way is still shown. */
static void exec_beside(void)
{
    int fd = device(), closed = open("/dev/crypto", O_RDWR | O_CLOEXEC);
    uint32_t ses = session(fd);
    byte out[32];
    struct crypt_op op = encrypting(ses, PLAIN, 32, out, IV);
    CHECK(ioctl(fd, CIOCASYNCCRYPT, &op) == 0);
    CHECK(poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, 10000) == 1);
    pid_t child = vfork();
    if (child == 0)
        executes("inherited", fd, closed);
    CHECK(ended(child) == 0);
    CHECK(polled(fd) == (POLLIN | POLLOUT) && ioctl(fd, CIOCASYNCFETCH, &op) == 0 && polled(fd) == POLLOUT);
}

/* Threads that use a descriptor for the first time at once: the session of each stays. A copy that the library has not seen being made is as an inherited one. */
enum { AT_ONCE = 4, ROUNDS = 1000 };
static pthread_barrier_t together;
static volatile int unknown;

static void *first_use(void *unused)
{
    for (int round = 0; round < ROUNDS; round++) {
        pthread_barrier_wait(&together);
        uint32_t ses = session(unknown);
        works(unknown, ses);
        pthread_barrier_wait(&together);
        works(unknown, ses);
        pthread_barrier_wait(&together);
    }
    return unused;
}

static void first_uses(void)
{
    int fd = device();
    pthread_t threads[AT_ONCE];
    CHECK(pthread_barrier_init(&together, NULL, AT_ONCE + 1) == 0);
    for (int i = 0; i < AT_ONCE; i++)
        CHECK(pthread_create(&threads[i], NULL, first_use, NULL) == 0);
    for (int round = 0; round < ROUNDS; round++) {
        unknown = syscall(SYS_dup, fd);
        CHECK(unknown >= 0);
        for (int wait = 0; wait < 3; wait++)
            pthread_barrier_wait(&together);
        CHECK(close(unknown) == 0);
    }
    for (int i = 0; i < AT_ONCE; i++)
        CHECK(pthread_join(threads[i], NULL) == 0);
}

/* Descriptions whose descriptors were closed by fclose, and are found out by a read of the file that has the number then: more of them than there can be at once. */
static void found_out_by_reads(void)
{
    for (int turn = 0; turn < 1100; turn++) {
        FILE *stream = fopen("/dev/crypto", "r+");
        CHECK(stream);
        int fd = fileno(stream);
        CHECK(fclose(stream) == 0);
        char nothing;
        CHECK(open("/dev/null", O_RDWR) == fd && read(fd, &nothing, 1) == 0 && close(fd) == 0);
    }
}

int main(int argc, char **argv)
{
    self = "/proc/self/exe";
    if (argc == 4 && strcmp(argv[1], "inherited") == 0) {
        alarm(120);
        inherited(atoi(argv[2]), atoi(argv[3]));
        return 0;
    }
    if (argc == 4 && strcmp(argv[1], "inherited-idle") == 0) {
        alarm(120);
        inherited_idle(atoi(argv[2]));
        return 0;
    }
    const struct scenario all[] = {{"cipher", cipher},   {"copies", copies},           {"separate-opens", separate_opens},
                                   {"ranges", ranges},   {"behind", behind_our_back},  {"transfers", transfers},
                                   {"paths", paths},     {"errno", errno_stays},       {"polling", polling},
                                   {"exec", exec},       {"polling-fork", polling_after_fork}, {"exec-beside", exec_beside}, {"exec-read", exec_to_read},
                                   {"first-uses", first_uses}, {"found-out", found_out_by_reads}, {0}};
    return chosen(all, argc, argv);
}
