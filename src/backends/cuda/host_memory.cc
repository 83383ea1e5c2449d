#include "backends/cuda/host_memory.h"

#include <unistd.h>

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <functional>
#include <mutex>
#include <thread>
#include <utility>
#include <vector>

#include "base/blocked_signals.h"
#include "base/log.h"

namespace viaduct::cuda {
namespace {

using RegistrationState = PinnedMemory::RegistrationState;

// The thread of this process that registers host memory. It never ends.
class Registrar {
 public:
  void add(std::function<void()> work) {
    const std::lock_guard lock(mutex_);
    queue_.push_back(std::move(work));
    if (!std::exchange(started_, true)) {
      const base::BlockedSignals none;
      std::thread([this] { run(); }).detach();
    }
    changed_.notify_one();
  }
  void addBell(const std::shared_ptr<EndBell>& bell) {
    const std::lock_guard lock(mutex_);
    std::erase_if(bells_, [](const auto& one) { return one.expired(); });
    bells_.push_back(bell);
  }

  // A live registration that contains the memory. Only the registering thread calls find() and
  // remember().
  std::shared_ptr<const HostRegistration> find(std::uint64_t address, std::uint64_t bytes) {
    std::erase_if(known_, [](const auto& one) { return one.expired(); });
    for (const auto& one : known_)
      if (auto live = one.lock(); live && live->covers(address, bytes)) return live;
    return nullptr;
  }
  void remember(const std::shared_ptr<const HostRegistration>& one) { known_.push_back(one); }
  std::uint64_t registered() const {
    std::uint64_t all = 0;
    for (const auto& one : known_)
      if (const auto live = one.lock()) all += live->bytes();
    return all;
  }

 private:
  void run() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !queue_.empty(); });
      auto work = std::move(queue_.front());
      queue_.pop_front();
      lock.unlock();
      work();
      work = nullptr;
      lock.lock();
      for (const auto& one : bells_)
        if (const auto bell = one.lock()) bell->ring();
    }
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool started_ = false;
  std::deque<std::function<void()>> queue_;
  std::vector<std::weak_ptr<EndBell>> bells_;
  std::vector<std::weak_ptr<const HostRegistration>> known_;
};

Registrar& registrar() {
  static auto& the_registrar = *new Registrar;
  return the_registrar;
}

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
  return std::make_shared<const HostRegistration>(context, start, bytes, device);
}

RegistrationState registered(PinnedMemory& memory, const std::shared_ptr<const Context>& context,
                             std::uint64_t most) {
  memory.registered = registrar().find(memory.address, memory.bytes);
  if (memory.registered) return RegistrationState::kDone;
  const auto current = Current::of(*context);
  if (!current || !memory.writable) return RegistrationState::kRefused;
  if (isKnown(*context, memory.address) && isKnown(*context, memory.address + memory.bytes - 1))
    return RegistrationState::kForeign;
  static std::atomic_flag said;
  if (memory.bytes > most || registrar().registered() > most - memory.bytes) {
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
  registrar().remember(*made);
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
  registrar().add([memory, context, most] {
    RegistrationState end = RegistrationState::kRefused;
    if (memory->enter()) {
      end = registered(*memory, context, most);
      memory->registration.store(end);
      memory->leave();
    } else {
      memory->registration.store(end);
    }
  });
}

bool unregisterHost(const std::shared_ptr<PinnedMemory>& memory) {
  RegistrationState done = RegistrationState::kDone;
  if (memory->registration.compare_exchange_strong(done, RegistrationState::kPending))
    registrar().add([memory] {
      memory->registered.reset();
      memory->registration.store(RegistrationState::kRefused);
    });
  return memory->registration.load() != RegistrationState::kPending;
}

void addBell(const std::shared_ptr<EndBell>& bell) { registrar().addBell(bell); }

}  // namespace viaduct::cuda
