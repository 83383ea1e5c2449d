// A rail between the agent and a backend's rail. It alters the ops that VIADUCT_FAULTS hits, and
// hands on all others. Threads: as core::Rail.
#pragma once

#include <cstddef>
#include <cstdint>
#include <list>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <vector>

#include "agent/faults/fault_source.h"
#include "core/backend.h"

namespace viaduct::agent {

class FaultyLink;

// The slots of pinned host memory of one backend.
using HostPins = std::set<std::uint32_t>;

class FaultyRail final : public core::Rail {
 public:
  // All arguments outlive the object.
  FaultyRail(core::Rail& inner, FaultSource& source, const HostPins& host_pins)
      : inner_(inner), source_(source), host_pins_(host_pins) {}

  core::Rail& inner() const { return inner_; }
  bool isDown() const { return source_.clock().now() < down_until_; }

  std::string_view name() const override { return inner_.name(); }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  bool hasEvents() const override { return inner_.hasEvents(); }
  void handleEvents(core::Completions& out) override;
  void cancel(const core::Sink& sink) override;
  bool busy() const override;
  void collect(core::Completions& out) override;

  // Takes completions of altered works out of `some`. If the rail had an op when it went down and
  // the op fails, reports that the rail is lost.
  void takeBack(core::Completions& some);
  // Ends the altered works of this link of the backend, which is closed.
  void drop(const core::Link& link, core::Completions& out);

 private:
  // Ops that a fault has hit. The backend's rail gets them as a work whose sink is this object.
  struct Altered final : core::Sink {
    explicit Altered(const core::Work& callers)
        : slice(callers.slice), ops(callers.ops.size()), work(callers) {
      work.slice = {.sink = this};
    }
    void moved(const core::Moved& some) override;
    void failed(core::Failed some) override;
    void staged(core::Staged) override {}

    core::SliceOf slice = {};           // the caller's
    std::uint64_t ops = 0;              // the caller's
    core::Work work = {};               // for the backend's rail
    std::vector<core::Op> pieces = {};  // the ops of `work`, if not the caller's
    std::size_t given = 0;              // ops that the backend's rail has taken
    std::uint64_t back = 0;             // given ops that have come back
    core::Moved total = {};
    bool stopped = false;                                // the backend's rail never gets it
    Clock::time_point ready = Clock::time_point::min();  // not given before this time
    std::optional<core::Failed> failure = {};
    std::byte* corrupted = nullptr;           // read: the byte to change at the end
    std::optional<std::size_t> scratch = {};  // write: its byte of FaultSource::scratch()
    bool mayGive() const { return !stopped && !failure && given < work.ops.size(); }
    bool isOver() const { return back == given && (failure || given == work.ops.size()); }
  };
  // The ops of a slice that the backend's rail has, and that no fault has hit.
  struct Plain {
    std::uint64_t ops = 0;
    bool dropped = false;  // the rail is down, so they fail
  };

  std::size_t handOn(core::Work work);
  void alter(const core::Work& work, FaultyLink& link);
  bool isAltered(const core::Completion& one) const;
  void corrupt(Altered& what) const;
  void corruptRead(Altered& what, const core::Op& op, std::uint64_t offset) const;
  void corruptWrite(Altered& what, const core::Op& op, std::uint64_t offset) const;
  void goDown(Duration time);
  void failAsDown(Altered& what);
  core::Failed lost(const core::SliceOf& slice, std::uint64_t ops, OpKind kind) const;
  void give(Altered& what);
  void finish(Altered& what, core::Completions& out) const;
  void endAltered(core::Completions& out);
  void addTo(core::Completions& out);

  core::Rail& inner_;
  FaultSource& source_;
  const HostPins& host_pins_;
  Clock::time_point down_until_ = Clock::time_point::min();
  std::list<Altered> altered_;  // a list, because rails keep pointers to the ops
  std::map<core::SliceOf, Plain> plain_;
  core::Completions some_;
};

}  // namespace viaduct::agent
