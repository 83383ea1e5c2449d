// Sections in which several threads copy side by side, for a bounded time each. A thread that wants
// to change links, pins or plans shuts the sections: it waits until all have ended, and no new one
// begins. Each thread in a section has a cell of its own, so that threads share no cache line.
// Threads: any. docs/design/0051-rails-run-beside-membership.md
#pragma once

#include <array>
#include <atomic>
#include <mutex>

#include "base/mutex.h"

namespace viaduct::move {

class VIADUCT_CAPABILITY("sections") Sections {
 public:
  // The most threads in sections; further threads wait for a cell.
  static constexpr unsigned kCells = 32;

  // Returns the cell, which no other thread has until leave().
  unsigned enter() VIADUCT_ACQUIRE_SHARED();
  void leave(unsigned cell) VIADUCT_RELEASE_SHARED() {
    cells_[cell].taken.store(false, std::memory_order_release);
  }
  // True while a thread shuts the sections, or has shut them. A thread in a long section then
  // leaves it soon.
  const std::atomic<bool>& shutWanted() const { return shut_wanted_; }

  void shut() VIADUCT_ACQUIRE();
  void open() VIADUCT_RELEASE();

 private:
  struct alignas(64) Cell {
    std::atomic<bool> taken{false};
  };
  bool take(unsigned cell) {
    return !cells_[cell].taken.load(std::memory_order_relaxed) &&
           !cells_[cell].taken.exchange(true);
  }
  void use(unsigned cell);
  unsigned enterAfterOthers(unsigned cell);
  void waitForCells(unsigned used);

  std::mutex one_shuts_;  // held by the thread that has shut the sections, or that waits for a cell
  alignas(64) std::atomic<bool> shut_wanted_{false};
  std::atomic<unsigned> used_{0};  // no thread has ever taken a cell from this index on
  std::array<Cell, kCells> cells_;
};

// A section for a scope.
class VIADUCT_SCOPED_CAPABILITY Section {
 public:
  explicit Section(Sections& sections) VIADUCT_ACQUIRE_SHARED(sections)
      : sections_(sections), cell_(sections_.enter()) {}
  ~Section() VIADUCT_RELEASE_GENERIC() { sections_.leave(cell_); }
  Section(const Section&) = delete;
  Section& operator=(const Section&) = delete;
  unsigned cell() const { return cell_; }
  // Ends the section and begins another, after the threads that want to shut the sections. Links,
  // pins and plans may have changed meanwhile.
  void giveWay() VIADUCT_UNCHECKED {
    sections_.leave(cell_);
    cell_ = sections_.enter();
  }

 private:
  Sections& sections_;
  unsigned cell_;
};

}  // namespace viaduct::move
