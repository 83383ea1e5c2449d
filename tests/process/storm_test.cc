// Peers are stopped, continued, killed and restarted at random instants, while they and the
// survivor copy to each other without a pause. Every promise is checked all the time
// (checked_traffic.h), over each path. VIADUCT_STORM_SECONDS sets the duration, VIADUCT_SEED the
// storm.
#include <signal.h>
#include <sys/wait.h>

#include <algorithm>
#include <atomic>
#include <mutex>
#include <string_view>
#include <thread>

#include "base/random.h"
#include "process/checked_traffic.h"
#include "process/pair.h"
#include "process/seeds.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class StormOverProcesses : public ::testing::TestWithParam<DataPath> {
 protected:
  // A process, the survivor's traffic with it, and the time of its next fault.
  struct Victim {
    std::string name;
    std::unique_ptr<Process> process;
    std::unique_ptr<CheckedTraffic> traffic;
    Clock::time_point next = {};
    bool stopped = false;
    std::uint64_t verified_before = 0;  // by its traffic, before this session or process
  };

  void SetUp() override {
    auto opened = Agent::open({.name = "survivor",
                               .backends = {GetParam().backend},
                               .ofi_provider = GetParam().provider,
                               .detect = detect_,
                               .grace = kStormGrace});
    ASSERT_TRUE(opened) << opened.error().text();
    agent_.emplace(*std::move(opened));
    for (const char* name : {"anna", "boris", "clara"}) {
      Victim& victim = victims_.emplace_back();
      victim.name = name;
      victim.traffic =
          std::make_unique<CheckedTraffic>(*agent_, name, GetParam().heap, random_.next(),
                                           [this](const std::string& what) { violated(what); });
      start(victim);
    }
    notes_ = std::jthread([this](const std::stop_token& over) {
      while (!over.stop_requested())
        if (const auto note = agent_->waitNote(20ms))
          for (const Victim& victim : victims_)
            if (victim.name == note->from) victim.traffic->take(*note);
    });
  }

  void violated(const std::string& what) {
    const std::lock_guard lock(mutex_);
    ADD_FAILURE() << "VIADUCT_SEED=" << seed_ << ": " << what;
    over_ = true;
  }

  void start(Victim& victim) {
    const DataPath& path = GetParam();
    victim.process = std::make_unique<Process>(std::vector<std::string>{kTrafficPeer});
    victim.process->send(victim.name + " " + path.backend + (path.heap ? " heap " : " allocate ") +
                         std::to_string(random_.next()) + " " +
                         (*path.provider == 0 ? "-" : path.provider) + " " +
                         std::to_string(detect_.count()) + " " + toHex(agent_->exportCard()));
    victim.stopped = false;
    victim.verified_before = victim.traffic->verified();
  }

  // Reads the victim's violations. Only this test may end the victim.
  void listen(Victim& victim) {
    while (const auto line = victim.process->answer(0ms))
      if (*line != "ready") violated(victim.name + ": " + *line);
    if (victim.process->ended()) endedByItself(victim);
  }

  // UCX 1.13 aborts a process that loses a connection while it is made: docs/gotchas/ucx.md.
  void endedByItself(Victim& victim) {
    const int end = victim.process->end();
    if (!isUcx() || !WIFSIGNALED(end) || WTERMSIG(end) != SIGABRT)
      return violated(victim.name + " has ended by itself, " +
                      (WIFSIGNALED(end) ? "signal " + std::to_string(WTERMSIG(end))
                                        : "exit status " + std::to_string(WEXITSTATUS(end))));
    ++aborted_;
    start(victim);
  }

  // Stops, continues or kills a victim. A short stop falls into its work; a long one ends its
  // session.
  void befall(Victim& victim) {
    listen(victim);
    // Most processes and sessions first get the time to begin copying.
    const bool begins = victim.traffic->verified() == victim.verified_before;
    if (!victim.stopped && begins && (isUcx() || random_.chance(0.95))) return wait(victim, 40ms);
    const bool kills = random_.chance(0.15);
    if (victim.stopped) {
      victim.stopped = false;
      if (!kills) victim.process->resume();
    } else if (!kills) {
      if (!victim.process->stops()) return endedByItself(victim);
      victim.stopped = true;
      ++stops_;
    }
    if (kills) {
      victim.process->kill();
      ++kills_;
      start(victim);
    }
    const bool loses = victim.stopped && random_.chance(0.2);
    if (loses) victim.verified_before = victim.traffic->verified();
    wait(victim, loses ? 2 * detect_ : 40ms);
  }
  void wait(Victim& victim, std::chrono::microseconds most) {
    const auto random = random_.below(static_cast<std::uint64_t>(most.count()));
    victim.next = Clock::now() + std::chrono::microseconds(random);
  }

  void blow(std::chrono::seconds seconds) {
    for (const auto end = Clock::now() + seconds; Clock::now() < end && !over_;) {
      Victim& next =
          *std::min_element(victims_.begin(), victims_.end(),
                            [](const auto& a, const auto& b) { return a.next < b.next; });
      std::this_thread::sleep_until(next.next);
      befall(next);
    }
  }

  // Continues all victims, and expects that each works with the survivor again.
  void calm() {
    for (Victim& victim : victims_)
      if (std::exchange(victim.stopped, false)) victim.process->resume();
    for (Victim& victim : victims_) {
      const auto before = victim.traffic->verified();
      const auto end = Clock::now() + 5min;
      while (victim.traffic->verified() < before + 5 && Clock::now() < end && !over_)
        std::this_thread::sleep_for(1ms);
      EXPECT_GE(victim.traffic->verified(), before + 5) << victim.name << " does not come back";
    }
  }

  // Ends both sides, which check all memory a last time.
  void countUp() {
    for (Victim& victim : victims_) {
      victim.traffic->stop();
      listen(victim);
      victim.process->send("end");
      std::string answer = "ready";
      while (answer == "ready") answer = victim.process->answer(5min).value_or("nothing");
      EXPECT_TRUE(answer.starts_with("counted")) << victim.name << ": " << answer;
      std::printf("%s: here %s\n", victim.name.c_str(), victim.traffic->counts().c_str());
      std::printf("%s: there %s\n", victim.name.c_str(), answer.c_str());
    }
    std::printf("%d stops, %d kills, %d ended by UCX\n", stops_, kills_, aborted_);
  }

  static bool isUcx() { return std::string_view(GetParam().backend) == "ucx"; }

  // A short detection time ends many sessions. UCX gets twice as long: UCX 1.13 aborts a process
  // that loses a connection while it is made (docs/gotchas/ucx.md).
  const std::chrono::milliseconds detect_ = isUcx() ? 2000ms : 1000ms;
  const std::uint64_t seed_ = fromEnvironment("VIADUCT_SEED", 1);
  base::Random random_{seed_};
  std::optional<Agent> agent_;
  std::vector<Victim> victims_;
  std::jthread notes_;
  std::mutex mutex_;
  std::atomic<bool> over_ = false;
  int stops_ = 0, kills_ = 0, aborted_ = 0;
};

TEST_P(StormOverProcesses, BreaksNoPromise) {
  const std::uint64_t seconds = fromEnvironment("VIADUCT_STORM_SECONDS", 2);
  std::printf("VIADUCT_SEED=%llu, %llu s\n", static_cast<unsigned long long>(seed_),
              static_cast<unsigned long long>(seconds));
  blow(std::chrono::seconds(seconds));
  calm();
  countUp();
}

INSTANTIATE_TEST_SUITE_P(Ways, StormOverProcesses, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
