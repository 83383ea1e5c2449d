// Any bytes from a data socket: no crash, no hang, and no write outside pinned memory. The same
// bytes are tried as a hello, and as a peer's list of addresses.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>

#include "backends/tcp/fuzz_stage_testing.h"
#include "backends/tcp/hello.h"
#include "backends/tcp/tcp_address.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  namespace tcp = viaduct::tcp;
  auto bytes = std::as_bytes(std::span(data, size));
  if (size >= tcp::kHelloBytes) {
    static_cast<void>(tcp::decodeHello(bytes.first<tcp::kHelloBytes>()));
    static_cast<void>(tcp::helloIsGenuine(bytes.first<tcp::kHelloBytes>(), tcp::LinkKey{}));
  }
  static_cast<void>(tcp::decodeAddress(bytes));

  tcp::FuzzStage stage;
  // The first byte sets the size of the pieces.
  const std::size_t piece = bytes.empty() ? 1 : 1 + std::to_integer<std::size_t>(bytes[0]) * 16;
  if (!bytes.empty()) bytes = bytes.subspan(1);
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(part.size());
    if (!stage.give(part).empty()) break;
    stage.take();
  }
  if (!stage.intact()) std::abort();
  return 0;
}
