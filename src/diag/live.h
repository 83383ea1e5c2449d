// Facts of a node that no file tells: found out on the running machine, and carried by a snapshot
// as JSON. Threads: one at a time.
#pragma once

#include <chrono>
#include <string>
#include <vector>

#include "base/json.h"
#include "diag/node.h"

namespace viaduct::diag {

struct LiveOptions {
  // Between two readings of the counters.
  std::chrono::milliseconds counting{200};
  // Besides the names that the environment has.
  std::vector<std::string> names = {};
};
// Of the running machine. Takes `counting` and, where names do not resolve, up to 3 s.
Live collectLive(const Tree& tree, const Variables& variables, const LiveOptions& options);

base::Json asJson(const Live& live);
Result<Live> liveFromJson(const base::Json& json);

}  // namespace viaduct::diag
