// A TLS server that waits by io_uring alone: argv is PORT CERTIFICATE KEY FILE WAIT, where WAIT is "one" (a completion at a time) or "many".
// It answers every request with the file and closes. Ended by SIGTERM.
#define _GNU_SOURCE
#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <liburing.h>
#include <openssl/err.h>
#include <openssl/ssl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct connection {
    int fd;
    SSL *ssl;
    size_t sent;
    int answering;
};

static struct io_uring ring;
static SSL_CTX *context;
static char *answer;
static size_t answer_length;
static volatile sig_atomic_t ended;

static void end(int signal) {
    (void)signal;
    ended = 1;
}

static void fail(const char *what) {
    perror(what);
    exit(1);
}

static void await(int fd, unsigned events, void *who) {
    struct io_uring_sqe *entry = io_uring_get_sqe(&ring);
    if (entry == NULL) {
        io_uring_submit(&ring);
        entry = io_uring_get_sqe(&ring);
    }
    io_uring_prep_poll_add(entry, fd, events);
    io_uring_sqe_set_data(entry, who);
}

static void drop(struct connection *connection) {
    SSL_free(connection->ssl);
    close(connection->fd);
    free(connection);
}

// Goes on as far as it can, then waits for what libssl wants.
static void serve(struct connection *connection) {
    char request[4096];
    int result;
    SSL *ssl = connection->ssl;
    if (!SSL_is_init_finished(ssl)) {
        result = SSL_do_handshake(ssl);
        if (result != 1)
            goto wait;
    }
    if (!connection->answering) {
        result = SSL_read(ssl, request, sizeof request);
        if (result <= 0)
            goto wait;
        connection->answering = 1;
    }
    while (connection->sent < answer_length) {
        result = SSL_write(ssl, answer + connection->sent, (int)(answer_length - connection->sent));
        if (result <= 0)
            goto wait;
        connection->sent += (size_t)result;
    }
    SSL_shutdown(ssl);
    drop(connection);
    return;
wait:
    switch (SSL_get_error(ssl, result)) {
    case SSL_ERROR_WANT_READ:
        await(connection->fd, POLLIN, connection);
        break;
    case SSL_ERROR_WANT_WRITE:
        await(connection->fd, POLLOUT, connection);
        break;
    default:
        drop(connection);
    }
    ERR_clear_error();
}

static void take(int listener) {
    int fd;
    while ((fd = accept4(listener, NULL, NULL, SOCK_NONBLOCK | SOCK_CLOEXEC)) >= 0) {
        struct connection *connection = calloc(1, sizeof *connection);
        connection->fd = fd;
        connection->ssl = SSL_new(context);
        SSL_set_fd(connection->ssl, fd);
        SSL_set_accept_state(connection->ssl);
        serve(connection);
    }
    await(listener, POLLIN, NULL);
}

static void load(const char *path) {
    FILE *file = fopen(path, "rb");
    char head[128];
    if (file == NULL || fseek(file, 0, SEEK_END) != 0)
        fail(path);
    long length = ftell(file);
    int header = snprintf(head, sizeof head, "HTTP/1.1 200 OK\r\nContent-Length: %ld\r\nConnection: close\r\n\r\n", length);
    answer_length = (size_t)header + (size_t)length;
    answer = malloc(answer_length);
    memcpy(answer, head, (size_t)header);
    rewind(file);
    if (fread(answer + header, 1, (size_t)length, file) != (size_t)length)
        fail(path);
    fclose(file);
}

int main(int argc, char **argv) {
    if (argc != 6)
        return 2;
    struct sigaction action = {.sa_handler = end};
    sigaction(SIGTERM, &action, NULL);
    signal(SIGPIPE, SIG_IGN);
    load(argv[4]);
    context = SSL_CTX_new(TLS_server_method());
    if (SSL_CTX_use_certificate_chain_file(context, argv[2]) != 1 || SSL_CTX_use_PrivateKey_file(context, argv[3], SSL_FILETYPE_PEM) != 1)
        fail("certificate or key");
    int listener = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0), on = 1;
    struct sockaddr_in address = {.sin_family = AF_INET, .sin_port = htons((uint16_t)atoi(argv[1])), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    setsockopt(listener, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
    if (bind(listener, (struct sockaddr *)&address, sizeof address) != 0 || listen(listener, 512) != 0)
        fail("listen");
    int made = io_uring_queue_init(512, &ring, 0);
    if (made < 0) {
        fprintf(stderr, "no io_uring here: %s\n", strerror(-made));
        return 77;
    }
    await(listener, POLLIN, NULL);
    int many = strcmp(argv[5], "many") == 0;
    while (!ended) {
        struct io_uring_cqe *completion;
        int found = many ? io_uring_submit_and_wait(&ring, 1) : io_uring_submit(&ring);
        if (found < 0 && found != -EINTR)
            fail("io_uring");
        if (!many && io_uring_wait_cqe(&ring, &completion) < 0)
            continue;
        while (io_uring_peek_cqe(&ring, &completion) == 0) {
            struct connection *connection = io_uring_cqe_get_data(completion);
            io_uring_cqe_seen(&ring, completion);
            if (connection != NULL)
                serve(connection);
            else
                take(listener);
            if (!many)
                break;
        }
    }
    return 0;
}
