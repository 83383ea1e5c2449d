// Memory of GPUs: the driver's facts about an address, memory of our own, and plain copies.
// Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "cuda/context.h"

namespace viaduct::cuda {

// The ways in which other processes can reach the memory.
enum class MemoryClass : std::uint8_t {
  kHost,       // not memory of a GPU
  kLegacy,     // cuMemAlloc: a handle of 64 bytes opens it
  kShareable,  // virtual memory management with file descriptors
  kFabric,     // virtual memory management with fabric handles only
  kPool,       // cuMemAllocAsync
  kManaged,    // moves between GPUs and host
  kPrivate,    // virtual memory management without a shareable handle
};
// "cuMemAlloc", "private (virtual memory without a shareable handle)".
std::string_view memoryClassName(MemoryClass one);

// One allocation or mapping of the driver.
struct MemoryRange {
  CUdeviceptr base = 0;
  std::uint64_t bytes = 0;
  // The driver's number for the range. Memory that is freed and allocated again gets another
  // number.
  std::uint64_t buffer_id = 0;
  friend bool operator==(const MemoryRange&, const MemoryRange&) = default;
};

struct MemoryFacts {
  MemoryClass memory_class = MemoryClass::kHost;
  std::uint32_t device = 0;
  // The allocations that the memory lies in, in order of address. Virtual memory that has grown has
  // several.
  std::vector<MemoryRange> ranges = {};
};

// The facts about `bytes` bytes from `address` on. kInvalid: not all of them are memory of one GPU
// and of one class. Host memory has no ranges.
Result<MemoryFacts> classify(const Context& context, CUdeviceptr address, std::uint64_t bytes);

// The driver's number for the allocation at an address. kDenied: there is none any more.
Result<std::uint64_t> bufferId(const Context& context, CUdeviceptr address);

// kDenied: the memory of a range was freed since classify(), and other memory may be there now.
Status checkAlive(const Context& context, const MemoryRange& range);

// Memory of a GPU. Peers on this host can reach it by a file descriptor if the device supports
// that, else by a legacy handle.
class Allocation {
 public:
  static Result<std::shared_ptr<const Allocation>> make(std::shared_ptr<const Context> context,
                                                        std::uint64_t bytes);
  ~Allocation();
  Allocation(const Allocation&) = delete;
  Allocation& operator=(const Allocation&) = delete;

  CUdeviceptr address() const { return address_; }
  std::uint64_t bytes() const { return bytes_; }
  const Context& context() const { return *context_; }

 private:
  explicit Allocation(std::shared_ptr<const Context> context) : context_(std::move(context)) {}
  Status makeLegacy();
  Status makeShareable();

  const std::shared_ptr<const Context> context_;
  CUdeviceptr address_ = 0;
  std::uint64_t bytes_ = 0;     // as asked for
  std::uint64_t reserved_ = 0;  // of addresses; 0: cuMemAlloc
  bool mapped_ = false;
};

// Opens [base, base + bytes), which is mapped virtual memory, to the context's device, and to all
// devices that can reach its memory.
Status setAccess(const Context& context, CUdeviceptr base, std::uint64_t bytes);

// Copies between host memory and memory of a GPU. On return the copy is complete.
Status copyToDevice(const Context& context, CUdeviceptr to, std::span<const std::byte> from);
Status copyToHost(const Context& context, std::span<std::byte> to, CUdeviceptr from);

}  // namespace viaduct::cuda
