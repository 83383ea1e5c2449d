// Any bytes as the ticket of a lease: no crash, no overlapping blocks, and an accepted ticket comes
// out of its encoding unchanged. Inputs are also tried with a correct length and checksum, so that
// the parser reaches the content.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "agent/session/lease_ticket.h"
#include "base/bytes.h"
#include "base/net/checksum.h"
#include "core/byte_ranges.h"
#include "fuzz/samples.h"

namespace {

using viaduct::Blocks;
using viaduct::Extent;
using viaduct::agent::LeaseTicket;

constexpr std::size_t kHead = 16, kSum = 8;

LeaseTicket sampleTicket() {
  const std::vector<Extent> extents{{900, 100}, {100, 7}, {200, 100}};
  return {.owner = "a", .borrower = "b", .epoch = 1, .number = 1, .blocks = *Blocks::list(extents)};
}

void roundTrip(std::span<const std::byte> blob) {
  const auto ticket = LeaseTicket::decode(blob);
  if (!ticket) return;
  if (!viaduct::core::rangesOf(ticket->blocks)) std::abort();
  const auto again = LeaseTicket::decode(ticket->encode());
  if (!again || again->owner != ticket->owner || again->number != ticket->number ||
      again->blocks.count() != ticket->blocks.count())
    std::abort();
}

std::vector<std::byte> madeRight(std::span<const std::byte> blob) {
  static const std::vector<std::byte> sample = sampleTicket().encode();
  viaduct::base::Writer out;
  out.raw(std::span(sample).first(kHead - 4));
  out.sized(blob.subspan(kHead, blob.size() - kHead - kSum));
  out.put(viaduct::base::Checksum().add(out.bytes()).value());
  return out.take();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  auto many = sampleTicket();
  many.blocks = *Blocks::strided({.base = 4096, .stride = 8192, .bytes = 4096, .count = 1000});
  return {sampleOf(sampleTicket().encode()), sampleOf(many.encode())};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto blob = std::as_bytes(std::span(data, size));
  roundTrip(blob);
  if (size >= kHead + kSum) roundTrip(madeRight(blob));
  return 0;
}
