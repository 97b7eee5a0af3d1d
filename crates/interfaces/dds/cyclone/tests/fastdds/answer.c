/* Answers on topic "Answer" what it reads on topic "Question": the side of Cyclone DDS. Ends when it is told to. */
#include <dds/dds.h>
#include <stdio.h>
#include <stdlib.h>
#include "text.h"

int main(int count, char **arguments) {
  const dds_domainid_t domain = count > 1 ? (dds_domainid_t)atoi(arguments[1]) : 0;
  dds_entity_t participant = dds_create_participant(domain, NULL, NULL);
  if (participant < 0) { fprintf(stderr, "no participant: %s\n", dds_strretcode(-participant)); return 2; }
  dds_qos_t *qos = dds_create_qos();
  dds_qset_reliability(qos, DDS_RELIABILITY_RELIABLE, DDS_SECS(10));
  dds_qset_history(qos, DDS_HISTORY_KEEP_ALL, 0);
  dds_entity_t question = dds_create_topic(participant, &Text_desc, "Question", qos, NULL);
  dds_entity_t answer = dds_create_topic(participant, &Text_desc, "Answer", qos, NULL);
  dds_entity_t reader = dds_create_reader(participant, question, qos, NULL);
  dds_entity_t writer = dds_create_writer(participant, answer, qos, NULL);
  if (reader < 0 || writer < 0) { fprintf(stderr, "no reader or writer\n"); return 2; }
  puts("ready");
  fflush(stdout);
  for (;;) {
    void *sample = NULL;
    dds_sample_info_t info;
    int taken = dds_take(reader, &sample, &info, 1, 1);
    if (taken > 0 && info.valid_data && dds_write(writer, sample) < 0) return 3;
    if (taken > 0) dds_return_loan(reader, &sample, taken);
    if (taken < 0) return 4;
    if (taken == 0) dds_sleepfor(DDS_MSECS(1));
  }
}
