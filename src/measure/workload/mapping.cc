#include "measure/workload/mapping.h"

#include <fmt/format.h>
#include <sys/mman.h>

#include <cerrno>

#include "base/sizes.h"

namespace viaduct::measure {

void Unmap::operator()(std::byte* at) const { ::munmap(at, bytes); }

Result<Mapping> mapMemory(std::uint64_t bytes, int flags) {
  void* at =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | flags, -1, 0);
  if (at != MAP_FAILED) return Mapping(static_cast<std::byte*>(at), Unmap{bytes});
  Error error = systemError(Code::kExhausted, "mmap", errno);
  error.detail += fmt::format(", for {}{}", base::showSize(bytes),
                              (flags & MAP_HUGETLB) != 0 ? " of 2 MiB pages" : "");
  return error;
}

}  // namespace viaduct::measure
