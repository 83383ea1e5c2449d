#include "measure/load/region.h"

#include <sys/mman.h>

#include <cerrno>
#include <utility>

namespace viaduct::measure {

void Unmap::operator()(std::byte* at) const { ::munmap(at, bytes); }

Region::Region(const Workload& workload, Role role, Mapping own, Pin pin)
    : workload_(workload),
      order_(blockOrder(workload, role)),
      own_(std::move(own)),
      pin_(std::move(pin)) {}

Result<Region> Region::make(Agent& agent, const Workload& workload, Role role,
                            const std::string& label) {
  const std::uint64_t bytes = workload.bytes();
  if (workload.memory == MemoryChoice::kAllocate) {
    VIADUCT_TRY(Pin pin, agent.allocate(bytes, {.label = label}));
    return Region(workload, role, {}, std::move(pin));
  }
  // What malloc does for sizes like these, but an error where malloc'ed memory would be touched.
  void* at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                    MAP_PRIVATE | MAP_ANONYMOUS | MAP_POPULATE, -1, 0);
  if (at == MAP_FAILED) return systemError(Code::kExhausted, "mmap", errno);
  Mapping own(static_cast<std::byte*>(at), Unmap{bytes});
  VIADUCT_TRY(Pin pin, agent.pin(Segment::host(at, bytes), label));
  return Region(workload, role, std::move(own), std::move(pin));
}

Pattern Region::pattern(std::uint64_t epoch) const {
  return {.seed = workload_.seed,
          .block_bytes = workload_.block_bytes,
          .blocks = workload_.batch,
          .epoch = epoch};
}

std::span<std::byte> Region::block(std::uint64_t k) const {
  return pin_.bytes().subspan(order_[k] * workload_.block_bytes, workload_.block_bytes);
}

void Region::fill(std::uint64_t epoch) {
  const Pattern now = pattern(epoch);
  for (std::uint64_t k = 0; k < workload_.batch; ++k) now.fill(block(k), k);
}

std::optional<Mismatch> Region::verify(std::uint64_t epoch) const {
  const Pattern now = pattern(epoch);
  for (std::uint64_t k = 0; k < workload_.batch; ++k)
    if (auto wrong = now.verify(block(k), k)) return wrong;
  return std::nullopt;
}

Selection Region::selection() const {
  return {*Blocks::strided(pin_.info().address, workload_.block_bytes, workload_.block_bytes,
                           workload_.batch),
          order_};
}

Selection selectionAt(const Workload& workload, Role role, std::uint64_t base) {
  auto blocks = Blocks::strided(base, workload.block_bytes, workload.block_bytes, workload.batch);
  // A base that cannot be leaves an empty selection, which no plan accepts.
  if (!blocks) return {};
  return {*std::move(blocks), blockOrder(workload, role)};
}

}  // namespace viaduct::measure
