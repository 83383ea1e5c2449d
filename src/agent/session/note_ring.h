// A ring of notes in memory that two processes share, beside their session: one end puts notes in,
// the other, which made it, takes them out. The sender's heartbeats are counted there too.
// docs/design/0008-notes-through-a-ring.md, docs/design/0019-heartbeats-in-shared-memory.md.
// Threads: each end by one at a time; the two ends at once.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <utility>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/shared_memory.h"
#include "base/shared_order.h"

namespace viaduct::agent {

// What a peer must know to use it; another number is another layout.
inline constexpr std::uint32_t kRingLayout = 1;
// The longest note that goes through the ring; a longer one costs more to copy than to send.
inline constexpr std::size_t kMaxRingNote = 2048;

// The shared page. Whoever is at the other end may write anything anywhere in it.
struct RingPage {
  static constexpr std::size_t kStep = 16;  // entries begin at multiples of it
  static constexpr std::size_t kBytes = 16384 - 192;

  // Each on a line of its own. Both count bytes, from the beginning of the ring's life.
  alignas(64) std::atomic<std::uint64_t> written{0};  // the sender's
  std::atomic<std::uint64_t> beats{0};                // the sender's heartbeats
  alignas(64) std::atomic<std::uint64_t> taken{0};    // the receiver's
  // 1: the receiver reads `beats`. A release that does not know them leaves 0.
  std::atomic<std::uint32_t> reads_beats{1};
  // 1: the receiver does not look. Whoever puts a note in makes it 0, and then rings.
  alignas(64) std::atomic<std::uint32_t> armed{1};
  alignas(64) std::array<std::byte, kBytes> data;

  // An entry: this, then the note's bytes.
  struct NoteHeader {
    std::uint32_t bytes = 0;
    std::uint32_t zero = 0;
    std::uint64_t frames = 0;  // of the session, that were sent before this note
  };
};
static_assert(sizeof(RingPage) == 16384 && offsetof(RingPage, data) == 192);
static_assert(sizeof(RingPage::NoteHeader) == RingPage::kStep &&
                  RingPage::kBytes % RingPage::kStep == 0,
              "an entry's head is in one piece");
static_assert(std::atomic<std::uint64_t>::is_always_lock_free, "it lives in two processes");

// The receiver's end.
class RingReceiver {
 public:
  static Result<RingReceiver> make();

  // For the peer: the page, and the eventfd that it is to ring.
  std::array<int, 2> fds() const { return {memory_.fd(), bell_.get()}; }
  void wasSent() { memory_.closeFile(); }
  int bell() const { return bell_.get(); }

  // Takes the next note out, unless it was sent after more than `frames` frames of the session.
  enum class Next : std::uint8_t { kNote, kEmpty, kLater, kBroken };
  Next take(std::uint64_t frames, base::Bytes& note);
  // What take() would give.
  Next look(std::uint64_t frames) const;

  // From now on the next note rings; one that look() finds may have come without.
  void arm() { page().armed.store(1); }
  bool armed() const { return page().armed.load() != 0; }
  // Somebody looks often enough.
  void disarm() { page().armed.store(0, std::memory_order_relaxed); }

  // Whether the sender has beaten since the last call.
  bool hasBeaten() {
    const std::uint64_t beats = page().beats.load(std::memory_order_relaxed);
    return std::exchange(beats_, beats) != beats;
  }

 private:
  RingReceiver(base::SharedMemory memory, base::Fd bell);
  RingPage& page() const { return *reinterpret_cast<RingPage*>(memory_.data()); }
  Next look(std::uint64_t frames, RingPage::NoteHeader& entry) const;

  base::SharedMemory memory_;
  base::SharedOrder order_;
  base::Fd bell_;
  std::uint64_t taken_ = 0, beats_ = 0;
};

// The sender's end.
class RingSender {
 public:
  // What came from the peer.
  static Result<RingSender> map(const base::Fd& page, base::Fd bell);

  // False when the note is too long or there is no room: it goes another way. Notes that were put
  // in come out in order.
  bool put(std::uint64_t frames, std::span<const std::byte> note);
  // False when the receiver does not look for heartbeats here: they go another way.
  bool beat() {
    if (page().reads_beats.load(std::memory_order_relaxed) == 0) return false;
    page().beats.store(++beats_, std::memory_order_relaxed);
    return true;
  }

 private:
  RingSender(base::SharedMemory memory, base::SharedOrder order, base::Fd bell);
  RingPage& page() const { return *reinterpret_cast<RingPage*>(memory_.data()); }
  bool hasRoom(std::uint64_t bytes);
  void ring() const;

  base::SharedMemory memory_;
  base::SharedOrder order_;
  base::Fd bell_;
  std::uint64_t written_ = 0, taken_ = 0;  // ours, and what we last saw of the other's
  std::uint64_t beats_ = 0;
};

}  // namespace viaduct::agent
