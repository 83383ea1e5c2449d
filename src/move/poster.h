// The jobs of one channel: posts their ops to the endpoint as far as the window has room, with one
// flush behind each batch, and believes nothing before its flush has ended. Threads: under the
// agent's lock.
#pragma once

#include <span>
#include <string_view>

#include "move/endpoint.h"
#include "move/fixed_queue.h"
#include "move/job_table.h"
#include "move/own_pins.h"
#include "move/peer_pins.h"

namespace viaduct::move {

// What is said to the peer, over the session.
class PosterHost {
 public:
  virtual void tell(const FabricMessage& message) = 0;
  virtual void askForKey(std::uint32_t slot) = 0;  // to the peer's pin

 protected:
  ~PosterHost() = default;
};

class Poster {
 public:
  static constexpr std::uint32_t kBatchPieces = 256;

  struct Seed {
    std::string_view device;  // for errors: the backend's name
    const OwnPins& own;
    PeerPins& remote;
    std::size_t rail = 0;           // ours
    std::size_t key = 0;            // which of a pin's keys is for its rail at the peer
    std::span<Piece> scratch = {};  // kBatchPieces, for one call at a time
  };
  Poster(PosterHost& host, const Seed& seed) : host_(host), seed_(seed) {}

  void add(Job& job) { ready_.push(job); }
  // No more of it is posted; it fails with `why` once what is under way has ended.
  void stop(Job& job, Error why);
  void stopAll(const Error& why, bool rail_lost);
  void keysHaveCome() { ready_.append(parked_); }

  void push(Endpoint& endpoint);  // posts what there is room for
  // Takes in what has ended; true: something has. After progress(), so that a flush that was over
  // at once on an endpoint that had just failed is not believed.
  bool reap(Endpoint& endpoint);
  // The endpoint is about to go. What it had not confirmed will be posted again, once settle() has
  // told that the peer's end is gone as well.
  void rewind(Endpoint& endpoint);
  void settle();
  void forgetJobs() { ready_ = parked_ = held_ = {}; }  // they are their owners' alone

  bool idle() const { return batches_.empty(); }
  // The endpoint took nothing, and no event will tell when it does.
  bool starved() const { return idle() && !ready_.empty(); }
  Clock::time_point lastMoved() const { return last_moved_; }
  // Longer without an answer than this, and the way is silent: what is under way would have taken a
  // fraction of it at the speed of late.
  Duration patience() const;

 private:
  struct PostedPart {  // a part of a job that one flush confirms
    Job* job = nullptr;
    std::size_t first_op = 0;
    std::uint64_t offset = 0, bytes = 0;
    std::uint32_t ops = 0, pieces = 0, injected = 0, batches = 0;
    bool waits = false;  // its job, for a key
  };
  struct Batch {
    Flush flush = {};
    std::uint32_t entries = 0, pieces = 0;
    std::uint64_t bytes = 0;
  };
  struct PinTarget {  // of one pin at the peer
    RemoteKey key = nullptr;
    std::uint64_t address = 0, bytes = 0;
  };
  enum class Found : std::uint8_t { kYes, kLater, kNever };

  static constexpr std::uint32_t kWindowPieces = 1024;
  static constexpr std::uint64_t kBatchBytes = 1 << 20, kWindowBytes = 4 << 20;

  bool room() const;
  bool pushOne(Endpoint& endpoint, Job& job);
  PostedPart post(Endpoint& endpoint, Job& job);
  std::span<const Piece> cut(Job& job, std::uint32_t slot, const PinTarget& to) const;
  bool postRun(Endpoint& endpoint, Job& job, std::uint32_t slot, const PinTarget& to,
               PostedPart& entry);
  Found find(Endpoint& endpoint, Job& job, std::uint32_t slot, PinTarget& out);
  void seal(Endpoint& endpoint);
  void confirm(const Batch& batch, Clock::time_point now);
  void finishIfOver(Job& job);

  PosterHost& host_;
  const Seed seed_;
  JobQueue ready_;   // with something left to post
  JobQueue parked_;  // that wait for a key
  JobQueue held_;    // stopped, and not settled
  FixedQueue<PostedPart, 256> entries_;
  FixedQueue<Batch, 64> batches_;
  Batch open_;  // posted and not flushed yet
  std::uint32_t pieces_ = 0;
  std::uint64_t bytes_ = 0;
  Clock::time_point last_moved_{};
  double bytes_per_s_ = 0;
};

}  // namespace viaduct::move
