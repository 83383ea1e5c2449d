// What `viaduct doctor` was asked for, and its parts. Threads: the main one.
#pragma once

#include <string>
#include <vector>

#include "diag/diagnosis.h"
#include "viaduct/commands.h"

namespace CLI {
class App;
}

namespace viaduct::app {

// Its own, because a node that will not work ends with 2.
enum DoctorExit : int {
  kExitFine = 0,
  kExitWarnings = 1,  // or something that matters could not be looked at
  kExitWillNotWork = 2,
  kExitNoDiagnosis = 3,  // a wrong command line, or an error of the doctor itself
};

struct DoctorCommand {
  std::string root = "/";  // a folder or a snapshot
  std::vector<std::string> only = {};
  std::vector<std::string> names = {};
  bool node = false;  // for all pods, not for this one
  bool list = false, json = false, verbose = false, card = false;
  std::string explain = {};  // a log file; "-": standard input
  std::string peer = {};     // the address where another doctor listens
  std::string listen = {};   // the address where this one does
  std::string secret = {};   // of both
  bool snapshot = false;     // the subcommand
  std::string snapshot_to = {};
};
void declareDoctor(CLI::App& app, DoctorCommand& command);
int runDoctor(const DoctorCommand& command);
// Explains the known error texts of a log, with what was found on the node.
int runDoctorExplain(const DoctorCommand& command, const diag::Diagnosis& node);
// Both ends of `--peer`: this one shows its diagnosis and serves measurements until it is
// interrupted; that one reads the diagnosis and measures the path.
int runDoctorListen(const DoctorCommand& command, const diag::Diagnosis& own);
int runDoctorPeer(const DoctorCommand& command, const diag::Diagnosis& own);

// The diagnosis as text of 80 columns, and as JSON in one line per field.
std::string doctorText(const diag::Diagnosis& diagnosis, bool verbose);
std::string doctorJson(const diag::Diagnosis& diagnosis);
int doctorExit(const diag::Findings& findings);

}  // namespace viaduct::app
