// The interface that a backend over a fabric library implements. Each rail has a Domain, which
// registers memory and opens Endpoints. Such backends share poster.h and the files fabric_*.h.
// Threads: an Endpoint has those of its rail. A Domain is used under the agent's lock.
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

// A registration of memory with one Domain. Its destructor unregisters the memory, but a peer with
// an open Endpoint may still reach the memory for a while.
class Registration {
 public:
  explicit Registration(Bytes key) : key_(std::move(key)) {}
  virtual ~Registration() = default;
  Registration(const Registration&) = delete;
  Registration& operator=(const Registration&) = delete;
  const Bytes& key() const { return key_; }  // the packed key that peers need
  // False if the memory was unmapped or protected since. Peers cannot reach it any more.
  virtual bool usable() const { return true; }

 private:
  Bytes key_;
};

// One contiguous copy, or a part of one.
struct Piece {
  std::byte* here = nullptr;
  std::uint64_t there = 0;  // address in the peer's memory
  std::uint64_t bytes = 0;
  const Registration* local = nullptr;  // contains `here`; null if that memory is not registered
};

// The result of Endpoint::post(): how many pieces from the front of the span were accepted. The
// caller posts the others after progress().
struct Posted {
  std::uint32_t pieces = 0;
  std::uint32_t injected = 0;  // pieces among them whose work request contained the bytes
};

// Ends once all pieces that were posted before it are complete. Their written bytes are then
// visible at the peer.
struct Flush {
  void* request = nullptr;  // null if the flush ended at once
};

// A peer's key to some memory, unpacked for one endpoint, which owns it.
using RemoteKey = const void*;

// One rail's connection to one session of one peer, with all its sockets and queues. The destructor
// closes them. Afterwards the peer neither writes nor reads this process's memory through it.
class Endpoint {
 public:
  virtual ~Endpoint() = default;
  Endpoint() = default;
  Endpoint(const Endpoint&) = delete;
  Endpoint& operator=(const Endpoint&) = delete;

  virtual const Bytes& address() const = 0;  // argument of the peer's join()
  // Becomes readable at the next event, once arm() has returned true. -1 means that there is no
  // descriptor: call progress() at intervals.
  virtual int fd() const = 0;
  // True: fd() reports incoming data at any time. False: only between arm() and disarm().
  virtual bool tellsUnarmed() const = 0;
  // Starts to connect to the peer's endpoint. Ok does not mean that the path works.
  virtual Status join(const Bytes& peer) = 0;
  virtual const std::string& transport() const = 0;         // "tcp", "rc_mlx5"; valid after join()
  virtual const std::string& transportDevices() const = 0;  // "tcp/eth0"; valid after join()

  // Unpacks a peer's key; null if it is malformed. `generation` identifies the peer's pin; 0 is the
  // probe's key. A retired key is not used again, and the next sweep() frees it.
  virtual RemoteKey keyOf(std::uint32_t generation, const Bytes& packed) = 0;
  virtual void retire(std::uint32_t generation) = 0;
  virtual void sweep() = 0;  // call it only while nothing is in flight

  // The functions below never block. An accepted piece ends when a later flush ends, or with the
  // endpoint.
  virtual Posted post(OpKind kind, std::span<const Piece> pieces, RemoteKey key) = 0;
  virtual Flush flush() = 0;
  virtual bool ended(Flush& flush) = 0;  // call it after progress(); false once broken() is set
  virtual void letGo(Flush& flush) = 0;  // frees a flush that nobody waits for any more
  virtual bool progress() = 0;           // true if something has happened
  // True: fd() becomes readable at the next event. False: call progress() first.
  virtual bool arm() = 0;
  virtual void disarm() = 0;  // undoes arm()

  // Set once the connection has failed. os_errno EFAULT means that the peer named memory of this
  // process that was unmapped or protected since. That registration is not usable() any more.
  virtual std::optional<Error> broken() const = 0;
};

// A range of memory to register.
struct MemoryRange {
  std::uint64_t address = 0, bytes = 0;
  bool remote_read = true, remote_write = true;  // the peer's rights
  bool writable = true;                          // our own READs may write here
};

// The opened device of one rail.
class Domain {
 public:
  virtual ~Domain() = default;
  Domain() = default;
  Domain(const Domain&) = delete;
  Domain& operator=(const Domain&) = delete;
  // The endpoint may listen from now on. It moves no data before join().
  virtual Result<std::unique_ptr<Endpoint>> open() const = 0;
  virtual Result<std::unique_ptr<Registration>> add(const MemoryRange& range) const = 0;
};

}  // namespace viaduct::move
