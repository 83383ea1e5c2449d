// Counts the resident pages of shared memory, and the pages that a process has mapped. Threads:
// pure functions.
#pragma once

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "base/fd.h"
#include "base/shared_memory.h"

namespace viaduct::local::testing {

inline std::size_t pageBytes() { return static_cast<std::size_t>(::sysconf(_SC_PAGESIZE)); }

// Bytes of the file that are resident, whichever process made them so.
inline std::uint64_t residentIn(std::span<std::byte> memory) {
  std::vector<unsigned char> pages(memory.size() / pageBytes());
  if (::mincore(memory.data(), memory.size(), pages.data()) != 0) return 0;
  return pageBytes() * static_cast<std::uint64_t>(std::ranges::count_if(
                           pages, [](unsigned char page) { return (page & 1U) != 0; }));
}

// Bytes of the memory that this process's page table maps.
inline std::uint64_t mappedIn(std::span<const std::byte> memory) {
  const base::Fd file(::open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  std::vector<std::uint64_t> entries(memory.size() / pageBytes());
  const auto first = reinterpret_cast<std::uintptr_t>(memory.data()) / pageBytes();
  const std::size_t bytes = entries.size() * sizeof entries[0];
  if (::pread(file.get(), entries.data(), bytes, static_cast<off_t>(first * sizeof entries[0])) !=
      static_cast<ssize_t>(bytes))
    return 0;
  return pageBytes() * static_cast<std::uint64_t>(std::ranges::count_if(
                           entries, [](std::uint64_t entry) { return entry >> 63U == 1; }));
}

// The number of a process's mappings of memfds of that size, and their bytes in its page table.
struct Mapped {
  int count = 0;
  std::uint64_t bytes = 0;
};
inline Mapped mappedOfSize(int pid, std::uint64_t size) {
  std::ifstream in("/proc/" + std::to_string(pid) + "/smaps");
  Mapped all;
  bool memfd = false, wanted = false;
  for (std::string line; std::getline(in, line);) {
    const auto number = [&] { return std::stoull(line.substr(line.find(':') + 1)) * 1024; };
    if (line.find("/memfd:viaduct") != std::string::npos) memfd = true;
    if (line.starts_with("Size:")) {
      wanted = memfd && number() == size;
      memfd = false;
      all.count += wanted ? 1 : 0;
    }
    if (wanted && line.starts_with("Rss:")) all.bytes += number();
  }
  return all;
}

inline bool hasPopulator(int pid) {
  for (const auto& task :
       std::filesystem::directory_iterator("/proc/" + std::to_string(pid) + "/task")) {
    std::string name;
    std::ifstream(task.path() / "comm") >> name;
    if (name == "viaduct-pages") return true;
  }
  return false;
}

// False if the kernel is older than 5.14, or an emulator only pretends to populate.
inline bool kernelPopulates() {
  const auto memory = base::SharedMemory::allocate(pageBytes());
  return memory && ::madvise(memory->data(), pageBytes(), MADV_POPULATE_READ) == 0 &&
         mappedIn(memory->bytes()) == pageBytes();
}

// False if this kernel maps only one page at a read fault, and leaves the resident pages around it
// unmapped.
inline bool kernelMapsAround() {
  constexpr std::uint64_t kWindow = std::uint64_t{128} << 10U;
  const auto memory = base::SharedMemory::allocate(kWindow);
  if (!memory) return false;
  std::ranges::fill(memory->bytes(), std::byte{1});
  const base::Fd file(::dup(memory->fd()));
  const auto again = base::SharedMemory::map(file, kWindow, base::SharedMemory::Access::kReadWrite);
  if (!again) return false;
  static_cast<void>(*static_cast<const volatile std::byte*>(again->data() + kWindow / 2));
  return mappedIn(again->bytes()) > pageBytes();
}

// Waits until `until()` is true, at most 30 seconds. Returns its last result.
template <class F>
bool comesTrue(F until) {
  const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(30);
  while (!until()) {
    if (std::chrono::steady_clock::now() > end) return until();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  return true;
}

}  // namespace viaduct::local::testing
