// Streams: each has a thread that does its work in order. Work of different streams runs in any
// order, after random delays. Threads: any that hold the world's lock.
#pragma once

#include <algorithm>
#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <random>
#include <vector>

#include "device/fake/driver_types.h"

namespace viaduct::fakegpu {

struct Context;
struct World;
class Stream;
class Lock;

// The moment when a stream has done its first `count` pieces of work.
struct Moment {
  std::shared_ptr<Stream> stream = {};
  std::uint64_t count = 0;
  bool reached() const;
};

// One piece of work. `run` is called without the lock, and not at all after a failure in its
// context, unless `always`.
struct Work {
  std::function<CUresult()> run = {};
  std::vector<Moment> after = {};
  bool always = false;
  bool is_copy = false;
};

class Stream : public std::enable_shared_from_this<Stream> {
 public:
  Stream(World& world, Context& context, bool blocking, std::uint64_t seed);

  // Starts the thread, which ends after close() and the last work.
  void start();
  Moment add(Work work);
  void close();

  Context& context() const { return context_; }
  // Whether work on the null stream waits for work on this stream, and the reverse.
  bool blocking() const { return blocking_; }
  Moment last() { return Moment{shared_from_this(), added_}; }
  std::uint64_t done() const { return done_; }
  std::size_t queuedCopies() const { return std::ranges::count_if(queue_, &Work::is_copy); }

 private:
  void work();
  void runOne(Lock& lock);
  void linger();

  World& world_;
  Context& context_;
  bool blocking_;
  bool closing_ = false;
  std::uint64_t added_ = 0;
  std::uint64_t done_ = 0;
  std::deque<Work> queue_;
  std::minstd_rand random_;
};

std::shared_ptr<Stream> makeStream(World& world, Context& context, bool blocking);

// Adds work to the stream, or to the context's null stream if the handle is null. kInvalidHandle:
// there is no such stream.
CUresult enqueue(World& world, Context& context, CUstream handle, Work work,
                 Moment* moment = nullptr);
// The stream of a handle, or null.
std::shared_ptr<Stream> streamOf(World& world, Context& context, CUstream handle);

// Waits for a moment, or for all work that was added so far, and returns the context's failure.
CUresult waitFor(Lock& lock, const Moment& moment);
void drain(World& world, Lock& lock);

}  // namespace viaduct::fakegpu
