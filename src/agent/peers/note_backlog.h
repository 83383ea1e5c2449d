// Received notes that wait for takeNote(). Each costs its bytes and its overhead, so that empty
// notes count too. One sender may use half of the limit. Threads: under the agent's lock.
#pragma once

#include <viaduct/note.h>

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace viaduct::agent {

class NoteBacklog {
 public:
  struct Sender {
    std::string name = {};
    std::uint64_t waiting = 0;  // the cost of its waiting notes
  };
  using SenderPtr = std::shared_ptr<Sender>;

  explicit NoteBacklog(std::uint64_t limit) : limit_(limit) {}

  bool empty() const { return waiting_.empty(); }
  // If false, the agent stops reading from the sender.
  bool hasRoom(const Sender& from) const { return cost_ < limit_ && from.waiting < shareOfOne(); }
  bool full() const { return cost_ >= limit_; }

  // A paused sender may still have notes in flight, and each of its sessions may leave some. So the
  // backlog accepts notes beyond the limits. It drops a note, and returns false, beyond twice the
  // limit, or twice the sender's share, plus kOfOneLife.
  bool add(const SenderPtr& from, base::Bytes bytes) {
    if (cost_ >= 2 * limit_ + kOfOneLife || from->waiting >= 2 * shareOfOne() + kOfOneLife)
      return false;
    const std::uint64_t cost = costOf(bytes);
    cost_ += cost;
    from->waiting += cost;
    waiting_.push_back({from, std::move(bytes)});
    return true;
  }

  std::optional<Note> take() {
    if (waiting_.empty()) return std::nullopt;
    Waiting& first = waiting_.front();
    const std::uint64_t cost = costOf(first.bytes);
    const bool was_full = full(), had_share = first.from->waiting >= shareOfOne();
    cost_ -= cost;
    first.from->waiting -= cost;
    if ((was_full && !full()) || (had_share && first.from->waiting < shareOfOne()))
      made_room_ = true;
    std::optional<Note> note({.from = first.from->name, .bytes = std::move(first.bytes)});
    waiting_.pop_front();
    return note;
  }

  // True: paused senders may have room again, so the agent has to check each of them.
  bool madeRoom() const { return made_room_; }
  bool forgetMadeRoom() { return std::exchange(made_room_, false); }

 private:
  struct Waiting {
    SenderPtr from;
    base::Bytes bytes;
  };
  // Beside a note's bytes: its element in the queue, and the allocator's overhead.
  static constexpr std::uint64_t kOverhead = sizeof(Waiting) + 32;
  // The notes that one session may still deliver: a ring, a socket's buffer and a frame may be full
  // of them when the sender is paused.
  static constexpr std::uint64_t kOfOneLife = std::uint64_t{4} << 20U;
  static std::uint64_t costOf(const base::Bytes& bytes) { return bytes.size() + kOverhead; }
  std::uint64_t shareOfOne() const { return limit_ - limit_ / 2; }

  const std::uint64_t limit_;
  std::deque<Waiting> waiting_;
  std::uint64_t cost_ = 0;
  bool made_room_ = false;
};

}  // namespace viaduct::agent
