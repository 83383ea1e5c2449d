// Two agents with two RDMA devices each, in the guest of `./dev check --verbs`: near1 and near2
// here, connected to far1 and far2. Rails carry a transfer together; one fails in the middle, comes
// back, and is used again.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <viaduct/viaduct.h>

#include <chrono>
#include <cstdlib>
#include <cstring>
#include <iostream>
#include <optional>
#include <string>
#include <vector>

#include "host/nearness.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 48 << 20;

class VerbsRails : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_NO_FATAL_FAILURE(open(a_, "a", {"near1", "near2"}));
    ASSERT_NO_FATAL_FAILURE(open(b_, "b", {"far1", "far2"}));
    auto peer = a_->importCard(b_->exportCard());
    ASSERT_TRUE(peer) << peer.error().text();
    b_at_a_ = *peer;
    const auto ready = b_at_a_->ready(20s);
    ASSERT_TRUE(ready) << ready.error().text();
    auto here = a_->allocate(kBytes);
    auto there = b_->allocate(kBytes, {.label = "there"});
    ASSERT_TRUE(here && there);
    here_ = *std::move(here);
    there_ = *std::move(there);
    const auto known = b_at_a_->waitPin("there", 20s);
    ASSERT_TRUE(known) << known.error().text();
  }
  static void open(std::optional<Agent>& agent, const char* name, std::vector<std::string> rails) {
    Settings settings;
    settings.name = name;
    settings.backends = {"ofi"};
    settings.ofi_provider = "verbs;ofi_rxm";
    settings.rails = std::move(rails);
    auto opened = Agent::open(settings);
    ASSERT_TRUE(opened) << opened.error().text();
    agent = *std::move(opened);
  }
  Result<Transfer> plan(OpKind kind) {
    const auto all = [](const Pin& pin) {
      return Selection{
          .blocks = *Blocks::strided({.base = pin.info().address, .bytes = kBytes, .count = 1})};
    };
    return a_->plan(kind, *b_at_a_, all(*here_), all(*there_), {.require = "rdma"});
  }
  // Makes every piece differ from other places and earlier rounds.
  static void fill(const Pin& pin, std::uint64_t salt) {
    constexpr std::uint64_t kApart = 512;
    for (std::uint64_t at = 0; at < kBytes; at += kApart) {
      const std::uint64_t word = (at + (salt << 40U) + 1) * 0x9e3779b97f4a7c15U;
      std::memcpy(&pin.bytes()[at], &word, sizeof word);
    }
  }
  bool same() const {
    return std::memcmp(here_->bytes().data(), there_->bytes().data(), kBytes) == 0;
  }
  // Changes the second rail by the guest's program /rail.
  static void secondRail(const std::string& fate) {
    ASSERT_EQ(std::system(("/rail " + fate + " 2").c_str()), 0) << fate;
  }
  static std::uint64_t carriedBy(const Path& path, const std::string& rail) {
    std::uint64_t bytes = 0;
    for (const PathShare& share : path.shares) bytes += share.rail == rail ? share.bytes : 0;
    return bytes;
  }
  static bool both(const Path& path);
  void goesOverBoth(Transfer& transfer, OpKind kind);
  void survives(Transfer& transfer, const std::string& fate);

  std::optional<Agent> a_, b_;
  std::optional<Peer> b_at_a_;
  std::optional<Pin> here_, there_;
  std::uint64_t salt_ = 0;
};

bool VerbsRails::both(const Path& path) {
  return carriedBy(path, "rxe_near1") > 0 && carriedBy(path, "rxe_near2") > 0;
}

// Posts again and again, checking every byte, until both rails have carried some.
void VerbsRails::goesOverBoth(Transfer& transfer, OpKind kind) {
  const auto begun = Clock::now();
  do {
    fill(kind == OpKind::kWrite ? *here_ : *there_, ++salt_);
    ASSERT_TRUE(transfer.post());
    const auto done = transfer.wait(30s);
    ASSERT_TRUE(done) << done.error().text();
    ASSERT_TRUE(same());
  } while (!both(transfer.path()) && Clock::now() - begun < 30s);
  const Path path = transfer.path();
  std::cout << opKindName(kind) << " carried by " << path.text() << "\n";
  EXPECT_TRUE(both(path));
  EXPECT_EQ(carriedBy(path, "rxe_near1") + carriedBy(path, "rxe_near2"), kBytes);
  for (const PathShare& share : path.shares) EXPECT_EQ(share.way, "verbs;ofi_rxm");
}

// When memory is registered, the backend asks which rails are nearest to it, although the program
// may not have touched a page yet.
TEST_F(VerbsRails, PagesOfMemoryAreInPlaceOnceItIsPinned) {
  constexpr std::size_t kSome = 4 << 20;
  void* const memory =
      ::mmap(nullptr, kSome, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  EXPECT_EQ(host::nodeOfMemory(memory, kSome), -1);
  {
    const auto pin = a_->pin(Segment::host(memory, kSome));
    ASSERT_TRUE(pin) << pin.error().text();
    EXPECT_EQ(host::nodeOfMemory(memory, kSome), 0);
  }
  ::munmap(memory, kSome);
}

TEST_F(VerbsRails, TogetherTheyCarryEveryByteAndThePathSaysWhich) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    auto transfer = plan(kind);
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_NO_FATAL_FAILURE(goesOverBoth(*transfer, kind));
  }
}

void VerbsRails::survives(Transfer& transfer, const std::string& fate) {
  ASSERT_NO_FATAL_FAILURE(goesOverBoth(transfer, OpKind::kWrite));
  fill(*here_, ++salt_);
  ASSERT_TRUE(transfer.post());
  const auto begun = Clock::now();
  while (!both(transfer.path()) && Clock::now() - begun < 20s) transfer.poll();
  ASSERT_TRUE(both(transfer.path())) << transfer.path().text();
  ASSERT_NO_FATAL_FAILURE(secondRail(fate));
  ASSERT_EQ(transfer.end().state, TransferState::kRunning) << "it was too short to fail a rail in";
  const auto failed = Clock::now();
  const auto done = transfer.wait(30s);
  const std::chrono::duration<double> took = Clock::now() - failed;
  std::cout << "with a rail that is " << fate << " it ended after " << took.count()
            << " s: " << transfer.path().text() << "\n";
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(same());
}

TEST_F(VerbsRails, ASilentRailIsReplacedAndComesBack) {
  auto transfer = plan(OpKind::kWrite);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_NO_FATAL_FAILURE(survives(*transfer, "silent"));
  ASSERT_NO_FATAL_FAILURE(secondRail("heard"));
  goesOverBoth(*transfer, OpKind::kWrite);
}

// This test is the last, because an rxe device does not recover from it (docs/gotchas/verbs.md).
TEST_F(VerbsRails, ARailThatGoesDownIsReplaced) {
  auto transfer = plan(OpKind::kWrite);
  ASSERT_TRUE(transfer) << transfer.error().text();
  survives(*transfer, "down");
}

}  // namespace
}  // namespace viaduct
