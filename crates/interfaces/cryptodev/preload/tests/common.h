/* What the test programs share: they run under the preload library, or on a system that has the device, and print what is wrong. */
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
#include <sys/epoll.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/time.h>
#include <sys/wait.h>
#include <unistd.h>

#define CHECK(what) \
    do { \
        if (!(what)) { \
            int number = errno; \
            fprintf(stderr, "%s:%d: not so: %s (errno %d, %s)\n", __FILE__, __LINE__, #what, number, strerror(number)); \
            _exit(1); \
        } \
    } while (0)
/* A call that must fail, with this errno. */
#define FAILS(call, number) CHECK((errno = 0, (call) == -1 && errno == (number)))

typedef unsigned char byte;

/* SP 800-38A F.2.1: the first two blocks of AES-128 in CBC mode. */
static const byte KEY[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
static const byte IV[16] = {0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15};
static const byte PLAIN[32] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a,
                               0xae, 0x2d, 0x8a, 0x57, 0x1e, 0x03, 0xac, 0x9c, 0x9e, 0xb7, 0x6f, 0xac, 0x45, 0xaf, 0x8e, 0x51};
static const byte CIPHER[32] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d,
                                0x50, 0x86, 0xcb, 0x9b, 0x50, 0x72, 0x19, 0xee, 0x95, 0xdb, 0x11, 0x3a, 0x91, 0x76, 0x78, 0xb2};

static inline int device(void)
{
    int fd = open("/dev/crypto", O_RDWR);
    CHECK(fd >= 0);
    return fd;
}

static inline struct session_op asking(uint32_t cipher)
{
    struct session_op op = {.cipher = cipher, .keylen = sizeof KEY, .key = (byte *)KEY};
    return op;
}

static inline uint32_t session_of(int fd, uint32_t cipher)
{
    struct session_op op = asking(cipher);
    CHECK(ioctl(fd, CIOCGSESSION, &op) == 0);
    return op.ses;
}

static inline uint32_t session(int fd) { return session_of(fd, CRYPTO_AES_CBC); }

static inline struct crypt_op encrypting(uint32_t ses, const byte *from, uint32_t length, byte *to, const byte *iv)
{
    struct crypt_op op = {.ses = ses, .op = COP_ENCRYPT, .len = length, .src = (byte *)from, .dst = to, .iv = (byte *)iv};
    return op;
}

static inline int encrypt(int fd, uint32_t ses, const byte *from, uint32_t length, byte *to, const byte *iv)
{
    struct crypt_op op = encrypting(ses, from, length, to, iv);
    return ioctl(fd, CIOCCRYPT, &op);
}

/* The published vector through a session of this descriptor. */
static inline void works(int fd, uint32_t ses)
{
    byte out[32];
    CHECK(encrypt(fd, ses, PLAIN, 32, out, IV) == 0);
    CHECK(memcmp(out, CIPHER, 32) == 0);
}

/* Waits for a child; its wait status. */
static inline int ended(pid_t child)
{
    int status;
    CHECK(child > 0 && waitpid(child, &status, 0) == child);
    return status;
}

static inline short polled(int fd)
{
    struct pollfd one = {.fd = fd, .events = POLLIN | POLLOUT};
    CHECK(poll(&one, 1, 0) >= 0);
    return one.revents;
}

struct scenario {
    const char *name;
    void (*run)(void);
};

/* Runs the scenario that the command line names. One that hangs is killed. */
static inline int chosen(const struct scenario *all, int argc, char **argv)
{
    alarm(120);
    for (; argc > 1 && all->name; all++) {
        if (strcmp(all->name, argv[1]) == 0) {
            all->run();
            return 0;
        }
    }
    fprintf(stderr, "no such scenario\n");
    return 2;
}
