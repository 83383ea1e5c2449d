// The interface of the two ways to read and write files: io_uring, and threads. No function waits
// for a disk. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace viaduct::file {

// One read or write for the kernel.
struct Io {
  bool write = false;
  bool blocks = false;  // only a thread carries it out, because the kernel would wait in it
  int fd = -1;
  std::int32_t fixed_file = -1;    // its place among the registered files, or -1
  std::int32_t fixed_buffer = -1;  // the registered buffer that contains the memory, or -1
  std::byte* memory = nullptr;
  std::uint64_t offset = 0;
  std::uint32_t bytes = 0;
};

class Engine {
 public:
  struct EndedIo {
    std::uint32_t token = 0;
    int result = 0;  // bytes, or a negative errno
  };
  static constexpr std::uint32_t kNoToken = ~0U;
  virtual ~Engine() = default;
  virtual std::string_view name() const = 0;
  // Descriptors, of which at least one is readable while next() has something.
  virtual std::vector<int> fds() const = 0;

  // Queues an I/O, which submit() hands to the kernel. At most `depth` tokens are in flight. An I/O
  // ends with EAGAIN or EOPNOTSUPP if it has to be repeated with Io::blocks.
  virtual void start(std::uint32_t token, const Io& io) = 0;
  // Runs `call` on a thread, and ends with its result. The end of a call with kNoToken is not
  // reported.
  virtual void call(std::uint32_t token, std::function<int()> call) = 0;
  // Ends an I/O or a call early if it still waits for a thread. It still ends exactly once.
  virtual void cancel(std::uint32_t token) = 0;
  // False: the kernel has no room now, so call again.
  virtual bool submit() { return true; }
  // Takes an I/O or a call that has ended. False: there is none.
  virtual bool next(EndedIo& ended) = 0;

  // Registration is optional: -1, or false, means that the engine has none.
  virtual bool registerFile(std::uint32_t /*place*/, int /*fd*/) { return false; }
  virtual void unregisterFile(std::uint32_t /*place*/) {}
  virtual std::int32_t registerBuffer(std::span<std::byte> /*memory*/) { return -1; }
  virtual void unregisterBuffer(std::int32_t /*buffer*/) {}
};

// kUnsupported: the system refuses io_uring. `files`: most registered files.
Result<std::unique_ptr<Engine>> openUring(std::uint32_t depth, std::uint32_t files);
Result<std::unique_ptr<Engine>> openThreads(std::uint32_t depth);

}  // namespace viaduct::file
