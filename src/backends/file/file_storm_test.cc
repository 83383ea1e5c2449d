// Posts, cancels and releases at random: each post ends once, and nothing touches its memory then.
#include <algorithm>
#include <cstdlib>

#include "backends/file/file_testing.h"
#include "base/random.h"

namespace viaduct::testing {
namespace {

constexpr std::uint64_t kFileBytes = 4U << 20U;

class FileStorm : public FileTest, public ::testing::WithParamInterface<std::string> {
 protected:
  // A transfer of random ranges, aligned or not, between a file and memory of its own.
  struct Flight {
    std::optional<Pin> file;
    std::optional<Pin> memory;
    std::optional<Transfer> transfer;
    bool quiet = false;  // filled after the transfer's end, and must not change
  };

  void renew(Flight& flight, int number) {
    flight.transfer.reset();
    if (!flight.memory) flight.memory = allocated(kFileBytes);
    if (!flight.file) flight.file = pinned(Segment::file(path(std::to_string(number))));
    std::vector<Extent> here, there;
    for (std::uint64_t at = dice_.below(4096); at < kFileBytes;) {
      const std::uint64_t bytes = std::min(
          kFileBytes - at, dice_.chance(0.5) ? std::uint64_t{65536} : 1 + dice_.below(200'000));
      here.push_back({flight.memory->info().address + at, bytes});
      there.push_back({flight.file->info().address + at, bytes});
      at += bytes + (dice_.chance(0.3) ? dice_.below(9000) : 0);
    }
    auto made = agent_->plan(dice_.chance(0.5) ? OpKind::kRead : OpKind::kWrite, *self_,
                             {.blocks = *Blocks::list(here)}, {.blocks = *Blocks::list(there)});
    ASSERT_TRUE(made) << made.error().text();
    flight.transfer.emplace(*std::move(made));
  }

  void step(Flight& flight, int number) {
    if (!flight.transfer) return renew(flight, number);
    if (flight.transfer->state() != TransferState::kRunning) {
      checkQuiet(flight);
      flight.quiet = false;
      if (dice_.chance(0.2)) return renew(flight, number);
      ASSERT_TRUE(flight.transfer->post()) << number;
      return;
    }
    if (dice_.chance(0.3)) flight.transfer->cancel();
    if (dice_.chance(0.1)) {
      const Status released = flight.file->release();
      EXPECT_TRUE(released) << released.error().text();
      flight.file.reset();
    }
    if (!flight.file || dice_.chance(0.6)) finish(flight);
    if (!flight.file) flight.transfer.reset();
  }

  void finish(Flight& flight) {
    const Status waited = flight.transfer->wait();
    const bool expected = waited || waited.error().code == Code::kCancelled ||
                          (!flight.file && waited.error().code == Code::kDenied);
    EXPECT_TRUE(expected) << waited.error().text();
    fillWith(flight.memory->bytes(), std::byte{0xa5});
    flight.quiet = true;
  }

  static void checkQuiet(const Flight& flight) {
    if (flight.quiet) {
      EXPECT_TRUE(allAre(flight.memory->bytes(), std::byte{0xa5})) << "touched after the end";
    }
  }

  base::Random dice_{1};
};

TEST_P(FileStorm, EndsEachPostOnceAndTouchesNoMemoryAfterwards) {
  const char* const seed = std::getenv("VIADUCT_SEED");
  const char* const rounds = std::getenv("VIADUCT_STORM_ROUNDS");
  dice_ = base::Random(seed == nullptr ? 1 : std::strtoull(seed, nullptr, 10));
  Settings with = settings(GetParam());
  with.grace = 60s;  // a busy disk may need longer than the default
  with.deadline = 300s;
  with.others["VIADUCT_FILE_QUEUE_DEPTH"] = "8";
  with.others["VIADUCT_FILE_DESCRIPTORS"] = "2";
  open(with);
  std::vector<Flight> flights(5);
  for (int i = 0; i < 5; ++i) make(std::to_string(i), kFileBytes, static_cast<std::uint64_t>(i));
  const int count = rounds == nullptr ? 300 : std::atoi(rounds);
  for (int round = 0; round < count && !HasFatalFailure(); ++round) {
    const auto number = dice_.below(flights.size());
    step(flights[number], static_cast<int>(number));
  }
  for (Flight& flight : flights)
    if (flight.transfer && flight.transfer->state() == TransferState::kRunning) finish(flight);
  for (const Flight& flight : flights) checkQuiet(flight);
}

INSTANTIATE_TEST_SUITE_P(Engines, FileStorm, ::testing::Values("auto", "threads"),
                         [](const auto& one) { return one.param; });

}  // namespace
}  // namespace viaduct::testing
