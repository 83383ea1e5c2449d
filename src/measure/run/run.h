// Runs a benchmark: its members meet, measure row after row, and leave. Threads: one; runLocally()
// forks, so its caller must have no thread and no agent yet.
#pragma once

#include <viaduct/agent.h>
#include <viaduct/settings.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/waiting.h"
#include "measure/proof/share.h"
#include "measure/result/report.h"
#include "measure/workload/spec.h"
#include "meet/place_options.h"

namespace viaduct::meet {
class Group;
}

namespace viaduct::measure {

using base::StopFlag;

struct RunRequest {
  Spec spec = {};
  Settings settings = {};  // of the agents
  Build build = {};        // of this member
  // The place at which members meet. Nothing: all members run on this machine.
  std::optional<meet::PlaceOptions> place = {};
  // For runLocally(): the members are threads of this process and not processes.
  bool on_threads = false;
  std::string group = "default";
  std::optional<std::uint32_t> rank = {};
  // True: the member takes any free rank if `rank` is taken or out of range.
  bool rank_is_wish = false;
  // True if the user named no backend. A backend that needs both ends on one host then gets no rows
  // if a pair is on two hosts.
  bool usual_backends = false;
  std::chrono::nanoseconds patience = std::chrono::minutes(3);  // time for all members to join
};

struct Progress {
  // Receives a line if the run continues with a change of the request, such as another rank. Also
  // receives a line if this member cannot take part.
  std::function<void(const std::string& line)> remark = {};
  base::SayWaiting waiting = {};  // names the missing members during a long wait
  std::function<void(std::uint32_t rank, const std::vector<RunMember>& members)> joined = {};
  // Called before the first row if some backends get no rows. `rows` is the number of their rows.
  std::function<void(const std::vector<std::string>& backends, std::size_t rows)> left_out = {};
  std::function<void(std::size_t number, const Workload& row)> started = {};
  // Called before each round of rows that take turns. `number` grows from the number of the first
  // of these rows to the number of the last.
  std::function<void(std::size_t number, const std::string& what)> turn = {};
  // tick() and interval() are called while a row runs, as in Heard. They report the streams of this
  // process.
  std::function<void(double gb_per_s)> tick = {};
  std::function<void(const RateInterval& interval)> interval = {};
  // As Heard::preparing.
  std::function<void(const char* what, std::uint64_t done, std::uint64_t of)> preparing = {};
  std::function<void(const Row& row)> finished = {};
};

enum class RunEnd : std::uint8_t {
  kComplete,
  kInterrupted,  // `stop` was set, here or at another member
  kWorkerDied,   // a member was killed, crashed or froze
  kFailed,       // members could not meet, connect or continue
};

struct RunOutcome {
  RunEnd end = RunEnd::kComplete;
  std::string problem = {};  // unless complete: the reason, and the member that caused it
  std::uint32_t rank = 0;    // this member's rank
  std::vector<RunMember> members = {};
  bool believed = true;  // if complete: every row is valid, as rank 0 told all ranks
  // The rows and their conclusions, only at rank 0.
  std::vector<Row> rows = {};
  std::vector<std::string> conclusions = {};  // of each row: the limit of its rate
};

// Runs as one member that meets the others at the request's place. They may start later.
RunOutcome runAsMember(const RunRequest& request, const Progress& progress, const StopFlag& stop);
// Forks all other members, or starts them on threads, and is rank 0 itself. Returns after all of
// them have ended.
RunOutcome runLocally(const RunRequest& request, const Progress& progress, const StopFlag& stop);

// Exchanges a text between the members of several runs before the first run. They meet at
// RunRequest::place, in the group RunRequest::group.
struct Agreed {
  std::uint32_t rank = 0;  // this member's rank, which it asks for in the following runs
  std::string first = {};  // rank 0's name
  std::vector<std::string> by_rank = {};
};
Result<Agreed> agree(const RunRequest& request, const std::string& text, const Progress& progress,
                     const StopFlag& stop);

}  // namespace viaduct::measure
