#include "measure/p2p/initiator.h"

#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "host/facts.h"
#include "measure/p2p/pair_group.h"
#include "measure/proof/judge.h"

namespace viaduct::measure::p2p {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnswer = 60s;       // a target takes long to allocate a large buffer
constexpr auto kBusyPause = 200ms;  // pause before a busy target is asked again

}  // namespace

P2pInitiator::P2pInitiator(Agent& agent, std::vector<std::string> rails, Peer target,
                           const base::StopFlag& stop)
    : agent_(agent),
      rails_(std::move(rails)),
      stop_(stop),
      notes_([&agent](Deadline until) { return agent.waitNote(until); }),
      asker_(agent, std::move(target), stop) {}

Result<RunMember> P2pInitiator::greet(Deadline until,
                                      const std::function<void(const std::string&)>& busy,
                                      const base::SayWaiting& waiting) {
  base::Waiting aloud(waiting, until.at());
  for (bool said = false;;) {
    auto answer = asker_.ask({.verb = P2pRequest::Verb::kGreet}, until);
    if (answer) {
      VIADUCT_TRY(const Report about, reportFromJson(*answer, "the target's greeting"));
      if (about.environment.members.size() == 1) return about.environment.members.front();
      return Error{.code = Code::kProtocol,
                   .operation = "p2p",
                   .detail = "the target's greeting names no member"};
    }
    if (answer.error().code != Code::kBusy || until.passed()) return std::move(answer).error();
    if (!std::exchange(said, true)) busy(answer.error().detail);
    if (aloud.isDue()) aloud.tell(answer.error());
    std::this_thread::sleep_for(kBusyPause);
  }
}

RunMember P2pInitiator::self() const {
  return {.rank = 0, .name = agent_.name(), .role = "initiator", .host = host::facts()};
}

Status P2pInitiator::measure(const Spec& spec, const std::function<void(const Composed&)>& row,
                             const Heard& heard) {
  for (const Workload& one : spec.rows) {
    Spec alone = spec;  // each row has memory of its own
    alone.rows = {one};
    auto measured = measureRow(alone, heard);
    if (measured) {
      if (measured->measured()) row(*measured);
      if (!measured->stop_by && !stop_.load()) continue;
      return Error{.code = Code::kCancelled,
                   .operation = "p2p",
                   .detail = stop_.load() ? "interrupted" : "the target was interrupted"};
    }
    const Error& why = measured.error();
    if (stop_.load() || why.code == Code::kCancelled || why.code == Code::kPeerLost) return why;
    const proof::Judgement verdict =
        proof::judge({}, {.require = spec.require, .failure = why}, spec.link_rates);
    row({.row = {.op = one.op,
                 .block_size = one.block_bytes,
                 .verdict = verdict.verdict,
                 .why = verdict.why}});
  }
  return Ok{};
}

Result<Composed> P2pInitiator::measureRow(const Spec& spec, const Heard& heard) {
  VIADUCT_CHECK(asker_.ask({.verb = P2pRequest::Verb::kRun, .spec = spec}, kAnswer));
  PairGroup group(0, asker_.peer(), notes_, [] { return false; });
  Worker worker(spec, agent_, group, rails_, stop_, heard, group.notes());
  worker.know(1, asker_.peer());
  VIADUCT_CHECK(worker.open());
  auto measured = worker.measure(spec.rows.front());
  // An interrupted target leaves once it has sent its part of the row. A whole row counts although
  // the target is gone.
  const bool whole = measured && (measured->stop_by || measured->row.verdict != Verdict::kFailed);
  if (auto lost = group.trouble(); lost && !whole) return *std::move(lost);
  return measured;
}

}  // namespace viaduct::measure::p2p
