// Posts the jobs of one channel to its endpoint, within a window, with one flush behind each batch.
// An op counts as moved only when the flush behind it has ended. Threads: those of the channel's
// rail.
#pragma once

#include <span>
#include <string_view>
#include <vector>

#include "base/poller.h"
#include "move/class_queue.h"
#include "move/endpoint.h"
#include "move/fixed_queue.h"
#include "move/job_table.h"
#include "move/own_pins.h"
#include "move/peer_pins.h"

namespace viaduct::move {

class Poster {
 public:
  static constexpr std::uint32_t kBatchPieces = 256;

  struct Seed {
    std::string_view device;     // the backend's name, for errors
    const base::Poller& poller;  // for the time
    const OwnPins& own;
    const PeerPins& remote;
    std::size_t rail = 0;           // index of our rail
    std::size_t key = 0;            // index of the peer's rail, which has its own key of each pin
    std::span<Piece> scratch = {};  // room for kBatchPieces, used within one call at a time
  };
  explicit Poster(const Seed& seed) : seed_(seed) {}

  void add(Job& job) { ready_.push(job); }
  void stop(Job& job);  // as Carrier::stop()
  void keysHaveCome() { ready_.append(parked_); }
  // Pins of the peer whose keys jobs wait for, and that nobody has requested yet.
  bool wantsKeys() const { return !wanted_keys_.empty(); }
  std::vector<std::uint32_t> takeWantedKeys() { return std::exchange(wanted_keys_, {}); }

  void push(Endpoint& endpoint);  // posts as many ops as the window has room for
  // Confirms the batches whose flush has ended; true if there was one. Call it after progress(),
  // because a flush may end at once on an endpoint that has just failed.
  bool reap(Endpoint& endpoint);
  // Call it before the endpoint is destroyed. Unconfirmed ops will be posted again, but only after
  // settle(), which means that the peer's endpoint is closed too.
  void rewind(Endpoint& endpoint);
  void settle();
  void forgetJobs() { ready_ = parked_ = held_ = {}; }  // the JobTable keeps them

  bool idle() const { return batches_.empty(); }
  // The endpoint accepted nothing although jobs wait, and no event will tell when it does.
  bool starved() const { return idle() && !ready_.empty(); }
  Clock::time_point lastMoved() const { return last_moved_; }
  // A path without an answer for longer than this counts as silent. At the recent speed, the bytes
  // in flight would have taken a fraction of this time.
  Duration patience() const;

 private:
  struct PostedPart {  // a part of a job that one flush confirms
    Job* job = nullptr;
    std::size_t first_op = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint32_t ops = 0, pieces = 0, injected = 0, batches = 0;
    bool waits = false;  // the job waits for a key
  };
  struct Batch {
    Flush flush = {};
    std::uint32_t entries = 0, pieces = 0;
    std::uint64_t bytes = 0, background = 0;
  };
  struct PinTarget {  // key and range of one pin of the peer
    RemoteKey key = nullptr;
    std::uint64_t address = 0, bytes = 0;
  };
  enum class Found : std::uint8_t { kYes, kLater, kNever };

  static constexpr std::uint32_t kWindowPieces = 1024;
  static constexpr std::uint64_t kBatchBytes = 1 << 20, kWindowBytes = 4 << 20;

  bool room() const;
  bool pushOne(Endpoint& endpoint, Job& job);
  PostedPart post(Endpoint& endpoint, Job& job);
  std::span<const Piece> cut(Job& job, std::uint32_t slot, const PinTarget& to,
                             std::uint64_t room) const;
  bool postRun(Endpoint& endpoint, Job& job, std::uint32_t slot, const PinTarget& to,
               PostedPart& entry);
  Found find(Endpoint& endpoint, Job& job, std::uint32_t slot, PinTarget& out);
  void seal(Endpoint& endpoint);
  void confirm(const Batch& batch, Clock::time_point now);

  const Seed seed_;
  ClassQueue ready_;   // jobs with ops left to post
  ClassQueue parked_;  // jobs that wait for a key
  ClassQueue held_;    // stopped jobs that wait for settle()
  std::vector<std::uint32_t> wanted_keys_;
  FixedQueue<PostedPart, 256> entries_;
  FixedQueue<Batch, 64> batches_;
  Batch open_;  // posted, but its flush is not posted yet
  std::uint32_t pieces_ = 0;
  std::uint64_t bytes_ = 0, background_ = 0;
  Clock::time_point last_moved_{};
  double bytes_per_s_ = 0;
};

}  // namespace viaduct::move
