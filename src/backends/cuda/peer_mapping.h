// Memory of a GPU that another process has lent, mapped into this one. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "backends/cuda/share_message.h"
#include "base/fd.h"
#include "cuda/context.h"

namespace viaduct::cuda {

// The way in which other processes map memory of a class, "ipc" or "vmm". Null: they cannot.
constexpr const char* wayToMap(MemoryClass memory_class) {
  if (memory_class == MemoryClass::kLegacy) return "ipc";
  return memory_class == MemoryClass::kShareable ? "vmm" : nullptr;
}

class PeerMapping {
 public:
  virtual ~PeerMapping() = default;
  PeerMapping(const PeerMapping&) = delete;
  PeerMapping& operator=(const PeerMapping&) = delete;
  // The address here of the first byte of the first range.
  CUdeviceptr address() const { return address_; }

 protected:
  PeerMapping() = default;
  CUdeviceptr address_ = 0;
};

// Maps neighbouring ranges, for the device of the context. There is one descriptor for each range
// of virtual memory, and none for a legacy handle.
Result<std::shared_ptr<const PeerMapping>> mapMemory(const std::shared_ptr<const Context>& context,
                                                     std::span<const SharedRange> ranges,
                                                     std::span<const base::Fd> fds);

}  // namespace viaduct::cuda
