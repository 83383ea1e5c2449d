// The codes of the doctor's findings that decide between the causes of a known text. A check of the
// doctor reports its fact under one of these codes. Threads: constants.
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
