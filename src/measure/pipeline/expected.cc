#include "measure/pipeline/expected.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/random.h"
#include "base/sizes.h"

namespace viaduct::measure::pipeline {
namespace {

constexpr std::uint64_t kMaxBlocks = 16'384;

std::uint64_t roundedUp(std::uint64_t value, std::uint64_t to) {
  return (value + to - 1) / to * to;
}

// Calls `visit(block, number)` until it returns a text.
template <class Byte, class Visit>
std::optional<std::string> eachBlock(std::span<Byte> memory, std::uint64_t block_bytes,
                                     std::uint64_t first, Visit visit) {
  for (; !memory.empty(); ++first) {
    const auto block = memory.first(std::min<std::size_t>(memory.size(), block_bytes));
    if (auto found = visit(block, first)) return found;
    memory = memory.subspan(block.size());
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t checkedBlock(std::uint64_t bytes) {
  return std::max(base::kMiB, roundedUp((bytes + kMaxBlocks - 1) / kMaxBlocks, base::kMiB));
}

std::uint64_t digestOf(std::span<const std::byte> block) {
  constexpr std::size_t kLanes = 4;  // independent multiplications hide each other's latency
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  std::array<std::uint64_t, kLanes> lanes{1, 2, 3, 4};
  std::uint64_t word = 0;
  std::size_t lane = 0;
  const std::size_t size = block.size();
  while (!block.empty()) {
    const std::size_t bytes = std::min(block.size(), sizeof(word));
    word = 0;
    std::memcpy(&word, block.data(), bytes);
    std::uint64_t& sum = lanes[lane++ % kLanes];
    sum = (sum ^ word) * kOdd;
    sum ^= sum >> 32U;
    block = block.subspan(bytes);
  }
  std::uint64_t out = size;
  for (const std::uint64_t sum : lanes) out = base::Random(out ^ sum).next();
  return out;
}

Expected Expected::pattern(std::uint64_t bytes, std::uint64_t seed, std::uint64_t epoch) {
  Expected out;
  const std::uint64_t block = checkedBlock(bytes);
  out.pattern_ = {
      .seed = seed, .block_bytes = block, .blocks = (bytes + block - 1) / block, .epoch = epoch};
  return out;
}

Expected Expected::digests(std::uint64_t bytes, std::vector<std::uint64_t> digests) {
  Expected out = pattern(bytes, 0, 1);
  out.digests_ = std::move(digests);
  return out;
}

void Expected::fill(std::span<std::byte> memory, std::uint64_t first) const {
  eachBlock(memory, blockBytes(), first, [&](std::span<std::byte> block, std::uint64_t number) {
    pattern_.fill(block, number);
    return std::optional<std::string>();
  });
}

std::optional<std::string> Expected::check(std::span<const std::byte> memory,
                                           std::uint64_t first) const {
  return eachBlock(memory, blockBytes(), first,
                   [&](std::span<const std::byte> block, std::uint64_t number) {
                     return checkBlock(block, number);
                   });
}

std::optional<std::string> Expected::checkBlock(std::span<const std::byte> block,
                                                std::uint64_t number) const {
  const std::uint64_t at = number * blockBytes();
  if (digests_.empty()) {
    const auto wrong = pattern_.verify(block, number);
    if (!wrong) return std::nullopt;
    return fmt::format("wrong from byte {} on: {}", at + wrong->offset, wrong->text);
  }
  if (number < digests_.size() && digestOf(block) == digests_[number]) return std::nullopt;
  return fmt::format("bytes {} to {} differ from the source", at, at + block.size());
}

}  // namespace viaduct::measure::pipeline
