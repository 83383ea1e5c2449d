#include "diag/explain/known_texts.h"

#include <utility>

#include "base/words.h"
#include "diag/explain/texts.h"

namespace viaduct::diag {
namespace {

std::vector<KnownText> allFamilies() {
  std::vector<KnownText> out;
  for (auto* family :
       {&verbsTexts, &ucxTexts, &efaTexts, &engineTexts, &systemTexts, &ncclTexts, &podTexts})
    for (KnownText& text : family()) out.push_back(std::move(text));
  return out;
}

}  // namespace

std::string_view textKindName(TextKind kind) {
  constexpr base::Words<TextKind, 4> kNames{{{"error", TextKind::kError},
                                             {"warning", TextKind::kWarning},
                                             {"follow-up", TextKind::kFollowUp},
                                             {"good", TextKind::kGood}}};
  return base::wordOf(kNames, kind);
}

const std::vector<KnownText>& knownTexts() {
  static const std::vector<KnownText> all = allFamilies();
  return all;
}

}  // namespace viaduct::diag
