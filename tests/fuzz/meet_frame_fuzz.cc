// Any bytes at an embedded meeting place or its members, in any pieces: the pieces do not change
// the messages, and no more is buffered than has arrived. An accepted message encodes to the same
// bytes.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "fuzz/samples.h"
#include "meet/embedded/frame.h"
#include "meet/groups/group_messages.h"

namespace {

using namespace viaduct::meet::embedded;
using namespace viaduct::meet::groups;
using viaduct::Ok;
using viaduct::Status;
using viaduct::base::Writer;

struct Found {
  std::vector<std::pair<Type, Bytes>> messages;
  bool broken = false;
};

Found decode(ByteSpan bytes, std::size_t limit, std::size_t piece) {
  Decoder decoder(limit);
  Found found;
  std::size_t came = 0;
  while (!bytes.empty() && !found.broken) {
    const ByteSpan part = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(part.size());
    came += part.size();
    const Status fed = decoder.feed(part, [&](Type type, ByteSpan payload) -> Status {
      found.messages.emplace_back(type, Bytes(payload.begin(), payload.end()));
      return Ok{};
    });
    found.broken = !fed;
    if (decoder.held() > 2 * came) std::abort();
  }
  return found;
}

// Gives every message a correct check value, as far as the lengths allow.
Bytes madeRight(ByteSpan bytes) {
  Sealer sealer;
  Writer out;
  while (bytes.size() >= kHeaderBytes) {
    const std::size_t length = viaduct::base::loadLittle<std::uint32_t>(bytes.data());
    if (length > bytes.size() - kHeaderBytes) break;
    const auto payload = bytes.subspan(kHeaderBytes, length);
    const auto packet =
        makePacket(static_cast<Type>(bytes[4]), Bytes(payload.begin(), payload.end()));
    out.raw(sealer.seal(*packet)).raw(payload);
    bytes = bytes.subspan(kHeaderBytes + length);
  }
  return out.raw(bytes).take();
}

template <class Message>
void roundTrip(ByteSpan payload) {
  const auto once = viaduct::base::decode<Message>(payload);
  if (!once) return;
  const Bytes again = viaduct::base::encode(*once);
  const auto twice = viaduct::base::decode<Message>(again);
  if (!twice || viaduct::base::encode(*twice) != again) std::abort();
}

void decodeAll(ByteSpan payload) {
  roundTrip<OpenMessage>(payload);
  roundTrip<ChallengeMessage>(payload);
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

void check(ByteSpan bytes, std::size_t piece) {
  for (const std::size_t limit : {kMaxUnproven, kMaxFromMember}) {
    const Found whole = decode(bytes, limit, bytes.size());
    const Found pieces = decode(bytes, limit, piece);
    if (whole.messages != pieces.messages || whole.broken != pieces.broken) std::abort();
    for (const auto& [type, payload] : whole.messages) decodeAll(payload);
  }
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const Bytes nonce(sizeof(Key), std::byte{7});
  const std::vector<PacketPtr> packets{
      makePacket(Type::kOpen, OpenMessage{.handshake = nonce}),
      makePacket(Type::kJoin, JoinMessage{"/viaduct", {"g", 4, 2, "host:7", "about"}}),
      makePacket(Type::kGather, GatherMessage{3, "value"}),
      makePacket(Type::kPublish, NameMessage{1, "/viaduct", "name", "value", "owner"}),
      makePacket(Type::kFormed, FormedMessage{7, {{0, "a", "x"}, {1, "b", ""}}}),
      makePacket(Type::kValues, ValuesMessage{1, {"", "b"}}),
      makePacket(Type::kAnswer,
                 AnswerMessage{2, Error{.operation = "publish", .detail = "taken"}, {}}),
      makePacket(Type::kPing, NumberMessage{9})};
  std::vector<Sample> out;
  Sealer all;
  base::Writer stream;
  stream.put(std::uint8_t{7});
  for (const PacketPtr& packet : packets) {
    stream.raw(all.seal(*packet)).raw(packet->payload);
    Sealer alone;
    out.push_back(sampleOf(
        base::Writer().put(std::uint8_t{5}).raw(alone.seal(*packet)).raw(packet->payload).bytes()));
  }
  out.push_back(sampleOf(stream.bytes()));
  return out;
}
}  // namespace viaduct::fuzz

// The first byte sets the size of the pieces.
// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  if (size == 0) return 0;
  const auto bytes = std::as_bytes(std::span(data, size)).subspan(1);
  const std::size_t piece = 1 + data[0];
  check(bytes, piece);
  check(madeRight(bytes), piece);
  decodeAll(bytes);
  return 0;
}
