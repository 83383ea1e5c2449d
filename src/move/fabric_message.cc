#include "move/fabric_message.h"

#include <algorithm>
#include <tuple>
#include <type_traits>
#include <utility>

#include "base/fields.h"

namespace viaduct::move {

using base::Is;

auto fields(Is<Greeting> auto& m) { return std::tie(m.rails, m.kind); }
auto fields(Is<OpenChannel> auto& m) {
  return std::tie(m.answer, m.channel, m.life, m.address, m.probe.address, m.probe.key);
}
auto fields(Is<ShutChannel> auto& m) { return std::tie(m.channel, m.life, m.reason, m.why); }
auto fields(Is<KeyRequest> auto& m) { return std::tie(m.slot, m.generation); }
auto fields(Is<KeyAnswer> auto& m) { return std::tie(m.slot, m.generation, m.keys); }
auto fields(Is<PingChannel> auto& m) { return std::tie(m.answer, m.channel, m.life); }
auto fields(Is<PollingNotice> auto& m) { return std::tie(m.awake, m.channel, m.life); }

namespace {

using base::Fields;
using base::Reader;
using base::Writer;

constexpr std::uint8_t kVersion = 1;
constexpr std::size_t kMaxKind = 256;

Error malformed(const char* what) {
  return {.code = Code::kProtocol,
          .operation = "fabric message",
          .detail = what,
          .cause = "the peer runs another version, or another program"};
}

bool fits(const Bytes& bytes, std::size_t most) { return !bytes.empty() && bytes.size() <= most; }

bool possible(const OpenChannel& m) {
  return m.channel < kMaxRails && fits(m.address, kMaxAddress) && fits(m.probe.key, kMaxKey);
}
bool possible(const ShutChannel& m) {
  return m.channel < kMaxRails && m.reason <= ShutReason::kOver && m.why.size() <= kMaxWhy;
}
bool possible(const KeyRequest&) { return true; }
bool possible(const KeyAnswer& m) {
  return m.keys.size() <= kMaxRails &&
         std::all_of(m.keys.begin(), m.keys.end(),
                     [](const Bytes& key) { return fits(key, kMaxKey); });
}
bool possible(const PingChannel& m) { return m.channel < kMaxRails; }
bool possible(const PollingNotice& m) { return m.channel < kMaxRails; }

// Reads the fields of the message kind with this number.
template <std::size_t kKind = 0>
Result<FabricMessage> read(Reader& in, std::size_t kind) {
  if constexpr (kKind == std::variant_size_v<FabricMessage>) {
    return malformed("of no known kind");
  } else {
    if (kind != kKind) return read<kKind + 1>(in, kind);
    std::variant_alternative_t<kKind, FabricMessage> out;
    Fields::get(in, out);
    if (!in.finished()) return malformed("of the wrong length");
    if (!possible(out)) return malformed("with impossible values");
    return FabricMessage(std::move(out));
  }
}

}  // namespace

Bytes encodeGreeting(const Greeting& greeting) {
  Writer out;
  Fields::put(out, kVersion, greeting);
  return out.take();
}

Result<Greeting> decodeGreeting(std::span<const std::byte> bytes) {
  Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  Greeting out;
  Fields::get(in, out);
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
  out.put(kVersion).put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& one) { Fields::put(out, one); }, message);
  return out.take();
}

Result<FabricMessage> decode(std::span<const std::byte> bytes) {
  Reader in(bytes);
  if (in.get<std::uint8_t>() != kVersion) return malformed("of another version");
  return read(in, in.get<std::uint8_t>());
}

}  // namespace viaduct::move
