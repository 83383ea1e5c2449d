#include "measure/load/buffer.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>
#include <utility>

#include "base/sizes.h"

namespace viaduct::measure {

void Unmap::operator()(std::byte* at) const { ::munmap(at, bytes); }

Buffer::Buffer(Mapping own, Pin pin, std::string label)
    : own_(std::move(own)), pin_(std::move(pin)), label_(std::move(label)) {}

Result<Buffer> Buffer::make(Agent& agent, std::uint64_t bytes, Kind kind,
                            const std::string& label) {
  if (kind.choice == MemoryChoice::kAllocate) {
    VIADUCT_TRY(Pin pin, agent.allocate(bytes, {.label = label, .huge_pages = kind.huge_pages}));
    return Buffer({}, std::move(pin), label);
  }
  // Does the same as malloc for large sizes, but reports missing memory here instead of at the
  // first access.
  constexpr int kFlags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE;
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    kFlags | (kind.huge_pages ? MAP_HUGETLB : 0), -1, 0);
  if (at == MAP_FAILED) {
    Error error = systemError(Code::kExhausted, "mmap", errno);
    error.detail +=
        fmt::format(", for {}{}", base::showSize(bytes), kind.huge_pages ? " of 2 MiB pages" : "");
    return error;
  }
  Mapping own(static_cast<std::byte*>(at), Unmap{bytes});
  VIADUCT_TRY(Pin pin, agent.pin(Segment::host(at, bytes), label));
  return Buffer(std::move(own), std::move(pin), label);
}

Status Buffer::registerAgain(Agent& agent) {
  const Segment memory = pin_.segment();
  VIADUCT_CHECK(pin_.release());
  VIADUCT_TRY(Pin again, agent.pin(memory, label_));
  pin_ = std::move(again);
  return Ok{};
}

}  // namespace viaduct::measure
