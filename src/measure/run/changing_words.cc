#include "measure/run/changing_words.h"

#include <cstring>
#include <optional>

#include "base/unseen_order.h"

namespace viaduct::measure {
namespace {

std::optional<std::uint64_t> parityOf(ChangingWords::Way way) {
  if (way == ChangingWords::Way::kBounce) return 0;
  if (way == ChangingWords::Way::kEcho) return 1;
  return std::nullopt;
}

}  // namespace

ChangingWords::ChangingWords(const Facts& facts)
    : facts_(facts),
      stride_(facts.contents.sets(facts.end.stream).stride),
      random_(facts.dice),
      places_(facts.contents.places(facts.end.stream, random_, parityOf(facts.way))),
      expected_(facts.depth),
      seeds_(facts.whole ? facts.contents.sets(facts.end.stream).count : 0) {
  for (const ChangedWord& word : places_) {
    const std::span<std::byte> at = facts_.contents.wordAt(facts_.end, 0, word);
    first_.push_back(at.data());
    width_ = at.size();
  }
}

bool ChangingWords::posting(std::uint64_t number, std::uint64_t set) {
  if (facts_.whole) {
    const std::uint64_t seed = seeds_[set] = random_.next();
    auto done = facts_.contents.refill(facts_.end, seed, set);
    if (!done && failure_) failure_ = std::move(done);
  }
  if (!facts_.by_transfer || first_.empty()) return facts_.whole;
  const Expected word{first_[next_] + set * stride_, random_.next()};
  next_ = next_ + 1 == first_.size() ? 0 : next_ + 1;
  std::memcpy(word.at, &word.value, width_);
  if (facts_.way != Way::kWrite) expected_[number % facts_.depth] = word;
  return facts_.whole;
}

void ChangingWords::ended(std::uint64_t number) {
  if (facts_.way == Way::kWrite || !facts_.by_transfer || width_ < kWordBytes) return;
  const Expected& word = expected_[number % facts_.depth];
  const bool as_written = std::memcmp(word.at, &word.value, kWordBytes) == 0;
  ++checked_;
  if (as_written != (facts_.way == Way::kBounce)) ++missed_;
}

Status ChangingWords::change(std::uint64_t set) {
  for (ChangedWord& word : places_) word.value = random_.next();
  return facts_.contents.change(facts_.end, set, places_);
}

std::vector<ChangedWord> ChangingWords::words(std::uint64_t set) const {
  const base::UnseenOrder ignored;
  std::vector<ChangedWord> out = places_;
  for (ChangedWord& word : out) {
    const std::span<std::byte> at = facts_.contents.wordAt(facts_.end, set, word);
    std::memcpy(&word.value, at.data(), at.size());
  }
  return out;
}

}  // namespace viaduct::measure
