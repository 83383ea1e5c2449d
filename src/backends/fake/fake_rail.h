// A rail of the fake backend: a queue of ops, which damages or misreports copies as
// FakeOptions::lie says. Threads: as core::Rail.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "backends/fake/fake_options.h"
#include "base/guarded.h"
#include "core/backend.h"
#include "move/job_table.h"

namespace viaduct::fake {

// The rails that a test keeps broken, in all fake backends of this process.
inline std::atomic<core::RailMask> rails_cut{0};
// The threads that have polled a busy rail, of all fake backends of this process.
inline base::Guarded<std::set<std::thread::id>> pollers;
// A test's function that each poll calls first. False: the poll moves nothing.
using Interruption = std::function<bool()>;
inline base::Guarded<Interruption> interruption;
// A test's function that plays DirectMover::moveNow(). Transfers that are planned while it is set
// use it if they have one rail. Null: fake rails do not move directly.
using DirectMove = std::function<core::DirectMover::Outcome(core::DirectMover::Progress&,
                                                            const std::atomic<bool>&)>;
inline base::Guarded<DirectMove> direct_move;

class FakeRail final : public core::Rail, public core::DirectMover, private move::Carrier {
 public:
  // Copies an op or a part of it, or returns the reason why that is not possible.
  using Carry = std::function<Status(core::Link& link, const core::Op& op, OpKind kind)>;

  FakeRail(std::uint32_t index, Lie lie, Carry carry)
      : name_("fake" + std::to_string(index)), index_(index), lie_(lie), carry_(std::move(carry)) {}

  std::string_view name() const override { return name_; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  void cancel(const core::Sink& sink) override { jobs_.cancel(sink); }
  bool busy() const override { return !jobs_.empty(); }
  void collect(core::Completions& out) override { poll(out); }  // small copies end in the post
  core::DirectMover* direct() override {
    return direct_move.with([](auto& move) { return move != nullptr; }) ? this : nullptr;
  }
  bool fits(std::span<const core::Op>) const override { return true; }
  Outcome moveNow(const core::Work& work, Progress& so_far,
                  const std::atomic<bool>& pause) override;

  bool out() const { return (rails_cut >> index_ & 1U) != 0; }
  // Fails all ops of this link now.
  void drop(const core::Link& link, core::Completions& out);

 private:
  static constexpr std::size_t kRoom = 64;           // small, so that tests see back-pressure
  static constexpr std::uint64_t kStep = 256 << 10;  // bytes of one copy, to keep poll() short
  // A job of one op.
  struct QueuedOp : move::Job {
    core::Op left = {};   // part that is not copied yet
    core::Op after = {};  // part to copy after `left`; only if the rail lies
  };
  void stop(move::Job&) override {}  // poll() ends it
  Status advance(QueuedOp& queued);
  void breakDown();
  void falsify(QueuedOp& queued) const;

  const std::string name_;
  const std::uint32_t index_;
  const Lie lie_;
  const Carry carry_;
  move::JobTable jobs_;
  std::deque<QueuedOp*> queue_;
};

}  // namespace viaduct::fake
