#include "diag/findings.h"

#include <algorithm>

namespace viaduct::diag {

void Findings::add(Finding finding) {
  finding.topic = topic_;
  findings_.push_back(std::move(finding));
}

void Findings::fine(std::string what) { fines_.push_back({topic_, std::move(what)}); }

bool Findings::has(std::string_view code) const {
  return std::ranges::any_of(findings_, [&](const Finding& one) { return one.code == code; });
}

Severity Findings::worst() const {
  Severity out = Severity::kInfo;
  for (const Finding& one : findings_) out = std::max(out, one.severity);
  return out;
}

}  // namespace viaduct::diag
