// The storage of one device: its files or objects, and a copy of their bytes in memory. Checks fill
// and compare the copy. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <utility>

#include "measure/workload/buffer.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

// The blocks of one transfer.
struct StoredSet {
  std::uint32_t part = 0;   // the stream's part of the device's storage
  std::uint64_t first = 0;  // the number of the first block in this part
  std::uint64_t at = 0;     // the offset of the first block in Storage::bytes()
};

class Storage {
 public:
  // Opens or makes the storage of device `number` for all rows of `spec`, which has to outlive it.
  // `self` is the agent as its own peer, and ready.
  static Result<std::unique_ptr<Storage>> make(Agent& agent, const Peer& self, const Spec& spec,
                                               const DeviceBytes& bytes, std::uint32_t number);
  virtual ~Storage() = default;
  Storage(const Storage&) = delete;
  Storage& operator=(const Storage&) = delete;

  std::span<std::byte> bytes() const { return copy_.bytes(); }
  // True if the contents are the user's, and stay as they are.
  virtual bool isGiven() const { return false; }
  // Begins a row. Later calls are about the blocks of this row.
  virtual Status begin(const Workload& row) = 0;
  // Returns the blocks of a set, in the order of their numbers. A row of reads needs a store() of
  // the set before.
  virtual Result<Blocks> blocks(const StoredSet& set) = 0;
  // store() writes a set's blocks from bytes() into the storage. load() reads them into bytes().
  virtual Status store(const StoredSet& set) = 0;
  virtual Status load(const StoredSet& set) = 0;
  // Waits until the device has all that was stored, and drops it from the page cache if the
  // transfers do not use the page cache.
  virtual Status settle() { return Ok{}; }

 protected:
  static constexpr std::chrono::seconds kAnnounced{10};  // limit for waitPin() of own pins
  explicit Storage(Buffer copy) : copy_(std::move(copy)) {}
  Buffer copy_;
};

// Checks the files before a run: names, rights, sizes and free room on this host, for all members
// (`local`) or for one. Leaves nothing behind. A spec without files passes.
Status filesSuffice(const Spec& spec, bool local);

}  // namespace viaduct::measure
