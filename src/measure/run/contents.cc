#include "measure/run/contents.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSample = std::uint64_t{1} << 20U;  // bytes of a stream

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
    first_.push_back(blocks_);
    blocks_ += sets_.back().count * row.batch;
  }
}

Role Contents::source(std::uint32_t stream) const {
  const bool initiator = (row_.op == OpKind::kWrite) != streams_[stream].reverse;
  return initiator ? Role::kInitiator : Role::kTarget;
}

Pattern Contents::pattern(std::uint64_t epoch) const {
  return {.seed = spec_.seed, .block_bytes = row_.block_bytes, .blocks = blocks_, .epoch = epoch};
}

std::span<std::byte> Contents::block(const StreamEnd& end, std::uint64_t set,
                                     std::uint32_t k) const {
  const bool initiator = end.role == Role::kInitiator;
  const Sets& sets = sets_[end.stream];
  const std::uint64_t place = initiator ? initiator_order_[k] : target_order_[k];
  return end.memory.subspan((initiator ? sets.initiator_at : sets.target_at) + set * sets.stride +
                                place * row_.block_bytes,
                            row_.block_bytes);
}

std::uint64_t Contents::number(std::uint32_t stream, std::uint64_t set, std::uint32_t k) const {
  return first_[stream] + set * row_.batch + k;
}

void Contents::fill(const StreamEnd& end, std::uint64_t epoch) const {
  const Pattern now = pattern(epoch);
  for (std::uint64_t set = 0; set < sets_[end.stream].count; ++set)
    for (std::uint32_t k = 0; k < row_.batch; ++k)
      now.fill(block(end, set, k), number(end.stream, set, k));
}

std::optional<Mismatch> Contents::check(const StreamEnd& end, const Pattern& now, std::uint64_t set,
                                        std::uint32_t k) const {
  auto memory = block(end, set, k);
  if (spec_.verify == Verified::kSampled) memory = memory.first(std::min(memory.size(), kSample));
  return now.verify(memory, number(end.stream, set, k));
}

std::optional<std::string> Contents::verify(const StreamEnd& end, std::uint64_t epoch,
                                            std::uint64_t iterations) const {
  if (spec_.verify == Verified::kOff) return std::nullopt;
  const Pattern now = pattern(epoch);
  const std::uint64_t total = std::min(iterations, sets_[end.stream].count) * row_.batch;
  const std::uint64_t sample = std::max<std::uint64_t>(kSample / row_.block_bytes, 1);
  const std::uint64_t step =
      spec_.verify == Verified::kFull ? 1 : std::max<std::uint64_t>(total / sample, 1);
  for (std::uint64_t i = 0; i < total; i += step) {
    const auto k = static_cast<std::uint32_t>(i % row_.batch);
    if (const auto wrong = check(end, now, i / row_.batch, k))
      return fmt::format("block {} of set {} is wrong from offset {}: {}", k, i / row_.batch,
                         wrong->offset, wrong->text);
  }
  return std::nullopt;
}

}  // namespace viaduct::measure
