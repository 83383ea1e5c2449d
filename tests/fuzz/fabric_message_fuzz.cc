// Whatever bytes the link of a peer's fabric backend sends: no crash, and what is read reads the
// same when written. What the libraries make of addresses and keys is not ours to fuzz.
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
