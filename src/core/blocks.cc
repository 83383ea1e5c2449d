#include <fmt/format.h>
#include <viaduct/blocks.h>

#include <algorithm>
#include <limits>
#include <optional>
#include <utility>

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

// One past the last byte of a run that checkRun() has passed.
std::uint64_t endOf(const Run& run) { return run.base + (run.count - 1) * run.stride + run.bytes; }

// One past the last byte, or nothing when that lies beyond 2^63.
std::optional<std::uint64_t> checkedEnd(const Run& run) {
  std::uint64_t end = 0;
  const bool over = __builtin_mul_overflow(run.count - 1, run.stride, &end) ||
                    __builtin_add_overflow(end, run.base, &end) ||
                    __builtin_add_overflow(end, run.bytes, &end);
  if (over || end > kEndOfMemory) return std::nullopt;
  return end;
}

Status checkRun(const Run& run, std::size_t number) {
  if (run.count == 0) return bad(fmt::format("run {} has no blocks", number), "omit the run");
  if (run.bytes == 0)
    return bad(fmt::format("the blocks of run {} at {:#x} have zero bytes", number, run.base),
               "omit empty blocks");
  if (!checkedEnd(run))
    return bad(fmt::format("run {} ({}) reaches beyond 2^63", number, show(run)),
               "check base, stride and count");
  // Also for a run of one block, where the stride moves nothing: bytes and stride may be swapped.
  if (run.stride < run.bytes)
    return bad(fmt::format("run {} at {:#x} has a stride of {}, less than its blocks of {} bytes",
                           number, run.base, run.stride, run.bytes),
               "use a stride of at least the block's bytes, or 0 for blocks that touch");
  return Ok{};
}

// The block of `run` that shares a byte with [low, high): of those that start before `high` the
// last one also ends last.
std::optional<std::uint64_t> hit(const Run& run, std::uint64_t low, std::uint64_t high) {
  if (run.base >= high) return std::nullopt;
  const std::uint64_t last =
      run.count == 1 ? 0 : std::min(run.count - 1, (high - 1 - run.base) / run.stride);
  if (run.base + last * run.stride + run.bytes <= low) return std::nullopt;
  return last;
}

// A block of `a` and one of `b` that share a byte. `a` starts no later than `b`.
std::optional<std::pair<std::uint64_t, std::uint64_t>> meet(const Run& a, const Run& b) {
  // At equal strides every block of `b` lies to the blocks of `a` as its first one does.
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

// Where a run lies, for the sweep below.
struct Reach {
  std::uint64_t base = 0;
  std::uint64_t end = 0;
  std::size_t run = 0;
};

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

// Sweeps over the runs by base and compares each with those that reach past its start: none, for
// runs that do not interleave.
Status checkApart(std::span<const Run> runs) {
  std::vector<Reach> order;
  order.reserve(runs.size());
  for (std::size_t i = 0; i < runs.size(); ++i) order.push_back({runs[i].base, endOf(runs[i]), i});
  const auto by_base = [](const Reach& a, const Reach& b) { return a.base < b.base; };
  if (!std::is_sorted(order.begin(), order.end(), by_base))
    std::sort(order.begin(), order.end(), by_base);
  std::vector<Reach> open;
  for (const Reach& next : order) {
    std::erase_if(open, [&](const Reach& r) { return r.end <= next.base; });
    for (const Reach& before : open)
      if (const auto blocks = meet(runs[before.run], runs[next.run]))
        return overlap(runs, before.run, next.run, *blocks);
    open.push_back(next);
  }
  return Ok{};
}

}  // namespace

Result<Blocks> Blocks::of(std::vector<Run> runs) {
  Blocks out;
  bool even = true;
  for (std::size_t i = 0; i < runs.size(); ++i) {
    if (runs[i].stride == 0) runs[i].stride = runs[i].bytes;
    VIADUCT_CHECK(checkRun(runs[i], i));
    out.count_ += runs[i].count;
    if (out.count_ > kMaxBlocks || runs[i].count > kMaxBlocks)
      return bad(fmt::format("more than 2^32 blocks, with run {} ({})", i, show(runs[i])),
                 "use larger blocks, or several lists");
    even = even && runs[i].count == runs[0].count;
  }
  if (runs.size() > 1) VIADUCT_CHECK(checkApart(runs));
  for (const Run& run : runs) out.bytes_ += run.count * run.bytes;
  out.runs_ = std::move(runs);
  if (even && !out.runs_.empty()) {
    out.per_run_ = out.runs_[0].count;
    return out;
  }
  out.first_.reserve(out.runs_.size());
  std::uint64_t first = 0;
  for (const Run& run : out.runs_) {
    out.first_.push_back(first);
    first += run.count;
  }
  return out;
}

Result<Blocks> Blocks::strided(const Run& run) { return of({run}); }

Result<Blocks> Blocks::list(std::span<const Extent> extents) {
  std::vector<Run> runs;
  runs.reserve(extents.size());
  for (const Extent& e : extents)
    runs.push_back({.base = e.address, .stride = e.bytes, .bytes = e.bytes, .count = 1});
  return of(std::move(runs));
}

std::size_t Blocks::runOf(std::uint64_t index) const {
  if (per_run_ == 1) return index;
  if (per_run_ != 0) return index / per_run_;
  const auto after = std::upper_bound(first_.begin(), first_.end(), index);
  return static_cast<std::size_t>(after - first_.begin()) - 1;
}

Extent Blocks::operator[](std::uint64_t index) const {
  const std::size_t number = runOf(index);
  const Run& run = runs_[number];
  return {run.base + (index - firstOf(number)) * run.stride, run.bytes};
}

}  // namespace viaduct
