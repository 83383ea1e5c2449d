#include "measure/workload/contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <limits>

#include "base/random.h"
#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSample = std::uint64_t{64} << 20U;  // checked bytes of a stream
constexpr std::uint64_t kSpots = 16;                         // words that a spot check writes
constexpr auto kNotTheOriginal = "the storage has other bytes there";

// `original` may be longer than `found`.
std::optional<Mismatch> firstDifference(std::span<const std::byte> found,
                                        std::span<const std::byte> original) {
  const auto at = std::mismatch(found.begin(), found.end(), original.begin()).first;
  if (at == found.end()) return std::nullopt;
  return Mismatch{.offset = static_cast<std::uint64_t>(at - found.begin()),
                  .text = kNotTheOriginal};
}

}  // namespace

Contents::Contents(const Spec& spec, const Workload& row, const std::vector<Stream>& streams,
                   const DeviceBytes& bytes)
    : spec_(spec),
      row_(row),
      streams_(streams),
      initiator_order_(blockOrder(row.batch, spec.seed, Role::kInitiator)),
      target_order_(blockOrder(row.batch, spec.seed, Role::kTarget)) {
  for (const Stream& stream : streams) {
    sets_.push_back(setsOf(spec, row, stream, bytes));
    works_.push_back(workOf(row, stream));
    first_.push_back(blocks_);
    blocks_ += sets_.back().count * row.batch;
  }
  if (row.kv) kv_.emplace(*row.kv, spec.seed);
}

Role Contents::source(std::uint32_t stream) const {
  const bool initiator = (row_.op == OpKind::kWrite) != streams_[stream].reverse;
  return initiator ? Role::kInitiator : Role::kTarget;
}

Pattern Contents::pattern(std::uint64_t epoch) const {
  return {.seed = spec_.seed,
          .block_bytes = row_.block_bytes,
          .blocks = blocks_,
          .epoch = epoch % kEpochs};
}

// Returns all blocks of a set.
std::span<std::byte> Contents::blocks(const StreamEnd& end, std::uint64_t set) const {
  const Sets& sets = sets_[end.stream];
  const bool initiator = end.role == Role::kInitiator;
  return end.memory.subspan((initiator ? sets.initiator_at : sets.target_at) + set * sets.stride,
                            works_[end.stream].bytes());
}

std::span<std::byte> Contents::block(const StreamEnd& end, std::uint64_t set,
                                     std::uint32_t k) const {
  const auto& order = end.role == Role::kInitiator ? initiator_order_ : target_order_;
  const std::uint64_t bytes = works_[end.stream].block_bytes;
  return blocks(end, set).subspan(order[k] * bytes, bytes);
}

// Returns the block that the other end of the stream has in the place of this one.
std::span<std::byte> Contents::original(const StreamEnd& end, std::uint64_t set,
                                        std::uint32_t k) const {
  return block({.stream = end.stream, .role = other(end.role), .memory = end.original}, set, k);
}

std::uint64_t Contents::number(std::uint32_t stream, std::uint64_t set, std::uint32_t k) const {
  return first_[stream] + set * row_.batch + k;
}

std::uint64_t Contents::fewestSets() const {
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (const Sets& sets : sets_) fewest = std::min(fewest, sets.count);
  return fewest;
}

void Contents::touch(const StreamEnd& end) const {
  if (end.mirror != nullptr) return;
  constexpr std::uint64_t kPage = 4096;
  if (kv_) {
    for (std::uint64_t set = 0; set < sets_[end.stream].count; ++set)
      kv_->touch(kvSide(end), end.memory, set);
    return;
  }
  for (std::uint64_t set = 0; set < sets_[end.stream].count; ++set)
    for (std::uint32_t k = 0; k < row_.batch; ++k) {
      const auto memory = block(end, set, k);
      for (std::uint64_t at = 0; at < memory.size(); at += kPage) memory[at] = std::byte{0};
    }
}

Status Contents::fill(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const {
  const Pattern now = pattern(epoch);
  const std::uint64_t there = sets_[end.stream].count;
  for (std::uint64_t i = 0; i < std::min(sets.count, there); ++i) {
    const std::uint64_t set = (sets.first + i) % there;
    if (kv_) {
      kv_->fill(end.memory, epoch, set);
      continue;
    }
    for (std::uint32_t k = 0; k < row_.batch; ++k)
      now.fill(block(end, set, k), number(end.stream, set, k));
    if (end.mirror != nullptr) VIADUCT_CHECK(end.mirror->push(blocks(end, set)));
  }
  // The blocks of a KV row lie anywhere in the pool.
  if (kv_ && end.mirror != nullptr) return end.mirror->push(end.memory);
  return Ok{};
}

std::span<std::byte> Contents::checkedPart(const StreamEnd& end, std::uint64_t set,
                                           std::uint32_t k) const {
  const auto memory = block(end, set, k);
  return spec_.verify == Verified::kFull ? memory : memory.first(std::min(memory.size(), kSample));
}

Wrong Contents::check(const StreamEnd& end, const Pattern& now, std::uint64_t set,
                      std::uint32_t k) const {
  const auto memory = checkedPart(end, set, k);
  const auto wrong = end.original.empty() ? now.verify(memory, number(end.stream, set, k))
                                          : firstDifference(memory, original(end, set, k));
  if (!wrong) return std::nullopt;
  return fmt::format("block {} of set {} is wrong from offset {}: {}", k, set, wrong->offset,
                     wrong->text);
}

Result<Wrong> Contents::verifyKv(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const {
  const std::uint64_t there = sets_[end.stream].count;
  if (end.mirror != nullptr) VIADUCT_CHECK(end.mirror->pull(end.memory));
  for (std::uint64_t i = 0; i < std::min(sets.count, there); ++i)
    if (auto wrong = kv_->verify(end.memory, epoch, (sets.first + i) % there,
                                 spec_.verify == Verified::kFull))
      return Wrong(std::move(wrong));
  return Wrong();
}

Result<Wrong> Contents::verify(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const {
  if (kv_) return verifyKv(end, epoch, sets);
  const Pattern now = pattern(epoch);
  const std::uint64_t there = sets_[end.stream].count;
  const std::uint64_t total = std::min(sets.count, there) * row_.batch;
  const std::uint64_t sample = std::max<std::uint64_t>(kSample / works_[end.stream].block_bytes, 1);
  const std::uint64_t step =
      spec_.verify == Verified::kFull ? 1 : std::max<std::uint64_t>(total / sample, 1);
  for (std::uint64_t i = 0; i < total; i += step) {
    const auto k = static_cast<std::uint32_t>(i % row_.batch);
    const std::uint64_t set = (sets.first + i / row_.batch) % there;
    // If every block is checked, one copy of a whole set is faster than many of its blocks.
    if (end.mirror != nullptr && (step > 1 || k == 0))
      VIADUCT_CHECK(end.mirror->pull(step > 1 ? checkedPart(end, set, k) : blocks(end, set)));
    if (auto wrong = check(end, now, set, k)) return wrong;
  }
  return Wrong();
}

std::vector<Contents::Spot> Contents::spots(const SpotCheck& check) const {
  base::Random random(spec_.seed ^ check.epoch << 32U ^ check.stream);
  const std::uint64_t bytes = works_[check.stream].block_bytes;
  const std::uint64_t words = (bytes + kWordBytes - 1) / kWordBytes;
  std::vector<Spot> out(std::min(kSpots, row_.batch * words));
  for (Spot& spot : out)
    spot = {static_cast<std::uint32_t>(random.below(row_.batch)), random.below(words) * kWordBytes};
  return out;
}

std::span<std::byte> Contents::memoryOf(const StreamEnd& end, const SpotCheck& check,
                                        Spot spot) const {
  const auto memory = block(end, check.set, spot.block).subspan(spot.offset);
  return memory.first(std::min(memory.size(), kWordBytes));
}

Status Contents::freshen(const StreamEnd& end, const SpotCheck& check) const {
  return restore(end, check, check.epoch);
}

Status Contents::restore(const StreamEnd& end, const SpotCheck& check, std::uint64_t epoch) const {
  const Pattern then = pattern(epoch);
  for (const Spot spot : spots(check)) {
    const std::uint64_t word = then.word(number(check.stream, check.set, spot.block), spot.offset);
    const auto memory = memoryOf(end, check, spot);
    std::memcpy(memory.data(), &word, memory.size());
    if (end.mirror != nullptr) VIADUCT_CHECK(end.mirror->push(memory));
  }
  return Ok{};
}

Status Contents::spoil(const StreamEnd& end, const SpotCheck& check) const {
  for (const Spot spot : spots(check)) {
    const auto memory = memoryOf(end, check, spot);
    std::memset(memory.data(), 0, memory.size());
    if (end.mirror != nullptr) VIADUCT_CHECK(end.mirror->push(memory));
  }
  return Ok{};
}

Wrong Contents::check(const StreamEnd& end, const SpotCheck& check, const Pattern& now,
                      Spot spot) const {
  const std::uint64_t block_number = number(check.stream, check.set, spot.block);
  const std::uint64_t word = now.word(block_number, spot.offset);
  const auto memory = memoryOf(end, check, spot);
  if (!end.original.empty()) {
    const auto wanted = original(end, check.set, spot.block).subspan(spot.offset);
    if (!firstDifference(memory, wanted)) return std::nullopt;
    return fmt::format("block {} of set {} is wrong at offset {}: {}", spot.block, check.set,
                       spot.offset, kNotTheOriginal);
  }
  if (std::memcmp(memory.data(), &word, memory.size()) == 0) return std::nullopt;
  return fmt::format("block {} of set {} is wrong at offset {}: {}", spot.block, check.set,
                     spot.offset, now.describe(memory, block_number, spot.offset));
}

Result<Wrong> Contents::verify(const StreamEnd& end, const SpotCheck& check,
                               std::uint64_t epoch) const {
  const Pattern now = pattern(epoch);
  for (const Spot spot : spots(check)) {
    if (end.mirror != nullptr) VIADUCT_CHECK(end.mirror->pull(memoryOf(end, check, spot)));
    if (auto wrong = this->check(end, check, now, spot)) return wrong;
  }
  return Wrong();
}

}  // namespace viaduct::measure
