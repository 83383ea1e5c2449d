// Memory behind a file descriptor, so that another process can map it. Threads: one owner; what
// the memory holds is the users' affair.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>

#include "base/fd.h"

namespace viaduct::base {

// A mapped memfd. Its file can never become smaller (sealed), so whoever has mapped it need not
// fear SIGBUS from a peer that cuts it short.
class SharedMemory {
 public:
  struct Options {
    bool huge_pages = false;  // 2 MiB pages, all present on return
    bool sealed_now = true;   // false: seal() comes later, with more seals
  };
  // Zeroed memory of our own. kExhausted says what is missing, in bytes or in huge pages.
  static Result<SharedMemory> allocate(std::uint64_t bytes, const Options& options);
  static Result<SharedMemory> allocate(std::uint64_t bytes) { return allocate(bytes, {}); }

  enum class Access : std::uint8_t { kRead, kReadWrite };
  // Maps the first `bytes` of a file that somebody else sent, and no more, however large it is.
  // Refused (kProtocol) unless it is a memfd that can not shrink and has so many: nothing its
  // sender does later can fault our accesses.
  static Result<SharedMemory> map(const Fd& file, std::uint64_t bytes, Access access);

  SharedMemory() = default;
  SharedMemory(SharedMemory&& other) noexcept;
  SharedMemory& operator=(SharedMemory&& other) noexcept;
  SharedMemory(const SharedMemory&) = delete;
  SharedMemory& operator=(const SharedMemory&) = delete;
  ~SharedMemory();

  // Adds F_SEAL_* to those in force; F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL come with it.
  Status seal(int more_seals);

  std::byte* data() const { return start_; }
  std::uint64_t size() const { return bytes_; }  // what was asked for
  std::span<std::byte> bytes() const { return {start_, bytes_}; }
  int fd() const { return file_.get(); }  // -1: mapped from a file that we did not keep
  void closeFile() { file_.reset(); }     // once everyone who is to map it has it
  explicit operator bool() const { return start_ != nullptr; }
  Segment segment() const;

 private:
  Status create(std::uint64_t page, bool huge_pages);

  Fd file_;
  std::byte* start_ = nullptr;
  std::uint64_t bytes_ = 0, mapped_ = 0;
};

}  // namespace viaduct::base
