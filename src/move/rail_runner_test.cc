#include "move/rail_runner.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <iterator>
#include <map>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "base/random.h"
#include "core/sink_testing.h"

namespace viaduct::move {
namespace {

core::Capabilities small(bool side_by_side) {
  return {.name = "small", .memory = {}, .side_by_side = side_by_side};
}

// A rail with room for some works. Each poll ends the first. It fails the test if it is called
// during a call.
class SmallRail final : public core::Rail {
 public:
  std::string_view name() const override { return "small"; }
  std::size_t post(const core::Work& work) override {
    const Caller caller(*this);
    callOnce(in_post);
    const bool background = work.priority == Priority::kBackground;
    if (works_.size() >= (background ? std::min(room, background_room) : room)) return 0;
    works_.push_back(work);
    works_.back().ops = work.ops.first(std::min(most, work.ops.size()));
    return works_.back().ops.size();
  }
  void poll(core::Completions& out) override {
    const Caller caller(*this);
    if (in_poll) in_poll();
    std::ranges::move(stopped_, std::back_inserter(out));
    stopped_.clear();
    if (works_.empty()) return;
    out.emplace_back(core::Moved{works_.front().slice, works_.front().ops.size()});
    works_.erase(works_.begin());
  }
  void collect(core::Completions& out) override {
    const Caller caller(*this);
    callOnce(in_collect);
    std::ranges::move(stopped_, std::back_inserter(out));
    stopped_.clear();
  }
  void cancel(const core::Sink& sink) override {
    const Caller caller(*this);
    callOnce(in_cancel);
    fail([&](const core::Work& work) { return work.slice.sink == &sink; }, stopped_);
  }
  bool busy() const override { return !works_.empty() || !stopped_.empty() || event; }
  bool hasEvents() const override { return event; }
  void handleEvents(core::Completions&) override {
    const Caller caller(*this);
    callOnce(in_events);
    event = false;
  }
  // Fails the works of a link, as Link::close() does.
  void close(const core::Link* link, core::Completions& out) {
    const Caller caller(*this);
    fail([&](const core::Work& work) { return work.link == link; }, out);
  }

  bool has(std::uint64_t number) const {
    return std::ranges::any_of(works_, [&](const core::Work& work) {
      return work.slice == core::testing::sliceOf(number);
    });
  }

  std::size_t room = 4, background_room = 4;  // for works
  std::size_t most = 4;                       // ops of a work, at once
  bool event = false;
  std::function<void()> in_poll;                                    // at each call
  std::function<void()> in_post, in_collect, in_cancel, in_events;  // at the next call

 private:
  static void callOnce(std::function<void()>& call) {
    if (call) std::exchange(call, {})();
  }
  class Caller {
   public:
    explicit Caller(SmallRail& rail) : rail_(rail) { EXPECT_FALSE(rail_.called_.exchange(true)); }
    ~Caller() { rail_.called_ = false; }
    Caller(const Caller&) = delete;
    Caller& operator=(const Caller&) = delete;

   private:
    SmallRail& rail_;
  };
  template <class Such>
  void fail(Such such, core::Completions& out) {
    std::erase_if(works_, [&](const core::Work& work) {
      if (!such(work)) return false;
      out.emplace_back(core::Failed{work.slice, work.ops.size(), {.code = Code::kCancelled}});
      return true;
    });
  }

  std::atomic<bool> called_{false};
  std::vector<core::Work> works_;
  core::Completions stopped_;
};

const std::array<core::Op, 1> kOp{core::Op{.bytes = 8}};

core::Work workOf(std::uint64_t number, core::Link* link = nullptr) {
  return {.slice = core::testing::sliceOf(number), .link = link, .ops = kOp};
}

class RailRunnerTest : public ::testing::Test {
 protected:
  core::Completions ended() {
    core::Completions out;
    runner_.takeEnded(out);
    return out;
  }
  static bool isMoved(const core::Completion& one, std::uint64_t number) {
    const auto* const moved = std::get_if<core::Moved>(&one);
    return moved != nullptr && moved->slice == core::testing::sliceOf(number);
  }
  static bool isFailed(const core::Completion& one, std::uint64_t number) {
    const auto* const failed = std::get_if<core::Failed>(&one);
    return failed != nullptr && failed->slice == core::testing::sliceOf(number);
  }

  SmallRail rail_;
  RailNews news_;
  RailRunner runner_{rail_, small(true), news_};
};

TEST_F(RailRunnerTest, WorkGoesToTheRailAtOnce) {
  runner_.post(workOf(1));
  EXPECT_TRUE(runner_.busy());
  EXPECT_FALSE(news_.any());
  runner_.run();
  EXPECT_TRUE(news_.ended);
  const auto out = ended();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(isMoved(out[0], 1));
  EXPECT_FALSE(runner_.busy());
}

TEST_F(RailRunnerTest, APostOrCancelDoesNotWaitForAPoll) {
  rail_.in_poll = [&] {
    std::jthread([&] {
      runner_.post(workOf(1));
      runner_.post(workOf(2));
      runner_.cancel(core::testing::sinkOf(1));
    }).join();
    rail_.in_poll = {};
  };
  runner_.run();
  auto out = ended();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(isFailed(out[0], 1)) << "it had not begun";
  EXPECT_TRUE(runner_.busy());
  runner_.run();
  out = ended();
  ASSERT_EQ(out.size(), 1U);
  EXPECT_TRUE(isMoved(out[0], 2));
}

TEST_F(RailRunnerTest, WorkWaitsForRoomInItsOrder) {
  rail_.room = 1;
  for (std::uint64_t number = 1; number <= 5; ++number) runner_.post(workOf(number));
  for (std::uint64_t number = 1; number <= 5; ++number) {
    EXPECT_TRUE(runner_.busy());
    runner_.run();
    const auto out = ended();
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(isMoved(out[0], number));
  }
  EXPECT_FALSE(runner_.busy());
}

TEST_F(RailRunnerTest, WorkThatFindsNoRoomStaysBeforeWorkThatCameMeanwhile) {
  rail_.room = 1;
  runner_.post(workOf(1));
  runner_.post(workOf(2));
  rail_.in_post = [&] { std::jthread([&] { runner_.post(workOf(3)); }).join(); };
  runner_.run();  // offers 2, and then ends 1
  for (const std::uint64_t number : {1U, 2U, 3U}) {
    const auto out = ended();
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(isMoved(out[0], number)) << number;
    runner_.run();
  }
  EXPECT_FALSE(runner_.busy());
}

TEST_F(RailRunnerTest, WorkOfAHigherClassIsFirstToGetRoom) {
  rail_.room = 1;
  runner_.post(workOf(1));
  for (const auto& [number, priority] :
       {std::pair(2, Priority::kBackground), std::pair(3, Priority::kNormal),
        std::pair(4, Priority::kUrgent)}) {
    core::Work work = workOf(static_cast<std::uint64_t>(number));
    work.priority = priority;
    runner_.post(work);
  }
  for (const std::uint64_t number : {1U, 4U, 3U, 2U}) {
    runner_.run();
    const auto out = ended();
    ASSERT_EQ(out.size(), 1U);
    EXPECT_TRUE(isMoved(out[0], number)) << number;
  }
}

TEST_F(RailRunnerTest, AClassWithoutRoomDoesNotHoldUpAHigherOne) {
  rail_.background_room = 0;
  core::Work background = workOf(1);
  background.priority = Priority::kBackground;
  runner_.post(background);
  // The first of them earns the background work its turn.
  const core::Op large{.bytes = 17 * kBackgroundTurn};
  for (const std::uint64_t number : {2U, 3U}) {
    core::Work urgent = workOf(number);
    urgent.priority = Priority::kUrgent;
    urgent.ops = {&large, 1};
    runner_.post(urgent);
    EXPECT_TRUE(rail_.has(number)) << number;
  }
  rail_.background_room = 4;
  runner_.run();
  EXPECT_TRUE(rail_.has(1));
}

TEST_F(RailRunnerTest, APostCutsThePollOfAnotherThreadShort) {
  rail_.in_poll = [&] {
    EXPECT_FALSE(rail_.wanted);
    std::jthread([&] { runner_.post(workOf(1)); }).join();
    EXPECT_TRUE(rail_.wanted);
    rail_.in_poll = {};
  };
  runner_.run();
}

TEST_F(RailRunnerTest, ACancelledSinkMayGetNewWork) {
  rail_.room = 1;
  runner_.post(workOf(1));
  runner_.post(workOf(1));  // waits for room
  runner_.cancel(core::testing::sinkOf(1));
  runner_.post(workOf(1));
  runner_.run();
  const auto out = ended();
  ASSERT_EQ(out.size(), 3U);
  EXPECT_EQ(std::ranges::count_if(out, [](auto& one) { return isFailed(one, 1); }), 2);
  EXPECT_EQ(std::ranges::count_if(out, [](auto& one) { return isMoved(one, 1); }), 1);
}

// The transfer of a sink may end by its cancelled works in the inbox, and then be posted again.
TEST_F(RailRunnerTest, ASinkThatIsCancelledDuringAHandOverMayGetNewWork) {
  rail_.room = 1;
  for (std::uint64_t number = 1; number <= 3; ++number) runner_.post(workOf(number));
  rail_.room = 4;
  rail_.in_post = [&] {  // takes 2 of the inbox
    std::jthread([&] {
      runner_.cancel(core::testing::sinkOf(3));
      const auto out = ended();
      ASSERT_EQ(out.size(), 1U);
      EXPECT_TRUE(isFailed(out[0], 3));
      runner_.post(workOf(3));
    }).join();
  };
  core::Completions out;
  while (runner_.busy()) {
    runner_.run();
    runner_.takeEnded(out);
  }
  ASSERT_EQ(out.size(), 3U);
  for (std::uint64_t number = 1; number <= 3; ++number)
    EXPECT_TRUE(isMoved(out[number - 1], number)) << number;
}

TEST_F(RailRunnerTest, TheRestOfAWorkThatWasCancelledInThePostStaysOut) {
  const std::array<core::Op, 3> ops{kOp[0], kOp[0], kOp[0]};
  rail_.most = 1;
  rail_.in_post = [&] { runner_.cancel(core::testing::sinkOf(1)); };
  runner_.post({.slice = core::testing::sliceOf(1), .ops = ops});
  while (runner_.busy()) runner_.run();
  std::size_t failed = 0;
  for (const core::Completion& one : ended())
    if (isFailed(one, 1)) failed += std::get<core::Failed>(one).ops;
  EXPECT_EQ(failed, ops.size());
}

TEST_F(RailRunnerTest, EventsAreForTheThreadThatStopsTheRail) {
  rail_.event = true;
  runner_.run();
  EXPECT_TRUE(news_.events.exchange(false));
  runner_.stop();
  runner_.handleEvents();
  runner_.start();
  EXPECT_FALSE(news_.events);
}

TEST_F(RailRunnerTest, AForgottenRailIsNotCalled) {
  runner_.stop();
  runner_.forgetRail();
  runner_.start();
  rail_.in_poll = [] { FAIL() << "polled"; };
  runner_.run();
  EXPECT_FALSE(runner_.busy());
}

// A function of a rail that calls its runner, and a call of the runner that leads to it.
struct Function {
  const char* name;
  std::function<void()> SmallRail::* hook;
  void (*reach)(RailRunner& runner);
};
const Function kFunctions[] = {
    {"InPost", &SmallRail::in_post, [](RailRunner& runner) { runner.post(workOf(4)); }},
    {"InCollect", &SmallRail::in_collect, [](RailRunner& runner) { runner.post(workOf(4)); }},
    {"InPoll", &SmallRail::in_poll, [](RailRunner& runner) { runner.run(); }},
    {"InCancel", &SmallRail::in_cancel,
     [](RailRunner& runner) { runner.cancel(core::testing::sinkOf(9)); }},
    {"InHandleEvents", &SmallRail::in_events,
     [](RailRunner& runner) {
       runner.stop();
       runner.handleEvents();
       runner.start();
     }},
};

class RailThatCallsBack : public ::testing::TestWithParam<std::tuple<Function, bool>> {
 protected:
  void take() {
    core::Completions out;
    runner_.takeEnded(out);
    for (const core::Completion& one : out) {
      if (const auto* const moved = std::get_if<core::Moved>(&one)) ++moved_[moved->slice.number];
      if (const auto* const failed = std::get_if<core::Failed>(&one))
        ++failed_[failed->slice.number];
    }
  }

  SmallRail rail_;
  RailNews news_;
  RailRunner runner_{rail_, small(std::get<bool>(GetParam())), news_};
  std::map<std::uint64_t, int> moved_, failed_;  // the times that each work has come back
};

TEST_P(RailThatCallsBack, MayPostCancelAndTake) {
  const Function& function = std::get<Function>(GetParam());
  rail_.room = 2;
  rail_.event = true;
  for (std::uint64_t number = 1; number <= 3; ++number) runner_.post(workOf(number));
  bool called = false;
  rail_.*function.hook = [&] {
    rail_.in_poll = {};
    called = true;
    runner_.post(workOf(5));
    runner_.cancel(core::testing::sinkOf(2));  // the rail has it
    runner_.cancel(core::testing::sinkOf(3));  // waits for room
    runner_.post(workOf(3));
    EXPECT_FALSE(runner_.run()) << "this thread runs it";
    EXPECT_TRUE(runner_.busy());
    take();
  };
  function.reach(runner_);
  EXPECT_TRUE(called);
  rail_.event = false;
  while (runner_.busy()) runner_.run();
  take();
  std::map<std::uint64_t, int> moved{{1, 1}, {3, 1}, {5, 1}};
  if (function.reach == kFunctions[0].reach || function.reach == kFunctions[1].reach) moved[4] = 1;
  EXPECT_EQ(moved_, moved);
  EXPECT_EQ(failed_, (std::map<std::uint64_t, int>{{2, 1}, {3, 1}}));
}

#ifndef NDEBUG
TEST_P(RailThatCallsBack, MayNotWaitForItself) {
  const Function& function = std::get<Function>(GetParam());
  rail_.event = true;
  rail_.*function.hook = [&] { runner_.awaitTurn(); };
  EXPECT_DEATH(function.reach(runner_), "waits for itself");
}
#endif

INSTANTIATE_TEST_SUITE_P(Rails, RailThatCallsBack,
                         ::testing::Combine(::testing::ValuesIn(kFunctions), ::testing::Bool()),
                         [](const auto& one) {
                           return std::string(std::get<Function>(one.param).name) +
                                  (std::get<bool>(one.param) ? "Alone" : "UnderTheAgentsLock");
                         });

// Threads post, cancel and run at random, and one closes links. Each work comes back exactly once.
TEST_F(RailRunnerTest, EachWorkComesBackOnceWhateverThreadsDo) {
  constexpr std::size_t kThreads = 3, kSteps = 3000;
  std::array<std::max_align_t, 4> links{};  // their addresses only
  const auto link = [&](std::uint64_t number) {
    return reinterpret_cast<core::Link*>(&links[number % links.size()]);
  };
  std::mutex agent;  // the agent's lock
  std::vector<int> back(kThreads * kSteps);
  const auto take = [&] {
    for (const core::Completion& one : ended())
      std::visit([&](const auto& done) { ++back.at(done.slice.number); }, one);
  };
  std::vector<std::jthread> threads;
  for (std::size_t thread = 0; thread < kThreads; ++thread)
    threads.emplace_back([&, thread] {
      base::Random random(thread);
      for (std::uint64_t step = 0; step < kSteps; ++step) {
        const std::uint64_t number = thread * kSteps + step;
        {
          const std::lock_guard held(agent);
          runner_.post(workOf(number, link(number)));
          if (random.chance(0.05)) runner_.cancel(core::testing::sinkOf(number - random.below(9)));
          if (random.chance(0.02)) {
            core::Completions out;
            runner_.stop();
            runner_.giveBack(*link(number), out);
            rail_.close(link(number), out);
            runner_.start();
            for (const core::Completion& one : out)
              ++back.at(std::get<core::Failed>(one).slice.number);
          }
          take();
        }
        runner_.run();
      }
    });
  threads.clear();
  while (runner_.busy()) runner_.run();
  take();
  EXPECT_EQ(std::ranges::count(back, 1), std::ssize(back));
}

}  // namespace
}  // namespace viaduct::move
