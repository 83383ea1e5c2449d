// The ledger of works under random sequences of posts, progress and withdrawals.
#include "move/job_table.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <map>
#include <utility>

#include "base/random.h"
#include "core/sink_testing.h"

namespace viaduct::move {
namespace {

constexpr std::uint32_t kSlots = 6;  // and one more, whose pin is never released

// Carries out jobs op by op, in any order, and may hang: then the parts of a stopped job do not end
// early.
class ShakyCarrier final : public Carrier {
 public:
  struct Part {
    Job* job = nullptr;
    std::uint32_t number = 0;  // of the job's slice
  };
  explicit ShakyCarrier(std::uint64_t seed) : random_(seed) {}

  void stop(Job& job) override {
    EXPECT_TRUE(job.why.has_value());
    ready_.remove(job);
    if (hangs) return;
    std::erase_if(parts_, [&](const Part& part) {
      if (part.job != &job || random_.chance(0.5)) return false;
      cancelled_.push_back(part);
      return true;
    });
  }
  void progressUntil(Clock::time_point /*until*/) override { progress(); }

  void add(Job& job) { ready_.push(job); }
  void progress() {
    for (const Part& part : std::exchange(cancelled_, {})) end(part, true);
    for (std::uint64_t steps = random_.below(4); steps > 0 && !ready_.empty(); --steps) begin();
    for (std::uint64_t steps = random_.below(4); steps > 0 && !parts_.empty() && !hangs; --steps) {
      const auto at = parts_.begin() + static_cast<std::ptrdiff_t>(random_.below(parts_.size()));
      const Part part = *at;
      parts_.erase(at);
      end(part, random_.chance(0.05));
    }
  }
  // As an endpoint that is closed at both ends: nothing is touched any more.
  template <class Match>
  void forget(Match match) {
    JobQueue rest;
    while (!ready_.empty())
      if (Job& job = ready_.pop(); !match(job)) rest.push(job);
    ready_ = rest;
    const auto forgotten = [&](const Part& part) { return match(*part.job); };
    std::erase_if(parts_, forgotten);
    std::erase_if(cancelled_, forgotten);
  }
  bool touches(std::uint32_t number) const {
    const auto is_of = [&](const Part& part) { return part.number == number; };
    return std::ranges::any_of(parts_, is_of) || std::ranges::any_of(cancelled_, is_of);
  }
  bool hangs = false;

 private:
  void begin() {
    Job& job = ready_.pop();
    ++job.outstanding;
    ++job.next_op;
    parts_.push_back({&job, job.work.slice.number});
    if (job.hasMore()) ready_.push(job);
  }
  void end(const Part& part, bool fails) {
    Job& job = *part.job;
    --job.outstanding;
    if (fails) {
      job.table->stop(job, {.code = Code::kDevice});
    } else {
      ++job.moved.ops;
      job.moved.bytes += 8;
    }
    job.table->settle(job);
  }

  base::Random random_;
  JobQueue ready_;
  std::vector<Part> parts_, cancelled_;
};

class Ledger {
 public:
  Ledger(std::uint64_t seed, Duration grace)
      : random_(seed),
        carrier_(seed + 1),
        table_(JobTable::Traits{.device = "fake", .most = 32, .both_ends = true, .grace = grace}) {}

  void run() {
    for (int step = 0; step < 400 && !::testing::Test::HasFailure(); ++step) one();
    carrier_.hangs = false;
    for (int step = 0; step < 10'000 && !(table_.empty() && table_.settled()); ++step) {
      carrier_.progress();
      report();
    }
    EXPECT_TRUE(posted_.empty()) << posted_.size() << " works have not come back";
    EXPECT_TRUE(table_.settled());
    EXPECT_TRUE(table_.empty());
  }

 private:
  struct Posted {
    std::vector<core::Op> ops = {};
    core::Link* link = nullptr;
    std::uint64_t back = 0;
  };

  void one() {
    const std::uint64_t dice = random_.below(100);
    if (dice < 35)
      post();
    else if (dice < 70)
      carrier_.progress();
    else if (dice < 80)
      report();
    else if (dice < 85)
      table_.cancel(sinks_[random_.below(sinks_.size())]);
    else if (dice < 91)
      withdraw(static_cast<std::uint32_t>(random_.below(kSlots)));
    else if (dice < 94)
      close();
    else if (dice < 96)
      giveBack();
    else
      carrier_.hangs = random_.chance(0.5);
  }
  void post() {
    const auto priority = static_cast<Priority>(random_.below(kPriorities));
    if (table_.full(priority)) return;
    const std::uint32_t number = ++last_;
    Posted& posted = posted_[number];
    for (std::uint64_t left = 1 + random_.below(5); left > 0; --left)
      posted.ops.push_back({.bytes = 8, .local_pin = pin(), .remote_pin = pin()});
    // The ledger compares links, and never calls them.
    posted.link = reinterpret_cast<core::Link*>(&links_[random_.below(links_.size())]);
    carrier_.add(table_.add({.slice = {&sinks_[random_.below(sinks_.size())], number},
                             .link = posted.link,
                             .ops = posted.ops,
                             .priority = priority},
                            &carrier_));
  }
  // A pin that is not being released.
  std::uint32_t pin() {
    const auto slot = static_cast<std::uint32_t>(random_.below(kSlots));
    return leaving_[slot] ? kSlots : slot;
  }
  void withdraw(std::uint32_t slot) {
    const Status left = table_.withdraw(slot, carrier_);
    leaving_[slot] = !left && left.error().code == Code::kBusy;
    EXPECT_FALSE(left && touchesPin(slot)) << "a released pin is touched";
    const bool given_up = !left && !leaving_[slot];
    EXPECT_FALSE(given_up && table_.settled()) << "the memory may still be touched";
  }
  bool touchesPin(std::uint32_t slot) const {
    return std::ranges::any_of(posted_, [&](const auto& one) {
      return carrier_.touches(one.first) &&
             std::ranges::any_of(one.second.ops, [&](const core::Op& op) {
               return op.local_pin == slot || op.remote_pin == slot;
             });
    });
  }
  void close() {
    auto* const link = reinterpret_cast<core::Link*>(&links_[random_.below(links_.size())]);
    if (random_.chance(0.5)) {
      table_.close(*link, carrier_, out_);
    } else {
      carrier_.forget([&](const Job& job) { return job.work.link == link; });
      table_.take(*link, {.code = Code::kPeerLost}, out_);
    }
    take(true);
    EXPECT_TRUE(std::ranges::none_of(posted_, [&](const auto& one) {
      return one.second.link == link;
    })) << "a work outlives its link";
  }
  void giveBack() {
    carrier_.forget([](const Job& job) { return !job.left; });
    table_.giveBack(carrier_, {.code = Code::kDevice});
  }
  void report() {
    table_.takeReports(out_);
    take(false);
  }
  void take(bool closing) {
    for (const core::Completion& one : std::exchange(out_, {})) {
      const auto number = std::visit([](const auto& end) { return end.slice.number; }, one);
      const auto at = posted_.find(number);
      ASSERT_NE(at, posted_.end()) << "a work came back twice";
      at->second.back += core::endedOps(one);
      ASSERT_LE(at->second.back, at->second.ops.size()) << "an op came back twice";
      if (at->second.back < at->second.ops.size()) continue;
      const bool stuck = closing && !table_.settled();
      EXPECT_TRUE(stuck || !carrier_.touches(number))
          << "a work came back while its memory is touched";
      posted_.erase(at);
    }
  }

  base::Random random_;
  ShakyCarrier carrier_;
  JobTable table_;
  std::array<core::testing::NoSink, 3> sinks_;
  std::array<std::max_align_t, 3> links_ = {};
  std::array<bool, kSlots> leaving_ = {};
  std::map<std::uint32_t, Posted> posted_;
  core::Completions out_;
  std::uint32_t last_ = 0;
};

// The random sequences stop works of a transfer, of a pin and of a link, while a carrier may hang.
TEST(JobTableTest, EachOpComesBackOnceAndOnlyWhenNobodyTouchesItsMemory) {
  for (std::uint64_t seed = 1; seed <= 300 && !::testing::Test::HasFailure(); ++seed) {
    SCOPED_TRACE(seed);
    Ledger(seed, seed % 2 == 0 ? Duration{} : Duration{std::chrono::milliseconds(1)}).run();
  }
}

TEST(JobTableTest, HasRoomForAHigherClassWhenALowerOneFillsIt) {
  JobTable table(JobTable::Traits{.most = 8});
  for (const auto& [priority, jobs] :
       {std::pair(Priority::kBackground, 4U), std::pair(Priority::kNormal, 6U),
        std::pair(Priority::kUrgent, 8U)}) {
    for (; !table.full(priority); table.add({.priority = priority}, nullptr)) continue;
    EXPECT_EQ(table.jobs().size(), jobs) << priorityName(priority);
  }
}

}  // namespace
}  // namespace viaduct::move
