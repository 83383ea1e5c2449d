#include "diag/explain/known_texts_page.h"

#include <fmt/format.h>

#include <vector>

#include "diag/explain/finding_codes.h"
#include "diag/explain/known_texts.h"

namespace viaduct::diag {
namespace {

std::string patternText(const TextPattern& pattern) {
  return fmt::format("`{}`", fmt::join(pattern, " … "));
}

std::string patternsText(const KnownText& text) {
  std::string out;
  for (const TextPattern& pattern : text.patterns)
    out += (out.empty() ? "" : ", ") + patternText(pattern);
  return out;
}

std::string causesCell(const KnownText& text) {
  if (text.kind == TextKind::kFollowUp) return "an earlier error";
  std::string out;
  for (const TextCause& cause : text.causes) {
    out += fmt::format("{}{}", out.empty() ? "" : " ", cause.cause);
    std::string codes;
    for (const std::string_view code : cause.findings)
      codes += fmt::format("{}`{}`", codes.empty() ? "" : ", ", code);
    if (!codes.empty()) out += fmt::format(" ({})", codes);
  }
  return out.empty() ? "-" : out;
}

std::string tableOf(TextKind kind) {
  std::string out =
      "| code | text in a line | meaning | causes, and findings that confirm them |\n"
      "|---|---|---|---|\n";
  for (const KnownText& text : knownTexts())
    if (text.kind == kind)
      out += fmt::format("| `{}` | {} | {} | {} |\n", text.code, patternsText(text), text.title,
                         causesCell(text));
  return out;
}

}  // namespace

std::string knownTextsPage() {
  std::string out;
  struct PageSection {
    TextKind kind;
    std::string_view heading;
  };
  for (const PageSection& section :
       {PageSection{TextKind::kError, "Errors"}, PageSection{TextKind::kWarning, "Warnings"},
        PageSection{TextKind::kFollowUp, "Errors that follow others"},
        PageSection{TextKind::kGood, "Good signs"}})
    out += fmt::format("### {}\n\n{}\n", section.heading, tableOf(section.kind));
  out += "### Findings of the doctor\n\n| code | meaning |\n|---|---|\n";
  for (const FindingCode& finding : findingCodesOfTexts())
    out += fmt::format("| `{}` | {} |\n", finding.code, finding.meaning);
  return out;
}

}  // namespace viaduct::diag
