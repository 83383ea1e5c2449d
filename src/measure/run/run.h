// A whole run: its members meet, measure row after row, and part. Threads: one; runLocally() forks,
// so its caller has no thread and no agent yet.
#pragma once

#include <viaduct/settings.h>

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "base/stop.h"
#include "base/waiting.h"
#include "measure/load/spec.h"
#include "measure/rates/share.h"
#include "measure/result/report.h"
#include "meet/place_options.h"

namespace viaduct::measure {

using base::StopFlag;

struct RunRequest {
  Spec spec = {};
  Settings settings = {};  // of the agents
  // Nothing: all members are processes of this machine.
  std::optional<meet::PlaceOptions> place = {};
  std::string group = "default";
  std::optional<std::uint32_t> rank = {};
  // Any other rank will do where that one is taken, or cannot be.
  bool rank_is_wish = false;
  std::chrono::nanoseconds patience = std::chrono::minutes(3);  // for all members to come
};

struct Progress {
  std::function<void(const std::string& line)> remark = {};  // not as wished, and it goes on
  base::SayWaiting waiting = {};                             // who is missing, in a long wait
  std::function<void(std::uint32_t rank, const std::vector<RunMember>& members)> joined = {};
  std::function<void(std::size_t number, const Workload& row)> started = {};
  // While a row runs, about the streams of this process, as Heard has them.
  std::function<void(double gb_per_s)> tick = {};
  std::function<void(const RateInterval& interval)> interval = {};
  std::function<void(const Row& row)> finished = {};
};

enum class RunEnd : std::uint8_t {
  kComplete,
  kInterrupted,  // `stop` was set, here or at another member
  kWorkerDied,   // a member was killed, or crashed, or froze
  kFailed,       // members could not meet, connect or go on
};

struct RunOutcome {
  RunEnd end = RunEnd::kComplete;
  std::string problem = {};  // unless complete: what happened, and to whom
  std::uint32_t rank = 0;    // ours
  std::vector<RunMember> members = {};
  bool believed = true;  // every row, as rank 0 says; at all ranks
  // At rank 0 only.
  std::vector<Row> rows = {};
  std::vector<std::string> conclusions = {};  // of each row: what limits it
};

// This process is one member, and the place is in the request. The others need not be there yet.
RunOutcome runAsMember(const RunRequest& request, const Progress& progress, const StopFlag& stop);
// Forks all other members and is rank 0 itself. On return they are gone, however they ended.
RunOutcome runLocally(const RunRequest& request, const Progress& progress, const StopFlag& stop);

// Members of several runs tell each other a text before the first, at the request's meeting place
// and in a group of its name, and get everybody's.
struct Agreed {
  std::uint32_t rank = 0;  // ours, which runs to come shall ask for
  std::string first = {};  // rank 0's name
  std::vector<std::string> by_rank = {};
};
Result<Agreed> agree(const RunRequest& request, const std::string& text, const Progress& progress,
                     const StopFlag& stop);

}  // namespace viaduct::measure
