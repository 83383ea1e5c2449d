#include "agent/basis/rails.h"

#include <algorithm>
#include <utility>

#include "base/thread_number.h"

namespace viaduct::agent {
namespace {

bool runnerIsBusy(const move::RailRunner* runner) { return runner->busy(); }

}  // namespace

void Rails::add(core::Backend& backend) {
  for (const auto& rail : backend.rails()) {
    RunRail& run = rails_.emplace_back(*rail, backend.can(), news_, rails_.size());
    by_rail_[rail.get()] = &run;
    (run.runner.runsAlone() ? alone_ : attended_).push_back(&run.runner);
  }
}

void Rails::complete() {
  for (CellCounts& counts : cell_counts_) counts.rails.resize(rails_.size());
}

void Rails::forget() {
  for (RunRail& run : rails_) run.runner.forgetRail();
}

bool Rails::busy() const {
  return news_.any() || std::ranges::any_of(alone_, runnerIsBusy) ||
         std::ranges::any_of(attended_, runnerIsBusy);
}

unsigned Rails::busyAlone() const {
  return static_cast<unsigned>(std::ranges::count_if(alone_, runnerIsBusy));
}

// Each thread begins with a different rail. A thread that finds all of them taken sleeps until one
// is free. If it tried again and again, it would take the processor from threads that run rails,
// and from peers.
bool Rails::runAlone() {
  bool ran = false;
  move::RailRunner* taken = nullptr;
  const unsigned first = base::threadNumber();
  for (std::size_t i = 0; i < alone_.size(); ++i) {
    move::RailRunner& runner = *alone_[(first + i) % alone_.size()];
    if (!runner.busy()) continue;
    if (runner.run())
      ran = true;
    else
      taken = &runner;
  }
  if (!ran && taken != nullptr) taken->awaitTurn();
  return ran || taken != nullptr;
}

void Rails::runAttended() {
  for (move::RailRunner* const runner : attended_) runner->run();
}

void Rails::handleEvents() {
  if (!news_.events.exchange(false)) return;
  const Still still(*this);
  for (RunRail& run : rails_) run.runner.handleEvents();
}

bool Rails::deliverEnded() {
  if (!news_.ended && ended_.empty()) return false;
  deliver(ended_);
  return true;
}

void Rails::deliver(core::Completions& completions) {
  if (news_.ended.exchange(false))
    for (RunRail& run : rails_) run.runner.takeEnded(completions);
  // By index, so that the loop stays right if a call in it adds completions to the list.
  for (std::size_t i = 0; i < completions.size(); ++i) core::deliver(std::move(completions[i]));
  completions.clear();
}

void Rails::giveBack(const core::Link& link, core::Completions& out) {
  for (RunRail& run : rails_) run.runner.giveBack(link, out);
}

void Rails::stop() {
  shutSections();
  if (stops_++ != 0) return;
  for (RunRail& run : rails_) run.runner.stop();
}

void Rails::start() {
  if (--stops_ == 0)
    for (RunRail& run : rails_) run.runner.start();
  openSections();
}

RailCounts Rails::countsOf(const core::Rail& rail) const {
  RailCounts total = by_rail_.at(&rail)->counts;
  for (const CellCounts& counts : cell_counts_) {
    total.bytes += counts.rails[total.number].bytes;
    total.ops += counts.rails[total.number].ops;
  }
  return total;
}

}  // namespace viaduct::agent
