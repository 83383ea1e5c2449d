#include "diag/explain/text_finder.h"

#include <cassert>
#include <queue>

namespace viaduct::diag {

TextFinder::TextFinder(const std::vector<std::string_view>& words) {
  addState();
  for (std::size_t i = 0; i < words.size(); ++i) addWord(words[i], static_cast<std::uint16_t>(i));
  followSuffixes();
  flagEnds();
}

std::uint16_t TextFinder::addState() {
  assert(steps_.size() <= kState);
  steps_.push_back({});
  ends_.emplace_back();
  return static_cast<std::uint16_t>(steps_.size() - 1);
}

void TextFinder::addWord(std::string_view word, std::uint16_t number) {
  std::uint16_t state = 0;
  for (const char c : word) {
    const auto byte = static_cast<unsigned char>(c);
    if (steps_[state][byte] == 0) {
      const std::uint16_t added = addState();
      steps_[state][byte] = added;
    }
    state = steps_[state][byte];
  }
  ends_[state].push_back(number);
}

// Gives each state the missing steps of its longest proper suffix that is also a state. Shorter
// states come first, so the suffix is complete when it is copied.
void TextFinder::followSuffixes() {
  std::vector<std::uint16_t> suffix(steps_.size(), 0);
  std::queue<std::uint16_t> states;
  states.push(0);
  for (; !states.empty(); states.pop()) {
    const std::uint16_t state = states.front();
    for (std::size_t byte = 0; byte < steps_[state].size(); ++byte) {
      const std::uint16_t from_suffix = state == 0 ? 0 : steps_[suffix[state]][byte];
      std::uint16_t& next = steps_[state][byte];
      if (next == 0) {
        next = from_suffix;
        continue;
      }
      suffix[next] = from_suffix;
      ends_[next].insert(ends_[next].end(), ends_[from_suffix].begin(), ends_[from_suffix].end());
      states.push(next);
    }
  }
}

void TextFinder::flagEnds() {
  for (Steps& steps : steps_)
    for (std::uint16_t& next : steps)
      if (!ends_[next].empty()) next |= kEndsWord;
}

}  // namespace viaduct::diag
