// The streams of marks with one peer, in the current life of its session. Threads: under the
// agent's lock, unless a comment says otherwise.
#pragma once

#include <viaduct/mark_stream.h>
#include <viaduct/result.h>

#include <atomic>
#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/attempt.h"

namespace viaduct::agent {

class PeerImpl;

// This end of an open stream.
class MarkStreamImpl final : public std::enable_shared_from_this<MarkStreamImpl> {
 public:
  MarkStreamImpl(std::shared_ptr<PeerImpl> peer, MarkStreamOptions options);

  PeerImpl& peer() const { return *peer_; }
  std::uint64_t number() const { return options_.number; }
  std::uint32_t size() const { return options_.marks; }
  // The next two need no lock. Data written before a mark is visible to a thread that sees the
  // mark.
  bool has(std::uint32_t mark) const {
    return mark < size() &&
           (bits_[mark / kBits].load(std::memory_order_acquire) >> mark % kBits & 1U) != 0;
  }
  std::uint32_t count() const { return count_.load(std::memory_order_acquire); }

  // Adds a mark below size(). False: the mark was there already.
  bool add(std::uint32_t mark);
  void end(const Error& why) {
    if (!ended_) ended_ = why;
  }
  const std::optional<Error>& ended() const { return ended_; }
  // Whether each end has told the other that it has ended the stream.
  bool told = false, peer_ended = false;
  base::Watchers watchers;
  // The callback; none if there is none, or if it waits to be run already.
  std::function<void()> takeCallback();

 private:
  static constexpr std::uint32_t kBits = 64;
  const std::shared_ptr<PeerImpl> peer_;
  const MarkStreamOptions options_;
  std::vector<std::atomic<std::uint64_t>> bits_;
  std::atomic<std::uint32_t> count_{0};
  std::optional<Error> ended_;
  std::atomic<bool> owed_{false};
};

// The table of a peer's streams. It keeps marks of streams that are not open yet, up to a limit,
// and then drops the oldest of these streams. The numbers of the last streams that were closed or
// dropped are remembered, so that a late mark is not taken for one of a new stream.
class PeerMarks {
 public:
  static constexpr std::size_t kMaxEarlyBytes = std::size_t{1} << 20U;
  static constexpr std::size_t kRemembered = 1024;

  void begin();  // a new life
  // Returns the open streams and forgets them, because the life is over.
  std::vector<MarkStreamImpl*> lose();

  MarkStreamImpl* find(std::uint64_t number) const;
  std::size_t open() const { return open_.size(); }
  // Adds the stream, and gives it the marks that came before.
  Status open(MarkStreamImpl& stream);
  bool hasEarly(std::uint64_t number) const { return early_by_number_.contains(number); }
  std::size_t earlyBytes() const { return early_bytes_; }
  // False: the stream was not open any more.
  bool close(const MarkStreamImpl& stream);

  // Keep what came for a stream that is not open. True: an earlier stream was dropped.
  bool keep(const Mark& mark);
  bool keepEnd(std::uint64_t number, const Error& why);
  // True, once for each stream: this end had closed it when the peer ended it.
  bool endedAfterClose(std::uint64_t number);

 private:
  struct Early {
    std::uint64_t number = 0;
    std::vector<std::uint64_t> bits = {};
    std::optional<Error> ended = {};
    std::size_t cost() const;
  };
  struct Retired {
    std::uint64_t number = 0;
    bool dropped = false, answered = false;
  };
  template <class Change>
  bool change(std::uint64_t number, Change what);
  Retired* retired(std::uint64_t number);
  void retire(std::uint64_t number, bool dropped);
  void forgetEarly(std::list<Early>::iterator early);

  std::unordered_map<std::uint64_t, MarkStreamImpl*> open_;
  std::list<Early> early_;  // the oldest first
  std::unordered_map<std::uint64_t, std::list<Early>::iterator> early_by_number_;
  std::size_t early_bytes_ = 0;
  std::vector<Retired> retired_;  // a ring buffer
  std::size_t next_retired_ = 0;
};

}  // namespace viaduct::agent
