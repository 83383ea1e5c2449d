#include "backends/cuda/mapped_memory.h"

namespace viaduct::cuda {

Result<MappedMemory> MappedMemory::allocate(std::shared_ptr<const Context> context,
                                            std::uint64_t bytes) {
  MappedMemory out;
  out.context_ = std::move(context);
  const Context& here = *out.context_;
  VIADUCT_TRY(const auto current, Current::of(here));
  VIADUCT_CUDA_CALL(here, memHostAlloc, &out.host_, bytes,
                    kHostRegisterPortable | kHostRegisterDeviceMap);
  VIADUCT_CUDA_CALL(here, memHostGetDevicePointer, &out.device_, out.host_, 0);
  out.bytes_ = bytes;
  return out;
}

void MappedMemory::free() {
  if (host_ == nullptr) return;
  const auto current = Current::of(*context_);
  if (current) context_->api().memFreeHost(host_);
}

}  // namespace viaduct::cuda
