// What members tell each other once, before the first row: what they are to do, and where they
// live. Threads: pure functions.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "host/facts.h"
#include "measure/rates/share.h"
#include "measure/result/report.h"

namespace viaduct::measure {

struct MemberHello {
  Failure failure = {};  // the member takes no part: it cannot open its agent
  std::vector<Option> options = {};
  host::Facts host = {};
};

std::string encode(const MemberHello& hello);
Result<MemberHello> decodeHello(std::string_view text);

// An error names the first option in which a member differs from rank 0.
Status sameOptions(const std::vector<MemberHello>& by_rank);

}  // namespace viaduct::measure
