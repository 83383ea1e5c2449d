// Whatever messages a peer of ucx sends: no crash, nothing is believed to be behind a head that is
// not there, and what is read reads the same when written.
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <numeric>

#include "backends/ucx/letter.h"
#include "fuzz/samples.h"

namespace viaduct::fuzz {

std::vector<Sample> samples() {
  std::vector<Sample> out;
  for (const auto kind : {ucx::Letter::Kind::kWrite, ucx::Letter::Kind::kRead}) {
    ucx::Letter letter;
    letter.kind = kind;
    letter.count = 2;
    letter.extents[0] = {.address = 0x7000, .bytes = 3};
    letter.extents[1] = {.address = 0x8000, .bytes = 5};
    std::array<std::byte, ucx::Letter::kLongestHead> head{};
    const std::size_t bytes = encode(letter, head);
    Sample sample = sampleOf(std::span(head).first(bytes));
    sample.insert(sample.begin(),
                  {0, kind == ucx::Letter::Kind::kWrite ? std::uint8_t{8} : std::uint8_t{0}});
    out.push_back(std::move(sample));
  }
  return out;
}

}  // namespace viaduct::fuzz

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using viaduct::ucx::Letter;
  if (size < 2) return 0;
  const std::size_t behind = data[0] * 256U + data[1];
  const auto head = std::as_bytes(std::span(data, size)).subspan(2);
  const auto letter = viaduct::ucx::decode(head, behind);
  if (!letter) return 0;
  const auto list = letter->list();
  const auto total =
      std::accumulate(list.begin(), list.end(), std::uint64_t{0},
                      [](std::uint64_t sum, const Letter::Extent& one) { return sum + one.bytes; });
  if (letter->kind == Letter::Kind::kWrite && total != behind) std::abort();
  if (letter->kind == Letter::Kind::kRead && total > Letter::kMostBytes) std::abort();
  std::array<std::byte, Letter::kLongestHead> again{};
  if (encode(*letter, again) != head.size() ||
      std::memcmp(again.data(), head.data(), head.size()) != 0)
    std::abort();
  return 0;
}
