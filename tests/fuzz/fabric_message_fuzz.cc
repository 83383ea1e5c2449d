// Any bytes from the link of a peer's fabric backend: no crash, and an accepted message encodes to
// the same bytes. Addresses and keys inside are for the libraries, which are not fuzzed here.
#include <cstdint>
#include <cstdlib>

#include "move/fabric_message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace viaduct::move;
  const auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(decodeGreeting(bytes));
  static_cast<void>(decodePinKey(bytes));
  if (const auto message = decode(bytes)) {
    const auto again = decode(encode(*message));
    if (!again || encode(*again) != encode(*message)) std::abort();
  }
  return 0;
}
