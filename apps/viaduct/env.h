// The functions that `viaduct env` and `viaduct exec` share. Threads: the main one.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/advice.h"
#include "diag/node.h"

namespace viaduct::app {

// Returns the node whose files lie below `root`, with the variables of process `from`, or of this
// process.
Result<diag::Node> nodeAt(const std::string& root, std::optional<std::uint32_t> from);

// An environment variable for the started program.
struct EnvVariable {
  std::string name = {}, value = {};
  std::string reason = {};  // a sentence
  bool kept = false;        // the user's own value replaces the advised value
  bool differs = false;     // the value differs from pod to pod
};
// Returns the advised variables, and the variables in `own` that configure transports. Unless
// `force` is set, a non-empty value in `own` wins.
std::vector<EnvVariable> environmentFor(const diag::Advice& advice, const diag::Variables& own,
                                        bool force);

// Returns a file for a shell to source: comments, and one `export` for each variable.
std::string shellText(const diag::Advice& advice, const std::vector<EnvVariable>& variables);
// Quotes a text so that a shell takes it literally.
std::string singleQuoted(std::string_view text);

}  // namespace viaduct::app
