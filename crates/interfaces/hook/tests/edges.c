/* Calls at the edges of what is served, part by part: the volume's folder, one outside and the part are the arguments. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/select.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <sys/wait.h>
#include <unistd.h>

#define IS(condition) do { if (!(condition)) { printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno)); exit(1); } } while (0)
#define FAILS(call, number) do { errno = 0; IS((call) == -1); IS(errno == number); } while (0)
#define LARGE (2 * 1024 * 1024 + 512 * 1024)
#define WRITERS 3
#define WRITES 6

static const char *volume, *outside;
static char one[4096], other[4096];

static char *put(char *path, const char *folder, const char *name) {
    snprintf(path, sizeof one, "%s/%s", folder, name);
    return path;
}

static char *in(const char *name) { return put(one, volume, name); }
static char *also_in(const char *name) { return put(other, volume, name); }

static void make(const char *name, const char *text) {
    int fd = open(in(name), O_WRONLY | O_CREAT | O_TRUNC, 0600);
    IS(fd >= 0 && write(fd, text, strlen(text)) == (ssize_t)strlen(text) && close(fd) == 0);
}

/* One file of two names, and folders in each other. */
static void renames(void) {
    make("a", "attack at dawn");
    IS(link(in("a"), also_in("b")) == 0);
    IS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("b"), RENAME_EXCHANGE) == 0);
    IS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("a"), RENAME_EXCHANGE) == 0);
    FAILS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("b"), RENAME_NOREPLACE), EEXIST);
    FAILS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("a"), RENAME_NOREPLACE), EEXIST);
    FAILS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("b"), RENAME_NOREPLACE | RENAME_EXCHANGE), EINVAL);
    FAILS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("none"), RENAME_EXCHANGE), ENOENT);
    IS(rename(in("a"), also_in("b")) == 0 && access(in("a"), F_OK) == 0 && access(in("b"), F_OK) == 0);
    IS(mkdir(in("folder"), 0700) == 0 && mkdir(in("folder/below"), 0700) == 0);
    FAILS(renameat2(AT_FDCWD, in("folder/below"), AT_FDCWD, also_in("folder"), RENAME_EXCHANGE), EINVAL);
    FAILS(renameat2(AT_FDCWD, in("folder"), AT_FDCWD, also_in("folder/below"), RENAME_EXCHANGE), EINVAL);
    FAILS(rename(in("folder/below"), also_in("folder")), ENOTEMPTY);
    IS(renameat2(AT_FDCWD, in("a"), AT_FDCWD, also_in("folder/below"), RENAME_EXCHANGE) == 0);
    struct stat status;
    IS(stat(in("a"), &status) == 0 && S_ISDIR(status.st_mode) && stat(in("folder/below"), &status) == 0 && S_ISREG(status.st_mode));
}

/* A slash behind a name, and flags that a folder is not opened with. */
static void slashes(void) {
    make("file", "text");
    IS(mkdir(in("folder"), 0700) == 0);
    FAILS(symlink("x", in("new/")), ENOENT);
    FAILS(symlink("x", in("folder/")), EEXIST);
    FAILS(mknod(in("new/"), S_IFREG | 0600, 0), ENOENT);
    FAILS(link(in("file"), also_in("new/")), ENOENT);
    FAILS(link(in("file"), also_in("folder/")), EEXIST);
    FAILS(access(in("new"), F_OK), ENOENT);
    FAILS(open(in("folder"), O_RDONLY | O_TRUNC), EISDIR);
    int fd = open(in("folder"), O_RDWR | O_TRUNC | O_PATH);
    IS(fd >= 0 && close(fd) == 0);
}

/* A path that has the folder which it begins at for its root. */
static void in_root(void) {
    const char *name = strrchr(volume, '/');
    char above[4096], path[4096];
    snprintf(above, sizeof above, "%.*s", (int)(name - volume), volume);
    struct open_how how = {.flags = O_WRONLY | O_CREAT, .mode = 0600, .resolve = RESOLVE_IN_ROOT};
    int folder = open(above, O_PATH | O_DIRECTORY);
    IS(folder >= 0);
    snprintf(path, sizeof path, "%s/leaked", name);
    FAILS(syscall(SYS_openat2, folder, path, &how, sizeof how), ENOSYS);
    snprintf(path, sizeof path, "../../..%s/leaked", name);
    FAILS(syscall(SYS_openat2, folder, path, &how, sizeof how), ENOSYS);
    /* By a link that means something else without such a root. */
    IS(symlink(name, put(one, outside, "leads in")) == 0);
    snprintf(path, sizeof path, "%s/leads in/leaked", strrchr(outside, '/'));
    FAILS(syscall(SYS_openat2, folder, path, &how, sizeof how), ENOSYS);
    int root = open("/", O_PATH | O_DIRECTORY);
    IS(root >= 0);
    FAILS(syscall(SYS_openat2, root, in("leaked"), &how, sizeof how), ENOSYS);
    /* Elsewhere it is the kernel's, also under a name that is the volume's for others. */
    int elsewhere = open(outside, O_PATH | O_DIRECTORY), fd = syscall(SYS_openat2, elsewhere, "/../file", &how, sizeof how);
    IS(elsewhere >= 0 && fd >= 0 && close(fd) == 0 && access(put(one, outside, "file"), F_OK) == 0);
    IS(chdir(volume) == 0);
    FAILS(syscall(SYS_openat2, AT_FDCWD, "/leaked", &how, sizeof how), ENOSYS);
    FAILS(syscall(SYS_openat2, AT_FDCWD, "../leaked", &how, sizeof how), ENOSYS);
}

/* The volume's folder and those that it is in, exchanged with others. */
static void moves(void) {
    char above[4096], beside[4096 + 16];
    snprintf(above, sizeof above, "%.*s", (int)(strrchr(volume, '/') - volume), volume);
    snprintf(beside, sizeof beside, "%s-beside", above);
    IS(mkdir(beside, 0700) == 0);
    FAILS(rename(above, put(one, beside, "moved")), EBUSY);
    FAILS(renameat2(AT_FDCWD, above, AT_FDCWD, beside, RENAME_EXCHANGE), EBUSY);
    FAILS(renameat2(AT_FDCWD, beside, AT_FDCWD, above, RENAME_EXCHANGE), EBUSY);
    FAILS(rename(volume, put(one, outside, "moved")), EBUSY);
    FAILS(rename(outside, volume), EBUSY);
    FAILS(renameat2(AT_FDCWD, outside, AT_FDCWD, volume, RENAME_EXCHANGE), EBUSY);
    /* Others are moved as ever. */
    snprintf(above, sizeof above, "%s-moved", beside);
    IS(rename(beside, above) == 0 && rmdir(above) == 0);
}

/* A folder that is open and removed stays itself, whatever is made after it; so does one that another comes in the place of. */
static void removed(void) {
    char name[64];
    struct stat status;
    for (int replaces = 0; replaces < 2; replaces++) {
        IS(mkdir(in("old"), 0700) == 0);
        int old = open(in("old"), O_RDONLY | O_DIRECTORY);
        IS(old >= 0);
        if (replaces) IS(mkdir(in("other"), 0700) == 0 && rename(in("other"), also_in("old")) == 0);
        IS(rmdir(in("old")) == 0);
        for (int i = 0; i < 100; i++) {
            snprintf(name, sizeof name, "new%d%d", replaces, i);
            IS(mkdir(in(name), 0700) == 0);
            snprintf(name, sizeof name, "new%d%d/precious", replaces, i);
            make(name, "attack at dawn");
            FAILS(unlinkat(old, "precious", 0), ENOENT);
        }
        IS(fstat(old, &status) == 0 && S_ISDIR(status.st_mode));
        FAILS(openat(old, "x", O_WRONLY | O_CREAT, 0600), ENOENT);
        FAILS(openat(old, "../new00/precious", O_RDONLY), ENOENT);
        IS(close(old) == 0);
    }
}

/* A folder that is open is known where it is, not where it was. */
static void moved(void) {
    IS(mkdir(in("a"), 0700) == 0 && mkdir(in("a/s"), 0700) == 0 && mkdir(in("b"), 0700) == 0);
    make("a/x", "attack at dawn");
    make("b/x", "attack at noon");
    int s = open(in("a/s"), O_RDONLY | O_DIRECTORY);
    IS(s >= 0 && rename(in("a/s"), also_in("b/s")) == 0);
    IS(unlinkat(s, "../x", 0) == 0 && access(in("a/x"), F_OK) == 0);
    FAILS(access(in("b/x"), F_OK), ENOENT);
    struct stat above, status;
    IS(fstatat(s, "..", &above, 0) == 0 && stat(in("b"), &status) == 0 && above.st_ino == status.st_ino);
    DIR *folder = fdopendir(s);
    IS(folder);
    for (struct dirent *entry; (entry = readdir(folder));)
        if (!strcmp(entry->d_name, "..")) IS(entry->d_ino == status.st_ino);
    IS(closedir(folder) == 0);
    /* Its way is that of where it is. */
    IS(mkdir(in("b/s/below"), 0700) == 0);
    FAILS(rename(in("b"), also_in("b/s/below/b")), EINVAL);
    FAILS(rename(in("b/s"), also_in("b")), ENOTEMPTY);
}

/* Descriptors of removed folders that who answers has, but for those of folders that were used last. */
static int left_open(void) {
    char all[64], path[512], target[4096];
    int left = 0;
    snprintf(all, sizeof all, "/proc/%d/fd", getppid());
    DIR *folder = opendir(all);
    IS(folder);
    for (struct dirent *entry; (entry = readdir(folder));) {
        snprintf(path, sizeof path, "%s/%s", all, entry->d_name);
        ssize_t length = readlink(path, target, sizeof target - 1);
        target[length < 0 ? 0 : length] = 0;
        left += !strncmp(target, volume, strlen(volume)) && strstr(target, " (deleted)");
    }
    IS(closedir(folder) == 0);
    return left;
}

/* One empty folder after the other in the place of the last. */
static void replaced(void) {
    IS(mkdir(in("old"), 0700) == 0);
    for (int i = 0; i < 400; i++) IS(mkdir(in("new"), 0700) == 0 && rename(in("new"), also_in("old")) == 0);
    IS(left_open() < 200);
}

/* A path from a descriptor that leads out of the volume, which the kernel cannot go. */
static void out(void) {
    int root = open(volume, O_RDONLY | O_DIRECTORY);
    IS(root >= 0);
    FAILS(openat(root, "../outside", O_RDONLY), EXDEV);
    /* And in again is one that can be gone here. */
    make("file", "text");
    char back[4096];
    snprintf(back, sizeof back, "..%s/file", strrchr(volume, '/'));
    IS(faccessat(root, back, F_OK, 0) == 0);
    /* The kernel knows the volume's folder where somebody is in it. */
    IS(chdir(volume) == 0 && access("../outside", F_OK) == 0);
}

/* What is written is on the disk before the write returns; somebody else looks. */
static void synced(void) {
    static char text[3000] = "attack at dawn";
    int fd = open(in("synced"), O_WRONLY | O_CREAT | O_DSYNC, 0600);
    IS(fd >= 0 && (fcntl(fd, F_GETFL) & O_SYNC) == O_DSYNC && write(fd, text, sizeof text) == sizeof text);
    IS(fcntl(fd, F_SETFL, O_APPEND) == 0 && (fcntl(fd, F_GETFL) & (O_SYNC | O_APPEND)) == (O_DSYNC | O_APPEND));
    int done = open(put(other, outside, "written"), O_WRONLY | O_CREAT, 0600);
    IS(done >= 0);
    while (access(put(other, outside, "seen"), F_OK)) usleep(10000);
    IS(close(fd) == 0);
    fd = open(in("synced"), O_RDONLY | O_SYNC);
    IS((fcntl(fd, F_GETFL) & O_SYNC) == O_SYNC);
}

/* A file is ready at once, and what else is waited for is what it is. */
static void waits(void) {
    make("file", "text");
    int fd = open(in("file"), O_RDWR), pipes[2];
    IS(fd >= 0 && pipe(pipes) == 0);
    struct pollfd all[] = {{fd, POLLIN | POLLOUT, 0}, {pipes[0], POLLIN, 7}, {pipes[1], POLLOUT, 0}, {-1, POLLIN, 7}, {400, POLLIN, 0}};
    for (int timeout = -1; timeout < 1; timeout++) {
        IS(poll(all, 5, timeout) == 3 && all[0].revents == (POLLIN | POLLOUT) && all[1].revents == 0);
        IS(all[2].revents == POLLOUT && all[3].revents == 0 && all[4].revents == POLLNVAL);
    }
    IS(write(pipes[1], "x", 1) == 1 && ppoll(all, 2, 0, 0) == 2 && all[1].revents == POLLIN);
    /* As a program begins that asks whether its first three are open. */
    all[0].events = 0;
    IS(poll(all, 1, 0) == 0 && all[0].revents == 0);
    fd_set reads, writes;
    FD_ZERO(&reads);
    FD_ZERO(&writes);
    FD_SET(fd, &reads);
    FD_SET(pipes[0], &reads);
    FD_SET(fd, &writes);
    IS(select(fd + 1, &reads, &writes, 0, 0) == 3 && FD_ISSET(fd, &reads) && FD_ISSET(pipes[0], &reads) && FD_ISSET(fd, &writes));
    char byte;
    struct timeval none = {0};
    IS(read(pipes[0], &byte, 1) == 1 && select(fd + 1, &reads, 0, 0, &none) == 1 && FD_ISSET(fd, &reads) && !FD_ISSET(pipes[0], &reads));
    /* As many as it likes: what is behind a set is not part of it. */
    struct { fd_set set; unsigned char behind[8192]; } room;
    memset(&room, 0xff, sizeof room);
    FD_ZERO(&room.set);
    FD_SET(fd, &room.set);
    IS(select(1 << 20, &room.set, 0, 0, 0) == 1 && FD_ISSET(fd, &room.set));
    for (size_t at = 0; at < sizeof room.behind; at++) IS(room.behind[at] == 0xff);
    FAILS(select(-1, &room.set, 0, 0, 0), EINVAL);
    IS(close(pipes[0]) == 0 && close(pipes[1]) == 0 && close(fd) == 0);
}

/* Nearly as many as may be open. */
static void crowd(void) {
    struct rlimit limit;
    make("file", "text");
    int fd = open(in("file"), O_RDONLY), pipes[2], count;
    IS(fd >= 0 && pipe(pipes) == 0 && write(pipes[1], "x", 1) == 1 && getrlimit(RLIMIT_NOFILE, &limit) == 0);
    count = limit.rlim_cur - 1;
    struct pollfd *all = calloc(count, sizeof *all);
    for (int at = 0; at < count; at++) all[at] = (struct pollfd){at ? pipes[0] : fd, POLLIN, 0};
    IS(poll(all, count, -1) == count);
    for (int at = 0; at < count; at++) IS(all[at].revents == POLLIN);
}

/* Each writer has its letter; one call is one run of it, however large and of however many parts. */
static void appends(void) {
    make("appended", "");
    for (int writer = 0; writer < WRITERS; writer++) {
        if (fork()) continue;
        char *large = malloc(LARGE);
        memset(large, 'a' + writer, LARGE);
        int fd = open(in("appended"), O_WRONLY | O_APPEND);
        IS(fd >= 0);
        for (int i = 0; i < WRITES; i++) {
            struct iovec parts[2] = {{large, LARGE / 2}, {large, LARGE / 2}};
            IS((i % 2 ? write(fd, large, LARGE) : writev(fd, parts, 2)) == LARGE);
        }
        _exit(0);
    }
    int ended;
    for (int writer = 0; writer < WRITERS; writer++) IS(wait(&ended) > 0 && ended == 0);
    int fd = open(in("appended"), O_RDONLY);
    char *back = malloc(LARGE);
    for (int i = 0; i < WRITERS * WRITES; i++) {
        IS(read(fd, back, LARGE) == LARGE);
        for (int at = 1; at < LARGE; at++) IS(back[at] == back[0]);
    }
    IS(read(fd, back, 1) == 0);
}

/* A disk that is full: the number is free, whatever its program hears. */
static void full(void) {
    static char block[1 << 16];
    memset(block, 'x', sizeof block);
    make("closed", "x");
    make("replaced", "x");
    int closed = open(in("closed"), O_WRONLY), replaced = open(in("replaced"), O_WRONLY);
    int filler = open(put(one, outside, "filler"), O_WRONLY | O_CREAT, 0600);
    IS(closed >= 0 && replaced >= 0 && filler >= 0);
    for (size_t size = sizeof block; size; size /= 2)
        while (write(filler, block, size) > 0) {}
    IS(errno == ENOSPC);
    IS(write(closed, block, 40000) == 40000 && write(replaced, block, 40000) == 40000);
    FAILS(close(closed), ENOSPC);
    FAILS(close(closed), EBADF);
    FAILS(fcntl(closed, F_GETFD), EBADF);
    FAILS(write(closed, "x", 1), EBADF);
    FAILS(openat(closed, "x", O_RDONLY), EBADF);
    struct stat status;
    FAILS(fstat(closed, &status), EBADF);
    /* The next has it. */
    int again = open(in("closed"), O_RDONLY);
    IS(again == closed && read(again, block, 1) == 1 && close(again) == 0);
    IS(dup2(filler, replaced) == replaced && write(replaced, block, 0) == 0);
    IS(close(replaced) == 0 && close(filler) == 0 && unlink(put(one, outside, "filler")) == 0);
}

int main(int count, char **arguments) {
    IS(count == 4);
    volume = arguments[1];
    outside = arguments[2];
    const char *part = arguments[3];
    /* What hangs ends. */
    alarm(60);
    if (!strcmp(part, "renames")) renames();
    else if (!strcmp(part, "slashes")) slashes();
    else if (!strcmp(part, "in root")) in_root();
    else if (!strcmp(part, "moves")) moves();
    else if (!strcmp(part, "appends")) appends();
    else if (!strcmp(part, "full")) full();
    else if (!strcmp(part, "waits")) waits();
    else if (!strcmp(part, "crowd")) crowd();
    else if (!strcmp(part, "removed")) removed();
    else if (!strcmp(part, "moved")) moved();
    else if (!strcmp(part, "replaced")) replaced();
    else if (!strcmp(part, "out")) out();
    else if (!strcmp(part, "synced")) synced();
    else if (!strcmp(part, "unreadable")) {
        IS(prctl(PR_SET_DUMPABLE, 0) == 0);
        FAILS(open(in("file"), O_RDONLY), EPERM);
        FAILS(access(in("file"), F_OK), EPERM);
    } else IS(!"a part");
    puts("all is well");
    return 0;
}
