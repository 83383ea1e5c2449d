// Any bytes for importCard: no crash, and an accepted card encodes to the same bytes. Inputs are
// tried as they are, and with a corrected length and checksum, so that the parser reaches the
// content.
#include <viaduct/card.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/bytes.h"
#include "base/net/checksum.h"
#include "fuzz/samples.h"

namespace {

using viaduct::Card;

constexpr std::size_t kHead = 16, kSum = 8;

void roundTrip(std::span<const std::byte> blob) {
  const auto card = Card::decode(blob);
  if (card && !std::ranges::equal(card->encode(), blob)) std::abort();
}

std::vector<std::byte> madeRight(std::span<const std::byte> blob) {
  static const std::vector<std::byte> empty = Card{}.encode();
  viaduct::base::Writer out;
  out.raw(std::span(empty).first(kHead - 4));
  out.sized(blob.subspan(kHead, blob.size() - kHead - kSum));
  out.put(viaduct::base::Checksum().add(out.bytes()).value());
  return out.take();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const Card card{.name = "a",
                  .boot = "boot",
                  .unix_name = "viaduct-a",
                  .addresses = {"127.0.0.1:1"},
                  .secret = {1, 2, 3},
                  .pins = {{.label = "kv", .address = 4096, .bytes = 4096, .slot = 1}}};
  Card less = card;
  less.grants = {{.pins = "kv/*", .access = viaduct::CardAccess::kRead, .name = "b", .id = {1}}};
  return {sampleOf(card.encode()), sampleOf(Card{}.encode()), sampleOf(less.encode())};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto blob = std::as_bytes(std::span(data, size));
  roundTrip(blob);
  if (size >= kHead + kSum) roundTrip(madeRight(blob));
  return 0;
}
