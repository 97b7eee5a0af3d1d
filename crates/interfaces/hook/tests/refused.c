/* Calls that cannot be served; the volume's folder is the argument. */
#define _GNU_SOURCE
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#define IS(condition) do { if (!(condition)) { printf("line %d: %s (%s)\n", __LINE__, #condition, strerror(errno)); exit(1); } } while (0)
#define FAILS(call, number) do { errno = 0; IS((call) == -1); IS(errno == number); } while (0)

static char path[4096];

static char *in(const char *folder, const char *name) {
    snprintf(path, sizeof path, "%s/%s", folder, name);
    return path;
}

int main(int count, char **arguments) {
    IS(count == 2);
    const char *folder = arguments[1];
    int fd = open(in(folder, "file"), O_RDWR | O_CREAT, 0700);
    IS(fd >= 0 && write(fd, "attack at dawn", 14) == 14);
    IS(mmap(0, 4096, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0) == MAP_FAILED && errno == ENODEV);
    IS(mmap(0, 4096, PROT_READ, MAP_PRIVATE, fd, 0) == MAP_FAILED && errno == ENODEV);
    struct flock lock = {.l_type = F_WRLCK};
    FAILS(fcntl(fd, F_SETLK, &lock), ENOLCK);
    FAILS(flock(fd, LOCK_EX), ENOLCK);
    FAILS(dup2(fd, 7), EBADF);
    FAILS(fcntl(7, F_GETFD), EBADF);
    char parameters[120] = {0};
    FAILS(syscall(SYS_io_uring_setup, 1, parameters), ENOSYS);
    struct pollfd polled = {.fd = fd};
    FAILS(poll(&polled, 1, -1), EINVAL);
    FAILS(setxattr(path, "user.a", "b", 1, 0), EOPNOTSUPP);
    IS(getxattr(path, "user.a", 0, 0) == -1 && errno == EOPNOTSUPP);
    char *const none[] = {0};
    FAILS(execve(path, none, none), EACCES);
    FAILS(execve(in(folder, "none"), none, none), ENOENT);
    IS(mkdir(in(folder, "folder"), 0700) == 0);
    FAILS(chdir(path), EACCES);
    FAILS(mknod(in(folder, "pipe"), S_IFIFO | 0600, 0), EPERM);
    IS(symlink("/etc/passwd", in(folder, "out")) == 0);
    FAILS(open(path, O_RDONLY), EXDEV);
    FAILS(chroot(folder), EPERM);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%s/socket", folder);
    int made = socket(AF_UNIX, SOCK_STREAM, 0);
    FAILS(bind(made, (struct sockaddr *)&address, sizeof address), EACCES);
    /* Silently, as between file systems. */
    FAILS(copy_file_range(fd, 0, made, 0, 10, 0), EXDEV);
    FAILS(shutdown(fd, SHUT_RDWR), ENOTSOCK);

    /* A descriptor that was passed over a socket is of no use, and passes nothing on. */
    int pair[2];
    IS(socketpair(AF_UNIX, SOCK_STREAM, 0, pair) == 0);
    char byte = 0, room[CMSG_SPACE(sizeof(int))] = {0};
    struct iovec part = {&byte, 1};
    struct msghdr message = {.msg_iov = &part, .msg_iovlen = 1, .msg_control = room, .msg_controllen = sizeof room};
    struct cmsghdr *rights = CMSG_FIRSTHDR(&message);
    *rights = (struct cmsghdr){.cmsg_level = SOL_SOCKET, .cmsg_type = SCM_RIGHTS, .cmsg_len = CMSG_LEN(sizeof(int))};
    memcpy(CMSG_DATA(rights), &fd, sizeof fd);
    IS(sendmsg(pair[0], &message, 0) == 1 && recvmsg(pair[1], &message, 0) == 1);
    int passed;
    memcpy(&passed, CMSG_DATA(CMSG_FIRSTHDR(&message)), sizeof passed);
    IS(passed > 2 && passed < 512);
    FAILS(read(passed, &byte, 1), EAGAIN);
    FAILS(send(passed, "attack at dawn", 14, MSG_NOSIGNAL), EPIPE);
    FAILS(lseek(passed, 0, SEEK_SET), ESPIPE);
    /* The file itself is as it was. */
    IS(close(passed) == 0 && pread(fd, &byte, 1, 0) == 1 && byte == 'a' && close(fd) == 0);
    puts("all is refused");
    return 0;
}
