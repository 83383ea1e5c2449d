#include "measure/report/suite_conduct.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace viaduct::measure {
namespace {

// Refuses an outcome that other machines measured, because its figures cannot be compared.
TurnsEnd sameMachines(Suite& suite, const RunOutcome& outcome) {
  const std::string found = fingerprintOf(outcome.members);
  std::string& kept = suite.environment.fingerprint;
  if (kept.empty()) suite.environment = {.members = outcome.members, .fingerprint = found};
  if (found.empty() || found == kept) return {};
  return {RunEnd::kFailed, fmt::format("the machines changed since the earlier rounds: fingerprint "
                                       "{} then, {} now; what to do: start again",
                                       kept, found)};
}

}  // namespace

TurnsEnd conduct(Suite& suite, const SuiteHands& hands) {
  const std::vector<std::size_t> tests = measuredTests(suite);
  std::vector<SuiteRun> runs;  // the runs of this round
  const auto turn = [&](const Turn& now) -> TurnsEnd {
    const std::size_t test = tests[now.side];
    RunOutcome outcome = hands.run(now.round, test);
    if (outcome.end != RunEnd::kComplete) return {outcome.end, std::move(outcome.problem)};
    runs.push_back({.round = now.round, .test = test, .rows = std::move(outcome.rows)});
    return sameMachines(suite, outcome);
  };
  const auto whole = [&](std::uint32_t round) -> TurnsEnd {
    std::move(runs.begin(), runs.end(), std::back_inserter(suite.runs));
    runs.clear();
    suite.rounds_done = round + 1;
    suite.end = suite.rounds_done >= suite.rounds
                    ? "complete"
                    : fmt::format("{} of {} rounds", suite.rounds_done, suite.rounds);
    if (const auto saved = hands.save(suite); !saved)
      return {RunEnd::kFailed, saved.error().text()};
    return {};
  };
  return takeTurns(tests.size(), suite.rounds_done, suite.rounds, {.turn = turn, .whole = whole});
}

}  // namespace viaduct::measure
