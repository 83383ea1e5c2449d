// The interface of the two ways to read and write files: io_uring, and threads. Threads: only the
// mover's thread calls, except wake().
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::file {

// One read or write for the kernel.
struct Io {
  bool write = false;
  int fd = -1;
  std::int32_t fixed_file = -1;    // its place among the registered files, or -1
  std::int32_t fixed_buffer = -1;  // the registered buffer that contains the memory, or -1
  std::byte* memory = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

class Engine {
 public:
  struct Ended {
    std::uint32_t token = 0;
    int result = 0;  // bytes, or a negative errno
  };
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;

  // Queues an I/O. wait() submits all queued ones at once. At most `depth` tokens are in flight.
  virtual void start(std::uint32_t token, const Io& io) = 0;
  // Asks the kernel to end that I/O early. It still ends exactly once.
  virtual void cancel(std::uint32_t token) = 0;
  // Submits, and appends what has ended. `block`: waits until something has ended, or for wake().
  virtual void wait(bool block, std::vector<Ended>& ended) = 0;
  // Ends the current or the next blocking wait(). Any thread.
  virtual void wake() = 0;

  // Registration is optional: -1, or false, means that the engine has none.
  virtual bool registerFile(std::uint32_t /*place*/, int /*fd*/) { return false; }
  virtual void unregisterFile(std::uint32_t /*place*/) {}
  virtual std::int32_t registerBuffer(std::span<std::byte> /*memory*/) { return -1; }
  virtual void unregisterBuffer(std::int32_t /*buffer*/) {}
};

// Null, and the reason: the system refuses io_uring. `files`: most registered files.
std::unique_ptr<Engine> openUring(std::uint32_t depth, std::uint32_t files, std::string& why);
std::unique_ptr<Engine> openThreads(std::uint32_t depth);

}  // namespace viaduct::file
