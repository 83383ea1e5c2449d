// The codes of the doctor's findings that decide between the causes of a known text. The check of
// that fact reports it under this code. Threads: constants.
#pragma once

#include <span>
#include <string_view>

namespace viaduct::diag {

struct FindingCode {
  std::string_view code = {};     // topic.short-name
  std::string_view meaning = {};  // the fact that the doctor saw on this node
};

std::span<const FindingCode> findingCodesOfTexts();

}  // namespace viaduct::diag
