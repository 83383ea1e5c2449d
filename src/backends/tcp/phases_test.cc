// Tests cancels and withdrawn pins after various numbers of moved bytes, without sockets. Withdrawn
// memory is protected, so a later access would crash.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <array>
#include <cerrno>

#include "backends/tcp/half_testing.h"
#include "support/bytes.h"

namespace viaduct::tcp {
namespace {

// Pages that a test can protect.
class Pages {
 public:
  static constexpr std::size_t kBytes = std::size_t{5} << 20U;  // two frames and a half

  explicit Pages(std::uint64_t seed)
      : at_(static_cast<std::byte*>(
            ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0))) {
    if (seed != 0) testing::fillRandom({at_, kBytes}, seed);
  }
  ~Pages() { ::munmap(at_, kBytes); }
  Pages(const Pages&) = delete;
  Pages& operator=(const Pages&) = delete;
  void forbid() { ASSERT_EQ(::mprotect(at_, kBytes, PROT_NONE), 0); }
  void forbidWrites() { ASSERT_EQ(::mprotect(at_, kBytes, PROT_READ), 0); }
  void allow() { ASSERT_EQ(::mprotect(at_, kBytes, PROT_READ | PROT_WRITE), 0); }
  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(at_); }
  std::span<const std::byte> bytes() const { return {at_, kBytes}; }

 private:
  std::byte* at_;
};

struct Case {
  OpKind kind;
  std::size_t moved;  // bytes moved in each direction before the event
};
std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << opKindName(c.kind) << " after " << c.moved;
}

class TcpPhases : public ::testing::TestWithParam<Case> {
 protected:
  TcpPhases() : here_(GetParam().kind == OpKind::kWrite ? 1 : 0), there_(2) {
    const auto generation = b_.pins.add(0, there_.address(), Pages::kBytes);
    a_.pins.add(0, here_.address(), Pages::kBytes);
    a_.remote.add(0, generation);
    for (std::size_t at = 0; at < Pages::kBytes; at += Pages::kBytes / 80)
      ops_.push_back({.local = here_.address() + at,
                      .remote = there_.address() + at,
                      .bytes = Pages::kBytes / 80});
    job_ = &a_.post(GetParam().kind, ops_);
    exchange(GetParam().moved);
  }
  // Moves up to `limit` bytes from each end, in steps that cut frames anywhere.
  bool exchange(std::size_t limit) {
    bool any = false;
    for (std::size_t moved = 0; moved < limit;) {
      const std::size_t step = std::min<std::size_t>(limit - moved, 70'001);
      const auto to_b = a_.take(step);
      EXPECT_EQ(b_.give(to_b), "");
      const auto to_a = b_.take(step);
      EXPECT_EQ(a_.give(to_a), "");
      if (to_b.empty() && to_a.empty()) break;
      any = true;
      moved += step;
    }
    return any;
  }
  void finish() { exchange(SIZE_MAX); }
  bool whole() const { return job_->moved.ops == ops_.size(); }

  Pages here_, there_;
  Half a_, b_;
  std::vector<core::Op> ops_;
  move::Job* job_ = nullptr;
};

TEST_P(TcpPhases, MovesEverything) {
  finish();
  EXPECT_TRUE(job_->ended);
  EXPECT_TRUE(whole());
  EXPECT_TRUE(testing::same(here_.bytes(), there_.bytes()));
}

TEST_P(TcpPhases, ACancelledJobEndsAndThenTouchesNoMemory) {
  a_.stop(*job_, Code::kCancelled);
  // Only frames in flight still move. After the end of the job, both memories are unused.
  while (!job_->ended) ASSERT_TRUE(exchange(10'000));
  here_.forbid();
  there_.forbid();
  finish();
  EXPECT_TRUE(whole() || job_->why->code == Code::kCancelled);
  EXPECT_EQ(job_->outstanding, 0U);
}

TEST_P(TcpPhases, ACancelDoesNotWaitForUnsentFrames) {
  a_.stop(*job_, Code::kCancelled);
  std::size_t moved = 0;
  while (!job_->ended) {
    ASSERT_TRUE(exchange(10'000));
    moved += 10'000;
  }
  EXPECT_LE(moved, (std::size_t{2} << 20U) + 50'000) << "at most the frame under way";
}

TEST_P(TcpPhases, APinWithdrawnAtTheTargetIsNotTouched) {
  b_.withdraw(0);
  there_.forbid();
  finish();
  EXPECT_TRUE(job_->ended);
  EXPECT_TRUE(whole() || job_->why->code == Code::kDenied);
}

TEST_P(TcpPhases, APinWithdrawnAtTheInitiatorIsNotTouched) {
  a_.withdraw(0);
  here_.forbid();
  finish();
  EXPECT_TRUE(job_->ended);
  EXPECT_TRUE(whole() || job_->why->code == Code::kDenied);
}

// The pin is not withdrawn, but its memory is protected. The target refuses the transfer, and later
// transfers still work.
TEST_P(TcpPhases, MemoryProtectedAtTheTargetRefusesTheTransferOnly) {
  for (const bool all : {false, true}) {
    all ? there_.forbid() : there_.forbidWrites();
    finish();
    EXPECT_TRUE(job_->ended);
    const bool touches = all || GetParam().kind == OpKind::kWrite;
    EXPECT_TRUE(whole() || (touches && job_->why->code == Code::kDenied));
    EXPECT_EQ(job_->outstanding, 0U);
    there_.allow();
    job_ = &a_.post(GetParam().kind, ops_);
    finish();
    EXPECT_TRUE(job_->ended && whole());
    EXPECT_TRUE(testing::same(here_.bytes(), there_.bytes()));
    job_ = &a_.post(GetParam().kind, ops_);
    exchange(GetParam().moved);
  }
  finish();
}

TEST_P(TcpPhases, MemoryProtectedAtTheInitiatorFailsTheTransferOnly) {
  here_.forbid();
  finish();
  EXPECT_TRUE(job_->ended);
  EXPECT_TRUE(whole() || job_->why->code == Code::kDenied);
  EXPECT_TRUE(whole() || job_->why->os_errno == EFAULT) << job_->why->text();
  EXPECT_EQ(job_->outstanding, 0U);
  here_.allow();
  move::Job& again = a_.post(GetParam().kind, ops_);
  finish();
  EXPECT_TRUE(again.ended);
  EXPECT_EQ(again.moved.ops, ops_.size());
  EXPECT_TRUE(testing::same(here_.bytes(), there_.bytes()));
}

TEST_P(TcpPhases, TheSocketWorksAfterACancel) {
  a_.stop(*job_, Code::kCancelled);
  b_.withdraw(0);
  finish();
  const auto generation = b_.pins.add(0, there_.address(), Pages::kBytes);
  a_.remote.add(0, generation);
  move::Job& again = a_.post(GetParam().kind, ops_);
  finish();
  EXPECT_TRUE(again.ended);
  EXPECT_EQ(again.moved.ops, ops_.size());
  EXPECT_TRUE(testing::same(here_.bytes(), there_.bytes()));
}

TEST_P(TcpPhases, AReusedSlotIsAnotherPin) {
  b_.withdraw(0);
  b_.pins.add(0, there_.address(), Pages::kBytes);
  finish();
  EXPECT_TRUE(job_->ended);
  EXPECT_TRUE(whole() || job_->why->code == Code::kDenied);
}

std::vector<Case> cases() {
  std::vector<Case> out;
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (const std::size_t moved :
         {0UL, 1UL, 31UL, 32UL, 33UL, 600UL, 700UL, 20'000UL, 32'768UL, 1'000'000UL, 2'097'152UL,
          2'097'824UL, 2'097'832UL, 3'000'000UL, 5'242'000UL, 5'244'600UL, 18'000'000UL})
      out.push_back({kind, moved});
  return out;
}
INSTANTIATE_TEST_SUITE_P(Every, TcpPhases, ::testing::ValuesIn(cases()));

// The peer guesses slot, generation and address of a pin.
TEST(TcpAudience, OnlyThePeerOfItsSessionReachesAPin) {
  for (const std::uint64_t session : {5U, 6U})
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
      Pages here(kind == OpKind::kWrite ? 1 : 0), there(2);
      Half a, b{core::PinRights(session)};
      const auto generation = b.pins.add(0, there.address(), Pages::kBytes,
                                         MemoryAccess::kReadWrite, core::Audience::only(5));
      a.pins.add(0, here.address(), Pages::kBytes);
      a.remote.add(0, generation);
      const core::Op op{.local = here.address(), .remote = there.address(), .bytes = 4096};
      const move::Job& job = a.post(kind, {&op, 1});
      while (!job.ended) {
        EXPECT_EQ(b.give(a.take(SIZE_MAX)), "");
        EXPECT_EQ(a.give(b.take(SIZE_MAX)), "");
      }
      EXPECT_EQ(job.why.has_value(), session != 5);
      EXPECT_EQ(testing::same(here.bytes().first(4096), there.bytes().first(4096)), session == 5);
    }
}

// The peer of a limited session names each pin, in each direction. The rights are those of the slot
// at the time of the access.
TEST(TcpRights, ALimitedPeerReachesWhatItsCardGrants) {
  for (const core::PinRight right :
       {core::PinRight{}, {.read = true}, {.write = true}, {.read = true, .write = true}})
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
      Pages here(kind == OpKind::kWrite ? 1 : 0), there(2);
      Half a, b{core::PinRights(5, /*limited=*/true)};
      a.pins.add(0, here.address(), Pages::kBytes);
      a.remote.add(0, b.pins.add(0, there.address(), Pages::kBytes));
      b.rights.grant(0, right);
      const bool granted = kind == OpKind::kWrite ? right.write : right.read;
      const core::Op op{.local = here.address(), .remote = there.address(), .bytes = 4096};
      for (const bool withdrawn : {false, true}) {
        if (withdrawn) b.rights.grant(0, {});
        const move::Job& job = a.post(kind, {&op, 1});
        while (!job.ended) {
          EXPECT_EQ(b.give(a.take(SIZE_MAX)), "");
          EXPECT_EQ(a.give(b.take(SIZE_MAX)), "");
        }
        EXPECT_EQ(job.why.has_value(), withdrawn || !granted);
      }
      EXPECT_EQ(testing::same(here.bytes().first(4096), there.bytes().first(4096)), granted);
    }
}

// The peer ignores that the pin is read-only.
TEST(TcpDenied, AReadOnlyPinCanBeReadButNotWritten) {
  Half a, b;
  std::array<std::byte, 64> here{}, there{};
  there.fill(std::byte{7});
  const auto address = [](auto& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); };
  a.pins.add(0, address(here), here.size());
  a.remote.add(0, b.pins.add(0, address(there), there.size(), MemoryAccess::kReadOnly));
  const std::vector ops{core::Op{.local = address(here), .remote = address(there), .bytes = 64}};
  const auto moved = [&](OpKind kind) {
    move::Job& job = a.post(kind, ops);
    while (!job.ended) {
      EXPECT_EQ(b.give(a.take(SIZE_MAX)), "");
      EXPECT_EQ(a.give(b.take(SIZE_MAX)), "");
    }
    return !job.why.has_value();
  };
  EXPECT_FALSE(moved(OpKind::kWrite));
  EXPECT_EQ(there[0], std::byte{7});
  EXPECT_TRUE(moved(OpKind::kRead));
  EXPECT_EQ(here, there);
}

// The peer remembers a pin that was released. Its slot has another pin of the same memory.
TEST(TcpDenied, AnEarlierPinOfASlotIsNotReached) {
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    Half a, b;
    std::array<std::byte, 64> here{}, there{};
    const auto address = [](auto& bytes) { return reinterpret_cast<std::uintptr_t>(bytes.data()); };
    a.pins.add(0, address(here), here.size());
    a.remote.add(0, b.pins.add(0, address(there), there.size()));
    b.withdraw(0);
    b.pins.add(0, address(there), there.size());
    const core::Op op{.local = address(here), .remote = address(there), .bytes = 64};
    const move::Job& job = a.post(kind, {&op, 1});
    while (!job.ended) {
      EXPECT_EQ(b.give(a.take(SIZE_MAX)), "");
      EXPECT_EQ(a.give(b.take(SIZE_MAX)), "");
    }
    EXPECT_EQ(job.moved.bytes, 0U);
    EXPECT_TRUE(job.why);
  }
}

// The memory was never pinned.
TEST(TcpDenied, UnpinnedLocalMemoryIsNotSent) {
  Half a;
  a.remote.add(0, 1);
  const std::vector ops{core::Op{.local = 4096, .remote = 4096, .bytes = 8}};
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
    move::Job& job = a.post(kind, ops);
    EXPECT_TRUE(a.take(100).empty());
    EXPECT_TRUE(job.ended);
    EXPECT_EQ(job.why->code, Code::kDenied);
  }
}

TEST(TcpDenied, NothingIsSentForAnUnpinnedTarget) {
  Half a;
  std::array<std::byte, 8> word{};
  const auto at = reinterpret_cast<std::uintptr_t>(word.data());
  a.pins.add(0, at, 8);
  const std::vector ops{core::Op{.local = at, .remote = 4096, .bytes = 8}};
  move::Job& job = a.post(OpKind::kWrite, ops);
  EXPECT_TRUE(a.take(100).empty());
  EXPECT_TRUE(job.ended);
  EXPECT_NE(job.why->detail.find("withdrawn"), std::string::npos);
}

}  // namespace
}  // namespace viaduct::tcp
