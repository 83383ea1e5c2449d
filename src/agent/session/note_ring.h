// A ring of notes in memory that two processes share, beside their session. One end puts notes in.
// The other end, which made the ring, takes them out. The sender's heartbeats are counted there
// too. docs/design/0008-notes-through-a-ring.md.
// Threads: one at a time at each end; both ends at once.
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

// The longest note that the ring accepts. A longer note costs more to copy than to send as a frame.
inline constexpr std::size_t kMaxRingNote = 2048;

// The shared page. The other process may write anything anywhere in it.
struct RingPage {
  static constexpr std::size_t kStep = 16;  // entries begin at multiples of it
  static constexpr std::size_t kBytes = 16384 - 192;

  // `written` and `taken` count bytes from the creation of the ring. Each has a cache line of its
  // own.
  alignas(64) std::atomic<std::uint64_t> written{0};  // by the sender
  std::atomic<std::uint64_t> beats{0};                // heartbeats of the sender
  alignas(64) std::atomic<std::uint64_t> taken{0};    // by the receiver
  // 1: the receiver sleeps. A sender that puts a note in sets 0, and then signals the eventfd.
  alignas(64) std::atomic<std::uint32_t> armed{1};
  alignas(64) std::array<std::byte, kBytes> data;

  // An entry is this header, then the bytes of the note, or the payload of the frame of a mark, of
  // a returned lease, or of a parcel.
  enum class EntryKind : std::uint32_t { kNote, kMark, kLeaseReturned, kParcel };
  struct NoteHeader {
    std::uint32_t bytes = 0;
    EntryKind kind = EntryKind::kNote;
    std::uint64_t frames = 0;  // frames of the session that were sent before this entry
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

  // The descriptors for the peer: the page, and the eventfd that it signals.
  std::array<int, 2> fds() const { return {memory_.fd(), bell_.get()}; }
  void wasSent() { memory_.closeFile(); }
  int bell() const { return bell_.get(); }

  // Takes the next entry. kLater: it was sent after more than `frames` frames of the
  // session.
  enum class Next : std::uint8_t { kNote, kMark, kLeaseReturned, kParcel, kEmpty, kLater, kBroken };
  Next take(std::uint64_t frames, base::Bytes& note);
  // Returns what take() would return, and takes no note.
  Next look(std::uint64_t frames) const;

  // From now on the next note signals the eventfd. Call look() afterwards, since a note may have
  // come before.
  void arm() { page().armed.store(1); }
  bool armed() const { return page().armed.load() != 0; }
  // The next note does not signal the eventfd, because a polling thread looks often enough.
  void disarm() { page().armed.store(0, std::memory_order_relaxed); }

  // Whether the sender has counted a heartbeat since the last call.
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
  // Maps the page that the peer has sent.
  static Result<RingSender> map(const base::Fd& page, base::Fd bell);

  // False: the note is too long or there is no room, so send it as a frame. Notes come out in the
  // order in which they were put in.
  bool put(std::uint64_t frames, std::span<const std::byte> note,
           RingPage::EntryKind kind = RingPage::EntryKind::kNote);
  void beat() { page().beats.store(++beats_, std::memory_order_relaxed); }

 private:
  RingSender(base::SharedMemory memory, base::SharedOrder order, base::Fd bell);
  RingPage& page() const { return *reinterpret_cast<RingPage*>(memory_.data()); }
  bool hasRoom(std::uint64_t bytes);
  void ring() const;

  base::SharedMemory memory_;
  base::SharedOrder order_;
  base::Fd bell_;
  // written_ is exact. taken_ is the receiver's count at the time of its last reading.
  std::uint64_t written_ = 0, taken_ = 0;
  std::uint64_t beats_ = 0;
};

}  // namespace viaduct::agent
