/* A participant of bench/dds-discovery.py: join DOMAIN OTHERS SECONDS. Says "ready", waits for a line, joins with a writer and a reader, and when it has matched those of so many others says
   how long that took, in microseconds, and what processor time it has had for it. Ends with its standard input. */
#include <dds/dds.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/resource.h>
#include <time.h>
#include "text.h"

static int64_t now_us(void) {
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  return now.tv_sec * INT64_C(1000000) + now.tv_nsec / 1000;
}

static int64_t processor_us(void) {
  struct rusage used;
  getrusage(RUSAGE_SELF, &used);
  return (used.ru_utime.tv_sec + used.ru_stime.tv_sec) * INT64_C(1000000) + used.ru_utime.tv_usec + used.ru_stime.tv_usec;
}

int main(int count, char **arguments) {
  if (count != 4) { fprintf(stderr, "usage: join DOMAIN OTHERS SECONDS\n"); return 2; }
  const unsigned others = (unsigned)atoi(arguments[2]);
  puts("ready");
  fflush(stdout);
  if (getchar() == EOF) return 2;
  const int64_t began = now_us(), used = processor_us(), until = began + INT64_C(1000000) * atoi(arguments[3]);
  dds_entity_t participant = dds_create_participant((dds_domainid_t)atoi(arguments[1]), NULL, NULL);
  if (participant < 0) { fprintf(stderr, "no participant: %s\n", dds_strretcode(-participant)); return 2; }
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(1));
  dds_qset_ignorelocal(qos, DDS_IGNORELOCAL_PARTICIPANT);
  dds_entity_t topic = dds_create_topic(participant, &Text_desc, "Join", qos, NULL);
  dds_entity_t reader = dds_create_reader(participant, topic, qos, NULL), writer = dds_create_writer(participant, topic, qos, NULL);
  if (reader < 0 || writer < 0) { fprintf(stderr, "no reader or writer\n"); return 2; }
  unsigned readers = 0, writers = 0;
  while ((readers < others || writers < others) && now_us() < until) {
    dds_publication_matched_status_t published;
    dds_subscription_matched_status_t subscribed;
    dds_sleepfor(DDS_MSECS(5));
    dds_get_publication_matched_status(writer, &published);
    dds_get_subscription_matched_status(reader, &subscribed);
    readers = published.current_count;
    writers = subscribed.current_count;
  }
  printf("found %u %u %lld %lld\n", readers, writers, (long long)(now_us() - began), (long long)(processor_us() - used));
  fflush(stdout);
  while (getchar() != EOF) {}
  dds_delete(participant);
  return 0;
}
