// The memory of one device, and its Pin. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "cuda/memory.h"
#include "measure/workload/mapping.h"
#include "measure/workload/mirror.h"
#include "measure/workload/workload.h"

namespace viaduct::measure {

class Buffer {
 public:
  struct Kind {
    MemoryChoice choice = MemoryChoice::kAllocate;
    bool huge_pages = false;  // of host memory
    Gpu gpu = {};             // null: host memory
  };
  // Peers find the Pin by its `label`.
  static Result<Buffer> make(Agent& agent, std::uint64_t bytes, const Kind& kind,
                             const std::string& label);

  // The memory, or its mirror if the memory is a GPU's.
  std::span<std::byte> bytes() const { return mirror_ ? mirror_->bytes() : pin_.bytes(); }
  const Mirror* mirror() const { return mirror_.get(); }
  // The number of the GPU whose memory this is.
  std::optional<std::uint32_t> gpu() const;
  std::uint64_t address() const { return pin_.info().address; }
  Status release() { return pin_.release(); }
  // Releases the Pin of plain memory (MemoryChoice::kMalloc) and registers the memory again, with
  // the same label.
  Status registerAgain(Agent& agent);

 private:
  // The memory of MemoryChoice::kMalloc. It outlives the Pin.
  struct Own {
    Mapping host = {};
    std::shared_ptr<const cuda::Allocation> device = {};
  };
  Buffer(Own own, Pin pin, std::string label);
  static Result<Buffer> makePlain(Agent& agent, std::uint64_t bytes, const Kind& kind,
                                  const std::string& label);
  Own own_;
  Pin pin_;
  std::string label_;
  std::unique_ptr<Mirror> mirror_;
};

}  // namespace viaduct::measure
