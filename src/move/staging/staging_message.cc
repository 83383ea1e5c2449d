#include "move/staging/staging_message.h"

#include <utility>

namespace viaduct::move {
namespace {

constexpr std::uint8_t kVersion = 3;

void put(base::Writer& out, const auto& message) { base::Fields::put(out, message); }
void get(base::Reader& in, auto& message) { base::Fields::get(in, message); }

// Fills `into` with the alternative of this number.
template <std::size_t I = 0>
bool getAlternative(std::size_t number, base::Reader& in, StagingMessage& into) {
  if constexpr (I == std::variant_size_v<StagingMessage>) {
    return false;
  } else {
    if (number != I) return getAlternative<I + 1>(number, in, into);
    get(in, into.emplace<I>());
    return true;
  }
}

}  // namespace

base::Bytes encode(const StagingMessage& message) {
  base::Writer out;
  out.put(kVersion).put(static_cast<std::uint8_t>(message.index()));
  std::visit([&](const auto& one) { put(out, one); }, message);
  return out.take();
}

Result<StagingMessage> decodeStaging(std::span<const std::byte> bytes) {
  base::Reader in(bytes);
  const auto version = in.get<std::uint8_t>();
  const auto kind = in.get<std::uint8_t>();
  StagingMessage message;
  if (version == kVersion && getAlternative(kind, in, message) && in.finished()) return message;
  return Error{.code = Code::kProtocol,
               .operation = "staging",
               .detail = "a message of the peer's staging link cannot be read",
               .cause = "the peer runs another version, or sends garbage"};
}

}  // namespace viaduct::move
