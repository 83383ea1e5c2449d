// The memory of one device, and its Pin. Threads: one at a time.
#pragma once

#include <viaduct/agent.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "measure/load/workload.h"

namespace viaduct::measure {

struct Unmap {
  std::size_t bytes = 0;
  void operator()(std::byte* at) const;
};
using Mapping = std::unique_ptr<std::byte, Unmap>;

class Buffer {
 public:
  struct Kind {
    MemoryChoice choice = MemoryChoice::kAllocate;
    bool huge_pages = false;
  };
  // Peers find the Pin by its `label`.
  static Result<Buffer> make(Agent& agent, std::uint64_t bytes, Kind kind,
                             const std::string& label);

  std::span<std::byte> bytes() const { return pin_.bytes(); }
  std::uint64_t address() const { return pin_.info().address; }
  Status release() { return pin_.release(); }
  // Releases the Pin of plain memory and registers the memory again, with the same label.
  Status registerAgain(Agent& agent);

 private:
  Buffer(Mapping own, Pin pin, std::string label);
  Mapping own_;  // for MemoryChoice::kMalloc; outlives the Pin
  Pin pin_;
  std::string label_;
};

}  // namespace viaduct::measure
