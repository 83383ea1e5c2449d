#include "backends/cuda/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "base/log.h"
#include "base/sizes.h"
#include "cuda/driver_thread.h"

namespace viaduct::cuda {
namespace {

using RegistrationState = PinnedMemory::RegistrationState;

// The live registrations of this process. Threads: the registrar only.
class LiveRegistrations {
 public:
  // One that contains the memory.
  std::shared_ptr<const HostRegistration> find(std::uint64_t address, std::uint64_t bytes) {
    std::erase_if(known_, [](const auto& one) { return one.expired(); });
    for (const auto& one : known_)
      if (auto live = one.lock(); live && live->covers(address, bytes)) return live;
    return nullptr;
  }
  void remember(const std::shared_ptr<const HostRegistration>& one) { known_.push_back(one); }
  std::uint64_t bytes() const {
    std::uint64_t all = 0;
    for (const auto& one : known_)
      if (const auto live = one.lock()) all += live->bytes();
    return all;
  }

 private:
  std::vector<std::weak_ptr<const HostRegistration>> known_;
};

LiveRegistrations& registrations() {
  static auto& all = *new LiveRegistrations;
  return all;
}

// The longest time that the driver usually takes to register or unregister so much memory.
Duration usualTime(std::uint64_t bytes) { return std::chrono::milliseconds(bytes / base::kMiB); }

// Whether the program has registered or allocated the memory through CUDA.
bool isKnown(const Context& context, std::uint64_t address) {
  CUmemoryType type{};
  return context.api().pointerGetAttribute(&type, CUpointerAttribute::kMemoryType, address) ==
             CUresult::kSuccess &&
         type == CUmemoryType::kHost;
}

Result<std::shared_ptr<const HostRegistration>> registerPages(
    const std::shared_ptr<const Context>& context, const PinnedMemory& memory) {
  const auto page = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  const std::uint64_t start = memory.address / page * page;
  const std::uint64_t bytes = (memory.address + memory.bytes - start + page - 1) / page * page;
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the address of pinned memory
  void* const at = reinterpret_cast<void*>(start);
  VIADUCT_CUDA_CALL(*context, memHostRegister, at, bytes,
                    kHostRegisterPortable | kHostRegisterDeviceMap);
  CUdeviceptr device = 0;
  const CUresult found = context->api().memHostGetDevicePointer(&device, at, 0);
  if (found != CUresult::kSuccess) {
    context->api().memHostUnregister(at);
    return context->error(CallName::memHostGetDevicePointer, found);
  }
  return endsSoon<const HostRegistration>(new HostRegistration(context, start, bytes, device));
}

RegistrationState registered(PinnedMemory& memory, const std::shared_ptr<const Context>& context,
                             std::uint64_t most) {
  memory.registered = registrations().find(memory.address, memory.bytes);
  if (memory.registered) return RegistrationState::kDone;
  const auto current = Current::of(*context);
  if (!current || !memory.writable) return RegistrationState::kRefused;
  if (isKnown(*context, memory.address) && isKnown(*context, memory.address + memory.bytes - 1))
    return RegistrationState::kForeign;
  static std::atomic_flag said;
  if (memory.bytes > most || registrations().bytes() > most - memory.bytes) {
    base::logOnce(said, base::LogLevel::kWarning,
                  "cuda: host memory is copied slowly: {} bytes are not registered, because the "
                  "limit is {} (VIADUCT_CUDA_REGISTER)",
                  memory.bytes, most);
    return RegistrationState::kRefused;
  }
  auto made = registerPages(context, memory);
  if (!made) {
    base::logOnce(said, base::LogLevel::kWarning, "cuda: host memory is copied slowly: {}",
                  made.error().text());
    return RegistrationState::kRefused;
  }
  registrations().remember(*made);
  memory.registered = *std::move(made);
  return RegistrationState::kDone;
}

}  // namespace

HostRegistration::~HostRegistration() {
  const auto current = Current::of(*context_);
  // NOLINTNEXTLINE(performance-no-int-to-ptr): the address that was registered
  if (current) context_->api().memHostUnregister(reinterpret_cast<void*>(start_));
}

void registerHost(const std::shared_ptr<PinnedMemory>& memory,
                  const std::shared_ptr<const Context>& context, std::uint64_t most) {
  RegistrationState none = RegistrationState::kNone;
  if (!memory->registration.compare_exchange_strong(none, RegistrationState::kPending)) return;
  const auto run = [memory, context, most] {
    RegistrationState end = RegistrationState::kRefused;
    if (const PinUse use(*memory); use) end = registered(*memory, context, most);
    memory->registration.store(end);  // after the use, so that the pin is free at once
  };
  if (!onRegistrar(run, usualTime(memory->bytes)))
    memory->registration.store(RegistrationState::kRefused);
}

bool unregisterHost(const std::shared_ptr<PinnedMemory>& memory) {
  RegistrationState done = RegistrationState::kDone;
  if (memory->registration.compare_exchange_strong(done, RegistrationState::kPending))
    onRegistrar(
        [memory] {
          memory->registered.reset();
          memory->registration.store(RegistrationState::kRefused);
        },
        usualTime(memory->bytes));
  return memory->registration.load() != RegistrationState::kPending;
}

}  // namespace viaduct::cuda
