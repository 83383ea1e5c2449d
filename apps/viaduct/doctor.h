// The options of `viaduct doctor` and its parts. Threads: the main one.
#pragma once

#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "diag/diagnosis.h"
#include "viaduct/commands.h"

namespace viaduct::app {

// The doctor's own exit codes: 2 means that the node will not work, and not a wrong command line.
enum DoctorExit : int {
  kExitFine = 0,
  kExitWarnings = 1,  // or an important check was impossible
  kExitWillNotWork = 2,
  kExitNoDiagnosis = 3,  // a wrong command line, or an error of the doctor itself
};

struct DoctorCommand {
  std::string root = "/";  // a folder or a snapshot
  std::vector<std::string> only = {};
  std::vector<std::string> names = {};
  std::vector<std::string> paths = {}, buckets = {};
  bool node = false;  // examine the node for all pods, not for this pod
  bool list = false, json = false, verbose = false, card = false;
  std::string explain = {};  // a log file; "-": standard input
  std::string peer = {};     // the address where another doctor listens
  std::string listen = {};   // the address where this doctor listens
  std::string secret = {};   // the secret that both doctors share
  std::string serve = {};    // the address of the metrics; empty: they are not served
  std::chrono::nanoseconds every = std::chrono::minutes(5);  // between two diagnoses of `serve`
  std::string json_to = {};                                  // a file that gets the JSON as well
  std::string snapshot_to = {};  // the file of the subcommand `snapshot`
  // For the subcommand `nodes`: the results, the page, and the names of the nodes to expect.
  std::vector<std::string> files = {};
  std::string page = {}, expected = {};
};
// Explains the known error texts of a log with the findings of this node.
Result<int> runDoctorExplain(const DoctorCommand& command, const diag::Diagnosis& node);
// The two ends of `--peer`. The listening end shows its diagnosis and serves measurements until it
// is interrupted. The other end reads that diagnosis and measures the path.
Result<int> runDoctorListen(const DoctorCommand& command, const diag::Diagnosis& own);
Result<int> runDoctorPeer(const DoctorCommand& command, const diag::Diagnosis& own);
// Serves the findings as metrics until a signal ends it. `again` diagnoses the node once more.
Result<int> runDoctorServe(const DoctorCommand& command, diag::Diagnosis own,
                           const std::function<Result<diag::Diagnosis>()>& again);
// Makes one page of many nodes' results.
int runDoctorNodes(const DoctorCommand& command);

// Return the diagnosis as text of 80 columns, and as JSON with one field a line.
std::string doctorText(const diag::Diagnosis& diagnosis, bool verbose);
std::string doctorJson(const diag::Diagnosis& diagnosis);
int doctorExit(const diag::Findings& findings);

}  // namespace viaduct::app
