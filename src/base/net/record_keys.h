// The keys and nonces of one direction of one connection. Both ends count alike, so no nonce
// travels. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "base/net/aead.h"

namespace viaduct::base {

// The blocks of 16 bytes after which a key is replaced: 64 GiB. The limit for AES-GCM of TLS
// (RFC 8446, 5.5) is 2^34.5 blocks.
inline constexpr std::uint64_t kBlocksPerKey = std::uint64_t{1} << 32U;

// The processor time that sealing and opening took, of all RecordKeys that share this object. It is
// an estimate: a few calls are timed, and each of them counts for many. Threads: any.
class SealingTime {
 public:
  std::chrono::nanoseconds total() const {
    return std::chrono::nanoseconds(total_.load(std::memory_order_relaxed));
  }
  void add(std::chrono::nanoseconds time) {
    total_.fetch_add(time.count(), std::memory_order_relaxed);
  }

 private:
  std::atomic<std::int64_t> total_{0};
};

// The nonce of each record comes from the next number. HKDF derives the next key from a key, which
// is then wiped. So an attacker who learns a key later cannot read earlier records.
class RecordKeys {
 public:
  // `secret` must be of this direction of this socket alone. `blocks_per_key` is smaller in tests.
  // `time` outlives the object; null: nothing is timed.
  static Result<std::unique_ptr<RecordKeys>> open(std::unique_ptr<Aead> aead, const Key& secret,
                                                  std::uint64_t blocks_per_key = kBlocksPerKey,
                                                  SealingTime* time = nullptr);
  ~RecordKeys() { wipe(secret_); }
  RecordKeys(const RecordKeys&) = delete;
  RecordKeys& operator=(const RecordKeys&) = delete;

  // As Aead::seal() and open(), with the next number. False also in a child of fork(), which would
  // use the numbers of its parent again.
  bool seal(ByteSpan aad, ByteSpan text, std::byte* to, std::byte* tag);
  bool open(ByteSpan aad, ByteSpan sealed, std::byte* to, const std::byte* tag);
  // For a message that may still change before it is sent: takes one number for each of its
  // `variants`. The sent variant has its own number, so that no number seals two variants.
  std::uint64_t reserve(std::uint64_t variants) { return take(variants, variants); }
  bool sealAt(std::uint64_t number, ByteSpan aad, std::byte* tag);
  bool openAt(std::uint64_t number, ByteSpan aad, const std::byte* tag);

 private:
  RecordKeys(std::unique_ptr<Aead> aead, const Key& secret, std::uint64_t blocks_per_key,
             SealingTime* time);
  bool useNext();
  std::uint64_t take(std::uint64_t count, std::uint64_t blocks);
  Nonce nonceOf(std::uint64_t number) const;
  bool usable() const;
  template <class Call>
  bool timed(Call call);

  std::unique_ptr<Aead> aead_;
  Key secret_;  // of the next key
  Nonce iv_ = {};
  const std::uint64_t blocks_per_key_;
  std::uint64_t blocks_ = 0, number_ = 0;
  const std::uint64_t forks_;
  bool good_ = true;
  SealingTime* const time_;
  std::uint64_t calls_ = 0;
};

}  // namespace viaduct::base
