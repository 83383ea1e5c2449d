#include "measure/workload/stream_contents.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <limits>

#include "base/unseen_order.h"
#include "measure/workload/collective.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kSample = std::uint64_t{64} << 20U;  // a sample has less than twice as many
constexpr std::uint64_t kPlaces = 16;                        // words of a set that change

}  // namespace

StreamContents::StreamContents(const Spec& spec, const Workload& row,
                               const std::vector<Stream>& streams, const DeviceBytes& bytes,
                               std::uint64_t seed)
    : spec_(spec),
      row_(row),
      streams_(streams),
      initiator_order_(blockOrder(row.batch, spec.seed, Role::kInitiator)),
      target_order_(blockOrder(row.batch, spec.seed, Role::kTarget)) {
  Pattern blocks{.seed = seed, .block_bytes = row.block_bytes};
  for (const Stream& stream : streams) {
    sets_.push_back(setsOf(spec, row, stream, bytes));
    works_.push_back(workOf(row, stream));
    first_.push_back(blocks.blocks);
    blocks.blocks += sets_.back().count * row.batch;
  }
  if (row.kv) kv_.emplace(*row.kv);
  pattern_ = kv_ ? kv_->pattern(seed) : blocks;
  contents_ = Contents(pattern_);
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
  if (kv_) return kvCells(end, epoch, {sets.first, count});
  const std::uint64_t total = count * row_.batch;
  const std::uint64_t few = std::max<std::uint64_t>(kSample / works_[end.stream].block_bytes, 1);
  const std::uint64_t step = sample ? std::max<std::uint64_t>(total / few, 1) : 1;
  return [=, this](const CellVisit& visit) -> Wrong {
    std::uint64_t set = sets.first % there, k = 0;
    for (std::uint64_t i = 0; i < total; i += step, k += step) {
      if (k >= row_.batch) {
        set = (set + k / row_.batch) % there;
        k %= row_.batch;
      }
      Cells cell = block(end, epoch, set, static_cast<std::uint32_t>(k));
      if (sample) cell.memory = cell.memory.first(std::min(cell.memory.size(), kSample));
      if (const auto wrong = visit(cell)) return named(cell, *wrong);
    }
    return std::nullopt;
  };
}

CellList StreamContents::kvCells(const StreamEnd& end, std::uint64_t epoch, SetRange sets) const {
  return [=, this](const CellVisit& visit) -> Wrong {
    const auto side = end.role == source(end.stream) ? KvSide::kSource : KvSide::kDestination;
    const std::uint64_t there = sets_[end.stream].count;
    for (std::uint64_t i = 0; i < sets.count; ++i)
      if (auto wrong = kv_->each(side, end.memory, epoch, (sets.first + i) % there, visit))
        return wrong;
    return std::nullopt;
  };
}

std::string StreamContents::named(const Cells& cell, const WrongCell& wrong) const {
  const auto stream = std::prev(std::ranges::upper_bound(first_, cell.number));
  const std::uint64_t number = cell.number - *stream;
  return wrong.named(fmt::format("block {} of set {}", number % row_.batch, number / row_.batch));
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

Status StreamContents::refill(const StreamEnd& end, std::uint64_t seed, std::uint64_t set) const {
  Pattern other = pattern_;
  other.seed = seed;
  return Contents(other).fill(cells(end, 1, {set, 1}), end.mirror);
}

Result<WordSum> StreamContents::sum(const StreamEnd& end, std::uint64_t key,
                                    std::uint64_t set) const {
  const auto how = kv_ && spec_.verify != Verified::kFull ? Verified::kSampled : Verified::kFull;
  // A source's mirror already holds what was copied to the GPU, so null avoids a copy back.
  return contents_.sum(cells(end, 0, {set, 1}), key, how,
                       end.role == source(end.stream) ? nullptr : end.mirror);
}

Result<Wrong> StreamContents::differences(const StreamEnd& end, const SetContents& source) const {
  Pattern other = pattern_;
  other.seed = source.seed;
  // The changed words are not in the pattern. So they are compared here, and then replaced by words
  // of the pattern for the check of all words.
  std::vector<std::uint64_t> found;
  Wrong stale;
  for (const ChangedWord& word : source.changed) {
    const std::span<std::byte> at = wordAt(end, source.set, word);
    std::memcpy(&found.emplace_back(), at.data(), at.size());
    if (std::memcmp(at.data(), &word.value, at.size()) != 0 && !stale)
      stale = named(block(end, source.epoch, source.set, word.block),
                    WrongCell{.offset = word.offset, .text = "stale: an older word is there"});
  }
  const CellList list = cells(end, source.epoch, {source.set, 1});
  Contents wanted(other);
  for (const ChangedWord& word : source.changed) {
    const std::span<std::byte> at = wordAt(end, source.set, word);
    other.epoch = source.epoch % kEpochs;
    other.fill(at, block(end, 0, source.set, word.block).number, word.offset);
  }
  auto wrong = wanted.verify(list, Verified::kFull);
  for (std::size_t i = found.size(); i-- > 0;) {
    const std::span<std::byte> at = wordAt(end, source.set, source.changed[i]);
    std::memcpy(at.data(), &found[i], at.size());
  }
  if (!wrong || *wrong || !stale) return wrong;
  return stale;
}

std::span<std::byte> StreamContents::wordAt(const StreamEnd& end, std::uint64_t set,
                                            const ChangedWord& word) const {
  const std::span<std::byte> all = block(end, 0, set, word.block).memory;
  return all.subspan(word.offset, std::min(kWordBytes, all.size() - word.offset));
}

std::vector<ChangedWord> StreamContents::places(std::uint32_t stream, base::Random& random,
                                                std::optional<std::uint64_t> parity) const {
  if (kv_) return {};
  const std::uint64_t words = std::max<std::uint64_t>(works_[stream].block_bytes / kWordBytes, 1);
  const std::uint64_t step = parity ? 2 : 1, first = parity.value_or(0);
  if (first >= words) return {};
  std::vector<ChangedWord> out(kPlaces);
  for (ChangedWord& word : out)
    word = {
        .block = static_cast<std::uint32_t>(random.below(row_.batch)),
        .offset = (first + random.below((words - first + step - 1) / step) * step) * kWordBytes};
  return out;
}

Status StreamContents::change(const StreamEnd& end, std::uint64_t set,
                              std::span<const ChangedWord> words) const {
  const base::UnseenOrder ignored;
  for (const ChangedWord& word : words) {
    const std::span<std::byte> at = wordAt(end, set, word);
    std::memcpy(at.data(), &word.value, at.size());
    if (end.mirror != nullptr) VIADUCT_CHECK(end.mirror->push(at));
  }
  return Ok{};
}

}  // namespace viaduct::measure
