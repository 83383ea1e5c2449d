#include "measure/workload/buffer.h"

#include <sys/mman.h>

#include <utility>

namespace viaduct::measure {

Buffer::Buffer(Own own, Pin pin, std::string label)
    : own_(std::move(own)), pin_(std::move(pin)), label_(std::move(label)) {}

Result<Buffer> Buffer::make(Agent& agent, std::uint64_t bytes, const Kind& kind,
                            const std::string& label) {
  if (kind.choice == MemoryChoice::kMalloc) return makePlain(agent, bytes, kind, label);
  AllocateOptions options{.label = label, .huge_pages = kind.huge_pages};
  if (kind.gpu) options.device = kind.gpu->ordinal();
  VIADUCT_TRY(Pin pin, agent.allocate(bytes, options));
  Buffer out({}, std::move(pin), label);
  if (kind.gpu) {
    VIADUCT_TRY(out.mirror_, Mirror::make(kind.gpu, out.address(), bytes));
  }
  return out;
}

Result<Buffer> Buffer::makePlain(Agent& agent, std::uint64_t bytes, const Kind& kind,
                                 const std::string& label) {
  Own own;
  if (kind.gpu) {
    VIADUCT_TRY(own.device, cuda::Allocation::make(kind.gpu, bytes));
    const std::uint64_t address = own.device->address();
    VIADUCT_TRY(Pin pin, agent.pin(Segment::gpu(kind.gpu->ordinal(), address, bytes), label));
    Buffer out(std::move(own), std::move(pin), label);
    VIADUCT_TRY(out.mirror_, Mirror::make(kind.gpu, address, bytes));
    return out;
  }
  // Maps memory, as malloc does for large sizes. Unlike malloc, this reports missing memory here
  // instead of at the first access.
  VIADUCT_TRY(own.host, mapMemory(bytes, MAP_POPULATE | (kind.huge_pages ? MAP_HUGETLB : 0)));
  VIADUCT_TRY(Pin pin, agent.pin(Segment::host(own.host.get(), bytes), label));
  return Buffer(std::move(own), std::move(pin), label);
}

std::optional<std::uint32_t> Buffer::gpu() const {
  return mirror_ ? std::optional(pin_.info().device) : std::nullopt;
}

Status Buffer::registerAgain(Agent& agent) {
  const Segment memory = pin_.segment();
  VIADUCT_CHECK(pin_.release());
  VIADUCT_TRY(Pin again, agent.pin(memory, label_));
  pin_ = std::move(again);
  return Ok{};
}

}  // namespace viaduct::measure
