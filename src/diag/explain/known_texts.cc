#include "diag/explain/known_texts.h"

#include <utility>

#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

std::vector<KnownText> allFamilies() {
  std::vector<KnownText> out;
  for (auto* family : {&verbsTexts, &ucxTexts, &efaTexts, &engineTexts, &systemTexts, &ncclTexts})
    for (KnownText& text : family()) out.push_back(std::move(text));
  return out;
}

}  // namespace

std::string_view textKindName(TextKind kind) {
  switch (kind) {
    case TextKind::kError:
      return "error";
    case TextKind::kWarning:
      return "warning";
    case TextKind::kFollowUp:
      return "follow-up";
    case TextKind::kGood:
      return "good";
  }
  return "";
}

const std::vector<KnownText>& knownTexts() {
  static const std::vector<KnownText> all = allFamilies();
  return all;
}

}  // namespace viaduct::diag
