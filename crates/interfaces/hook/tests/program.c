/* A program with stdio, threads, forks and bare calls; the volume's folder is its argument. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <sys/xattr.h>
#include <sys/wait.h>
#include <unistd.h>

#define IS(condition) do { if (!(condition)) { printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno)); exit(1); } } while (0)
#define LARGE (3 * 1024 * 1024 + 17)

static char path[4096];

static char *in(const char *folder, const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

static int appended;

static void *append(void *name) {
    for (int i = 0; i < 50; i++) {
        int fd = open(name, O_WRONLY | O_APPEND);
        IS(fd >= 0 && write(fd, "0123456789", 10) == 10 && close(fd) == 0);
        __atomic_add_fetch(&appended, 10, __ATOMIC_SEQ_CST);
    }
    return 0;
}

int main(int count, char **arguments) {
    IS(count == 2);
    const char *folder = arguments[1];
    char line[64];

    FILE *file = fopen(in(folder, "stdio"), "w+");
    IS(file);
    for (int i = 0; i < 1000; i++) IS(fprintf(file, "attack at dawn %d\n", i) > 0);
    IS(fseek(file, 0, SEEK_SET) == 0 && fgets(line, sizeof line, file) && !strcmp(line, "attack at dawn 0\n"));
    IS(fclose(file) == 0);

    /* Blocks larger than what is moved at once, at any offset. */
    char *large = malloc(LARGE), *back = malloc(LARGE);
    for (int i = 0; i < LARGE; i++) large[i] = i * 7 + i / 251;
    int fd = open(in(folder, "large"), O_RDWR | O_CREAT | O_EXCL, 0640);
    IS(fd >= 0 && write(fd, large, LARGE) == LARGE);
    IS(open(path, O_RDWR | O_CREAT | O_EXCL, 0640) == -1 && errno == EEXIST);
    IS(lseek(fd, 0, SEEK_CUR) == LARGE && lseek(fd, 0, SEEK_SET) == 0);
    IS(read(fd, back, LARGE) == LARGE && !memcmp(large, back, LARGE) && read(fd, back, 1) == 0);
    IS(pread(fd, back, 100000, 70000) == 100000 && !memcmp(large + 70000, back, 100000));
    IS(pwrite(fd, "xyz", 3, LARGE + 100000) == 3 && lseek(fd, 0, SEEK_END) == LARGE + 100003);
    IS(pread(fd, back, 4, LARGE + 99999) == 4 && !memcmp(back, "\0xyz", 4));
    struct iovec parts[3] = {{back, 3}, {back + 10, 0}, {back + 20, 5}};
    IS(preadv(fd, parts, 3, 1000) == 8 && !memcmp(back, large + 1000, 3) && !memcmp(back + 20, large + 1003, 5));
    struct stat status;
    IS(fstat(fd, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == LARGE + 100003 && (status.st_mode & 0777) == 0640);
    ino_t number = status.st_ino;
    IS(stat(path, &status) == 0 && status.st_ino == number);
    IS(ftruncate(fd, 10) == 0 && fstat(fd, &status) == 0 && status.st_size == 10);
    IS(fsync(fd) == 0 && !isatty(fd) && errno == ENOTTY);
    IS((fcntl(fd, F_GETFL) & O_ACCMODE) == O_RDWR);
    IS(read(fd, (void *)8, 1) == 0 && lseek(fd, 0, SEEK_SET) == 0 && read(fd, (void *)8, 1) == -1 && errno == EFAULT);
    IS(lseek(fd, 0, SEEK_SET) == 0);

    /* One offset, under any number and in any process. */
    int copy = dup(fd), high = fcntl(fd, F_DUPFD_CLOEXEC, 10);
    IS(copy >= 0 && high >= 10 && copy != fd && read(copy, line, 4) == 4 && lseek(high, 0, SEEK_CUR) == 4);
    pid_t child = fork();
    if (!child) _exit(read(fd, line, 3) == 3 && close(fd) == 0 && close(copy) == 0 ? 0 : 1);
    int ended;
    IS(waitpid(child, &ended, 0) == child && ended == 0 && lseek(fd, 0, SEEK_CUR) == 7);
    child = fork();
    if (!child) {
        IS(lseek(fd, 0, SEEK_SET) == 0 && dup2(fd, 0) == 0);
        execl("/bin/sh", "sh", "-c", "test $(wc -c) = 10", (char *)0);
        _exit(127);
    }
    IS(waitpid(child, &ended, 0) == child && ended == 0);
    IS(close(fd) == 0 && close(copy) == 0 && close(fd) == -1 && errno == EBADF && close(high) == 0);

    /* What has no name any more. */
    fd = open(in(folder, "gone"), O_RDWR | O_CREAT, 0600);
    IS(fd >= 0 && write(fd, "attack at dawn", 14) == 14 && unlink(path) == 0 && open(path, O_RDONLY) == -1 && errno == ENOENT);
    IS(pread(fd, line, 14, 0) == 14 && fstat(fd, &status) == 0 && status.st_nlink == 0 && close(fd) == 0);

    /* Threads that append lose nothing. */
    fd = open(in(folder, "appended"), O_WRONLY | O_CREAT, 0600);
    IS(fd >= 0 && write(fd, "x", 1) == 1 && read(fd, line, 1) == -1 && errno == EBADF && close(fd) == 0);
    char name[4096];
    strcpy(name, path);
    pthread_t threads[4];
    for (int i = 0; i < 4; i++) IS(pthread_create(&threads[i], 0, append, name) == 0);
    for (int i = 0; i < 4; i++) IS(pthread_join(threads[i], 0) == 0);
    IS(stat(name, &status) == 0 && status.st_size == 1 + appended);

    /* Folders. */
    IS(mkdir(in(folder, "folder"), 0750) == 0 && mkdir(path, 0750) == -1 && errno == EEXIST);
    int at = open(path, O_RDONLY | O_DIRECTORY);
    IS(at >= 0 && (fd = openat(at, "below", O_WRONLY | O_CREAT, 0600)) >= 0 && close(fd) == 0);
    IS(fstatat(at, "below", &status, 0) == 0 && fstatat(at, "../stdio", &status, 0) == 0);
    IS(rmdir(path) == -1 && errno == ENOTEMPTY);
    char below[4096];
    snprintf(below, sizeof below, "%s/in itself", path);
    IS(rename(path, below) == -1 && errno == EINVAL);
    DIR *listing = fdopendir(at);
    int entries = 0;
    for (struct dirent *entry; (entry = readdir(listing));) entries++;
    IS(entries == 3 && closedir(listing) == 0);
    /* A link is looked at through a descriptor that names it, as tar does. */
    IS(symlink("../leads there", in(folder, "folder/link")) == 0);
    fd = open(path, O_PATH | O_NOFOLLOW);
    IS(fd >= 0 && fstat(fd, &status) == 0 && S_ISLNK(status.st_mode) && status.st_size == 14);
    IS(readlinkat(fd, "", line, sizeof line) == 14 && memcmp(line, "../leads there", 14) == 0);
    IS(fstatat(fd, "", &status, AT_EMPTY_PATH) == 0 && S_ISLNK(status.st_mode));
    IS(read(fd, line, 1) == -1 && errno == EBADF);
    IS(close(fd) == 0 && llistxattr(path, line, sizeof line) == 0);
    IS(open(path, O_RDONLY | O_NOFOLLOW) == -1 && errno == ELOOP);
    IS(open(path, O_PATH | O_NOFOLLOW | O_DIRECTORY) == -1 && errno == ENOTDIR && unlink(path) == 0);
    IS(unlink(in(folder, "folder/below")) == 0 && rmdir(in(folder, "folder")) == 0);

    /* Many, one after the other and at once. */
    int fds[200];
    for (int i = 0; i < 200; i++) {
        snprintf(line, sizeof line, "many %d", i);
        fds[i] = open(in(folder, line), O_RDWR | O_CREAT, 0600);
        IS(fds[i] >= 0 && write(fds[i], line, 8) == 8);
    }
    for (int i = 0; i < 200; i++) IS(close(fds[i]) == 0);
    puts("all is well");
    return 0;
}
