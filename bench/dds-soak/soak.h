/* What the two programs of bench/dds-soak.py have in common, for C and C++: messages that tell their number and can be checked, and counters in a file
   that outlives a killed process. */
#pragma once
#include <fcntl.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

/* A run's peers, one after the other; the process that lives all the time is number 0. */
enum { PEERS = 512, TOPICS = 2, RELIABLE = 0, BEST_EFFORT = 1 };
/* Most messages have 1 KiB; each so many reliable ones, one is long enough to be sent in fragments. */
enum { SHORT = 1024, LONG = 100000, LONG_EVERY = 256 };
/* What the process that lives all the time writes, and what its peers write. */
static const char *const TOPIC_NAMES[2][TOPICS] = {{"SoakThereReliable", "SoakThereBestEffort"}, {"SoakBackReliable", "SoakBackBestEffort"}};
static const int64_t TICK_NS = 1000000;

struct stream {
  uint64_t first, last, count;
  /* Numbers that came again or too late, and messages that were not as they were sent. */
  uint64_t repeated, wrong;
};

/* The layout that dds-soak.py reads. */
struct counters {
  uint64_t pid, sent[TOPICS], unsent;
  struct stream from[PEERS][TOPICS];
};

static volatile sig_atomic_t soak_ends = 0;
static void soak_end(int signal) { (void)signal; soak_ends = 1; }

static struct counters *soak_open(const char *path) {
  const int file = open(path, O_RDWR | O_CREAT, 0600);
  if (file < 0 || ftruncate(file, sizeof(struct counters)) != 0) { perror(path); exit(2); }
  void *at = mmap(NULL, sizeof(struct counters), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
  if (at == MAP_FAILED) { perror(path); exit(2); }
  close(file);
  struct counters *counters = (struct counters *)at;
  counters->pid = (uint64_t)getpid();
  signal(SIGTERM, soak_end);
  return counters;
}

static uint32_t soak_length(int topic, uint32_t number) { return topic == RELIABLE && number % LONG_EVERY == LONG_EVERY - 1 ? LONG : SHORT; }

static uint8_t soak_byte(uint32_t number, uint32_t at) { return (uint8_t)(number * 31 + at); }

/* The text of a message: who sent it, and bytes that follow from its number. */
static uint32_t soak_fill(uint8_t *bytes, uint32_t sender, int topic, uint32_t number) {
  const uint32_t length = soak_length(topic, number);
  for (uint32_t at = 0; at < length; at++) bytes[at] = at < 4 ? (uint8_t)(sender >> 8 * at) : soak_byte(number, at);
  return length;
}

static void soak_note(struct counters *counters, int topic, uint32_t number, const uint8_t *bytes, uint32_t length) {
  uint32_t sender = PEERS;
  if (length >= 4) sender = (uint32_t)bytes[0] | (uint32_t)bytes[1] << 8 | (uint32_t)bytes[2] << 16 | (uint32_t)bytes[3] << 24;
  const int is_known = sender < PEERS;
  struct stream *stream = &counters->from[is_known ? sender : 0][topic];
  int is_right = is_known && length == soak_length(topic, number);
  for (uint32_t at = 4; is_right && at < length; at++) is_right = bytes[at] == soak_byte(number, at);
  if (!is_right) { stream->wrong++; return; }
  if (stream->count > 0 && number <= stream->last) { stream->repeated++; return; }
  if (stream->count == 0) stream->first = number;
  stream->last = number;
  stream->count++;
}

static int64_t soak_now(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000000) + now.tv_nsec;
}

/* Sleeps until the next tick, and returns it. */
static int64_t soak_tick(int64_t last) {
  const int64_t next = last + TICK_NS;
  const struct timespec until = {(time_t)(next / 1000000000), (long)(next % 1000000000)};
  clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
  const int64_t now = soak_now();
  /* What was missed by much is not made up for in a burst. */
  return now - next > 100 * TICK_NS ? now : next;
}
