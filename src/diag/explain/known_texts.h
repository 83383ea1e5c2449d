// The texts in logs that `viaduct doctor --explain` knows, with meaning, possible causes and fixes.
// A new text is one entry in a texts_*.cc, and one line in samples_testing.h. Threads: constants.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

namespace viaduct::diag {

enum class TextKind : std::uint8_t {
  kError,     // an operation failed
  kWarning,   // the operation works, but slowly or with a risk
  kFollowUp,  // a failure that another failure caused
  kGood,      // proof that a fast path is in use
};
// The kind's name: "error", "warning", "follow-up", "good".
std::string_view textKindName(TextKind kind);

// Parts that a line has to contain in this order. Case matters. A part that ends with a digit ends
// a number: "error 12" is not in "error 127".
using TextPattern = std::vector<std::string_view>;

struct TextCause {
  std::string_view cause = {};
  std::vector<std::string_view> findings = {};  // the doctor's codes that confirm the cause
  std::string_view fix = {};
};

struct KnownText {
  std::string_view code = {};  // "log.loc-prot-err"
  TextKind kind = TextKind::kError;
  std::vector<TextPattern> patterns = {};  // one match is enough
  std::string_view title = {};
  std::string_view meaning = {};
  std::vector<TextCause> causes = {};
};

// A line counts for the first text of this list that matches it, so precise texts come before
// general ones.
const std::vector<KnownText>& knownTexts();

}  // namespace viaduct::diag
