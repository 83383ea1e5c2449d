#include "move/staging/staging_message.h"

#include <fmt/format.h>

#include <string_view>
#include <utility>

namespace viaduct::move {
namespace {

constexpr std::uint8_t kVersion = 1;

void put(base::Writer& out, const auto& message) { base::Fields::put(out, message); }
void get(base::Reader& in, auto& message) { base::Fields::get(in, message); }

// Reads the alternative of this number into `into`, and returns its name. Empty: there is none.
template <std::size_t I = 0>
std::string_view getAlternative(std::size_t number, base::Reader& in, StagingMessage& into) {
  if constexpr (I == std::variant_size_v<StagingMessage>) {
    return {};
  } else {
    if (number != I) return getAlternative<I + 1>(number, in, into);
    get(in, into.emplace<I>());
    return std::variant_alternative_t<I, StagingMessage>::kName;
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
  const auto name = version == kVersion ? getAlternative(kind, in, message) : std::string_view();
  if (name.empty())
    return Error{.code = Code::kUnsupported,
                 .operation = "staging",
                 .detail = "a message of the peer's staging link cannot be read",
                 .cause = "the peer runs another version"};
  if (in.finished()) return message;
  return Error{.code = Code::kProtocol,
               .operation = "staging",
               .detail = fmt::format("{}: {}", name, in.fault()),
               .cause = "the peer broke a rule of staging"};
}

}  // namespace viaduct::move
