// Any bytes as a message of a staging link: a decoded message is within the limits, and its
// encoding decodes again.
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <variant>
#include <vector>

#include "fuzz/samples.h"
#include "move/staging/staging_message.h"

using namespace viaduct::move;

namespace {

template <class Message>
bool isWithinLimits(const Message& message) {
  if constexpr (requires { message.pieces; })
    return message.pieces.size() <= kMostPieces;
  else if constexpr (requires { message.shares; })
    return message.shares.size() <= kMostShares;
  else
    return true;
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  return {sampleOf(encode(RingRequest{.place = 1})),
          sampleOf(encode(RingAnswer{.error = Error{.detail = "no memory"}})),
          sampleOf(encode(StorageRequest{.pieces = {{.pin = 1}, {.pin = 2}}})),
          sampleOf(encode(StorageAnswer{.shares = {{.backend = "file"}}})),
          sampleOf(encode(StorageCancel{3})),
          sampleOf(encode(WholeEnd{4}))};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto message = decodeStaging(std::as_bytes(std::span(data, size)));
  if (!message) return 0;
  if (!std::visit([](const auto& one) { return isWithinLimits(one); }, *message)) std::abort();
  if (!decodeStaging(encode(*message))) std::abort();
  return 0;
}
