// Thousands of parcels of 1 to 8 parts between 2 to 6 processes, some of which are killed, stopped
// and restarted meanwhile. Each end comes once, alike for the ranks of a group. No byte of another
// version counts as whole, and no memory or lease is kept. VIADUCT_PARCELS sets the number of
// parcels, VIADUCT_SEED the storm.
#include "process/parcel_storm.h"

#include <gtest/gtest.h>

#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "base/random.h"
#include "process/process.h"
#include "process/seeds.h"
#include "process/words.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t kInRound = 100;
constexpr auto kAnswers = 5min;
constexpr std::chrono::milliseconds kDetect{3000};
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::uint64_t kArenasKiB = 1 << 19;  // a sanitizer keeps freed memory
#else
constexpr std::uint64_t kArenasKiB = 16384;
#endif

struct StormCase {
  std::size_t processes;
  const char* backend;
};

class ParcelStorm : public ::testing::TestWithParam<StormCase> {
 protected:
  struct StormProcess {
    std::unique_ptr<Process> process = {};
    std::string card = {};
  };

  void start(std::size_t which) {
    processes_[which].process = std::make_unique<Process>(std::vector<std::string>{
        kParcelStormPeer, std::to_string(which), std::to_string(processes_.size()),
        GetParam().backend, std::to_string(kDetect.count()), std::to_string(seed_)});
    const auto card = processes_[which].process->answer(kAnswers);
    ASSERT_TRUE(card) << "process " << which << " does not start";
    processes_[which].card = *card;
  }
  // The process connects to the others before it, or to all others.
  void meet(std::size_t which, bool all) {
    std::string line = "meet";
    for (std::size_t other = 0; other < processes_.size(); ++other)
      if (other != which && (all || other < which)) line += " " + processes_[other].card;
    EXPECT_EQ(ask(which, line), "met");
  }
  void awaitAll() {
    for (std::size_t which = 0; which < processes_.size(); ++which)
      EXPECT_EQ(ask(which, "ready"), "ready");
  }
  std::string ask(std::size_t which, const std::string& line) {
    processes_[which].process->send(line);
    return answer(which);
  }
  // Returns the process's answer, and reports the violations before it. Empty: no answer came.
  std::string answer(std::size_t which) {
    while (const auto line = processes_[which].process->answer(kAnswers)) {
      if (!line->starts_with("violation")) return *line;
      ADD_FAILURE() << "process " << which << ": " << *line;
    }
    ADD_FAILURE() << "process " << which << " does not answer";
    return {};
  }

  void round(std::uint64_t first, std::size_t count) {
    for (const StormProcess& one : processes_)
      one.process->send("round " + std::to_string(first) + " " + std::to_string(count));
    const std::size_t killed = befall();
    outcomes_.clear();
    for (std::size_t which = 0; which < processes_.size(); ++which)
      if (which != killed) note(answer(which));
    judge();
    if (killed < processes_.size()) {
      start(killed);
      meet(killed, true);
    }
    if (killed < processes_.size() || stopped_) awaitAll();
  }

  // Stops or kills one process at a random moment, or none. Returns the killed one. The first
  // process is never killed: its memory is judged at the end.
  std::size_t befall() {
    stopped_ = false;
    const std::size_t none = processes_.size();
    if (!random_.chance(0.2)) return none;
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(20'000)));
    const std::size_t which = random_.below(processes_.size());
    if (which != 0 && random_.chance(0.5)) {
      processes_[which].process->kill();
      ++kills_;
      return which;
    }
    processes_[which].process->stop();
    const std::uint64_t most = random_.chance(0.2) ? 3 * kDetect / 1us : 30'000;
    std::this_thread::sleep_for(std::chrono::microseconds(random_.below(most)));
    processes_[which].process->resume();
    stopped_ = true;
    ++stops_;
    return none;
  }

  // Notes the line "ends NUMBER:OUTCOME:RANKS ..." of one process.
  void note(const std::string& ends) {
    std::istringstream in(ends);
    std::string word;
    in >> word;
    EXPECT_EQ(word, "ends");
    while (in >> word) {
      const std::size_t colon = word.find(':');
      outcomes_[std::stoull(word.substr(0, colon))].push_back(word.substr(colon + 1));
    }
  }

  // A rank that is cut off ends as lost, whatever outcome the others learn.
  void judge() {
    for (const auto& [number, ends] : outcomes_) {
      const std::string* common = nullptr;
      for (const std::string& end : ends) {
        ++ended_[end.substr(0, end.find(':'))];
        if (end == "lost") continue;
        if (common == nullptr) common = &end;
        EXPECT_EQ(end, *common) << "parcel " << number << " of seed " << seed_;
      }
    }
  }

  // The live leases of the first process, and its resident KiB.
  std::pair<std::uint64_t, std::uint64_t> kept() {
    std::istringstream in(ask(0, "kept"));
    std::string word;
    std::pair<std::uint64_t, std::uint64_t> out{~0ULL, 0};
    in >> word >> out.first >> out.second;
    return out;
  }

  const std::uint64_t seed_ = fromEnvironment("VIADUCT_SEED", 1);
  base::Random random_{seed_};
  std::vector<StormProcess> processes_{GetParam().processes};
  std::map<std::uint64_t, std::vector<std::string>> outcomes_;  // of the round, by parcel
  std::map<std::string, std::uint64_t> ended_;
  std::uint64_t kills_ = 0, stops_ = 0;
  bool stopped_ = false;
};

TEST_P(ParcelStorm, EachParcelEndsOnceAndAlikeAndLeavesNothing) {
  const std::uint64_t parcels = fromEnvironment("VIADUCT_PARCELS", 2000) / 3;
  for (std::size_t which = 0; which < processes_.size(); ++which) start(which);
  ASSERT_FALSE(HasFailure());
  for (std::size_t which = 0; which < processes_.size(); ++which) meet(which, false);
  awaitAll();
  std::uint64_t warm = 0, first = 1;
  for (; first <= parcels && !HasFailure(); first += kInRound) {
    if (warm == 0 && first > parcels / 4) warm = kept().second;
    round(first, kInRound);
  }
  const auto [leases, resident] = kept();
  EXPECT_EQ(leases, 0U);
  // Kept sessions and arenas take some memory. A parcel that left 600 bytes would show in a long
  // storm.
  EXPECT_LT(resident, warm + kArenasKiB + parcels / 16);
  std::string ends;
  std::uint64_t all = 0;
  for (const auto& [outcome, times] : ended_) {
    ends += " " + outcome + " " + std::to_string(times);
    all += times;
  }
  std::printf("%llu parcels, %llu kills, %llu stops; fetches:%s; resident KiB %llu then %llu\n",
              static_cast<unsigned long long>(first - 1), static_cast<unsigned long long>(kills_),
              static_cast<unsigned long long>(stops_), ends.c_str(),
              static_cast<unsigned long long>(warm), static_cast<unsigned long long>(resident));
  EXPECT_GT(ended_["whole"], all / 3) << "a storm in which little arrives says little";
}

INSTANTIATE_TEST_SUITE_P(Of, ParcelStorm,
                         ::testing::Values(StormCase{2, "tcp"}, StormCase{4, "local"},
                                           StormCase{6, "local"}),
                         [](const auto& of) {
                           return std::to_string(of.param.processes) + "_over_" + of.param.backend;
                         });

}  // namespace
}  // namespace viaduct::testing
