// Any payload at an embedded meeting place or its members. An accepted message encodes to the same
// bytes.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "fuzz/samples.h"
#include "meet/groups/group_messages.h"

namespace {

using namespace viaduct::meet::embedded;
using namespace viaduct::meet::groups;

template <class Message>
void roundTrip(ByteSpan payload) {
  const auto once = viaduct::base::decode<Message>(payload);
  if (!once) return;
  const Bytes again = viaduct::base::encode(*once);
  const auto twice = viaduct::base::decode<Message>(again);
  if (!twice || viaduct::base::encode(*twice) != again) std::abort();
}

void decodeAll(ByteSpan payload) {
  roundTrip<WelcomeMessage>(payload);
  roundTrip<ErrorMessage>(payload);
  roundTrip<JoinMessage>(payload);
  roundTrip<GatherMessage>(payload);
  roundTrip<TextMessage>(payload);
  roundTrip<NumberMessage>(payload);
  roundTrip<NameMessage>(payload);
  roundTrip<FormedMessage>(payload);
  roundTrip<ValuesMessage>(payload);
  roundTrip<AnswerMessage>(payload);
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const PacketPtr& packet :
       {makePacket(Type::kJoin, JoinMessage{"/viaduct", {"g", 4, 2, "host:7", "about"}}),
        makePacket(Type::kGather, GatherMessage{3, "value"}),
        makePacket(Type::kPublish, NameMessage{1, "/viaduct", "name", "value", "owner"}),
        makePacket(Type::kFormed, FormedMessage{7, {{0, "a", "x"}, {1, "b", ""}}}),
        makePacket(Type::kValues, ValuesMessage{1, {"", "b"}}),
        makePacket(Type::kAnswer,
                   AnswerMessage{2, Error{.operation = "publish", .detail = "taken"}, {}}),
        makePacket(Type::kPing, NumberMessage{9})})
    out.push_back(sampleOf(packet->payload));
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  decodeAll(std::as_bytes(std::span(data, size)));
  return 0;
}
