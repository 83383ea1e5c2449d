#include "base/net/record_keys.h"

#include <time.h>

#include <algorithm>
#include <utility>

#include "base/bytes.h"
#include "base/process_id.h"

namespace viaduct::base {
namespace {

// The number of blocks: one for the tag, and those of both texts.
std::uint64_t blocksOf(ByteSpan aad, ByteSpan text) {
  constexpr std::uint64_t kBlock = 16;
  return 1 + (aad.size() + kBlock - 1) / kBlock + (text.size() + kBlock - 1) / kBlock;
}

// One of kCallsATimed calls is timed, because two readings of the clock take 2 us, and a short MAC
// 40 ns. The number is a prime, so that it meets each kind of call when kinds alternate. An early
// call is timed for sockets that seal little.
constexpr std::uint64_t kCallsATimed = 509, kFirstTimed = 7;

// Reads the CPU time of this thread alone, so that the time of a preemption does not count.
std::chrono::nanoseconds threadTime() {
  timespec at{};
  ::clock_gettime(CLOCK_THREAD_CPUTIME_ID, &at);
  return std::chrono::seconds(at.tv_sec) + std::chrono::nanoseconds(at.tv_nsec);
}

// The time between two readings with nothing between them.
std::chrono::nanoseconds leastThreadTime() {
  constexpr int kTries = 64;
  auto least = std::chrono::nanoseconds::max();
  for (int i = 0; i < kTries; ++i) {
    const auto begun = threadTime();
    least = std::min(least, threadTime() - begun);
  }
  return least;
}

}  // namespace

RecordKeys::RecordKeys(std::unique_ptr<Aead> aead, const Key& secret, std::uint64_t blocks_per_key,
                       SealingTime* time)
    : aead_(std::move(aead)),
      secret_(secret),
      blocks_per_key_(blocks_per_key),
      forks_(forkGeneration()),
      time_(time) {}

Result<std::unique_ptr<RecordKeys>> RecordKeys::open(std::unique_ptr<Aead> aead, const Key& secret,
                                                     std::uint64_t blocks_per_key,
                                                     SealingTime* time) {
  std::unique_ptr<RecordKeys> keys(new RecordKeys(std::move(aead), secret, blocks_per_key, time));
  if (keys->useNext()) return keys;
  return Error{
      .code = Code::kUnsupported, .operation = "encrypt", .detail = "libcrypto refused the key"};
}

bool RecordKeys::useNext() {
  std::array<std::uint8_t, sizeof(Key) + kNonceBytes> made{};
  hkdfExpand(secret_, bytesOf("viaduct record key"), made);
  Key key{};
  std::copy_n(made.begin(), key.size(), key.begin());
  std::copy_n(made.begin() + sizeof(Key), iv_.size(), iv_.begin());
  good_ = aead_->useKey(key);
  Key next{};
  hkdfExpand(secret_, bytesOf("viaduct record next"), next);
  secret_ = next;
  blocks_ = number_ = 0;
  wipe(made);
  wipe(key);
  wipe(next);
  return good_;
}

std::uint64_t RecordKeys::take(std::uint64_t count, std::uint64_t blocks) {
  if (blocks_ + blocks > blocks_per_key_ && blocks_ > 0) useNext();
  blocks_ += blocks;
  return std::exchange(number_, number_ + count);
}

Nonce RecordKeys::nonceOf(std::uint64_t number) const {
  Nonce nonce = iv_;
  for (std::size_t i = 0; i < sizeof number; ++i)
    nonce[nonce.size() - 1 - i] ^= static_cast<std::uint8_t>(number >> (8 * i));
  return nonce;
}

bool RecordKeys::usable() const { return good_ && forkGeneration() == forks_; }

template <class Call>
bool RecordKeys::timed(Call call) {
  const bool first = ++calls_ == kFirstTimed;
  if (time_ == nullptr || (!first && calls_ % kCallsATimed != 0)) return call();
  static const std::chrono::nanoseconds reading = leastThreadTime();
  const auto begun = threadTime();
  const bool good = call();
  const auto took = threadTime() - begun - reading;
  time_->add((first ? kFirstTimed : kCallsATimed) * std::max(took, std::chrono::nanoseconds(0)));
  return good;
}

bool RecordKeys::seal(ByteSpan aad, ByteSpan text, std::byte* to, std::byte* tag) {
  const std::uint64_t number = take(1, blocksOf(aad, text));
  return usable() && timed([&] { return aead_->seal(nonceOf(number), aad, text, to, tag); });
}

bool RecordKeys::open(ByteSpan aad, ByteSpan sealed, std::byte* to, const std::byte* tag) {
  const std::uint64_t number = take(1, blocksOf(aad, sealed));
  return usable() && timed([&] { return aead_->open(nonceOf(number), aad, sealed, to, tag); });
}

bool RecordKeys::sealAt(std::uint64_t number, ByteSpan aad, std::byte* tag) {
  return usable() && timed([&] { return aead_->seal(nonceOf(number), aad, {}, nullptr, tag); });
}

bool RecordKeys::openAt(std::uint64_t number, ByteSpan aad, const std::byte* tag) {
  return usable() && timed([&] { return aead_->open(nonceOf(number), aad, {}, nullptr, tag); });
}

}  // namespace viaduct::base
