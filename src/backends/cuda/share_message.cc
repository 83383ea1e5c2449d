#include "backends/cuda/share_message.h"

#include <utility>

namespace viaduct::cuda {
namespace {

constexpr std::uint8_t kVersion = 1;

Error malformed(std::string_view what) {
  return {.code = Code::kProtocol, .operation = "cuda message", .detail = std::string(what)};
}

// Reads the alternative with that index.
template <std::size_t... I>
bool decodeAt(std::size_t index, base::Reader& in, ShareMessage& out, std::index_sequence<I...>) {
  return ((index == I && (base::Fields::get(in, out.emplace<I>()), true)) || ...);
}

}  // namespace

base::Bytes encodeKey(const MemoryKey& key) {
  base::Writer out;
  base::Fields::put(out.put(kVersion), key);
  return out.take();
}

Result<MemoryKey> decodeKey(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  if (in.get<std::uint8_t>() != kVersion) return malformed("unknown version of a key");
  MemoryKey key;
  base::Fields::get(in, key);
  if (!in.finished()) return malformed(in.fault());
  return key;
}

base::Bytes encode(const ShareMessage& message) {
  base::Writer out;
  out.put(kVersion).put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& one) { base::Fields::put(out, one); }, message);
  return out.take();
}

Result<ShareMessage> decodeShare(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  const auto index = in.get<std::uint8_t>();
  if (version != kVersion) return malformed("unknown version");
  ShareMessage out;
  using MessageIndices = std::make_index_sequence<std::variant_size_v<ShareMessage>>;
  if (!decodeAt(index, in, out, MessageIndices())) return malformed("unknown type");
  if (!in.finished()) return malformed(in.fault());
  return out;
}

}  // namespace viaduct::cuda
