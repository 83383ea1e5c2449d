#include "measure/run/run.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>
#include <set>
#include <utility>

#include "base/fields.h"
#include "measure/run/hello.h"
#include "measure/run/worker.h"
#include "measure/workload/machine.h"
#include "meet/groups/group.h"
#include "meet/groups/serve.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kGoodbye = 5s;
constexpr auto kHello = 30s;
constexpr auto kBelieved = "believed";

// If this member may become rank 0 and the place's address belongs to this host, starts the server
// of the meeting place.
Result<std::unique_ptr<meet::EmbeddedServer>> serve(const RunRequest& request) {
  const bool may_lead = request.rank_is_wish || request.rank.value_or(0) == 0;
  if (!request.place->serve || !may_lead) return std::unique_ptr<meet::EmbeddedServer>();
  return meet::serveIfHere(*request.place);
}

std::string interruptedAt(std::uint32_t rank) {
  return fmt::format("interrupted at rank {}", rank);
}

std::string nameOfThisProcess() { return fmt::format("{}:{}", host::facts().hostname, ::getpid()); }

Result<std::unique_ptr<meet::Group>> join(meet::GroupPlace& place, const RunRequest& request,
                                          std::string about, const Progress& progress,
                                          const StopFlag& stop) {
  const Deadline until = request.patience;
  meet::JoinRequest wanted{.group = request.group,
                           .size = request.spec.layout.processes(),
                           .rank = request.rank,
                           .name = nameOfThisProcess(),
                           .about = std::move(about)};
  auto joined = place.join(wanted, until, stop);
  if (joined || !wanted.rank || !request.rank_is_wish) return joined;
  // Other errors do not come from the rank, so joining with any rank would fail again.
  const Error refused = std::move(joined).error();
  if (refused.code != Code::kBusy && refused.code != Code::kInvalid) return refused;
  wanted.rank.reset();
  joined = place.join(wanted, until, stop);
  if (joined && progress.remark)
    progress.remark(fmt::format("rank {} instead of {}, which the environment says: {}",
                                (*joined)->roster().rank, *request.rank, refused.detail));
  return joined;
}

// Changes kPeerLost to kTimeout: before the group has formed, no worker can have died.
Error notMet(Error error) {
  if (error.code == Code::kPeerLost) error.code = Code::kTimeout;
  return error;
}

// Returns the index after the last of the rows that take turns with the row at `first`.
std::size_t endOfTurns(const std::vector<Workload>& rows, std::size_t first) {
  std::size_t end = first + 1;
  while (end < rows.size() && roundsTakeTurns(rows[end - 1], rows[end])) ++end;
  return end;
}

// One member's run. The member may lack an agent if none could be opened.
class MemberRun {
 public:
  MemberRun(const RunRequest& request, const Progress& progress, const StopFlag& stop,
            RunOutcome& out)
      : request_(request), spec_(request.spec), progress_(progress), stop_(stop), out_(out) {}

  // A member without an agent joins too, so that the others learn the reason and do not wait.
  Status run(meet::GroupPlace& place, Result<Agent>& agent) {
    auto group = join(place, request_, agent ? aboutOf(*agent) : "", progress_, stop_);
    if (!group) return agent ? notMet(std::move(group).error()) : agent.error();
    group_ = *std::move(group);
    auto done = measure(agent);
    if (!done) return explained(std::move(done).error());
    auto left = group_->finish(kGoodbye);
    return out_.end == RunEnd::kInterrupted ? Status(Ok{}) : left;
  }

 private:
  Status measure(Result<Agent>& agent) {
    VIADUCT_CHECK(greet(agent ? Failure{} : agent.error()));
    std::size_t first = 0;  // index of the first of the rows that take turns now
    const auto turn = [&](std::size_t number, const std::string& what) {
      if (progress_.turn) progress_.turn(first + number, what);
    };
    Worker worker(
        spec_, *agent, *group_, request_.settings, stop_,
        {progress_.waiting, turn, progress_.tick, progress_.interval, progress_.preparing});
    VIADUCT_CHECK(worker.open());
    VIADUCT_TRY(const auto rows, applicableRows(worker, *agent));
    while (first < rows.size()) {
      const std::size_t end = endOfTurns(rows, first);
      if (progress_.started) progress_.started(first, rows[first]);
      VIADUCT_TRY(auto made, worker.measure(std::span(rows).subspan(first, end - first)));
      const auto stop_by = made.front().stop_by;
      for (Composed& one : made)
        if (out_.rank == 0 && one.measured()) keep(std::move(one));
      if (stop_by) return interrupted(*stop_by);
      if (stop_.load()) return Error{.code = Code::kCancelled, .operation = "bench"};
      first = end;
    }
    return shareVerdict();
  }

  // Returns the rows without those of backends that cannot apply. Every member gets the same rows.
  Result<std::vector<Workload>> applicableRows(const Worker& worker, const Agent& agent) {
    const std::vector<std::string> own =
        request_.usual_backends ? confinedBackends(worker, agent) : std::vector<std::string>{};
    VIADUCT_TRY(const auto texts, group_->gather(base::packed(own), kHello, stop_));
    std::set<std::string> confined;
    for (const std::string& text : texts) {
      std::vector<std::string> theirs;
      if (!base::unpack(text, theirs))
        return Error{.code = Code::kProtocol,
                     .operation = "bench",
                     .detail = "a member sent a malformed list of backends"};
      confined.insert(theirs.begin(), theirs.end());
    }
    std::vector<Workload> rows = spec_.rows;
    std::erase_if(rows, [&](const Workload& row) { return confined.contains(row.backend); });
    // If all rows use confined backends, keeps them all, because their errors tell the reason.
    if (rows.empty() || rows.size() == spec_.rows.size()) return spec_.rows;
    if (progress_.left_out)
      progress_.left_out({confined.begin(), confined.end()}, spec_.rows.size() - rows.size());
    return rows;
  }

  // Returns the backends that need both ends on one host, and that cannot reach a peer of this
  // member on another host. A container with its own network counts as another host.
  std::vector<std::string> confinedBackends(const Worker& worker, const Agent& agent) const {
    std::vector<std::string> out;
    for (const BackendInfo& backend : agent.backends())
      if (backend.same_host && std::ranges::any_of(worker.peers(), [&](const auto& one) {
            return isElsewhere(one.first) && !reaches(one.second, backend.name);
          }))
        out.push_back(backend.name);
    return out;
  }

  bool isElsewhere(std::uint32_t rank) const {
    const host::Facts &own = out_.members[out_.rank].host, &theirs = out_.members[rank].host;
    return own.boot_id != theirs.boot_id || own.hostname != theirs.hostname;
  }

  static bool reaches(const Peer& peer, const std::string& backend) {
    return std::ranges::any_of(
        peer.ways(), [&](const PeerWay& way) { return way.backend == backend && way.usable; });
  }

  void keep(Composed made) {
    out_.rows.push_back(std::move(made.row));
    out_.conclusions.push_back(std::move(made.conclusion));
    if (progress_.finished) progress_.finished(out_.rows.back());
  }

  // Ends the run after this row. `by` comes from the reports of a round, so all other members end
  // their runs here too, without a message.
  Status interrupted(std::uint32_t by) {
    out_.end = RunEnd::kInterrupted;
    out_.problem = by == out_.rank ? "interrupted" : interruptedAt(by);
    return Ok{};
  }

  // Rank 0 has the rows, and tells every member whether they are valid.
  Status shareVerdict() {
    const bool good = std::all_of(out_.rows.begin(), out_.rows.end(),
                                  [](const Row& row) { return isGood(row.verdict); });
    VIADUCT_TRY(const auto said, group_->gather(good ? kBelieved : "", kHello, stop_));
    out_.believed = said.front() == kBelieved;
    return Ok{};
  }

  Status greet(const Failure& failure) {
    const meet::Roster& roster = group_->roster();
    out_.rank = roster.rank;
    MemberHello own{.failure = failure,
                    .options = optionsOf(spec_),
                    .host = host::facts(),
                    .build = request_.build};
    VIADUCT_TRY(const auto texts, group_->gather(encode(own), kHello, stop_));
    std::vector<MemberHello> all;
    for (const std::string& text : texts) {
      VIADUCT_TRY(MemberHello hello, decodeHello(text));
      all.push_back(std::move(hello));
    }
    for (const meet::Member& member : roster.members)
      out_.members.push_back({.rank = member.rank,
                              .name = member.name,
                              .role = spec_.layout.roleOf(member.rank),
                              .host = all[member.rank].host,
                              .build = all[member.rank].build});
    if (failure) return *failure;
    for (const meet::Member& member : roster.members)
      if (Failure& theirs = all[member.rank].failure) {
        theirs->operation =
            fmt::format("rank {} ({}): {}", member.rank, member.name, theirs->operation);
        return *std::move(theirs);
      }
    VIADUCT_CHECK(sameOptions(all));
    if (progress_.joined) progress_.joined(out_.rank, out_.members);
    return Ok{};
  }

  // Returns the error to report. If another member caused it, the group's reason replaces this
  // member's error.
  Status explained(Error error) {
    if (stop_.load()) {
      // Sends the stop first, so that a member that gets both messages reports a stop and no
      // failure.
      group_->requestStop();
      group_->abandon(interruptedAt(out_.rank));
      return Error{.code = Code::kCancelled, .operation = "bench", .detail = "interrupted"};
    }
    if (const auto by = group_->stopRequestedBy(); by && group_->trouble()) {
      out_.end = RunEnd::kInterrupted;
      return Error{.code = Code::kCancelled, .operation = "bench", .detail = interruptedAt(*by)};
    }
    const bool from_afar = error.code == Code::kCancelled || error.code == Code::kPeerLost ||
                           error.code == Code::kTimeout;
    auto trouble = group_->trouble();
    if (from_afar && trouble) return *std::move(trouble);
    group_->abandon(error.text());
    return error;
  }

  const RunRequest& request_;
  const Spec& spec_;
  const Progress& progress_;
  const StopFlag& stop_;
  RunOutcome& out_;
  std::unique_ptr<meet::Group> group_;
};

// Calls `visit` at the member's meeting place. Runs the place's server if this member has to.
template <class Visit>
auto visiting(const RunRequest& request, const Progress& progress, Visit visit)
    -> decltype(visit(std::declval<meet::GroupPlace&>())) {
  if (!request.place)
    return Error{.code = Code::kInvalid, .operation = "bench", .detail = "no meeting place"};
  // The server is destroyed last, because the other members still leave through it.
  VIADUCT_TRY(const auto server, serve(request));
  meet::PlaceOptions options = *request.place;
  options.waiting = progress.waiting;
  VIADUCT_TRY(const auto place, meet::openGroupPlace(options));
  auto done = visit(*place);
  if (server) server->drained(kGoodbye);
  return done;
}

// Opens the agent. If a device is missing, the error lists the existing devices.
Result<Agent> openAgent(const Settings& settings, const std::string& require) {
  auto agent = Agent::open(settings);
  if (!agent) {
    VIADUCT_CHECK(devicesExist(settings.rails));
    return agent;
  }
  VIADUCT_CHECK(requirementMet(agent->backends(), require));
  return agent;
}

Status run(const RunRequest& request, const Progress& progress, const StopFlag& stop,
           RunOutcome& out) {
  std::string why_not;  // why this member takes no part; empty once the user was told
  Progress aloud = progress;
  if (progress.waiting)
    aloud.waiting = [&](const std::string& line) {
      if (!why_not.empty()) progress.remark(std::exchange(why_not, {}));
      progress.waiting(line);
    };
  return visiting(request, aloud, [&](meet::GroupPlace& place) -> Status {
    auto agent = openAgent(request.settings, request.spec.require);
    if (!agent) why_not = agent.error().text() + "; staying until the other members know";
    return MemberRun(request, aloud, stop, out).run(place, agent);
  });
}

}  // namespace

RunOutcome runAsMember(const RunRequest& request, const Progress& progress, const StopFlag& stop) {
  RunOutcome out;
  const auto done = run(request, progress, stop, out);
  if (done) return out;
  out.problem = stop.load() ? "interrupted" : done.error().text();
  if (stop.load())
    out.end = RunEnd::kInterrupted;
  else if (out.end == RunEnd::kComplete)
    // In a run of one process, the lost peer is an object store and not a worker.
    out.end = done.error().code == Code::kPeerLost && request.spec.layout.processes() > 1
                  ? RunEnd::kWorkerDied
                  : RunEnd::kFailed;
  return out;
}

Result<Agreed> agree(const RunRequest& request, const std::string& text, const Progress& progress,
                     const StopFlag& stop) {
  return visiting(request, progress, [&](meet::GroupPlace& place) -> Result<Agreed> {
    VIADUCT_TRY(const auto group, join(place, request, {}, progress, stop));
    VIADUCT_TRY(auto texts, group->gather(text, kHello, stop));
    VIADUCT_CHECK(group->finish(kGoodbye));
    const meet::Roster& roster = group->roster();
    return Agreed{
        .rank = roster.rank, .first = roster.members.front().name, .by_rank = std::move(texts)};
  });
}

}  // namespace viaduct::measure
