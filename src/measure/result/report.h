// A run with its machines, settings and rows, as a result file holds it (docs/results.md). Threads:
// plain values and pure functions, except startReport(), which reads the clock and the environment.
#pragma once

#include <viaduct/settings.h>

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "host/facts.h"
#include "measure/result/row.h"

namespace viaduct::measure {

// The program of a member.
struct Build {
  std::string version = {};
  std::string commit = {};  // empty: built without git
  friend bool operator==(const Build&, const Build&) = default;
};

// One process of the run.
struct RunMember {
  std::uint32_t rank = 0;
  std::string name = {};
  std::string role = {};  // "initiator", "target"
  host::Facts host = {};
  Build build = {};
  friend bool operator==(const RunMember&, const RunMember&) = default;
};

struct Environment {
  std::vector<RunMember> members = {};
  std::string fingerprint = {};
  friend bool operator==(const Environment&, const Environment&) = default;
};

// Returns a hash of the properties that matter for a measurement: CPU model, cores, kernel, memory,
// and rates of links. Memory is rounded to GiB, because the kernel reserves a varying part. Equal
// kinds of machines have equal hashes, however many machines there are.
std::string fingerprintOf(const std::vector<RunMember>& members);

// An option of the run, in the form of the command line.
struct Option {
  std::string name = {};
  std::string value = {};
  friend bool operator==(const Option&, const Option&) = default;
};
// Returns the value of the option with that name, or null.
const std::string* valueOf(const std::vector<Option>& options, std::string_view name);
// Returns the agent's settings without its secret, because people share result files.
std::vector<Option> optionsOf(const Settings& agent);

struct Report {
  std::string version = {};      // viaduct's version, or the name of another tool: "nixlbench"
  std::string started = {};      // UTC, ISO 8601
  std::string end = "complete";  // or the reason of an early end
  std::string command = {};      // the command line, without secrets
  Environment environment = {};
  std::vector<Option> settings = {};  // the requested options
  std::vector<Option> agent = {};     // the settings of the agents
  std::vector<Row> rows = {};
  std::vector<std::string> conclusion = {};  // text for people
  friend bool operator==(const Report&, const Report&) = default;
};

// True if viaduct made the report. Other tools report no counts.
bool isOurs(const Report& report);
// "viaduct 0.1.0", "ib_write_bw"
std::string toolOf(const Report& report);

// Gives all rows of one run a new Row::run.
void nameRun(std::vector<Row>& rows);
// Returns a report with the present time, the agents' settings, and the environment variables that
// configure the backends' libraries. Members, options of the run and rows are empty.
Report startReport(std::string version, const Settings& agent);

// Returns the content of a result file. An empty fingerprint is computed from the members.
std::string toJson(const Report& report);
// Parses a result file. `name` names it in errors, and unknown fields are ignored. An error names a
// missing or wrong field by its path: "rows[3].latency_us.p50".
Result<Report> reportFromJson(std::string_view text, const std::string& name);

}  // namespace viaduct::measure
