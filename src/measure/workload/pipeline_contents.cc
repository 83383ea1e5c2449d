#include "measure/workload/pipeline_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <utility>

#include "base/random.h"

namespace viaduct::measure::pipeline {
namespace {

// Calls `visit(chunk, number)` until it returns a text.
template <class Byte, class Visit>
std::optional<std::string> eachChunk(std::span<Byte> memory, std::uint64_t chunk_bytes,
                                     std::uint64_t first, Visit visit) {
  for (; !memory.empty(); ++first) {
    const auto chunk = memory.first(std::min<std::size_t>(memory.size(), chunk_bytes));
    if (auto found = visit(chunk, first)) return found;
    memory = memory.subspan(chunk.size());
  }
  return std::nullopt;
}

}  // namespace

std::uint64_t digestOf(std::span<const std::byte> chunk) {
  constexpr std::size_t kLanes = 4;  // independent multiplications hide each other's latency
  constexpr std::uint64_t kOdd = 0x9e3779b97f4a7c15U;
  std::array<std::uint64_t, kLanes> lanes{1, 2, 3, 4};
  std::uint64_t word = 0;
  std::size_t lane = 0;
  const std::size_t size = chunk.size();
  while (!chunk.empty()) {
    const std::size_t bytes = std::min(chunk.size(), sizeof(word));
    word = 0;
    std::memcpy(&word, chunk.data(), bytes);
    std::uint64_t& sum = lanes[lane++ % kLanes];
    sum = (sum ^ word) * kOdd;
    sum ^= sum >> 32U;
    chunk = chunk.subspan(bytes);
  }
  std::uint64_t out = size;
  for (const std::uint64_t sum : lanes) out = base::Random(out ^ sum).next();
  return out;
}

Expected Expected::pattern(const Chunking& chunks, std::uint64_t bytes, std::uint64_t seed,
                           std::uint64_t epoch, std::uint64_t period) {
  Expected out;
  out.pattern_ = {.seed = seed,
                  .block_bytes = chunks.chunk_bytes,
                  .blocks = chunks.countOf(bytes),
                  .epoch = epoch};
  out.period_ = period;
  return out;
}

Expected Expected::digests(const Chunking& chunks, std::uint64_t bytes,
                           std::vector<std::uint64_t> digests) {
  Expected out = pattern(chunks, bytes, 0, 1);
  out.digests_ = std::move(digests);
  return out;
}

void Expected::fill(std::span<std::byte> memory, std::uint64_t first) const {
  eachChunk(memory, pattern_.block_bytes, first,
            [&](std::span<std::byte> chunk, std::uint64_t number) {
              pattern_.fill(chunk, blockOf(number));
              return std::optional<std::string>();
            });
}

std::optional<std::string> Expected::check(std::span<const std::byte> memory,
                                           std::uint64_t first) const {
  return eachChunk(memory, pattern_.block_bytes, first,
                   [&](std::span<const std::byte> chunk, std::uint64_t number) {
                     return checkChunk(chunk, number);
                   });
}

std::optional<std::string> Expected::checkChunk(std::span<const std::byte> chunk,
                                                std::uint64_t number) const {
  const std::uint64_t at = number * pattern_.block_bytes;
  if (digests_.empty()) {
    const auto wrong = pattern_.verify(chunk, blockOf(number));
    if (!wrong) return std::nullopt;
    return fmt::format("wrong from byte {} on: {}", at + wrong->offset, wrong->text);
  }
  if (number < digests_.size() && digestOf(chunk) == digests_[number]) return std::nullopt;
  return fmt::format("bytes {} to {} differ from the source", at, at + chunk.size());
}

}  // namespace viaduct::measure::pipeline
