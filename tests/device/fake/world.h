// Everything that the fake driver knows in this process. It exists until the process ends. Threads:
// any that hold the lock.
#pragma once

#include <sys/types.h>

#include <condition_variable>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "device/fake/address_space.h"
#include "device/fake/configuration.h"
#include "device/fake/faults.h"
#include "device/fake/memory_map.h"
#include "device/fake/streams.h"

namespace viaduct::fakegpu {

// Objects with handles. A handle is a number that looks like a pointer. No handle is used twice.
template <class Object>
class Registry {
 public:
  explicit Registry(std::uint64_t first) : next_(first) {}

  template <class Handle>
  Handle add(std::shared_ptr<Object> object) {
    next_ += 16;
    objects_[next_] = std::move(object);
    return Handle(next_);
  }
  template <class Handle>
  std::shared_ptr<Object> find(Handle handle) const {
    const auto found = objects_.find(std::uint64_t(handle));
    return found == objects_.end() ? nullptr : found->second;
  }
  template <class Handle>
  void remove(Handle handle) {
    objects_.erase(std::uint64_t(handle));
  }
  // Removes the objects of a context that has ended.
  void removeOf(const Context& context) {
    std::erase_if(objects_, [&](const auto& one) { return one.second->context == &context; });
  }
  std::size_t size() const { return objects_.size(); }
  const std::map<std::uint64_t, std::shared_ptr<Object>>& objects() const { return objects_; }

 private:
  std::uint64_t next_;
  std::map<std::uint64_t, std::shared_ptr<Object>> objects_;
};

// A primary context. It stays in memory after its end, so that old handles are recognised.
struct Context {
  int device = 0;
  bool alive = true;
  int retained = 0;
  CUresult failure = CUresult::kSuccess;  // every later call returns it
  std::set<int> peers = {};               // devices whose memory kernels may use
  std::shared_ptr<Stream> null_stream = {};
};

struct Device {
  Context* primary = nullptr;  // while it is retained
  std::uint64_t used = 0;      // bytes
};

struct Event {
  Context* context = nullptr;
  Moment moment = {};
};

struct Pool {
  int device = 0;
  CUmemHandleType types = CUmemHandleType::kNone;
  bool is_default = false;
};

struct Kernel;

// A loaded module.
struct Module {
  Context* context = nullptr;
  std::set<std::string> kernels = {};
  unsigned most_threads = 1024;  // of a group: the PTX's .maxntid
};
struct Function {
  const Kernel* kernel = nullptr;
  unsigned most_threads = 0;
};

struct World {
  std::mutex mutex;
  std::condition_variable changed;  // a stream went on

  ::pid_t process = 0;  // the one that called cuInit
  Configuration configuration = {};
  Faults faults = {};
  std::vector<Device> devices = {};
  std::vector<std::unique_ptr<Context>> contexts = {};
  AddressSpace addresses = {};
  MemoryMap memory = {};
  bool paused = false;  // streams begin no work
  std::uint64_t streams_made = 0;
  std::uint64_t copied = 0;           // bytes, by copies
  std::uint64_t copied_pageable = 0;  // of these, from or to host memory that is not registered
  std::uint64_t copied_by_kernels = 0;

  bool has(CUdevice one) const { return one >= 0 && one < static_cast<int>(devices.size()); }
  Device& device(CUdevice one) { return devices[static_cast<std::size_t>(one)]; }

  Registry<Stream> streams{0x510000000000};
  Registry<Event> events{0x520000000000};
  Registry<Memory> handles{0x530000000000};
  Registry<Pool> pools{0x540000000000};
  Registry<Module> modules{0x550000000000};
  Registry<const Function> functions{0x560000000000};
};

World& world();

// Holds the world's lock.
class Lock {
 public:
  explicit Lock(World& world) : world_(world), lock_(world.mutex) {}

  template <class Condition>
  void wait(Condition condition) {
    world_.changed.wait(lock_, condition);
  }
  // Runs `body` without the lock.
  template <class Body>
  auto without(Body body) {
    lock_.unlock();
    auto result = body();
    lock_.lock();
    return result;
  }

 private:
  World& world_;
  std::unique_lock<std::mutex> lock_;
};

}  // namespace viaduct::fakegpu
