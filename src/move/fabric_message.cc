#include "move/fabric_message.h"

#include <type_traits>
#include <utility>

namespace viaduct::move {
namespace {

using base::Reader;
using base::Writer;

constexpr std::uint8_t kVersion = 3;
enum Kind : std::uint8_t { kOpen = 1, kOpened, kShut, kAsk, kKey, kPing, kPong, kAwake, kAtRest };
constexpr std::size_t kMaxWhy = 1024, kMaxKind = 256;

Error malformed(const char* what) {
  return {.code = Code::kProtocol,
          .operation = "fabric message",
          .detail = what,
          .cause = "the peer runs another version, or another program"};
}

Bytes bytesOf(std::span<const std::byte> part) { return {part.begin(), part.end()}; }

void put(Writer& out, const OpenChannel& open) {
  out.put<std::uint8_t>(open.answer ? kOpened : kOpen).put(open.channel).put(open.life);
  out.sized(open.address).put(open.probe.address).sized(open.probe.key);
}
void put(Writer& out, const ShutChannel& shut) {
  out.put<std::uint8_t>(kShut).put(shut.channel).put(shut.life);
  out.put(static_cast<std::uint8_t>(shut.reason))
      .text(std::string_view(shut.why).substr(0, kMaxWhy));
}
void put(Writer& out, const KeyRequest& ask) {
  out.put<std::uint8_t>(kAsk).put(ask.slot).put(ask.generation);
}
void put(Writer& out, const KeyAnswer& key) {
  out.put<std::uint8_t>(kKey).put(key.slot).put(key.generation);
  out.put(static_cast<std::uint32_t>(key.keys.size()));
  for (const Bytes& one : key.keys) out.sized(one);
}
void put(Writer& out, const PingChannel& ping) {
  out.put<std::uint8_t>(ping.answer ? kPong : kPing).put(ping.channel).put(ping.life);
}
void put(Writer& out, const PollingNotice& polling) {
  out.put<std::uint8_t>(polling.awake ? kAwake : kAtRest).put(polling.channel).put(polling.life);
}

Result<FabricMessage> open(Reader& in, bool answer) {
  OpenChannel out{.answer = answer};
  out.channel = in.get<std::uint32_t>();
  out.life = in.get<std::uint32_t>();
  out.address = bytesOf(in.sized());
  out.probe.address = in.get<std::uint64_t>();
  out.probe.key = bytesOf(in.sized());
  if (out.channel >= kMaxRails || out.address.empty() || out.address.size() > kMaxAddress ||
      out.probe.key.empty() || out.probe.key.size() > kMaxKey)
    return malformed("an impossible address");
  return FabricMessage(std::move(out));
}

Result<FabricMessage> shut(Reader& in) {
  ShutChannel out;
  out.channel = in.get<std::uint32_t>();
  out.life = in.get<std::uint32_t>();
  const auto reason = in.get<std::uint8_t>();
  out.reason = static_cast<ShutReason>(reason);
  out.why = in.text();
  if (reason > static_cast<std::uint8_t>(ShutReason::kOver) || out.channel >= kMaxRails ||
      out.why.size() > kMaxWhy)
    return malformed("an end of nothing");
  return FabricMessage(std::move(out));
}

Result<FabricMessage> key(Reader& in) {
  KeyAnswer out;
  out.slot = in.get<std::uint32_t>();
  out.generation = in.get<std::uint32_t>();
  const auto count = in.get<std::uint32_t>();
  if (count > kMaxRails) return malformed("too many keys");
  for (std::uint32_t i = 0; i < count && in.ok(); ++i) {
    out.keys.push_back(bytesOf(in.sized()));
    if (out.keys.back().empty() || out.keys.back().size() > kMaxKey)
      return malformed("an impossible key");
  }
  return FabricMessage(std::move(out));
}

// A PingChannel or a PollingNotice.
template <class T>
Result<FabricMessage> ofChannel(Reader& in, T out) {
  out.channel = in.get<std::uint32_t>();
  out.life = in.get<std::uint32_t>();
  if (out.channel >= kMaxRails) return malformed("of no channel");
  return FabricMessage(out);
}

Result<FabricMessage> body(Reader& in) {
  switch (in.get<std::uint8_t>()) {
    case kOpen:
      return open(in, false);
    case kOpened:
      return open(in, true);
    case kShut:
      return shut(in);
    case kAsk: {
      const auto slot = in.get<std::uint32_t>();
      return FabricMessage(KeyRequest{.slot = slot, .generation = in.get<std::uint32_t>()});
    }
    case kKey:
      return key(in);
    case kPing:
      return ofChannel(in, PingChannel{.answer = false});
    case kPong:
      return ofChannel(in, PingChannel{.answer = true});
    case kAwake:
      return ofChannel(in, PollingNotice{.awake = true});
    case kAtRest:
      return ofChannel(in, PollingNotice{.awake = false});
    default:
      return malformed("of no known kind");
  }
}

}  // namespace

Bytes encodeGreeting(const Greeting& greeting) {
  return Writer().put(kVersion).put(greeting.rails).text(greeting.kind).take();
}

Result<Greeting> decodeGreeting(std::span<const std::byte> bytes) {
  Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  Greeting out{.rails = in.get<std::uint32_t>()};
  out.kind = in.text();
  if (!in.finished() || version != kVersion) return malformed("a greeting of another version");
  if (out.rails == 0 || out.rails > kMaxRails) return malformed("a greeting without rails");
  if (out.kind.size() > kMaxKind) return malformed("a greeting of too long a kind");
  return out;
}

Bytes encodePinKey(std::uint32_t generation) {
  return Writer().put(kVersion).put(generation).take();
}

Result<std::uint32_t> decodePinKey(std::span<const std::byte> bytes) {
  Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  const auto generation = in.get<std::uint32_t>();
  if (!in.finished() || version != kVersion || generation == 0) return malformed("a pin's key");
  return generation;
}

Bytes encode(const FabricMessage& message) {
  Writer out;
  out.put(kVersion);
  std::visit([&](const auto& one) { put(out, one); }, message);
  return out.take();
}

Result<FabricMessage> decode(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.get<std::uint8_t>() != kVersion) return malformed("of another version");
  auto out = body(in);
  if (out && !in.finished()) return malformed("of the wrong length");
  return out;
}

}  // namespace viaduct::move
