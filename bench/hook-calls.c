/* What calls on the files of a folder cost, each size in the best of some rounds: blocks written and read in order, small files opened, read and closed. Printed: name, then
   MB/s or microseconds. Written text is read back and compared. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define ROUNDS 5
#define FILES 1000
static char path[4096], *text, *back;

static void die(const char *what) { perror(what); exit(1); }
static double now(void) { struct timespec t; clock_gettime(CLOCK_MONOTONIC, &t); return t.tv_sec + t.tv_nsec * 1e-9; }
static int ascending(const void *a, const void *b) { double x = *(double *)a, y = *(double *)b; return x < y ? -1 : x > y; }
static double best(double *list) { qsort(list, ROUNDS, sizeof *list, ascending); return list[0]; }

static void blocks(const char *folder, size_t block, size_t total) {
    double writes[ROUNDS], reads[ROUNDS], again[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        snprintf(path, sizeof path, "%s/blocks", folder);
        int fd = open(path, O_RDWR | O_CREAT | O_EXCL, 0600);
        if (fd < 0) die("open");
        double begun = now();
        for (size_t at = 0; at < total; at += block) if (write(fd, text + at, block) != (ssize_t)block) die("write");
        if (close(fd)) die("close");
        writes[round] = now() - begun;
        for (int second = 0; second < 2; second++) {
            fd = open(path, O_RDONLY);
            begun = now();
            for (size_t at = 0; at < total; at += block) if (read(fd, back + at, block) != (ssize_t)block) die("read");
            *(second ? &again[round] : &reads[round]) = now() - begun;
            if (memcmp(text, back, total)) { puts("wrong bytes"); exit(1); }
            memset(back, 0, total);
            close(fd);
        }
        if (unlink(path)) die("unlink");
    }
    double mb = total / 1e6;
    printf("write-%zu %.1f\nread-%zu %.1f\nreread-%zu %.1f\n", block, mb / best(writes), block, mb / best(reads), block, mb / best(again));
}

int main(int count, char **arguments) {
    if (count != 2) return 2;
    size_t total = 64 << 20;
    text = malloc(total), back = calloc(1, total);
    for (size_t i = 0; i < total; i++) text[i] = i * 7 + (i >> 12);
    blocks(arguments[1], 4096, total / 4);
    blocks(arguments[1], 65536, total);
    blocks(arguments[1], 1 << 20, total);
    double made[ROUNDS], opened[ROUNDS], looked[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        char folder[4000];
        snprintf(folder, sizeof folder, "%s/small-%d", arguments[1], round);
        if (mkdir(folder, 0700)) die("mkdir");
        double begun = now();
        for (int i = 0; i < FILES; i++) {
            snprintf(path, sizeof path, "%s/%d", folder, i);
            int fd = open(path, O_WRONLY | O_CREAT | O_EXCL, 0600);
            if (fd < 0 || write(fd, text + i, 4096) != 4096 || close(fd)) die("a small file");
        }
        made[round] = now() - begun, begun = now();
        for (int i = 0; i < FILES; i++) {
            snprintf(path, sizeof path, "%s/%d", folder, i);
            int fd = open(path, O_RDONLY);
            if (fd < 0 || read(fd, back, 4096) != 4096 || memcmp(back, text + i, 4096) || close(fd)) die("a small file, read");
        }
        opened[round] = now() - begun, begun = now();
        struct stat status;
        for (int i = 0; i < FILES; i++) {
            snprintf(path, sizeof path, "%s/%d", folder, i);
            if (stat(path, &status) || status.st_size != 4096) die("stat");
        }
        looked[round] = now() - begun;
    }
    printf("make %.1f\nopen %.1f\nstat %.1f\n", best(made) / FILES * 1e6, best(opened) / FILES * 1e6, best(looked) / FILES * 1e6);
    /* What is not encrypted. */
    int fd = open("/dev/zero", O_RDONLY);
    double outside[ROUNDS], library[ROUNDS];
    for (int round = 0; round < ROUNDS; round++) {
        double begun = now();
        for (int i = 0; i < 10000; i++) if (read(fd, back, 1) != 1) die("/dev/zero");
        outside[round] = now() - begun, begun = now();
        for (int i = 0; i < 2000; i++) close(open("/usr/share/common-licenses/none", O_RDONLY));
        library[round] = now() - begun;
    }
    printf("outside-get %.2f\noutside-open %.2f\n", best(outside) / 10000 * 1e6, best(library) / 2000 * 1e6);
    return 0;
}
