// The texts in logs that `viaduct doctor --explain` knows: what each means, its possible causes and
// their fixes. A new text is one entry in a texts_*.cc, and one line in samples_testing.h.
// Threads: constants.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace viaduct::diag {

enum class TextKind : std::uint8_t {
  kError,     // something failed
  kWarning,   // it works, but slowly or at a risk
  kFollowUp,  // it failed because something else failed before
  kGood,      // proof that a fast path is in use
};
// "error", "warning", "follow-up", "good".
std::string_view textKindName(TextKind kind);

// Parts that a line contains in this order. Upper and lower case differ. A part that ends with a
// digit ends a number: "error 12" is not in "error 127".
using TextPattern = std::vector<std::string_view>;

struct TextCause {
  std::string_view cause = {};
  std::vector<std::string_view> findings = {};  // codes of the doctor that confirm it; may be empty
  std::string_view fix = {};
};

struct KnownText {
  std::string_view code = {};  // "log.loc-prot-err"
  TextKind kind = TextKind::kError;
  std::vector<TextPattern> patterns = {};  // one of them is enough
  std::string_view title = {};
  std::string_view meaning = {};
  std::vector<TextCause> causes = {};
};

// In one line the first text of this list that matches is the line's only one: precise texts stand
// before general ones.
const std::vector<KnownText>& knownTexts();

}  // namespace viaduct::diag
