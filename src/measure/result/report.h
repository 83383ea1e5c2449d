// A run: where, how, and the rows it gave; as it stands in a result file (docs/results.md).
// Threads: plain values and pure functions, besides startReport.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/facts.h"
#include "measure/result/row.h"

namespace viaduct::measure {

// One process of the run.
struct RunMember {
  std::uint32_t rank = 0;
  std::string name = {};
  std::string role = {};  // "initiator", "target"
  host::Facts host = {};
  friend bool operator==(const RunMember&, const RunMember&) = default;
};

struct Environment {
  std::vector<RunMember> members = {};
  std::string fingerprint = {};
  friend bool operator==(const Environment&, const Environment&) = default;
};

// What makes two machines different for a measurement: CPU model, cores, kernel, memory (to the
// GiB: what the kernel keeps for itself varies), rates of links. Equal for equal kinds of machines,
// however many of them there are.
std::string fingerprintOf(const std::vector<RunMember>& members);

// An option of the run, as the command line takes it.
struct Option {
  std::string name = {};
  std::string value = {};
  friend bool operator==(const Option&, const Option&) = default;
};
// The secret is left out: result files are passed around.
std::vector<Option> optionsOf(const Settings& agent);

struct Report {
  std::string version = {};      // of viaduct, or the name of another tool: "nixlbench"
  std::string started = {};      // UTC, ISO 8601
  std::string end = "complete";  // or how it ended early
  std::string command = {};      // the command line, without secrets
  Environment environment = {};
  std::vector<Option> settings = {};  // what was asked for
  std::vector<Option> agent = {};     // the settings of the agents
  std::vector<Row> rows = {};
  std::vector<std::string> conclusion = {};  // lines for people
  friend bool operator==(const Report&, const Report&) = default;
};

// "viaduct 0.1.0", "ib_write_bw"
std::string toolOf(const Report& report);

// A report of this moment, without members, options of the run and rows yet. Beside the settings of
// the agents it has what this process's environment tells the libraries of their backends.
Report startReport(std::string version, const Settings& agent);

// The whole file. The fingerprint is made from the members when it is empty.
std::string toJson(const Report& report);
// `name`: of the file, for errors. Unknown fields are ignored; a missing or wrong one is an error
// that names it by its path: "rows[3].latency_us.p50".
Result<Report> reportFromJson(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
