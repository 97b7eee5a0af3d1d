// A side of the soak in Fast DDS: fastdds DOMAIN NUMBER COUNTERS [PROPERTIES]. As cyclone.c; PROPERTIES is a file with a NAME=VALUE on each line, for the participant.
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <cstring>
#include <fstream>
#include <functional>
#include <string>
#include <vector>

#include "soak.h"

using namespace eprosima::fastdds::dds;
using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;
using Seconds = eprosima::fastrtps::Duration_t;

struct Text {
  uint32_t number = 0;
  std::vector<uint8_t> bytes;
};

// Little-endian CDR: representation, number, length, bytes.
struct TextType : TopicDataType {
  TextType() {
    setName("Text");
    m_typeSize = 4 + 8 + LONG;
    m_isGetKeyDefined = false;
    auto_fill_type_object(false);
    auto_fill_type_information(false);
  }
  bool serialize(void *data, Payload *payload) override {
    const Text &text = *static_cast<Text *>(data);
    const uint32_t length = static_cast<uint32_t>(text.bytes.size());
    const uint8_t representation[4] = {0, 1, 0, 0};
    if (payload->max_size < 12 + length) return false;
    memcpy(payload->data, representation, 4);
    memcpy(payload->data + 4, &text.number, 4);
    memcpy(payload->data + 8, &length, 4);
    memcpy(payload->data + 12, text.bytes.data(), length);
    payload->encapsulation = CDR_LE;
    payload->length = 12 + length;
    return true;
  }
  bool deserialize(Payload *payload, void *data) override {
    Text &text = *static_cast<Text *>(data);
    uint32_t length = 0;
    if (payload->length < 12) return false;
    memcpy(&text.number, payload->data + 4, 4);
    memcpy(&length, payload->data + 8, 4);
    if (length > payload->length - 12) return false;
    text.bytes.assign(payload->data + 12, payload->data + 12 + length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [data] { return static_cast<uint32_t>(12 + static_cast<Text *>(data)->bytes.size()); };
  }
  void *createData() override { return new Text; }
  void deleteData(void *data) override { delete static_cast<Text *>(data); }
  bool getKey(void *, eprosima::fastrtps::rtps::InstanceHandle_t *, bool) override { return false; }
};

static int fail(const std::string &what) {
  fprintf(stderr, "fastdds: %s\n", what.c_str());
  return 2;
}

int main(int count, char **arguments) {
  if (count < 4) return fail("usage: fastdds DOMAIN NUMBER COUNTERS [PROPERTIES]");
  const uint32_t sender = static_cast<uint32_t>(atoi(arguments[2]));
  counters *counters = soak_open(arguments[3]);
  DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
  qos.transport().use_builtin_transports = false;
  auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
  udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;
  udp->interfaceWhiteList.push_back("127.0.0.1");
  qos.transport().user_transports.push_back(udp);
  // Who is dead is forgotten soon.
  qos.wire_protocol().builtin.discovery_config.leaseDuration = Seconds(5, 0);
  qos.wire_protocol().builtin.discovery_config.leaseDuration_announcementperiod = Seconds(1, 0);
  if (count > 4) {
    std::ifstream file(arguments[4]);
    for (std::string line; std::getline(file, line);) {
      const size_t equals = line.find('=');
      if (equals == std::string::npos) return fail("no property: " + line);
      qos.properties().properties().emplace_back(line.substr(0, equals), line.substr(equals + 1));
    }
  }
  auto *factory = DomainParticipantFactory::get_instance();
  DomainParticipant *participant = factory->create_participant(static_cast<uint32_t>(atoi(arguments[1])), qos);
  if (participant == nullptr) return fail("no participant: is its security material good?");
  TypeSupport type(new TextType());
  type.register_type(participant);
  Publisher *publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  Subscriber *subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  DataReader *readers[TOPICS];
  DataWriter *writers[TOPICS];
  for (int topic = 0; topic < TOPICS; topic++) {
    const auto reliability = topic == RELIABLE ? RELIABLE_RELIABILITY_QOS : BEST_EFFORT_RELIABILITY_QOS;
    const auto memory = eprosima::fastrtps::rtps::DYNAMIC_RESERVE_MEMORY_MODE;
    Topic *written = participant->create_topic(TOPIC_NAMES[sender != 0][topic], "Text", TOPIC_QOS_DEFAULT);
    Topic *read = participant->create_topic(TOPIC_NAMES[sender == 0][topic], "Text", TOPIC_QOS_DEFAULT);
    DataWriterQos writer = DATAWRITER_QOS_DEFAULT;
    writer.reliability().kind = reliability;
    writer.reliability().max_blocking_time = Seconds(0, 100000000);
    writer.durability().kind = VOLATILE_DURABILITY_QOS;
    writer.history().kind = KEEP_ALL_HISTORY_QOS;
    writer.endpoint().history_memory_policy = memory;
    // Messages of several fragments are sent by a thread of Fast DDS alone.
    writer.publish_mode().kind = topic == RELIABLE ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
    writer.data_sharing().off();
    writers[topic] = publisher->create_datawriter(written, writer);
    DataReaderQos reader = DATAREADER_QOS_DEFAULT;
    reader.reliability().kind = reliability;
    reader.history().kind = KEEP_ALL_HISTORY_QOS;
    reader.endpoint().history_memory_policy = memory;
    reader.data_sharing().off();
    readers[topic] = subscriber->create_datareader(read, reader);
    if (writers[topic] == nullptr || readers[topic] == nullptr) return fail("no writer or reader: do the permissions allow it?");
  }
  Text text, got;
  SampleInfo info;
  std::vector<uint8_t> bytes(LONG);
  int64_t tick = soak_now();
  for (uint64_t turn = 0; !soak_ends; turn++) {
    tick = soak_tick(tick);
    const int topic = turn % TOPICS;
    text.number = static_cast<uint32_t>(counters->sent[topic]);
    const uint32_t length = soak_fill(bytes.data(), sender, topic, text.number);
    text.bytes.assign(bytes.begin(), bytes.begin() + length);
    if (writers[topic]->write(&text)) counters->sent[topic]++; else counters->unsent++;
    for (int from = 0; from < TOPICS; from++) {
      while (readers[from]->take_next_sample(&got, &info) == ReturnCode_t::RETCODE_OK) {
        if (info.valid_data) soak_note(counters, from, got.number, got.bytes.data(), static_cast<uint32_t>(got.bytes.size()));
      }
    }
  }
  participant->delete_contained_entities();
  factory->delete_participant(participant);
  return 0;
}
