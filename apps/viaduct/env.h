// `viaduct env`, and what `viaduct exec` shares with it. Threads: the main one.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "diag/advice.h"
#include "diag/node.h"

namespace CLI {
class App;
}

namespace viaduct::app {

enum class EnvFormat : std::uint8_t { kSh, kJson, kK8s };

struct EnvOptions {
  EnvFormat format = EnvFormat::kSh;
  std::optional<std::uint32_t> from = {};  // a process ID
  std::string root = "/";
};
void declareEnv(CLI::App& app, EnvOptions& options);
int runEnv(const EnvOptions& options);

// The files below `root` with the variables of process `from`, or of this one.
Result<diag::Node> nodeAt(const std::string& root, std::optional<std::uint32_t> from);

// One variable of the environment that a program is to get.
struct EnvVariable {
  std::string name = {}, value = {};
  std::string reason = {};  // a sentence
  bool kept = false;        // the user's own value in the place of the advised one
  bool differs = false;     // in each pod
};
// The advised variables, and all others about transports that `own` has. An advised one that the
// user has set stays, unless `force`.
std::vector<EnvVariable> environmentFor(const diag::Advice& advice, const diag::Variables& own,
                                        bool force);

// A file that a shell may source: comments, and one `export` for each variable.
std::string shellText(const diag::Advice& advice, const std::vector<EnvVariable>& variables);
// 'text', as a shell takes it literally.
std::string singleQuoted(std::string_view text);

}  // namespace viaduct::app
