// The message that members exchange once before the first row: their options and their hosts.
// Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/facts.h"
#include "measure/proof/share.h"
#include "measure/result/report.h"

namespace viaduct::measure {

struct MemberHello {
  Failure failure = {};  // why the member cannot take part: its agent does not open
  std::vector<Option> options = {};
  host::Facts host = {};
  Build build = {};
};

std::string encode(const MemberHello& hello);
Result<MemberHello> decodeHello(std::string_view text);

// Fails if a member's options differ from those of rank 0. The error names the first difference.
Status sameOptions(const std::vector<MemberHello>& by_rank);

}  // namespace viaduct::measure
