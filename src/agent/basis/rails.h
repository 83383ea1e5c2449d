// The rails of an agent. Also stops and excludes the threads that run them, and the threads that
// copy within a post, in a section (move/sections.h).
// docs/design/0051-rails-run-beside-membership.md Threads: with the agent's lock held, unless a
// comment says otherwise.
#pragma once

#include <array>
#include <cstddef>
#include <deque>
#include <map>
#include <span>
#include <vector>

#include "agent/basis/counts.h"
#include "core/backend.h"
#include "core/op.h"
#include "move/rail_runner.h"
#include "move/sections.h"

namespace viaduct::agent {

// A rail, the object through which threads run it, and its counts.
struct RunRail {
  RunRail(core::Rail& rail, const core::Capabilities& can, move::RailNews& news, std::size_t number)
      : runner(rail, can, news), counts{.number = number} {}
  move::RailRunner runner;
  RailCounts counts;
};

class Rails {
 public:
  void add(core::Backend& backend);
  // Call it when all rails are known, and no thread runs them yet.
  void complete();
  void forget();  // the backends end
  RunRail& of(const core::Rail& rail) { return *by_rail_.at(&rail); }
  std::size_t count() const { return rails_.size(); }
  std::size_t countAlone() const { return alone_.size(); }  // the rails that run without the lock

  bool busy() const;
  unsigned busyAlone() const;
  // Runs the busy rails that need no lock. If other threads run all of them, waits until one is
  // free. True: there were any. Threads: any, without the lock.
  bool runAlone();
  void runAttended();  // the rails that need the lock
  // Handles events that polls have found, such as a broken connection.
  void handleEvents();
  // Rails have completions or events. Threads: any.
  bool haveNews() const { return news_.any(); }
  // Delivers the completions of ended ops. True: there were some.
  bool deliverEnded();
  // Delivers `completions` and the ones that rails still have, so that a closing link gets all of
  // its ops back.
  void deliver(core::Completions& completions);
  // Before a link closes, while rails are stopped: appends the works that no rail has taken.
  void giveBack(const core::Link& link, core::Completions& out);

  // Do not call these: use Still and SectionsShut.
  void stop();
  void start();
  void shutSections() {
    if (shuts_++ == 0) sections_.shut();
  }
  void openSections() {
    if (--shuts_ == 0) sections_.open();
  }

  move::Sections& sections() { return sections_; }
  // The counts for transfers that the thread with this cell posts in a section.
  CellCounts& cellCounts(unsigned cell) { return cell_counts_[cell]; }
  // The counts of all cells. Call it while sections are shut.
  std::span<const CellCounts> allCellCounts() const { return cell_counts_; }
  // The rail's counts, with those of all cells. Call it while sections are shut.
  RailCounts countsOf(const core::Rail& rail) const;

 private:
  std::deque<RunRail> rails_;  // bundles keep pointers to them, also after forget()
  std::map<const core::Rail*, RunRail*> by_rail_;
  std::vector<move::RailRunner*> alone_, attended_;
  move::RailNews news_;
  core::Completions ended_;
  move::Sections sections_;
  unsigned shuts_ = 0, stops_ = 0;  // the SectionsShuts and Stills that there are
  std::array<CellCounts, move::Sections::kCells> cell_counts_;
};

// While it lives, no thread is in a section.
class SectionsShut {
 public:
  explicit SectionsShut(Rails& rails) : rails_(rails) { rails_.shutSections(); }
  ~SectionsShut() { rails_.openSections(); }
  SectionsShut(const SectionsShut&) = delete;
  SectionsShut& operator=(const SectionsShut&) = delete;

 private:
  Rails& rails_;
};

// While it lives, all rails are stopped as well: this thread may change what rails and posting
// threads use.
class Still {
 public:
  explicit Still(Rails& rails) : rails_(rails) { rails_.stop(); }
  ~Still() { rails_.start(); }
  Still(const Still&) = delete;
  Still& operator=(const Still&) = delete;

 private:
  Rails& rails_;
};

}  // namespace viaduct::agent
