// Declares the files and objects that a NixlAgent has registered, and the agent that moves them.
// Threads: any, without the agent's lock, because the calls may block.
#pragma once

#include <viaduct/agent.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "nixl/lists.h"
#include "nixl/metadata.h"
#include "nixl/prepared.h"

namespace viaduct::nixl {

// A viaduct agent for files or for objects. It has no other peer than itself, so no other agent
// hears of a registered file or reaches it.
class StorageAgent {
 public:
  using Values = std::vector<std::pair<std::string, std::string>>;  // of settings, by variable
  // `bucket` is the bucket of all objects.
  static Result<std::shared_ptr<StorageAgent>> open(Memory memory, const std::string& name,
                                                    const Values& values, std::string bucket);
  StorageAgent(Agent agent, Peer self, Memory memory, std::string bucket)
      : memory_(memory),
        bucket_(std::move(bucket)),
        agent_(std::move(agent)),
        self_(std::move(self)) {}

  Memory memory() const { return memory_; }
  const std::string& bucket() const { return bucket_; }
  Agent& agent() { return agent_; }
  // Pins exactly these regions of DRAM and VRAM for transfers. Leaves out memory that cannot be
  // pinned any more. Costs nothing if the regions are those of the last call.
  Status pinMemory(std::shared_ptr<const std::vector<Region>> regions);
  // Ends the transfers that use the memory. Ignores a serial that is not pinned.
  Status unpinMemory(std::uint32_t serial);
  // Plans a copy between blocks of pins.
  Result<Transfer> plan(bool write, const Selection& stored, const Selection& host,
                        Priority priority);
  // The size of each object, or nothing for an absent object. Asks the store in parallel. Fails if
  // the bucket is absent.
  Result<std::vector<std::optional<std::uint64_t>>> sizesOf(std::span<const std::string> keys);
  Segment object(const std::string& key, const FileOptions& options) const {
    return Segment::object("s3://" + bucket_ + "/" + key, options);
  }

 private:
  const Memory memory_;
  const std::string bucket_;
  Agent agent_;
  Peer self_;
  std::mutex memory_mutex_;
  std::map<std::uint32_t, Pin> memory_pins_;                // by serial
  std::shared_ptr<const std::vector<Region>> last_pinned_;  // by pinMemory()
  std::optional<Error> left_out_;                           // why pinMemory() left out memory
};

// A file by its path, from a row's metadata "ro|rw[,option...]:path".
struct NamedFile {
  std::vector<std::string> words = {};
  std::string path = {};
};
// Parses the metadata of a row. Nothing: it has another form, so the row's device is a descriptor.
std::optional<NamedFile> namedFile(const std::string& metadata);

// A registered file or object. Transfers pin it, not the registration, because programs may
// register files that are still empty, and objects that do not exist yet.
class Stored {
 public:
  // Refuses a descriptor that is closed or no file. Opens a file that is named by its path, and
  // makes it if the row's metadata says so.
  static Result<std::shared_ptr<Stored>> find(const StorageAgent& agent, const MemoryRange& row,
                                              const std::string& metadata);
  // Whether this and `other` are the same file or object.
  bool isSame(const Stored& other) const { return found_.identity == other.found_.identity; }
  // Its path or URL, or the number of its descriptor.
  const std::string& text() const { return found_.text; }

  // The file or object of a row.
  struct Identified {
    Segment segment;
    std::string text;      // for people
    std::string identity;  // equal for the same file or object
  };
  explicit Stored(Identified found) : found_(std::move(found)) {}
  struct Held {
    std::shared_ptr<Pin> pin;
    std::uint64_t first = 0;  // the offset of the pin's first byte
  };
  // Pins at least this part. To write, extends a shorter file, or makes an object that ends where
  // the part ends.
  Result<Held> reach(StorageAgent& agent, const Extent& part, bool write);
  // The next transfer pins the file again: it may have been truncated.
  void drop();
  // Ends the transfers that use the file or object, and refuses later ones. Returns when no
  // transfer touches it or the memory of this process.
  Status withdraw();
  bool isWithdrawn() const;

 private:
  Status checkAccess(bool write) const;
  // Records a new pin, so that withdraw() finds it.
  Held remember(Pin pin, std::uint64_t first);

  const Identified found_;
  mutable std::mutex mutex_;
  bool withdrawn_ = false;
  Held held_;                             // of a file; empty before the first transfer
  std::vector<std::weak_ptr<Pin>> pins_;  // of transfers that still exist, and of held_
};

// The files or objects of one transfer, pinned.
struct Reached {
  Selection blocks = {};
  std::vector<std::shared_ptr<Pin>> pins = {};
};
// Pins the parts, of which `stored` has the files or objects, and translates them to blocks.
Result<Reached> reachAll(StorageAgent& agent, std::span<const Extent> parts,
                         std::span<const std::shared_ptr<Stored>> stored, bool write);

}  // namespace viaduct::nixl
