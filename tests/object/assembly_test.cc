// Works that write one object together, without an agent: any order, faults, and early ends.
#include <algorithm>
#include <cstring>
#include <span>

#include "base/random.h"
#include "base/sizes.h"
#include "core/sink_testing.h"
#include "object/mover_testing.h"

namespace viaduct::object {
namespace {

using base::kMiB;

class AssemblyTest : public MoverFixture {
 protected:
  static constexpr std::uint64_t kBytes = 20 * kMiB + 5, kChunk = 8 * kMiB;
  static constexpr std::uint64_t kWhole = 7;  // Work::whole of most tests' works

  // Each of these works becomes one part of the upload, even if it exceeds the option `part`.
  explicit AssemblyTest(std::uint32_t retries = 8)
      : MoverFixture({.part = 5 * kMiB, .connections = 4, .retries = retries}) {
    for (std::uint64_t i = 0; i < memory_.size(); ++i) memory_[i] = i * 0x9E3779B97F4A7C15U;
    open();
    pinNew(kNew, "k", kAddress, kBytes);
  }
  core::Op opOf(std::uint64_t offset, std::uint64_t bytes, std::uint32_t slot = kNew) {
    return {.local = reinterpret_cast<std::uintptr_t>(memory_.data()) + offset,
            .remote = kAddress + offset,
            .bytes = bytes,
            .local_pin = kHost,
            .remote_pin = slot};
  }
  // Posts these bytes of the object, in two ops in reverse order.
  std::uint64_t postRange(std::uint64_t offset, std::uint64_t bytes, std::uint64_t whole = kWhole) {
    return *post(OpKind::kWrite,
                 {opOf(offset + bytes / 2, bytes - bytes / 2), opOf(offset, bytes / 2)}, whole);
  }
  std::uint64_t postChunk(std::uint64_t index, std::uint64_t whole = kWhole) {
    const std::uint64_t offset = index * kChunk;
    return postRange(offset, std::min(kChunk, kBytes - offset), whole);
  }
  void expectMoved(std::uint64_t number) {
    const auto why = wait(number);
    EXPECT_FALSE(why) << why->text();
  }
  void expectFails(std::uint64_t number, Code code, std::initializer_list<std::string_view> texts) {
    const auto why = wait(number);
    ASSERT_TRUE(why);
    EXPECT_EQ(why->code, code) << why->text();
    for (const std::string_view text : texts)
      EXPECT_NE(why->text().find(text), std::string::npos) << why->text();
  }
  void expectWritten() {
    EXPECT_EQ(tell("same kv k " + std::to_string(kBytes)), "yes");
    EXPECT_EQ(tell("uploads"), "0");
  }
  // Closes the mover, which waits for the aborts, and expects that the server keeps nothing.
  void expectNothingLeft() {
    mover_.reset();
    EXPECT_EQ(tell("uploads"), "0");
    EXPECT_EQ(tell("same kv k 1"), "absent");
  }

  std::vector<std::uint64_t> memory_ = std::vector<std::uint64_t>(kBytes / 8 + 1);
};

// A work fails at once if its request does.
class ImpatientAssemblyTest : public AssemblyTest {
 protected:
  ImpatientAssemblyTest() : AssemblyTest(0) {}
};

TEST_F(AssemblyTest, ChunksMayComeOneByOneInAnyOrder) {
  std::vector<std::uint64_t> order{0, 1, 2};
  std::uint64_t whole = 0;
  do {
    ++whole;
    for (const std::uint64_t index : order) expectMoved(postChunk(index, whole));
    mover_->giveUp(whole);
    EXPECT_EQ(tell("count PUT"), std::to_string(3 * whole)) << "each chunk is one part";
    EXPECT_EQ(tell("count POST"), std::to_string(2 * whole)) << "to create and to complete";
    expectWritten();
    tell("put kv k 8");
  } while (std::ranges::next_permutation(order).found);
  EXPECT_EQ(whole, 6U);
  EXPECT_EQ(tell("count DELETE"), "0");
}

TEST_F(AssemblyTest, OnlyTheLastWorkWaitsForTheCompletion) {
  tell("fault POST hang 1 uploadId");
  for (std::uint64_t i = 0; i < 3; ++i) postChunk(i);
  ASSERT_EQ(tell("hung 1"), "ok");
  EXPECT_EQ(tell("count POST"), "2") << "one upload, although all works came at once";
  while (ops_.size() > 1 && !HasFatalFailure()) pollOnce();
  EXPECT_EQ(tell("same kv k 1"), "absent");
  tell("release");
  expectMoved(ops_.begin()->first);
  expectWritten();
}

TEST_F(AssemblyTest, AReadAfterwardsGetsTheBytes) {
  for (std::uint64_t i = 0; i < 3; ++i) postChunk(i);
  for (std::uint64_t number = 1; number <= last_; ++number) expectMoved(number);
  pinOld(kOld, "k", kAddress);
  const std::vector<std::uint64_t> written = memory_;
  std::ranges::fill(memory_, 0);
  expectMoved(*post(OpKind::kRead, {opOf(0, kBytes, kOld)}));
  EXPECT_EQ(std::memcmp(memory_.data(), written.data(), kBytes), 0);
}

TEST_F(AssemblyTest, RepeatsRequestsInTheMiddle) {
  for (const char* fault : {"POST 500 1 uploads", "PUT 503 2 partNumber=2",
                            "PUT reset 1 partNumber=3", "POST 503 2 uploadId"})
    tell(std::string("fault ") + fault);
  for (std::uint64_t i = 0; i < 3; ++i) postChunk(i);
  for (std::uint64_t number = 1; number <= last_; ++number) expectMoved(number);
  EXPECT_EQ(tell("count PUT"), "6");
  expectWritten();
}

TEST_F(AssemblyTest, AWorkMayHaveTheWholeObject) {
  pinNew(kOther, "small", kAddress, 1000);
  expectMoved(*post(OpKind::kWrite, {opOf(0, 1000, kOther)}, 1));
  EXPECT_EQ(tell("same kv small 1000"), "yes");
  EXPECT_EQ(tell("count POST"), "0") << "one PUT is enough";
  expectMoved(postRange(0, kBytes));
  expectWritten();
}

TEST_F(AssemblyTest, ObjectsWithDifferentNumbersAreIndependent) {
  pinNew(kOther, "other", kAddress, kBytes);
  for (std::uint64_t i = 0; i < 3; ++i) {
    postChunk(i);
    post(OpKind::kWrite, {opOf(i * kChunk, std::min(kChunk, kBytes - i * kChunk), kOther)}, 8);
  }
  mover_->giveUp(9);
  for (std::uint64_t number = 1; number <= last_; ++number) expectMoved(number);
  EXPECT_EQ(tell("same kv other " + std::to_string(kBytes)), "yes");
  expectWritten();
}

TEST_F(ImpatientAssemblyTest, AFailedPartFailsTheObject) {
  tell("fault PUT 500 1 partNumber=2");
  tell("fault PUT hang 1 partNumber=3");
  expectMoved(postChunk(0));
  const std::uint64_t waiting = postChunk(2);
  ASSERT_EQ(tell("hung 1"), "ok");
  const std::initializer_list<std::string_view> text{"PUT s3://kv/k part 2 of upload", "500"};
  expectFails(postChunk(1), Code::kDevice, text);
  expectFails(waiting, Code::kDevice, text);
  expectFails(postChunk(1), Code::kDevice, text);
  EXPECT_EQ(tell("count PUT"), "3") << "the later work made no request";
  tell("release");
  expectNothingLeft();
  EXPECT_EQ(tell("count DELETE"), "1");
}

TEST_F(ImpatientAssemblyTest, AWorkWithTheWholeObjectAbortsItsUploadOnce) {
  tell("fault PUT 500 1 partNumber=2");
  expectFails(postRange(0, kBytes), Code::kDevice, {"PUT s3://kv/k part 2 of upload", "500"});
  expectNothingLeft();
  EXPECT_EQ(tell("count DELETE"), "1");
}

TEST_F(ImpatientAssemblyTest, AnUploadThatCannotBeginFailsAllWorks) {
  tell("fault POST hang 1 uploads");
  for (std::uint64_t i = 0; i < 2; ++i) postChunk(i);
  ASSERT_EQ(tell("hung 1"), "ok");
  server_.kill();
  for (std::uint64_t number = 1; number <= last_; ++number)
    expectFails(number, Code::kPeerLost, {"begin an upload of s3://kv/k"});
}

TEST_F(ImpatientAssemblyTest, AFailedCompletionFailsTheLastWork) {
  tell("fault POST error200 1 uploadId");
  for (std::uint64_t i = 0; i < 2; ++i) expectMoved(postChunk(i));
  expectFails(postChunk(2), Code::kInvalid, {"complete s3://kv/k of upload", "InternalError"});
  expectNothingLeft();
}

TEST_F(AssemblyTest, ACancelledWorkFailsTheObject) {
  expectMoved(postChunk(0));
  tell("fault PUT hang 2");
  const std::uint64_t cancelled = postChunk(1), other = postChunk(2);
  ASSERT_EQ(tell("hung 2"), "ok");
  mover_->cancel(core::testing::sinkOf(cancelled));
  expectFails(cancelled, Code::kCancelled, {"0 of 8388608 bytes had moved"});
  expectFails(other, Code::kCancelled, {"PUT s3://kv/k", "a part of it was cancelled"});
  expectFails(postChunk(1), Code::kCancelled, {"a part of it was cancelled"});
  tell("release");
  expectNothingLeft();
}

TEST_F(AssemblyTest, ACancelAbortsAnUploadThatJustBegins) {
  tell("fault POST hang 1 uploads");
  const std::uint64_t first = postChunk(0), waiting = postChunk(1);
  ASSERT_EQ(tell("hung 1"), "ok");
  mover_->cancel(core::testing::sinkOf(waiting));
  for (const std::uint64_t number : {first, waiting}) expectFails(number, Code::kCancelled, {});
  tell("fault DELETE hang 1");
  tell("release");
  ASSERT_EQ(tell("hung 2"), "ok") << "the abort has arrived";
  tell("release");
  expectNothingLeft();
  EXPECT_EQ(tell("count PUT"), "0");
}

TEST_F(AssemblyTest, ACancelDuringTheCompletionAborts) {
  tell("fault POST hang 1 uploadId");
  for (std::uint64_t i = 0; i < 2; ++i) expectMoved(postChunk(i));
  const std::uint64_t last = postChunk(2);
  ASSERT_EQ(tell("hung 1"), "ok");
  tell("fault DELETE hang 1");
  mover_->cancel(core::testing::sinkOf(last));
  expectFails(last, Code::kCancelled, {});
  ASSERT_EQ(tell("hung 2"), "ok") << "the abort has arrived";
  tell("release");
  mover_.reset();
  EXPECT_EQ(tell("uploads"), "0");
}

TEST_F(AssemblyTest, GivenUpHalfWayLeavesNoUpload) {
  expectMoved(postChunk(0));
  expectMoved(postChunk(2));
  EXPECT_EQ(tell("uploads"), "1");
  tell("fault DELETE hang 1");
  mover_->giveUp(kWhole);
  ASSERT_EQ(tell("hung 1"), "ok") << "the abort has arrived";
  tell("release");
  expectNothingLeft();
}

TEST_F(AssemblyTest, GivenUpWithAWorkInFlightCancelsIt) {
  tell("fault PUT hang 1");
  const std::uint64_t number = postChunk(0);
  ASSERT_EQ(tell("hung 1"), "ok");
  mover_->giveUp(kWhole);
  expectFails(number, Code::kCancelled, {"PUT s3://kv/k", "given it up"});
  tell("release");
  expectNothingLeft();
}

TEST_F(AssemblyTest, AClosedLinkFailsTheObjectsOfItsWorks) {
  expectMoved(postChunk(0));
  tell("fault PUT hang 2");
  const std::uint64_t closed = postChunk(1), other = postChunk(2);
  ASSERT_EQ(tell("hung 2"), "ok");
  mover_->close(*link(closed), done_);
  take(done_);
  EXPECT_FALSE(ops_.contains(closed));
  expectFails(other, Code::kCancelled, {"a part of it was cancelled"});
  tell("release");
  expectNothingLeft();
}

TEST_F(AssemblyTest, ClosingAbortsAnIncompleteObject) {
  expectMoved(postChunk(0));
  expectNothingLeft();
  EXPECT_EQ(tell("count DELETE"), "1");
}

TEST_F(AssemblyTest, ARangeThatCannotBeAPartFailsTheObject) {
  expectMoved(postChunk(0));
  expectFails(postRange(kChunk, kChunk - 1), Code::kUnsupported,
              {"PUT s3://kv/k bytes 8388608-16777214", "too small for a part"});
  expectFails(postChunk(1), Code::kUnsupported, {"bytes 8388608-16777214"});
  expectNothingLeft();
}

TEST_F(AssemblyTest, RefusesBytesThatDoNotBelongTogether) {
  pinNew(kOther, "other", kAddress, kBytes);
  std::uint64_t whole = 0;
  const auto refuses = [&](std::vector<core::Op> ops, OpKind kind, Code code,
                           std::string_view text) {
    ++whole;
    expectMoved(postChunk(0, whole));
    expectFails(*post(kind, std::move(ops), whole), code, {text});
    expectFails(postChunk(1, whole), code, {text});
  };
  using enum OpKind;
  refuses({opOf(0, kChunk)}, kWrite, Code::kInvalid, "another part has some of these bytes");
  refuses({opOf(0, 2 * kChunk)}, kWrite, Code::kInvalid, "another part has some");
  refuses({opOf(0, kBytes)}, kWrite, Code::kInvalid, "another part has some");
  refuses({opOf(kChunk, kMiB), opOf(kChunk + 2 * kMiB, 6 * kMiB)}, kWrite, Code::kUnsupported,
          "a gap or overlap");
  refuses({opOf(kChunk, kChunk, kOther)}, kWrite, Code::kInvalid,
          "the other parts are of s3://kv/k");
  refuses({opOf(kChunk, kMiB), opOf(kChunk, kMiB, kOther)}, kWrite, Code::kInvalid,
          "has to write to one object");
  refuses({opOf(kChunk, kChunk)}, kRead, Code::kInvalid, "has to write to one object");
  refuses({opOf(2 * kChunk, kChunk)}, kWrite, Code::kDenied, "not pinned");
  expectNothingLeft();
  EXPECT_EQ(tell("count DELETE"), std::to_string(whole)) << "each upload is aborted once";
}

// Random orders, cancels and ends, while the server has faults.
TEST_F(AssemblyTest, EachWorkComesBackOnceAndNoUploadStays) {
  base::Random random(11);
  for (std::uint64_t whole = 1; whole <= 12; ++whole) {
    if (random.chance(0.3)) tell("fault PUT reset 1");
    if (random.chance(0.3)) tell("fault POST 503 1");
    std::vector<std::uint64_t> order{0, 1, 2};
    std::swap(order[0], order[random.below(3)]);
    for (const std::uint64_t index : order) {
      postChunk(index, whole);
      if (random.chance(0.2)) mover_->cancel(core::testing::sinkOf(last_));
      if (random.chance(0.3)) poll();
    }
    if (random.chance(0.2)) mover_->close(*link(last_), done_);
    take(done_);
    if (random.chance(0.5))
      while (!ops_.empty() && !HasFatalFailure()) pollOnce();
    mover_->giveUp(whole);
  }
  while (!ops_.empty() && !HasFatalFailure()) pollOnce();
  EXPECT_TRUE(mover_->idle());
  mover_.reset();
  EXPECT_EQ(tell("uploads"), "0");
}

}  // namespace
}  // namespace viaduct::object
