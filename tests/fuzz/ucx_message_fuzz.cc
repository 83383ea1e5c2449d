// Whatever bytes a peer's ucx link sends: no crash, and what is read reads the same when written.
// What UCX itself makes of addresses and keys is not ours to fuzz: src/backends/ucx/NOTES.md.
#include <cstdint>
#include <cstdlib>

#include "backends/ucx/message.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace viaduct::ucx;
  const auto bytes = std::as_bytes(std::span(data, size));
  static_cast<void>(decodeGreeting(bytes));
  static_cast<void>(decodePinKey(bytes));
  if (const auto message = decode(bytes)) {
    const auto again = decode(encode(*message));
    if (!again || encode(*again) != encode(*message)) std::abort();
  }
  return 0;
}
