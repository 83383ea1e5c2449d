// The doctor's findings. Threads: one at a time.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/words.h"

namespace viaduct::diag {

enum class Severity : std::uint8_t {
  kInfo,     // worth knowing; nothing to do
  kUnknown,  // the check could not read the facts that it needs
  kWarning,  // works, but slower or less safely than it should
  kFailure,  // does not work
};
inline constexpr base::Words<Severity, 4> kSeverities{{{"info", Severity::kInfo},
                                                       {"unknown", Severity::kUnknown},
                                                       {"warning", Severity::kWarning},
                                                       {"failure", Severity::kFailure}}};
constexpr const char* severityName(Severity severity) {
  return base::wordOf(kSeverities, severity);
}

// A file and its value, or a command and its output.
struct Evidence {
  std::string source, value;
};

// Devices or files that have one fault in common, with the evidence of each.
struct Cases {
  std::vector<std::string> names = {};
  std::vector<Evidence> evidence = {};
  bool empty() const { return names.empty(); }
  // Adds evidence, and the name unless the last call had the same name.
  void add(const std::string& name, Evidence seen) {
    if (names.empty() || names.back() != name) names.push_back(name);
    evidence.push_back(std::move(seen));
  }
};

// Sentences begin with a capital letter and end with a full stop. `fix` may have several lines:
// commands, or a manifest.
struct Finding {
  Severity severity = Severity::kInfo;
  std::string code = {};  // "rdma.port-down": scripts look for it, so it never changes
  std::string what = {};
  std::vector<Evidence> evidence = {};
  std::string cause = {}, fix = {}, gain = {};
  std::string topic = {};  // set by Findings::add()
};

// A fact that one topic checked and found in order.
struct Fine {
  std::string topic, what;
};

class Findings {
 public:
  // Names the topic of the findings that follow.
  void begin(std::string topic) { topic_ = std::move(topic); }
  void add(Finding finding);
  void fine(std::string what);

  const std::vector<Finding>& all() const { return findings_; }
  const std::vector<Fine>& fines() const { return fines_; }
  bool has(std::string_view code) const;
  Severity worst() const;

 private:
  std::string topic_;
  std::vector<Finding> findings_;
  std::vector<Fine> fines_;
};

}  // namespace viaduct::diag
