// Any bytes as the claim of a card: no crash, and an accepted claim encodes to the same bytes and
// has a key. A further narrowing never widens the right to a label.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "agent/session/grants.h"
#include "fuzz/samples.h"

namespace {

using viaduct::Grant;
using viaduct::agent::claimOf;
using viaduct::agent::rightTo;

bool isWider(const viaduct::core::PinRight& right, const viaduct::core::PinRight& than) {
  return (right.read && !than.read) || (right.write && !than.write);
}

void check(std::span<const std::byte> claim) {
  const auto key = viaduct::agent::keyOfClaim({1}, claim);
  const auto grants = viaduct::agent::decodeClaim(claim);
  if (!grants) return;
  if (!std::ranges::equal(claimOf(*grants), claim)) std::abort();
  if (!grants->empty() && !key) std::abort();
  for (const char* label : {"", "kv/1", "a", "*"})
    for (std::size_t i = 1; i < grants->size(); ++i)
      if (isWider(rightTo(label, std::span(*grants).first(i + 1)),
                  rightTo(label, std::span(*grants).first(i))))
        std::abort();
  static_cast<void>(viaduct::agent::mayUse(*grants, "b", {}));
  static_cast<void>(viaduct::agent::textOf(*grants));
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  const std::vector<Grant> some{{.pins = "kv/*",
                                 .access = CardAccess::kRead,
                                 .until = agent::WallTime(std::chrono::milliseconds(1000)),
                                 .name = "b",
                                 .id = {1}},
                                {.pins = "*/1", .id = {2}}};
  return {sampleOf(claimOf(some)), sampleOf(claimOf(std::vector<Grant>{{}}))};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  check(std::as_bytes(std::span(data, size)));
  return 0;
}
