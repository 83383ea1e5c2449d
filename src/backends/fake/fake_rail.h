// The fake's queue of ops on their way through the weather. Threads: as core::Rail.
#pragma once

#include <atomic>
#include <deque>
#include <functional>
#include <set>
#include <string>
#include <string_view>
#include <thread>

#include "backends/fake/weather.h"
#include "base/guarded.h"
#include "base/random.h"
#include "core/backend.h"

namespace viaduct::fake {

// Rails that a test holds down by hand, in all of this process's fakes.
inline std::atomic<core::RailMask> rails_cut{0};
// The threads that have polled rails with ops on them, of all of this process's fakes.
inline base::Guarded<std::set<std::thread::id>> pollers;

class FakeRail final : public core::Rail {
 public:
  // Carries (a part of) an op out: the copy, or why it cannot be.
  using Carry = std::function<Status(core::Link& link, const core::Op& op, OpKind kind)>;
  using Kill = std::function<void(core::Link& link)>;

  FakeRail(std::uint32_t index, const Weather& weather, Carry carry, Kill kill)
      : name_("fake" + std::to_string(index)),
        index_(index),
        weather_(weather),
        carry_(std::move(carry)),
        kill_(std::move(kill)),
        dice_(weather.seed + index) {}

  std::string_view name() const override { return name_; }
  std::size_t post(const core::Work& work) override;
  void poll(core::Completions& out) override;
  void cancel(core::Tag tag) override;
  bool busy() const override { return !queue_.empty(); }
  bool mayHaveEnded() const override { return true; }

  // Broken: for a while, or by hand.
  bool out() const { return (rails_cut >> index_ & 1U) != 0 || Clock::now() < out_until_; }
  // Everything of this link ends now.
  void drop(const core::Link& link, core::Completions& out);

 private:
  static constexpr std::size_t kRoom = 64;           // small, so that tests see back-pressure
  static constexpr std::uint64_t kStep = 256 << 10;  // a turn is short, however long the op
  struct Ride {
    core::Work work;
    core::Op left;        // what of the op is still to be carried
    core::Op after = {};  // and what behind that
    std::uint64_t bytes = 0;
    bool begun = false;
    Clock::time_point ready;
    bool cancelled = false;
    bool hangs = false;
  };
  Status advance(Ride& ride);
  bool breaks(Ride& ride);
  void breakDown(core::Completions& out);
  Error failure(const Ride& ride, Code code, std::string detail) const;
  void harm(Ride& ride);

  const std::string name_;
  const std::uint32_t index_;
  const Weather weather_;
  const Carry carry_;
  const Kill kill_;
  base::Random dice_;
  std::deque<Ride> queue_;
  Clock::time_point out_until_ = Clock::time_point::min();
};

}  // namespace viaduct::fake
