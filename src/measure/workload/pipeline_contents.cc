#include "measure/workload/pipeline_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::measure::pipeline {

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
                           std::vector<Digest> digests) {
  Expected out = pattern(chunks, bytes, 0, 1);
  out.digests_ = std::move(digests);
  out.digests_.resize(out.pattern_.blocks);  // chunks without a digest count as wrong
  return out;
}

CellList Expected::cells(std::span<std::byte> memory, std::uint64_t first) const {
  return [this, memory, first](const CellVisit& visit) -> Wrong {
    auto left = memory;
    for (std::uint64_t number = first; !left.empty(); ++number) {
      const auto chunk = left.first(std::min<std::size_t>(left.size(), pattern_.block_bytes));
      left = left.subspan(chunk.size());
      const auto wrong = visit({.memory = chunk,
                                .number = period_ == 0 ? number : number % period_,
                                .epoch = pattern_.epoch,
                                .digest = digests_.empty() ? nullptr : &digests_[number]});
      if (!wrong) continue;
      const std::uint64_t at = number * pattern_.block_bytes;
      return digests_.empty()
                 ? fmt::format("wrong from byte {} on: {}", at + wrong->offset, wrong->text)
                 : fmt::format("bytes {} to {} differ from the source", at, at + chunk.size());
    }
    return std::nullopt;
  };
}

Status Expected::fill(std::span<std::byte> memory, std::uint64_t first, const Mirror* gpu) const {
  return Contents(pattern_).fill(cells(memory, first), gpu);
}

Result<Wrong> Expected::verify(std::span<std::byte> memory, std::uint64_t first,
                               const Mirror* gpu) const {
  return Contents(pattern_).verify(cells(memory, first), Verified::kFull, gpu);
}

}  // namespace viaduct::measure::pipeline
