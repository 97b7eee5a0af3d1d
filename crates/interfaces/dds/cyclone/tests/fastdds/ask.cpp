// Asks on topic "Question" until all of so many answers on topic "Answer" are right: the side of Fast DDS, as it comes.
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <set>
#include <thread>
#include <vector>

#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>

using namespace eprosima::fastdds::dds;
using eprosima::fastrtps::rtps::InstanceHandle_t;
using eprosima::fastrtps::rtps::SerializedPayload_t;

struct Text {
  uint32_t number;
  std::vector<uint8_t> bytes;
};

// Little-endian CDR: representation, number, length, bytes.
struct TextType : TopicDataType {
  TextType() {
    setName("Text");
    m_typeSize = 4 + 8 + 70000;
    m_isGetKeyDefined = false;
  }
  bool serialize(void *data, SerializedPayload_t *payload) override {
    const Text &text = *static_cast<Text *>(data);
    const uint32_t length = static_cast<uint32_t>(text.bytes.size());
    const uint8_t representation[4] = {0, 1, 0, 0};
    memcpy(payload->data, representation, 4);
    memcpy(payload->data + 4, &text.number, 4);
    memcpy(payload->data + 8, &length, 4);
    memcpy(payload->data + 12, text.bytes.data(), length);
    payload->encapsulation = CDR_LE;
    payload->length = 12 + length;
    return true;
  }
  bool deserialize(SerializedPayload_t *payload, void *data) override {
    Text &text = *static_cast<Text *>(data);
    uint32_t length;
    if (payload->length < 12) return false;
    memcpy(&text.number, payload->data + 4, 4);
    memcpy(&length, payload->data + 8, 4);
    if (length > payload->length - 12) return false;
    text.bytes.assign(payload->data + 12, payload->data + 12 + length);
    return true;
  }
  std::function<uint32_t()> getSerializedSizeProvider(void *data) override {
    return [data] { return 12 + static_cast<uint32_t>(static_cast<Text *>(data)->bytes.size()); };
  }
  void *createData() override { return new Text; }
  void deleteData(void *data) override { delete static_cast<Text *>(data); }
  bool getKey(void *, InstanceHandle_t *, bool) override { return false; }
};

int main(int count, char **arguments) {
  if (count < 5) return fprintf(stderr, "ask DOMAIN COUNT BYTES SECONDS\n"), 2;
  const unsigned wanted = atoi(arguments[2]), bytes = atoi(arguments[3]), seconds = atoi(arguments[4]);
  auto *factory = DomainParticipantFactory::get_instance();
  auto *participant = factory->create_participant_with_profile(atoi(arguments[1]), "secured");
  if (!participant) return fprintf(stderr, "no participant: the profile or what it names is wrong\n"), 2;
  TypeSupport type(new TextType);
  type.register_type(participant);
  auto *publisher = participant->create_publisher(PUBLISHER_QOS_DEFAULT);
  auto *subscriber = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT);
  auto *question = participant->create_topic("Question", "Text", TOPIC_QOS_DEFAULT);
  auto *answer = participant->create_topic("Answer", "Text", TOPIC_QOS_DEFAULT);
  DataWriterQos writes;
  writes.reliability().kind = RELIABLE_RELIABILITY_QOS;
  writes.history().kind = KEEP_ALL_HISTORY_QOS;
  writes.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  DataReaderQos reads;
  reads.reliability().kind = RELIABLE_RELIABILITY_QOS;
  reads.history().kind = KEEP_ALL_HISTORY_QOS;
  reads.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
  auto *writer = publisher->create_datawriter(question, writes);
  auto *reader = subscriber->create_datareader(answer, reads);
  if (!writer || !reader) return fprintf(stderr, "no reader or writer\n"), 2;
  std::set<uint32_t> right;
  uint32_t number = 0;
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(seconds);
  while (right.size() < wanted && std::chrono::steady_clock::now() < end) {
    Text text{number, std::vector<uint8_t>(bytes)};
    for (unsigned at = 0; at < bytes; at++) text.bytes[at] = static_cast<uint8_t>(number * 31 + at);
    if (number < 100000) writer->write(&text), number++;
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
    Text back;
    SampleInfo info;
    while (reader->take_next_sample(&back, &info) == ReturnCode_t::RETCODE_OK) {
      if (!info.valid_data) continue;
      for (unsigned at = 0; at < bytes; at++)
        if (back.bytes.size() != bytes || back.bytes[at] != static_cast<uint8_t>(back.number * 31 + at))
          return fprintf(stderr, "answer %u is wrong\n", back.number), 3;
      right.insert(back.number);
    }
  }
  printf("%zu of %u answers\n", right.size(), wanted);
  fflush(stdout);
  _Exit(right.size() < wanted);
}
