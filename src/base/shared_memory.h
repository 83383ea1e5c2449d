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

// A mapped memfd. A seal forbids shrinking it, so a peer cannot cause SIGBUS in a process that has
// mapped it.
class SharedMemory {
 public:
  struct Options {
    bool huge_pages = false;  // 2 MiB pages, all present on return (since Linux 5.14)
    bool sealed_now = true;   // false: seal() is called later, with more seals
  };
  // Allocates zeroed memory. kExhausted says how much was needed, in bytes or in huge pages.
  static Result<SharedMemory> allocate(std::uint64_t bytes, const Options& options);
  static Result<SharedMemory> allocate(std::uint64_t bytes) { return allocate(bytes, {}); }

  enum class Access : std::uint8_t { kRead, kReadWrite };
  // Maps the first `bytes` of a file that another process sent, and no more, however large the file
  // is. kProtocol unless it is a memfd of at least `bytes` that cannot shrink: its sender can then
  // not make our accesses fault.
  static Result<SharedMemory> map(const Fd& file, std::uint64_t bytes, Access access);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Adds the seals `more_seals` (F_SEAL_*), and F_SEAL_SHRINK, F_SEAL_GROW and F_SEAL_SEAL.
  Status seal(int more_seals);

  std::byte* data() const { return start_; }
  std::uint64_t size() const { return bytes_; }  // the size that the caller asked for
  std::span<std::byte> bytes() const { return {start_, bytes_}; }
  int fd() const { return file_.get(); }  // -1: after map() or closeFile()
  void closeFile() { file_.reset(); }     // once every process that will map it has it
  explicit operator bool() const { return start_ != nullptr; }
  Segment segment() const;

 private:
  Status create(std::uint64_t page, bool huge_pages);

  Fd file_;
  std::byte* start_ = nullptr;
  std::uint64_t bytes_ = 0, mapped_ = 0;
};

}  // namespace viaduct::base
