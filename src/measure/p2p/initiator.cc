#include "measure/p2p/initiator.h"

#include <algorithm>
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
constexpr auto kTurn = 50ms;        // how often ask() checks the target and `stop`

Error interrupted(bool here) {
  return {.code = Code::kCancelled,
          .operation = "p2p",
          .detail = here ? "interrupted" : "the target was interrupted"};
}

}  // namespace

P2pInitiator::P2pInitiator(Agent& agent, const Settings& settings, Peer target,
                           const base::StopFlag& stop)
    : agent_(agent),
      settings_(settings),
      stop_(stop),
      notes_([&agent](Deadline until) { return agent.waitNote(until); }),
      target_(std::move(target)) {}

Result<std::string> P2pInitiator::ask(P2pRequest request, Deadline until) {
  request.number = ++last_;
  const auto life = target_.epoch();
  VIADUCT_CHECK(target_.note(encode(request)));
  while (!until.passed()) {
    if (stop_.load()) return Error{.code = Code::kCancelled, .operation = "p2p"};
    const auto note = agent_.waitNote(std::min(until.at(), Clock::now() + kTurn));
    if (note && isRequest(note->bytes)) {
      VIADUCT_TRY(P2pAnswer answer, decodeAnswer(note->bytes));
      if (answer.number == last_) return std::move(answer.value);
      continue;  // the answer to an abandoned request
    }
    // A changed epoch means that the session has ended meanwhile, perhaps with the request.
    if (target_.state() != PeerState::kReady || target_.epoch() != life)
      return Error{.code = Code::kPeerLost,
                   .operation = "p2p",
                   .detail = "the target ended or became unreachable"};
  }
  return Error{.code = Code::kTimeout, .operation = "p2p", .detail = "the target does not answer"};
}

void P2pInitiator::leave() {
  static_cast<void>(
      target_.note(encode(P2pRequest{.verb = P2pRequest::Verb::kLeave, .number = ++last_})));
}

Result<RunMember> P2pInitiator::greet(Deadline until,
                                      const std::function<void(const std::string&)>& busy,
                                      const base::SayWaiting& waiting) {
  base::Waiting aloud(waiting, until.at());
  for (bool said = false;;) {
    auto answer = ask({.verb = P2pRequest::Verb::kGreet}, until);
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
      return interrupted(stop_.load());
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
  VIADUCT_CHECK(ask({.verb = P2pRequest::Verb::kRun, .spec = spec}, kAnswer));
  PairGroup group(0, target_, notes_, [] { return false; });
  Worker worker(spec, agent_, group, settings_, stop_, heard, group.notes());
  worker.know(1, target_);
  VIADUCT_CHECK(worker.open());
  auto rows = worker.measure({&spec.rows.front(), 1});
  // An interrupted target leaves as soon as it has sent its part of the row. So a complete row
  // counts even if the target is gone.
  const bool whole =
      rows && (rows->front().stop_by || rows->front().row.verdict != Verdict::kFailed);
  if (auto lost = group.trouble(); lost && !whole) return *std::move(lost);
  if (!rows) return std::move(rows).error();
  return std::move(rows->front());
}

}  // namespace viaduct::measure::p2p
