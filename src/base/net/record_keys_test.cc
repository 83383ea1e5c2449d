#include "base/net/record_keys.h"

#include <gtest/gtest.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include <chrono>
#include <set>
#include <utility>

#include "base/bytes.h"
#include "base/net/noting_aead_testing.h"

namespace viaduct::base {
namespace {

std::unique_ptr<RecordKeys> keysOf(AeadUse use, std::uint64_t blocks_per_key = kBlocksPerKey,
                                   const Key& secret = {1}) {
  return std::move(
      *RecordKeys::open(std::move(*makeAead(AeadKind::kAesGcm, use)), secret, blocks_per_key));
}

TEST(RecordKeys, NoNonceComesTwiceUnderOneKey) {
  NotingAead::Uses uses;
  std::uint64_t sealed = 0;
  for (std::uint8_t life = 0; life < 3; ++life) {  // each socket of each life has its own secret
    const auto keys =
        std::move(*RecordKeys::open(std::make_unique<NotingAead>(uses), {life, 9}, 100));
    const Bytes text(48);
    for (int i = 0; i < 1000; ++i) {
      ASSERT_TRUE(keys->seal({}, text, nullptr, nullptr));
      const std::uint64_t number = keys->reserve(3);
      ASSERT_TRUE(keys->sealAt(number, text, nullptr));
      ASSERT_TRUE(keys->sealAt(number + 2, text, nullptr));
      sealed += 3;
    }
  }
  EXPECT_EQ(uses.size(), sealed);
  std::set<Key> keys;
  for (const auto& [use, messages] : uses) keys.insert(use.first);
  EXPECT_GT(keys.size(), 100U) << "keys were replaced";
}

TEST(RecordKeys, BothEndsReplaceTheirKeysTogether) {
  for (const std::uint64_t limit : {std::uint64_t{1}, std::uint64_t{10}, std::uint64_t{1000}}) {
    const auto sealer = keysOf(AeadUse::kSeal, limit), opener = keysOf(AeadUse::kOpen, limit);
    Bytes text(100, std::byte{3}), sealed(100), opened(100), tag(kTagBytes);
    for (std::size_t i = 0; i < 200; ++i) {
      const ByteSpan part(text.data(), i % 100);
      ASSERT_TRUE(sealer->seal(part, part, sealed.data(), tag.data()));
      ASSERT_TRUE(opener->open(part, {sealed.data(), part.size()}, opened.data(), tag.data()));
      EXPECT_TRUE(std::equal(part.begin(), part.end(), opened.begin()));
      const std::uint64_t at = sealer->reserve(3), there = opener->reserve(3);
      ASSERT_TRUE(sealer->sealAt(at + i % 3, part, tag.data()));
      ASSERT_TRUE(opener->openAt(there + i % 3, part, tag.data()));
      EXPECT_FALSE(opener->openAt(there + (i + 1) % 3, part, tag.data()));
    }
  }
}

TEST(RecordKeys, ARecordIsGoodOnceAndInItsPlace) {
  const auto sealer = keysOf(AeadUse::kSeal);
  Bytes text(10, std::byte{3}), one(10), two(10), opened(10), tag_one(kTagBytes),
      tag_two(kTagBytes);
  ASSERT_TRUE(sealer->seal({}, text, one.data(), tag_one.data()));
  ASSERT_TRUE(sealer->seal({}, text, two.data(), tag_two.data()));
  EXPECT_NE(one, two);
  const auto swapped = keysOf(AeadUse::kOpen);
  EXPECT_FALSE(swapped->open({}, two, opened.data(), tag_two.data()));
  const auto repeated = keysOf(AeadUse::kOpen);
  EXPECT_TRUE(repeated->open({}, one, opened.data(), tag_one.data()));
  EXPECT_FALSE(repeated->open({}, one, opened.data(), tag_one.data()));
  const auto other = keysOf(AeadUse::kOpen, kBlocksPerKey, {2});
  EXPECT_FALSE(other->open({}, one, opened.data(), tag_one.data())) << "another direction's key";
}

// Each call takes 20 us of the thread's processor time.
class SlowAead final : public Aead {
 public:
  bool useKey(const Key&) override { return true; }
  bool seal(const Nonce&, ByteSpan, ByteSpan, std::byte*, std::byte*) override { return spend(); }
  bool open(const Nonce&, ByteSpan, ByteSpan, std::byte*, const std::byte*) override {
    return spend();
  }
  std::string_view library() const override { return "none"; }

  std::chrono::nanoseconds spent{0};

 private:
  static std::chrono::nanoseconds now() {
    timespec at{};
    ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
    return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
  }
  bool spend() {
    const auto begun = now();
    auto took = begun - begun;
    while (took < std::chrono::microseconds(20)) took = now() - begun;
    spent += took;
    return true;
  }
};

TEST(RecordKeys, TheTimeOfAFewCallsStandsForAll) {
  auto slow = std::make_unique<SlowAead>();
  const SlowAead& aead = *slow;
  SealingTime time;
  const auto keys = std::move(*RecordKeys::open(std::move(slow), {1}, kBlocksPerKey, &time));
  Bytes text(48), tag(kTagBytes);
  for (int i = 0; i < 1400; ++i) {  // of 5,600 calls, 12 are timed
    ASSERT_TRUE(keys->seal({}, text, text.data(), tag.data()));
    ASSERT_TRUE(keys->open({}, text, text.data(), tag.data()));
    const std::uint64_t number = keys->reserve(1);
    ASSERT_TRUE(keys->sealAt(number, text, tag.data()) && keys->openAt(number, text, tag.data()));
  }
  EXPECT_GT(time.total(), aead.spent / 2);
  EXPECT_LT(time.total(), aead.spent * 2);
}

// Each byte of a number changes the nonce.
TEST(RecordKeys, LargeNumbersHaveNoncesOfTheirOwn) {
  NotingAead::Uses uses;
  const auto keys = std::move(*RecordKeys::open(std::make_unique<NotingAead>(uses), {1}));
  for (unsigned bit = 0; bit < 64; ++bit)
    ASSERT_TRUE(keys->sealAt(std::uint64_t{1} << bit, {}, nullptr));
  EXPECT_EQ(uses.size(), 64U);
}

// A child has a copy of the keys and of the numbers, so that it would use both again.
TEST(RecordKeys, AChildOfForkSealsNothing) {
  const auto keys = keysOf(AeadUse::kSeal);
  const pid_t child = ::fork();
  ASSERT_GE(child, 0);
  Bytes tag(kTagBytes);
  if (child == 0)
    ::_exit(keys->seal(tag, {}, nullptr, tag.data()) || keys->sealAt(7, tag, tag.data()) ? 1 : 0);
  int status = 0;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0);
  EXPECT_TRUE(keys->seal(tag, {}, nullptr, tag.data()));
}

}  // namespace
}  // namespace viaduct::base
