// What a backend over a fabric library gives: for each rail a Domain, which registers memory and
// opens Endpoints. Everything else such backends have in common stands beside this. Threads: under
// the agent's lock.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "base/bytes.h"

namespace viaduct::move {

using base::Bytes;

// Memory that peers reach through one Domain, until this is gone.
class Registration {
 public:
  explicit Registration(Bytes key) : key_(std::move(key)) {}
  virtual ~Registration() = default;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  const Bytes& key() const { return key_; }  // what peers need, packed
  // False: its memory was found to have changed, and is reached no more.
  virtual bool usable() const { return true; }

 private:
  Bytes key_;
};

// One contiguous copy, or a part of one.
struct Piece {
  std::byte* here = nullptr;
  std::uint64_t there = 0;  // the peer's address
  std::uint64_t bytes = 0;
  const Registration* local = nullptr;  // that `here` lies in; none: nothing is registered
};

// What of a span went, from its front; fewer: no more now, try after progress().
struct Posted {
  std::uint32_t pieces = 0;
  std::uint32_t injected = 0;  // of them: with their bytes in the order itself
};

// Tells when everything that was posted before it is visible at the other side.
struct Flush {
  void* request = nullptr;  // none: was over at once
};

// A peer's key to some memory, made ready for one endpoint; belongs to it.
using RemoteKey = const void*;

// One rail's connection to one session of one peer, and all that is behind it. When this is gone,
// so is every socket and queue it had: nothing that the peer has sent reaches memory here any more,
// and nothing here is read for it.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual const Bytes& address() const = 0;  // for the peer's join()
  // Readable when there is something to do, once arm() was true. -1: no such thing; call
  // progress() by the clock.
  virtual int fd() const = 0;
  // It tells of what comes in at any time; false: from arm() to disarm().
  virtual bool tellsUnarmed() const = 0;
  // Connects to the peer's endpoint. Returns before it is known whether the path works.
  virtual Status join(const Bytes& peer) = 0;
  virtual const std::string& transport() const = 0;         // "tcp", "rc_mlx5": after join()
  virtual const std::string& transportDevices() const = 0;  // "tcp/eth0": the same with devices

  // A peer's key made ready; null: it is not one. `generation` is of the peer's pin, and 0 is of no
  // pin. retire(): it will not be used again, and goes with the next sweep().
  virtual RemoteKey keyOf(std::uint32_t generation, const Bytes& packed) = 0;
  virtual void retire(std::uint32_t generation) = 0;
  virtual void sweep() = 0;  // while nothing is in flight

  // These never block. What was taken is over when a flush behind it is, or when this is gone.
  virtual Posted post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) = 0;
  virtual Flush flush() = 0;
  virtual bool ended(Flush& flush) = 0;  // looks at broken() as well; after progress()
  virtual void letGo(Flush& flush) = 0;  // of one that nobody waits for any more
  virtual bool progress() = 0;           // true: something has happened
  // True: fd() tells of the next event. False: call progress() first.
  virtual bool arm() = 0;
  virtual void disarm() = 0;  // it need not any more

  // Set once the library has given the connection up. With errno EFAULT: the peer named memory here
  // that has changed since it was pinned, and whose registration is no longer usable().
  virtual std::optional<Error> broken() const = 0;
};

// A range that is to be registered.
struct MemoryRange {
  std::uint64_t address = 0, bytes = 0;
  MemoryAccess access = MemoryAccess::kReadWrite;  // of the peer, and of our own READs
};

// What is open for one rail.
class Domain {
 public:
  virtual ~Domain() = default;
  Domain() = default;
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  // Listens from now on; does nothing before join().
  virtual Result<std::unique_ptr<Endpoint>> open() const = 0;
  virtual Result<std::unique_ptr<Registration>> add(const MemoryRange& range) const = 0;
};

}  // namespace viaduct::move
