#include "move/class_queue.h"

#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <cstdint>
#include <vector>

#include "core/op.h"

namespace viaduct::move {
namespace {

constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;
constexpr std::array kAll{Priority::kUrgent, Priority::kNormal, Priority::kBackground};

class ClassQueueTest : public ::testing::Test {
 protected:
  Job& add(Priority priority) {
    Job& job = table_.add({.priority = priority}, nullptr);
    queue_.push(job);
    return job;
  }
  // Serves `bytes` of the next job, which stays in the queue. Returns its class.
  Priority serve(std::uint64_t bytes, std::uint64_t background = 0) {
    Job& job = queue_.pop(background);
    queue_.push(job);
    queue_.served(job, bytes);
    return job.work.priority;
  }

  JobTable table_;
  ClassQueue queue_;
};

TEST_F(ClassQueueTest, ServesTheHighestClassFirst) {
  for (const Priority priority : {Priority::kBackground, Priority::kNormal, Priority::kUrgent})
    add(priority);
  for (const Priority priority : kAll) {
    EXPECT_EQ(queue_.front().work.priority, priority);
    EXPECT_EQ(queue_.pop(0).work.priority, priority);
  }
  EXPECT_TRUE(queue_.empty());
}

TEST_F(ClassQueueTest, ServesOneClassInItsOrder) {
  Job& first = add(Priority::kBackground);
  Job& second = add(Priority::kBackground);
  EXPECT_EQ(&queue_.pop(0), &first);
  EXPECT_EQ(&queue_.pop(0), &second);
}

// docs/priority.md promises each class a twentieth of the bytes, even if work of higher classes
// never ends.
TEST_F(ClassQueueTest, EachClassGetsItsShareOfTheBytes) {
  for (const std::uint64_t bytes : {2 * kMiB, std::uint64_t{4096}}) {
    for (const Priority priority : kAll) add(priority);
    std::array<std::uint64_t, kPriorities> served{};
    for (std::uint64_t all = 0; all < 512 * kMiB;) {
      const Priority next = queue_.pop(0).work.priority;
      add(next);
      const std::uint64_t some = next == Priority::kUrgent ? bytes : kBackgroundTurn;
      Job like;
      like.work.priority = next;
      queue_.served(like, some);
      served[static_cast<std::size_t>(next)] += some;
      all += some;
    }
    for (const std::uint64_t one : served) EXPECT_GT(one, 512 * kMiB / 20);
    EXPECT_GT(served[0], 512 * kMiB * 4 / 5);
    while (!queue_.empty()) queue_.pop(0);
  }
}

TEST_F(ClassQueueTest, BackgroundWorkThatWaitsForNobodyOwesNothing) {
  add(Priority::kUrgent);
  for (int i = 0; i < 100; ++i) EXPECT_EQ(serve(kMiB), Priority::kUrgent);
  add(Priority::kBackground);
  EXPECT_EQ(serve(kMiB), Priority::kUrgent) << "it has not waited yet";
}

// Bytes on their way stand in front of urgent ones.
TEST_F(ClassQueueTest, FewBackgroundBytesAreOnTheirWayWhileUrgentWorkUsesTheRail) {
  add(Priority::kBackground);
  EXPECT_TRUE(queue_.mayServe(64 * kMiB));
  const auto now = Clock::now();
  table_.press(now);
  EXPECT_TRUE(queue_.mayServe(kBackgroundTurn));
  EXPECT_FALSE(queue_.mayServe(2 * kBackgroundTurn));
  add(Priority::kNormal);
  EXPECT_TRUE(queue_.mayServe(2 * kBackgroundTurn));
  EXPECT_EQ(queue_.pop(2 * kBackgroundTurn).work.priority, Priority::kNormal);
  table_.look(now + std::chrono::milliseconds(900));
  EXPECT_FALSE(queue_.mayServe(2 * kBackgroundTurn));
  table_.look(now + std::chrono::milliseconds(1100));
  EXPECT_TRUE(queue_.mayServe(2 * kBackgroundTurn));
}

TEST_F(ClassQueueTest, KeepsTheClassesWhenItIsJoinedWithAnother) {
  ClassQueue other;
  Job& late = table_.add({.priority = Priority::kBackground}, nullptr);
  other.push(late);
  Job& gone = add(Priority::kUrgent);
  Job& first = add(Priority::kBackground);
  other.append(queue_);
  other.remove(gone);
  EXPECT_TRUE(queue_.empty());
  EXPECT_EQ(&other.pop(0), &late);
  EXPECT_EQ(&other.pop(0), &first);
}

}  // namespace
}  // namespace viaduct::move
