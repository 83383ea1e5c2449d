// Any bytes on a data socket whose ends have keys: no crash, no hang, and no byte is believed.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <utility>
#include <vector>

#include "backends/tcp/half_testing.h"
#include "fuzz/samples.h"

namespace {

using namespace viaduct;

constexpr tcp::SocketHello kHello{.epoch = 7, .count = 1};

tcp::Half halfOf(Privacy level, bool dialer) {
  const tcp::Protection protection{.level = level};
  auto keys = tcp::keysOf(protection, tcp::LinkKey{1}, kHello, dialer);
  if (!keys) std::abort();
  return tcp::Half(core::PinRights(), protection, *std::move(keys));
}

void tryLevel(Privacy level, std::span<const std::byte> bytes) {
  std::vector<std::byte> memory(4096, std::byte{0x5a});
  const std::vector<std::byte> before = memory;
  tcp::Half half = halfOf(level, false);
  half.pins.add(0, reinterpret_cast<std::uintptr_t>(memory.data()), memory.size());
  const std::size_t piece = bytes.empty() ? 1 : 1 + std::to_integer<std::size_t>(bytes[0]) * 16;
  while (!bytes.empty()) {
    const auto part = bytes.first(std::min(piece, bytes.size()));
    bytes = bytes.subspan(part.size());
    if (!half.give(part).empty()) break;
    half.take(4096);
  }
  if (memory != before) std::abort();
}

}  // namespace

namespace viaduct::fuzz {
// Samples are the bytes that a genuine end sends under other keys.
std::vector<Sample> samples() {
  std::vector<Sample> out;
  std::vector<std::byte> memory(100, std::byte{1});
  const auto at = reinterpret_cast<std::uintptr_t>(memory.data());
  const std::vector<core::Op> ops{{.local = at, .remote = at, .bytes = memory.size()}};
  for (const Privacy level : {Privacy::kFrames, Privacy::kIntegrity, Privacy::kEncrypted}) {
    tcp::Half half = halfOf(level, false);
    half.pins.add(0, at, memory.size());
    half.remote.add(0, 1);
    half.post(OpKind::kWrite, ops);
    out.push_back(sampleOf(half.take(4096)));
  }
  return out;
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  for (const Privacy level : {Privacy::kFrames, Privacy::kIntegrity, Privacy::kEncrypted})
    tryLevel(level, std::as_bytes(std::span(data, size)));
  return 0;
}
