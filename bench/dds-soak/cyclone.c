/* A side of the soak in Cyclone DDS: cyclone DOMAIN NUMBER COUNTERS. Writes a message each millisecond, on a reliable topic and on one that is not in turn, and notes
   what the other side writes, until it is told to end or is killed. Its configuration is in CYCLONEDDS_URI. */
#include <dds/dds.h>
#include "soak.h"
#include "text.h"

static void take(dds_entity_t reader, struct counters *counters, int topic) {
  void *samples[16] = {NULL};
  dds_sample_info_t infos[16];
  int taken;
  while ((taken = dds_take(reader, samples, infos, 16, 16)) > 0) {
    for (int at = 0; at < taken; at++) {
      const Text *text = samples[at];
      if (infos[at].valid_data) soak_note(counters, topic, text->number, text->bytes._buffer, text->bytes._length);
    }
    dds_return_loan(reader, samples, taken);
  }
}

int main(int count, char **arguments) {
  if (count != 4) { fprintf(stderr, "usage: cyclone DOMAIN NUMBER COUNTERS\n"); return 2; }
  const uint32_t sender = (uint32_t)atoi(arguments[2]);
  struct counters *counters = soak_open(arguments[3]);
  dds_entity_t participant = dds_create_participant((dds_domainid_t)atoi(arguments[1]), NULL, NULL);
  if (participant < 0) { fprintf(stderr, "no participant: %s\n", dds_strretcode(-participant)); return 2; }
  dds_entity_t readers[TOPICS], writers[TOPICS];
  for (int topic = 0; topic < TOPICS; topic++) {
    dds_qos_t *qos = dds_create_qos();
    dds_qset_reliability(qos, topic == RELIABLE ? DDS_RELIABILITY_RELIABLE : DDS_RELIABILITY_BEST_EFFORT, DDS_MSECS(100));
    dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
    dds_entity_t written = dds_create_topic(participant, &Text_desc, TOPIC_NAMES[sender != 0][topic], NULL, NULL);
    dds_entity_t read = dds_create_topic(participant, &Text_desc, TOPIC_NAMES[sender == 0][topic], NULL, NULL);
    readers[topic] = dds_create_reader(participant, read, qos, NULL);
    writers[topic] = dds_create_writer(participant, written, qos, NULL);
    dds_delete_qos(qos);
    if (readers[topic] < 0 || writers[topic] < 0) { fprintf(stderr, "no reader or writer\n"); return 2; }
  }
  uint8_t bytes[LONG];
  int64_t tick = soak_now();
  for (uint64_t turn = 0; !soak_ends; turn++) {
    tick = soak_tick(tick);
    const int topic = turn % TOPICS;
    const uint32_t number = (uint32_t)counters->sent[topic];
    Text text = {number, {0, soak_fill(bytes, sender, topic, number), bytes, false}};
    text.bytes._maximum = text.bytes._length;
    if (dds_write(writers[topic], &text) == 0) counters->sent[topic]++; else counters->unsent++;
    for (int from = 0; from < TOPICS; from++) take(readers[from], counters, from);
  }
  dds_delete(participant);
  return 0;
}
