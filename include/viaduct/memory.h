// Pieces of memory, as values. Threads: plain values.
#pragma once

#include <viaduct/cxx20.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <utility>

namespace viaduct {

enum class MemoryKind : std::uint8_t { kHost, kDevice, kFile, kBlock, kObject };
const char* memoryKindName(MemoryKind kind);
// Files, block devices and objects. No pointer reaches their bytes.
constexpr bool isStorage(MemoryKind kind) { return kind >= MemoryKind::kFile; }

// The access that transfers have to the memory. Only a pin of a peer is kWriteOnly, if the Card
// grants no more.
enum class MemoryAccess : std::uint8_t { kReadWrite, kReadOnly, kWriteOnly };

// The part of a file or object that Segment::file() and object() describe.
struct FileOptions {
  std::uint64_t offset = 0;  // of the first byte
  std::uint64_t bytes = 0;   // 0: all bytes to the end
  // Makes the file if it is absent, and extends a shorter file to `offset` + `bytes`.
  bool create = false;
  bool read_only = false;
  // An open descriptor stays the caller's, who keeps it open until the Pin is released. Otherwise
  // the Pin keeps a duplicate.
  bool borrow = false;
  // A transfer that is done survives a power failure (O_SYNC). A descriptor with O_SYNC sets it.
  bool sync = false;
  // For a new object: deletes it in the background once its Pin is released. Files refuse this
  // option.
  bool temporary = false;
};

// Describes a piece of memory; it does not own it.
struct Segment {
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t device = 0;  // which GPU, for kDevice
  // Storage has no address of its own. Agent::pin gives it one that is no pointer: Pin::info().
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  int fd = -1;                  // the file; for kHost the memfd behind the memory, if it has one
  std::uint64_t fd_offset = 0;  // the offset of `address` in the file or object
  // For kHost with fd: lets peers on this host map the memfd. They can write to all of it, and keep
  // it after the Pin is gone. Set it only if the file holds nothing else. For huge pages
  // see docs/choosing.md.
  bool share_file = false;
  // kReadOnly: no transfer writes here. Agent::pin chooses it itself for host memory that this
  // process may not write.
  MemoryAccess access = MemoryAccess::kReadWrite;
  std::string path = {};  // storage: the file's path, if there is no fd; the object's URL
  bool create = false, borrow = false, sync = false, temporary = false;  // as in FileOptions
  // Set by Agent::pin and allocate: what the backend keeps about the storage or GPU memory that it
  // has opened.
  std::shared_ptr<const void> opened = {};

  // A regular file or a block device. docs/files.md
  static Segment file(std::string path, const FileOptions& options = {}) {
    Segment out = file(-1, options);
    out.path = std::move(path);
    return out;
  }
  // An open file. The Pin keeps a duplicate of the descriptor, unless the options say `borrow`.
  static Segment file(int fd, const FileOptions& options = {}) {
    return {.kind = MemoryKind::kFile,
            .bytes = options.bytes,
            .fd = fd,
            .fd_offset = options.offset,
            .access = options.read_only ? MemoryAccess::kReadOnly : MemoryAccess::kReadWrite,
            .create = options.create,
            .borrow = options.borrow,
            .sync = options.sync,
            .temporary = options.temporary};
  }
  // An object of an S3 store: "s3://bucket/key". `create`: a new object of `bytes` bytes, which one
  // transfer writes as a whole; else an existing one, to be read. docs/objects.md
  static Segment object(std::string url, const FileOptions& options = {}) {
    Segment out = file(std::move(url), options);
    out.kind = MemoryKind::kObject;
    return out;
  }
  // Memory of the GPU with this number under CUDA_VISIBLE_DEVICES. docs/gpu.md
  static Segment gpu(std::uint32_t device, std::uint64_t address, std::uint64_t bytes) {
    return {.kind = MemoryKind::kDevice, .device = device, .address = address, .bytes = bytes};
  }
  static Segment host(const void* start, std::uint64_t bytes) {
    return {.address = reinterpret_cast<std::uintptr_t>(start), .bytes = bytes};
  }
};

// A pin of this agent or of a peer.
struct PinInfo {
  std::string label = {};  // the label that its owner gave; may be empty
  MemoryKind kind = MemoryKind::kHost;
  std::uint32_t device = 0;
  std::uint64_t address = 0;
  std::uint64_t bytes = 0;
  std::uint32_t slot = 0;  // its number in the owner's table of pins
  MemoryAccess access = MemoryAccess::kReadWrite;
  friend bool operator==(const PinInfo&, const PinInfo&) = default;
};

}  // namespace viaduct
