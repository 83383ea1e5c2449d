#include "measure/suite/conduct.h"

#include <fmt/format.h>

#include <iterator>
#include <utility>

namespace viaduct::measure {
namespace {

// Figures of different machines are no figures of one suite.
SuiteEnd sameMachines(Suite& suite, const RunOutcome& outcome) {
  const std::string found = fingerprintOf(outcome.members);
  std::string& kept = suite.environment.fingerprint;
  if (kept.empty()) suite.environment = {.members = outcome.members, .fingerprint = found};
  if (found.empty() || found == kept) return {};
  return {RunEnd::kFailed, fmt::format("the machines changed since the earlier rounds: fingerprint "
                                       "{} then, {} now; what to do: start again",
                                       kept, found)};
}

class Round {
 public:
  Round(Suite& suite, const SuiteHands& hands) : suite_(suite), hands_(hands) {}

  SuiteEnd run() {
    for (const std::size_t test : orderOf(suite_.tests, suite_.rounds_done)) {
      RunOutcome outcome = hands_.run(suite_.rounds_done, test);
      if (outcome.end != RunEnd::kComplete) return {outcome.end, std::move(outcome.problem)};
      if (SuiteEnd end = sameMachines(suite_, outcome); end.end != RunEnd::kComplete) return end;
      runs_.push_back({.round = suite_.rounds_done, .test = test, .rows = std::move(outcome.rows)});
    }
    std::move(runs_.begin(), runs_.end(), std::back_inserter(suite_.runs));
    ++suite_.rounds_done;
    return {};
  }

 private:
  Suite& suite_;
  const SuiteHands& hands_;
  std::vector<SuiteRun> runs_;
};

}  // namespace

SuiteEnd conduct(Suite& suite, const SuiteHands& hands) {
  SuiteEnd end;
  while (suite.rounds_done < suite.rounds) {
    end = Round(suite, hands).run();
    if (end.end != RunEnd::kComplete) break;
    const bool whole = suite.rounds_done >= suite.rounds;
    suite.end =
        whole ? "complete" : fmt::format("{} of {} rounds", suite.rounds_done, suite.rounds);
    if (const auto saved = hands.save(suite); !saved)
      return {RunEnd::kFailed, saved.error().text()};
  }
  return end;
}

}  // namespace viaduct::measure
