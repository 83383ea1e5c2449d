// Which memory is behind each device address, and which host memory is registered. Threads: one at
// a time.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <string>

#include "device/fake/driver_types.h"

namespace viaduct::fakegpu {

struct Context;

// Memory of a device: an anonymous file, which other processes can map too. Its name has the
// device and the handle types, for those processes.
class Memory {
 public:
  // Null: the system has no more descriptors or memory.
  static std::shared_ptr<Memory> create(int device, std::size_t bytes, CUmemHandleType types);
  // Takes ownership of the descriptor. Null: the descriptor is no memory of a fake device.
  static std::shared_ptr<Memory> adopt(int file);
  ~Memory();
  Memory(const Memory&) = delete;
  Memory& operator=(const Memory&) = delete;

  int file() const { return file_; }
  int device() const { return device_; }
  std::size_t bytes() const { return bytes_; }
  bool exportsAs(CUmemHandleType type) const;
  CUmemHandleType types() const { return types_; }
  bool imported() const { return imported_; }

 private:
  Memory(int file, int device, std::size_t bytes, CUmemHandleType types, bool imported)
      : file_(file), device_(device), bytes_(bytes), types_(types), imported_(imported) {}

  int file_;
  int device_;
  std::size_t bytes_;
  CUmemHandleType types_;
  bool imported_;
};

enum class BlockKind { kAllocated, kManaged, kPooled, kOpened, kMapped };

// A range of device addresses with memory behind it.
struct Block {
  CUdeviceptr start = 0;
  std::size_t bytes = 0;
  BlockKind kind = BlockKind::kAllocated;
  std::shared_ptr<Memory> memory = {};
  std::uint64_t id = 0;         // BUFFER_ID
  Context* context = nullptr;   // null: of no context, as memory of cuMemCreate and pools
  std::uint64_t reading = 0;    // bit d: device d may read; only for kMapped memory
  std::uint64_t writing = 0;    // bit d: device d may write; only for kMapped memory
  CUdeviceptr reservation = 0;  // of kMapped memory
  CUmemoryPool pool = nullptr;
};

struct HostRange {
  std::size_t bytes = 0;
  bool allocated = false;  // by cuMemHostAlloc
  std::uint64_t id = 0;
  Context* context = nullptr;
};

class MemoryMap {
 public:
  std::uint64_t nextId() { return ++last_id_; }

  Block& add(Block block);
  void remove(CUdeviceptr start) { blocks_.erase(start); }
  // The block that has this address, or null.
  const Block* find(CUdeviceptr address) const;
  Block* find(CUdeviceptr address);
  const std::map<CUdeviceptr, Block>& blocks() const { return blocks_; }

  // False: a part of the range is registered already.
  bool addHost(std::uintptr_t start, const HostRange& range);
  void removeHost(std::uintptr_t start) { hosts_.erase(start); }
  // The registered range that has this address, or null, and its first address.
  const HostRange* findHost(std::uintptr_t address, std::uintptr_t* start = nullptr) const;
  bool touchesHost(std::uintptr_t start, std::size_t bytes) const;
  const std::map<std::uintptr_t, HostRange>& hosts() const { return hosts_; }

  // Ranges that cuMemAddressReserve took: start and bytes.
  std::map<CUdeviceptr, std::size_t> reservations = {};

 private:
  std::map<CUdeviceptr, Block> blocks_;
  std::map<std::uintptr_t, HostRange> hosts_;
  std::uint64_t last_id_ = 0;
};

// Whether the process maps all of the range, and may write it if `write`.
bool isHostMemory(std::uintptr_t start, std::size_t bytes, bool write);

}  // namespace viaduct::fakegpu
