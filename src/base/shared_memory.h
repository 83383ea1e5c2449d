// Memory behind a file descriptor, so that another process can map it. Threads: one owner; the
// users synchronise access to the bytes.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"

namespace viaduct::base {

// A mapped memfd. A seal forbids shrinking it.
class SharedMemory {
 public:
  struct Options {
    bool huge_pages = false;       // 2 MiB pages, all present on return (since Linux 5.14)
    bool peers_only_read = false;  // no other process can map it for writing
    // For a few pages that a peer writes too. allocate() fails on a host where no peer could map
    // them for writing.
    bool control = false;
  };
  // Allocates zeroed memory. kExhausted says how much was needed, in bytes or in huge pages. Peers
  // may only read huge pages. Under strict overcommit (vm.overcommit_memory is 2), peers may write
  // only `control` pages. All other pages are then present on return: a later shortage would be
  // SIGBUS.
  static Result<SharedMemory> allocate(std::uint64_t bytes, const Options& options);
  static Result<SharedMemory> allocate(std::uint64_t bytes) { return allocate(bytes, {}); }

  enum class Access : std::uint8_t { kRead, kReadWrite };
  // How peers may map the file, so that no holder of it can cause SIGBUS in a process that has
  // mapped it. kProtocol: not at all, because the file is no memfd or can shrink. kUnsupported: not
  // at all, because each holder can punch holes into it, and take all pages that could fill them.
  static Result<Access> accessOfPeers(int file);
  // Maps the first `bytes` of a file that another process sent, and no more, however large the file
  // is. Fails if accessOfPeers() does not allow it. kProtocol: the file has less than `bytes`.
  static Result<SharedMemory> map(const Fd& file, std::uint64_t bytes, Access access);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  std::byte* data() const { return start_; }
  std::uint64_t size() const { return bytes_; }  // the size that the caller asked for
  std::span<std::byte> bytes() const { return {start_, bytes_}; }
  int fd() const { return file_.get(); }  // -1: after map() or closeFile()
  void closeFile() { file_.reset(); }     // call it once all peers that map it have it
  bool writable() const { return access_ == Access::kReadWrite; }
  explicit operator bool() const { return start_ != nullptr; }
  Segment segment() const;

 private:
  enum class Pages : std::uint8_t;
  const char* create(Pages pages);
  Error notCreated(Pages pages, const char* failed) const;  // reads errno
  Status seal(bool peers_only_read, Pages pages);
  std::uint64_t wholePages(std::uint64_t page) const;

  Fd file_;
  std::byte* start_ = nullptr;
  std::uint64_t bytes_ = 0, mapped_ = 0;
  Access access_ = Access::kReadWrite;
};

}  // namespace viaduct::base
