#include <fmt/format.h>
#include <viaduct/blocks.h>

#include <algorithm>
#include <bit>
#include <functional>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/sort_numbers.h"
#include "core/disjoint_blocks.h"
#include "core/find_twice.h"

namespace viaduct {
namespace {

constexpr std::uint64_t kEndOfMemory = std::uint64_t{1} << 63U;
// Transfers name blocks by 32-bit numbers.
constexpr std::uint64_t kMaxBlocks = std::uint64_t{1} << 32U;

Error bad(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "blocks",
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

std::string show(const Run& run) {
  if (run.count == 1) return fmt::format("{:#x}, {} bytes", run.base, run.bytes);
  return fmt::format("{:#x}, {} blocks of {} bytes, {} apart", run.base, run.count, run.bytes,
                     run.stride);
}

// One past the last byte of a run that checkRun() has accepted.
std::uint64_t endOf(const Run& run) { return run.base + (run.count - 1) * run.stride + run.bytes; }

// One past the last byte, or nothing if that lies beyond 2^63.
std::optional<std::uint64_t> checkedEnd(const Run& run) {
  std::uint64_t end = 0;
  const bool over = __builtin_mul_overflow(run.count - 1, run.stride, &end) ||
                    __builtin_add_overflow(end, run.base, &end) ||
                    __builtin_add_overflow(end, run.bytes, &end);
  if (over || end > kEndOfMemory) return std::nullopt;
  return end;
}

bool valid(const Run& run) {
  return run.count != 0 && run.bytes != 0 && run.stride >= run.bytes && checkedEnd(run).has_value();
}

// Says why a run is not valid.
Error refusal(const Run& run, std::size_t number) {
  if (run.count == 0) return bad(fmt::format("run {} has no blocks", number), "omit the run");
  if (run.bytes == 0)
    return bad(fmt::format("the blocks of run {} at {:#x} have zero bytes", number, run.base),
               "omit empty blocks");
  if (!checkedEnd(run))
    return bad(fmt::format("run {} ({}) reaches beyond 2^63", number, show(run)),
               "check base, stride and count");
  // An error even for a run of one block, whose stride is unused: bytes and stride may be swapped.
  return bad(fmt::format("run {} at {:#x} has a stride of {}, less than its blocks of {} bytes",
                         number, run.base, run.stride, run.bytes),
             "use a stride of at least the block's bytes, or 0 for blocks that touch");
}

// The block of `run` that shares a byte with [low, high), if there is one. Checking the last block
// that starts before `high` suffices, because that block also ends last.
std::optional<std::uint64_t> hit(const Run& run, std::uint64_t low, std::uint64_t high) {
  if (run.base >= high) return std::nullopt;
  const std::uint64_t last =
      run.count == 1 ? 0 : std::min(run.count - 1, (high - 1 - run.base) / run.stride);
  if (run.base + last * run.stride + run.bytes <= low) return std::nullopt;
  return last;
}

// A block of `a` and a block of `b` that share a byte, if there are any. `a` starts no later than
// `b`.
std::optional<std::pair<std::uint64_t, std::uint64_t>> meet(const Run& a, const Run& b) {
  // With equal strides, each block of `b` lies relative to the blocks of `a` as its first one does.
  const bool alike = a.stride == b.stride;
  const bool walk_a = !alike && a.count < b.count;
  const Run& few = walk_a ? a : b;
  const Run& many = walk_a ? b : a;
  const std::uint64_t steps = alike ? 1 : few.count;
  for (std::uint64_t i = 0; i < steps; ++i) {
    const std::uint64_t low = few.base + i * few.stride;
    if (const auto other = hit(many, low, low + few.bytes))
      return walk_a ? std::pair{i, *other} : std::pair{*other, i};
  }
  return std::nullopt;
}

Error overlap(std::span<const Run> runs, std::size_t a, std::size_t b,
              std::pair<std::uint64_t, std::uint64_t> blocks) {
  const auto name = [&](std::size_t run, std::uint64_t block) {
    std::uint64_t number = block;
    for (std::size_t i = 0; i < run; ++i) number += runs[i].count;
    const std::uint64_t at = runs[run].base + block * runs[run].stride;
    return fmt::format("block {} [{:#x}, {:#x})", number, at, at + runs[run].bytes);
  };
  return bad(fmt::format("{} overlaps {}", name(a, blocks.first), name(b, blocks.second)),
             "describe every byte once");
}

// Compares each run with the runs that start before it and reach past its start.
Status sweep(std::span<const Run> runs) {
  std::vector<std::size_t> by_base(runs.size());
  std::iota(by_base.begin(), by_base.end(), std::size_t{0});
  std::sort(by_base.begin(), by_base.end(),
            [&](std::size_t a, std::size_t b) { return runs[a].base < runs[b].base; });
  std::vector<std::size_t> open;
  for (const std::size_t next : by_base) {
    std::erase_if(open, [&](std::size_t r) { return endOf(runs[r]) <= runs[next].base; });
    for (const std::size_t before : open)
      if (const auto blocks = meet(runs[before], runs[next]))
        return overlap(runs, before, next, *blocks);
    open.push_back(next);
  }
  return Ok{};
}

// The numbers of the blocks if all lie on a grid of their size, as those of a KV cache do. Nothing
// if they do not, if the size is no power of two, or if the grid has too many places.
std::optional<std::vector<std::uint32_t>> numbersOnGrid(std::span<const std::uint64_t> addresses,
                                                        std::uint64_t bytes, std::uint64_t& count) {
  constexpr std::uint64_t kMostPlaces = 64;  // grid places for each block
  const auto [low, high] = std::minmax_element(addresses.begin(), addresses.end());
  if (!std::has_single_bit(bytes)) return std::nullopt;
  const int shift = std::countr_zero(bytes);
  count = ((*high - *low) >> shift) + 1;
  if (count > addresses.size() * kMostPlaces || count > kMaxBlocks) return std::nullopt;
  std::vector<std::uint32_t> numbers(addresses.size());
  std::uint64_t beside = 0;
  for (std::size_t i = 0; i < numbers.size(); ++i) {
    const std::uint64_t offset = addresses[i] - *low;
    beside |= offset & (bytes - 1);
    numbers[i] = static_cast<std::uint32_t>(offset >> shift);
  }
  if (beside != 0) return std::nullopt;
  return numbers;
}

// Whether every run ends before the next starts. With starts and ends sorted separately, this holds
// exactly if the n-th end is no greater than start n + 1, for every n.
bool apart(std::span<const Run> runs) {
  std::vector<std::uint64_t> starts(runs.size()), ends(runs.size());
  std::transform(runs.begin(), runs.end(), starts.begin(), [](const Run& run) { return run.base; });
  std::transform(runs.begin(), runs.end(), ends.begin(), endOf);
  base::sortNumbers(starts);
  base::sortNumbers(ends);
  return std::equal(starts.begin() + 1, starts.end(), ends.begin(), std::greater_equal{});
}

// The number of each run's first block.
std::vector<std::uint64_t> firstOfEach(std::span<const Run> runs) {
  std::vector<std::uint64_t> out;
  out.reserve(runs.size());
  std::uint64_t first = 0;
  for (const Run& run : runs) out.push_back(std::exchange(first, first + run.count));
  return out;
}

}  // namespace

Result<Blocks> Blocks::of(std::vector<Run> runs) {
  bool ascending = true;
  std::uint64_t end = 0, count = 0;
  for (Run& run : runs) {
    if (run.stride == 0) run.stride = run.bytes;
    const auto number = static_cast<std::size_t>(&run - runs.data());
    if (!valid(run)) return refusal(run, number);
    count += run.count;
    if (count > kMaxBlocks || run.count > kMaxBlocks)
      return bad(fmt::format("more than 2^32 blocks, with run {} ({})", number, show(run)),
                 "use larger blocks, or several lists");
    ascending = ascending && end <= run.base;
    end = endOf(run);
  }
  if (!ascending && !apart(runs)) VIADUCT_CHECK(sweep(runs));
  return core::DisjointBlocks::of(std::move(runs));
}

bool core::DisjointBlocks::valid(const Run& run) { return viaduct::valid(run); }

// On a grid of their size, blocks share bytes only if they have the same number.
bool core::DisjointBlocks::areApart(std::span<const std::uint64_t> addresses, std::uint64_t bytes) {
  std::uint64_t count = 0;
  if (const auto numbers = numbersOnGrid(addresses, bytes, count))
    return !findTwice(*numbers, count);
  std::vector<std::uint64_t> sorted(addresses.begin(), addresses.end());
  base::sortNumbers(sorted);
  const auto meet = [&](std::uint64_t a, std::uint64_t b) { return b - a < bytes; };
  return std::adjacent_find(sorted.begin(), sorted.end(), meet) == sorted.end();
}

Blocks core::DisjointBlocks::of(std::vector<Run> runs) {
  Blocks out;
  if (runs.empty()) return out;
  bool even = true, alike = true;
  for (const Run& run : runs) {
    out.count_ += run.count;
    out.bytes_ += run.count * run.bytes;
    even = even && run.count == runs[0].count;
    alike = alike && run.bytes == runs[0].bytes;
  }
  if (even) out.per_run_ = runs[0].count;
  if (alike) out.block_bytes_ = runs[0].bytes;
  Blocks::Table table{.addresses = {}, .origins = {}, .runs = std::move(runs), .first = {}};
  if (!even) table.first = firstOfEach(table.runs);
  out.table_ = std::make_shared<const Blocks::Table>(std::move(table));
  return out;
}

Result<Blocks> Blocks::strided(const Run& run) { return of({run}); }

Result<Blocks> Blocks::list(std::span<const Extent> extents) {
  if (std::optional<Blocks> out = listOfOneSize(extents)) return *std::move(out);
  std::vector<Run> runs;
  runs.reserve(extents.size());
  for (const Extent& e : extents)
    runs.push_back({.base = e.address, .stride = e.bytes, .bytes = e.bytes, .count = 1});
  return of(std::move(runs));
}

// The quick case of list(): valid blocks of one size. Returns nothing for other lists, which of()
// checks one by one.
std::optional<Blocks> Blocks::listOfOneSize(std::span<const Extent> extents) {
  if (extents.empty() || extents.size() > kMaxBlocks) return std::nullopt;
  const std::uint64_t bytes = extents[0].bytes;
  if (bytes == 0 || bytes > kEndOfMemory) return std::nullopt;
  std::vector<std::uint64_t> addresses(extents.size());
  bool valid = true, ascending = true;
  std::uint64_t end = 0;
  for (std::size_t i = 0; i < extents.size(); ++i) {
    const Extent& e = extents[i];
    valid = valid && e.bytes == bytes && e.address <= kEndOfMemory - bytes;
    ascending = ascending && end <= e.address;
    end = e.address + bytes;
    addresses[i] = e.address;
  }
  if (!valid || (!ascending && !core::DisjointBlocks::areApart(addresses, bytes)))
    return std::nullopt;
  return core::DisjointBlocks::at(std::move(addresses), bytes);
}

Blocks core::DisjointBlocks::at(std::vector<std::uint64_t> addresses, std::uint64_t bytes,
                                std::vector<std::uint64_t> origins) {
  Blocks::Table table{std::move(addresses), std::move(origins), {}, {}};
  Blocks out;
  out.per_run_ = 1;
  out.count_ = table.list();
  out.bytes_ = out.count_ * bytes;
  out.block_bytes_ = bytes;
  out.table_ = std::make_shared<const Blocks::Table>(std::move(table));
  return out;
}

std::size_t Blocks::runOf(std::uint64_t index) const {
  if (per_run_ == 1) return index;
  if (per_run_ != 0) return index / per_run_;
  const auto& first = table_->first;
  const auto after = std::upper_bound(first.begin(), first.end(), index);
  return static_cast<std::size_t>(after - first.begin()) - 1;
}

Extent Blocks::operator[](std::uint64_t index) const {
  const std::size_t number = runOf(index);
  const Run run = this->run(number);
  return {run.base + (index - firstOf(number)) * run.stride, run.bytes};
}

}  // namespace viaduct
