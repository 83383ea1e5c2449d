// `viaduct doctor --serve`: diagnoses the node again and again, and serves the findings as metrics.
#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "base/net/metrics_server.h"
#include "diag/node_metrics.h"
#include "viaduct/doctor.h"
#include "viaduct/interrupt.h"

namespace viaduct::app {
namespace {

using namespace std::chrono_literals;

// The last diagnosis. The server's thread reads it.
class Watched {
 public:
  Watched(std::string root, diag::Diagnosis first) : root_(std::move(root)) {
    set(std::move(first));
  }
  void set(diag::Diagnosis diagnosis) {
    const std::scoped_lock held(mutex_);
    diagnosis_ = std::move(diagnosis);
    diagnosed_ = std::chrono::system_clock::now();
  }
  std::string text() {
    const host::Tree tree(root_);
    diag::NodeMetrics out{.devices = host::devices(tree),
                          .counters = host::readCounters(tree),
                          .segments = host::tcpSegments(tree)};
    const std::scoped_lock held(mutex_);
    out.diagnosis = diagnosis_;
    out.diagnosed = diagnosed_;
    return diag::nodeMetricsText(out);
  }

 private:
  const std::string root_;
  std::mutex mutex_;
  diag::Diagnosis diagnosis_;
  std::chrono::system_clock::time_point diagnosed_;
};

// The codes of a diagnosis, by which a change is noticed.
std::vector<std::pair<diag::Severity, std::string>> codesOf(const diag::Diagnosis& diagnosis) {
  std::vector<std::pair<diag::Severity, std::string>> out;
  for (const diag::Finding& one : diagnosis.findings.all())
    out.emplace_back(one.severity, one.code);
  std::ranges::sort(out);
  return out;
}

Error portTaken(const std::string& where) {
  return {.code = Code::kBusy,
          .operation = "doctor",
          .detail = fmt::format("no port is open at {}", where),
          .cause = "another program has the port; the warning above has the reason",
          .remedy = "name another port, or 0 for a free one"};
}

}  // namespace

Result<int> runDoctorServe(const DoctorCommand& command, diag::Diagnosis own,
                           const std::function<Result<diag::Diagnosis>()>& again) {
  const EndingSignals ending;
  Watched watched(command.root, own);
  VIADUCT_TRY(const auto server, base::MetricsServer::open(
                                     command.serve, "doctor", [&] { return watched.text(); }, 10s));
  if (server->endpoint().empty()) return portTaken(command.serve);
  fmt::print("metrics: http://{}/metrics\n", server->endpoint());
  std::fflush(stdout);
  while (!ending.comesWithin(command.every)) {
    VIADUCT_TRY(diag::Diagnosis now, again());
    if (codesOf(now) != codesOf(own)) fmt::print("{}", doctorText(now, command.verbose));
    std::fflush(stdout);
    watched.set(now);
    own = std::move(now);
  }
  return doctorExit(own.findings);
}

}  // namespace viaduct::app
