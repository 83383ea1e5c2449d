// Finds many words in a text in one pass. Threads: immutable after construction.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

namespace viaduct::diag {

// An Aho-Corasick automaton, with all steps in one table.
class TextFinder {
 public:
  explicit TextFinder(const std::vector<std::string_view>& words);

  // Calls found(i) for each occurrence of words[i].
  template <class F>
  void scan(std::string_view text, F&& found) const {
    std::uint16_t state = 0;
    for (const char c : text) {
      state = steps_[state & kState][static_cast<unsigned char>(c)];
      if (state & kEndsWord) [[unlikely]]
        for (const std::uint16_t word : ends_[state & kState]) found(word);
    }
  }

 private:
  static constexpr std::uint16_t kEndsWord = 0x8000;  // flags a step to a state that ends a word
  static constexpr std::uint16_t kState = 0x7fff;
  using Steps = std::array<std::uint16_t, 256>;

  std::uint16_t addState();
  void addWord(std::string_view word, std::uint16_t number);
  void followSuffixes();
  void flagEnds();

  std::vector<Steps> steps_;                      // for each state, by the next byte
  std::vector<std::vector<std::uint16_t>> ends_;  // words that end in each state
};

}  // namespace viaduct::diag
