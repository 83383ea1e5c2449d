#include "measure/workload/stream_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <limits>

#include "base/random.h"
#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSample = std::uint64_t{64} << 20U;  // checked bytes of a stream
constexpr std::uint64_t kSpots = 16;                         // words that a spot check writes

}  // namespace

StreamContents::StreamContents(const Spec& spec, const Workload& row,
                               const std::vector<Stream>& streams, const DeviceBytes& bytes)
    : spec_(spec),
      row_(row),
      streams_(streams),
      initiator_order_(blockOrder(row.batch, spec.seed, Role::kInitiator)),
      target_order_(blockOrder(row.batch, spec.seed, Role::kTarget)) {
  Pattern blocks{.seed = spec.seed, .block_bytes = row.block_bytes};
  for (const Stream& stream : streams) {
    sets_.push_back(setsOf(spec, row, stream, bytes));
    works_.push_back(workOf(row, stream));
    first_.push_back(blocks.blocks);
    blocks.blocks += sets_.back().count * row.batch;
  }
  if (row.kv) kv_.emplace(*row.kv);
  contents_ = Contents(kv_ ? kv_->pattern(spec.seed) : blocks);
}

Role StreamContents::source(std::uint32_t stream) const {
  const bool initiator = (row_.op == OpKind::kWrite) != streams_[stream].reverse;
  return initiator ? Role::kInitiator : Role::kTarget;
}

std::uint64_t StreamContents::fewestSets() const {
  std::uint64_t fewest = std::numeric_limits<std::uint64_t>::max();
  for (const Sets& sets : sets_) fewest = std::min(fewest, sets.count);
  return fewest;
}

Cells StreamContents::block(const StreamEnd& end, std::uint64_t epoch, std::uint64_t set,
                            std::uint32_t k) const {
  const auto at = [&](std::span<std::byte> memory, Role role) {
    const Sets& sets = sets_[end.stream];
    const bool initiator = role == Role::kInitiator;
    const std::uint64_t bytes = works_[end.stream].block_bytes;
    return memory.subspan((initiator ? sets.initiator_at : sets.target_at) + set * sets.stride +
                              (initiator ? initiator_order_ : target_order_)[k] * bytes,
                          bytes);
  };
  Cells out{.memory = at(end.memory, end.role),
            .number = first_[end.stream] + set * row_.batch + k,
            .epoch = epoch};
  if (!end.original.empty()) out.original = at(end.original, other(end.role));
  return out;
}

CellList StreamContents::cells(const StreamEnd& end, std::uint64_t epoch, SetRange sets,
                               bool sample) const {
  const std::uint64_t there = sets_[end.stream].count;
  const std::uint64_t count = std::min(sets.count, there);
  if (kv_)
    return [=, this](const CellVisit& visit) -> Wrong {
      const auto side = end.role == source(end.stream) ? KvSide::kSource : KvSide::kDestination;
      for (std::uint64_t i = 0; i < count; ++i)
        if (auto wrong = kv_->each(side, end.memory, epoch, (sets.first + i) % there, visit))
          return wrong;
      return std::nullopt;
    };
  const std::uint64_t total = count * row_.batch;
  const std::uint64_t few = std::max<std::uint64_t>(kSample / works_[end.stream].block_bytes, 1);
  const std::uint64_t step = sample ? std::max<std::uint64_t>(total / few, 1) : 1;
  return [=, this](const CellVisit& visit) -> Wrong {
    for (std::uint64_t i = 0; i < total; i += step) {
      const auto k = static_cast<std::uint32_t>(i % row_.batch);
      Cells cell = block(end, epoch, (sets.first + i / row_.batch) % there, k);
      if (sample) cell.memory = cell.memory.first(std::min(cell.memory.size(), kSample));
      if (auto wrong = named(cell, visit(cell))) return wrong;
    }
    return std::nullopt;
  };
}

CellList StreamContents::only(const Cells& cell) const {
  return [this, &cell](const CellVisit& visit) { return named(cell, visit(cell)); };
}

Wrong StreamContents::named(const Cells& cell, const std::optional<WrongCell>& wrong) const {
  if (!wrong) return std::nullopt;
  const auto stream = std::prev(std::ranges::upper_bound(first_, cell.number));
  const std::uint64_t number = cell.number - *stream;
  return wrong->named(fmt::format("block {} of set {}", number % row_.batch, number / row_.batch));
}

void StreamContents::touch(const StreamEnd& end) const {
  if (end.mirror == nullptr) Contents::touch(cells(end, 0, all(end.stream)));
}

Status StreamContents::fill(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const {
  return contents_.fill(cells(end, epoch, sets), end.mirror);
}

Result<Wrong> StreamContents::verify(const StreamEnd& end, std::uint64_t epoch,
                                     SetRange sets) const {
  const bool sample = spec_.verify != Verified::kFull;
  return contents_.verify(cells(end, epoch, sets, sample),
                          sample && kv_ ? Verified::kSampled : Verified::kFull, end.mirror);
}

std::vector<Cells> StreamContents::spots(const StreamEnd& end, const SpotCheck& check,
                                         std::uint64_t epoch) const {
  base::Random random(spec_.seed ^ check.epoch << 32U ^ check.stream);
  const std::uint64_t bytes = works_[check.stream].block_bytes;
  const std::uint64_t words = (bytes + kWordBytes - 1) / kWordBytes;
  std::vector<Cells> out(std::min(kSpots, row_.batch * words));
  for (Cells& word : out) {
    word = block(end, epoch, check.set, static_cast<std::uint32_t>(random.below(row_.batch)));
    word.offset = random.below(words) * kWordBytes;
    word.memory = word.memory.subspan(word.offset, std::min(kWordBytes, bytes - word.offset));
    if (!word.original.empty()) word.original = word.original.subspan(word.offset);
  }
  return out;
}

Status StreamContents::freshen(const StreamEnd& end, const SpotCheck& check) const {
  return restore(end, check, check.epoch);
}

Status StreamContents::restore(const StreamEnd& end, const SpotCheck& check,
                               std::uint64_t epoch) const {
  for (const Cells& word : spots(end, check, epoch))
    VIADUCT_CHECK(contents_.fill(only(word), end.mirror));
  return Ok{};
}

Status StreamContents::spoil(const StreamEnd& end, const SpotCheck& check) const {
  for (const Cells& word : spots(end, check, 0))
    VIADUCT_CHECK(Contents::clear(only(word), end.mirror));
  return Ok{};
}

Result<Wrong> StreamContents::verify(const StreamEnd& end, const SpotCheck& check,
                                     std::uint64_t epoch) const {
  for (const Cells& word : spots(end, check, epoch)) {
    VIADUCT_TRY(Wrong wrong, contents_.verify(only(word), Verified::kFull, end.mirror));
    if (wrong) return wrong;
  }
  return Wrong();
}

}  // namespace viaduct::measure
