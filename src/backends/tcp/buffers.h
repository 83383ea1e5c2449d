// The large buffers of a rail's sockets, from a pool. A socket that sleeps between frames holds
// none, so idle links cost little memory. Threads: those of the rail; no two rails share buffers.
#pragma once

#include <sys/uio.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "backends/tcp/wire.h"
#include "base/checked_copy.h"
#include "base/net/record_keys.h"

namespace viaduct::tcp {

inline constexpr std::size_t kStagingBytes = std::size_t{32} << 10U;
inline constexpr std::size_t kScrapBytes = std::size_t{64} << 10U;
// The most control frames that are sent in front of another frame.
inline constexpr std::size_t kMaxControl = 16;

// The state of receiving: heads and small payloads arrive in `staging`, and other bytes at their
// final place.
struct InBuffer {
  std::array<std::byte, kStagingBytes> staging;
  std::array<iovec, kMaxEntries + 1> iov;
  std::array<std::uint32_t, kMaxEntries> slot;
};

// A frame that is being sent. FrameWriter fills it.
struct OutFrame {
  enum class FrameKind : std::uint8_t {
    kControl,
    kWrite,
    kRequest,
    kAnswer
  } kind = FrameKind::kControl;
  std::array<std::byte,
             kMaxControl*(kHeadBytes + base::kTagBytes) + kMaxHeadBytes + base::kTagBytes>
      head;
  std::array<iovec, kMaxEntries + 2> iov;  // head, payload, trailer
  std::array<std::uint32_t, kMaxEntries + 2> slot;
  std::array<std::byte, kTrailerBytes + base::kTagBytes> trailer;
  std::uint64_t trailer_number = 0;  // RecordKeys::reserve(); FrameStatus is added
  std::size_t head_bytes = 0;
  std::size_t pieces = 0;  // entries of `iov` in use
};

// Records that are being sent, and those that arrive: see records.h.
struct SealedRecords {
  std::array<std::byte, kRecordsAtOnce*(kRecordHead + kRecordBytes + base::kTagBytes)> bytes;
};

// A peer's READ request that waits for its answer.
struct RequestBuffer {
  std::array<FrameEntry, kMaxEntries> entries;
};

template <class T>
class Pool {
 public:
  std::unique_ptr<T> take() {
    if (spare_.empty()) return std::make_unique<T>();
    auto out = std::move(spare_.back());
    spare_.pop_back();
    return out;
  }
  void give(std::unique_ptr<T> one) {
    if (one && spare_.size() < kKept) spare_.push_back(std::move(one));
  }

 private:
  static constexpr std::size_t kKept = 16;
  std::vector<std::unique_ptr<T>> spare_;
};

struct Buffers {
  Pool<InBuffer> in;
  Pool<OutFrame> out;
  Pool<RequestBuffer> requests;
  Pool<SealedRecords> records;
  // Copies from staging to pinned memory, which may have been unmapped.
  base::CheckedCopy copy;
  // The target of payload that is dropped, such as that of refused frames.
  std::unique_ptr<std::array<std::byte, kScrapBytes>> scrap =
      std::make_unique<std::array<std::byte, kScrapBytes>>();
};

}  // namespace viaduct::tcp
