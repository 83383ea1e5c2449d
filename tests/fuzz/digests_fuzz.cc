// Any bytes for decodeDigests: no crash, and an accepted list encodes to the same bytes. Inputs are
// tried as they are, and as the body of a list.
#include <viaduct/digest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <span>
#include <vector>

#include "base/net/checked_blob.h"
#include "fuzz/samples.h"

namespace {

using viaduct::Digest;

void roundTrip(std::span<const std::byte> blob) {
  const auto digests = viaduct::decodeDigests(blob);
  if (digests && !std::ranges::equal(viaduct::encodeDigests(*digests), blob)) std::abort();
}

}  // namespace

namespace viaduct::fuzz {
std::vector<Sample> samples() {
  return {sampleOf(encodeDigests(std::vector<Digest>{{1, 2}, {3, 4}})),
          sampleOf(encodeDigests({}))};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const auto blob = std::as_bytes(std::span(data, size));
  roundTrip(blob);
  constexpr viaduct::base::BlobKind kDigests{
      .magic = "VIADDIGS", .version = 1, .name = {}, .maker = {}, .taker = {}};
  roundTrip(viaduct::base::wrapBlob(kDigests, blob));
  return 0;
}
