// Latency of Fast DDS on the loopback: ping sends messages of one size and waits for each to come back, pong sends them back. Reliable, over UDP.
//
//   latency pong|ping DOMAIN BYTES COUNT [PROPERTIES]
//
// PROPERTIES is a file with a NAME=VALUE on each line, for the participant (security). ping prints one line: half the round trip in nanoseconds, as
// "min=N p50=N p90=N count=N", after a tenth as many rounds that are not counted; pong runs until its standard input ends.
#include <fastdds/dds/domain/DomainParticipant.hpp>
#include <fastdds/dds/domain/DomainParticipantFactory.hpp>
#include <fastdds/dds/publisher/DataWriter.hpp>
#include <fastdds/dds/publisher/DataWriterListener.hpp>
#include <fastdds/dds/publisher/Publisher.hpp>
#include <fastdds/dds/subscriber/DataReader.hpp>
#include <fastdds/dds/subscriber/DataReaderListener.hpp>
#include <fastdds/dds/subscriber/SampleInfo.hpp>
#include <fastdds/dds/subscriber/Subscriber.hpp>
#include <fastdds/dds/topic/TopicDataType.hpp>
#include <fastdds/dds/topic/TypeSupport.hpp>
#include <fastdds/rtps/transport/UDPv4TransportDescriptor.h>

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iostream>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

using namespace eprosima::fastdds::dds;
using Payload = eprosima::fastrtps::rtps::SerializedPayload_t;
using Clock = std::chrono::steady_clock;
using Bytes = std::vector<unsigned char>;

// A sequence of octets, as CDR has it: encapsulation, length, octets.
class BytesType : public TopicDataType
{
public:
    explicit BytesType(size_t largest)
    {
        setName("Bytes");
        m_typeSize = static_cast<uint32_t>(largest + 8);
        m_isGetKeyDefined = false;
        auto_fill_type_object(false);
        auto_fill_type_information(false);
    }

    bool serialize(void* data, Payload* payload) override
    {
        const Bytes& bytes = *static_cast<Bytes*>(data);
        const unsigned char head[4] = {0, 1, 0, 0};
        const uint32_t length = static_cast<uint32_t>(bytes.size());
        if (payload->max_size < length + 8)
        {
            return false;
        }
        std::memcpy(payload->data, head, 4);
        std::memcpy(payload->data + 4, &length, 4);
        std::memcpy(payload->data + 8, bytes.data(), length);
        payload->encapsulation = CDR_LE;
        payload->length = length + 8;
        return true;
    }

    bool deserialize(Payload* payload, void* data) override
    {
        uint32_t length = 0;
        if (payload->length < 8)
        {
            return false;
        }
        std::memcpy(&length, payload->data + 4, 4);
        if (length > payload->length - 8)
        {
            return false;
        }
        static_cast<Bytes*>(data)->assign(payload->data + 8, payload->data + 8 + length);
        return true;
    }

    std::function<uint32_t()> getSerializedSizeProvider(void* data) override
    {
        return [data] { return static_cast<uint32_t>(static_cast<Bytes*>(data)->size() + 8); };
    }

    void* createData() override { return new Bytes; }
    void deleteData(void* data) override { delete static_cast<Bytes*>(data); }
    bool getKey(void*, eprosima::fastrtps::rtps::InstanceHandle_t*, bool) override { return false; }
};

// How far we are: endpoints that were found, messages that came.
struct State
{
    std::mutex lock;
    std::condition_variable changed;
    int endpoints = 0;
    uint64_t messages = 0;
    void add(int count)
    {
        std::lock_guard<std::mutex> held(lock);
        endpoints += count;
        changed.notify_all();
    }
};

class Found : public DataWriterListener
{
public:
    explicit Found(State& state) : state(state) {}
    void on_publication_matched(DataWriter*, const PublicationMatchedStatus& status) override { state.add(status.current_count_change); }
    State& state;
};

class Came : public DataReaderListener
{
public:
    Came(State& state, DataWriter* answers) : state(state), answers(answers) {}
    void on_subscription_matched(DataReader*, const SubscriptionMatchedStatus& status) override { state.add(status.current_count_change); }
    void on_data_available(DataReader* reader) override
    {
        SampleInfo info;
        while (reader->take_next_sample(&bytes, &info) == ReturnCode_t::RETCODE_OK)
        {
            if (!info.valid_data)
            {
                continue;
            }
            if (answers != nullptr)
            {
                answers->write(&bytes);
                continue;
            }
            std::lock_guard<std::mutex> held(state.lock);
            ++state.messages;
            state.changed.notify_all();
        }
    }
    State& state;
    DataWriter* answers;
    Bytes bytes;
};

// Leaves at once: threads of Fast DDS may still run, which must not meet static objects that are gone.
static int fail(const std::string& what)
{
    std::cerr << "latency: " << what << std::endl;
    std::_Exit(1);
}

// Before static objects go, which its threads use.
static int end(DomainParticipant* participant)
{
    participant->delete_contained_entities();
    DomainParticipantFactory::get_instance()->delete_participant(participant);
    return 0;
}

int main(int count, char** arguments)
{
    if (count < 5)
    {
        return fail("usage: latency pong|ping DOMAIN BYTES COUNT [PROPERTIES]");
    }
    const bool asks = std::strcmp(arguments[1], "ping") == 0;
    const unsigned domain = std::stoul(arguments[2]);
    const size_t size = std::stoul(arguments[3]);
    const size_t rounds = std::stoul(arguments[4]);

    DomainParticipantQos qos = PARTICIPANT_QOS_DEFAULT;
    qos.name(asks ? "ping" : "pong");
    qos.transport().use_builtin_transports = false;
    auto udp = std::make_shared<eprosima::fastdds::rtps::UDPv4TransportDescriptor>();
    udp->sendBufferSize = udp->receiveBufferSize = 4 << 20;
    udp->interfaceWhiteList.push_back("127.0.0.1");
    qos.transport().user_transports.push_back(udp);
    if (count > 5)
    {
        std::ifstream file(arguments[5]);
        for (std::string line; std::getline(file, line);)
        {
            const size_t equals = line.find('=');
            if (equals == std::string::npos)
            {
                return fail("no property: " + line);
            }
            qos.properties().properties().emplace_back(line.substr(0, equals), line.substr(equals + 1));
        }
        if (qos.properties().properties().empty())
        {
            return fail(std::string("no properties in ") + arguments[5]);
        }
    }
    DomainParticipant* participant = DomainParticipantFactory::get_instance()->create_participant(domain, qos);
    if (participant == nullptr)
    {
        return fail("no participant: is its security material good?");
    }
    TypeSupport type(new BytesType(size));
    type.register_type(participant);
    Topic* there = participant->create_topic("there", type.get_type_name(), TOPIC_QOS_DEFAULT);
    Topic* back = participant->create_topic("back", type.get_type_name(), TOPIC_QOS_DEFAULT);

    State state;
    Found found(state);
    DataWriterQos writer_qos = DATAWRITER_QOS_DEFAULT;
    writer_qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    writer_qos.history().depth = 1;
    writer_qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    writer_qos.publish_mode().kind = size > 60000 ? ASYNCHRONOUS_PUBLISH_MODE : SYNCHRONOUS_PUBLISH_MODE;
    writer_qos.data_sharing().off();
    DataReaderQos reader_qos = DATAREADER_QOS_DEFAULT;
    reader_qos.reliability().kind = RELIABLE_RELIABILITY_QOS;
    reader_qos.history().depth = 1;
    reader_qos.endpoint().history_memory_policy = eprosima::fastrtps::rtps::PREALLOCATED_WITH_REALLOC_MEMORY_MODE;
    reader_qos.data_sharing().off();
    DataWriter* writer = participant->create_publisher(PUBLISHER_QOS_DEFAULT)->create_datawriter(asks ? there : back, writer_qos, &found);
    Came came(state, asks ? nullptr : writer);
    DataReader* reader = participant->create_subscriber(SUBSCRIBER_QOS_DEFAULT)->create_datareader(asks ? back : there, reader_qos, &came);
    if (writer == nullptr || reader == nullptr)
    {
        return fail("no writer or reader: do the permissions allow it?");
    }

    if (!asks)
    {
        while (std::getchar() != EOF)
        {
        }
        return end(participant);
    }
    std::unique_lock<std::mutex> held(state.lock);
    if (!state.changed.wait_for(held, std::chrono::seconds(20), [&] { return state.endpoints >= 2; }))
    {
        return fail("pong was not found within 20 s");
    }
    held.unlock();
    std::vector<int64_t> times;
    // Pong may know of our writer and not yet of our reader: its first answers would go to nobody.
    {
        Bytes first(size, 0);
        bool came_back = false;
        for (int tries = 0; tries < 100 && !came_back; ++tries)
        {
            writer->write(&first);
            held.lock();
            came_back = state.changed.wait_for(held, std::chrono::milliseconds(200), [&] { return state.messages > 0; });
            held.unlock();
        }
        if (!came_back)
        {
            return fail("pong was found and does not answer");
        }
        // Answers to what was sent again.
        std::this_thread::sleep_for(std::chrono::milliseconds(300));
    }
    Bytes bytes(size, 0x5a);
    const size_t ignored = rounds / 10 + 1;
    for (size_t round = 0; round < rounds + ignored; ++round)
    {
        std::memcpy(bytes.data(), &round, std::min(size, sizeof(round)));
        held.lock();
        const uint64_t before = state.messages;
        held.unlock();
        const auto start = Clock::now();
        writer->write(&bytes);
        held.lock();
        const bool came_back = state.changed.wait_for(held, std::chrono::seconds(5), [&] { return state.messages > before; });
        held.unlock();
        const auto end = Clock::now();
        if (!came_back)
        {
            return fail("an answer did not come within 5 s");
        }
        if (round >= ignored)
        {
            times.push_back(std::chrono::duration_cast<std::chrono::nanoseconds>(end - start).count() / 2);
        }
    }
    std::sort(times.begin(), times.end());
    std::printf("min=%lld p50=%lld p90=%lld count=%zu\n", static_cast<long long>(times.front()),
            static_cast<long long>(times[times.size() / 2]), static_cast<long long>(times[times.size() * 9 / 10]), times.size());
    return end(participant);
}
