#include "backends/cuda/cuda_backend.h"

#include <fmt/format.h>
#include <sys/epoll.h>

#include <algorithm>
#include <utility>

#include "backends/cuda/cuda_link.h"
#include "backends/cuda/facts.h"
#include "base/bytes.h"
#include "base/log.h"
#include "cuda/driver_thread.h"

namespace viaduct::cuda {
namespace {

// lookLater() looks for ended batches after this pause. Over a bus, a callback may come only when
// all batches in flight have ended, and the bus is then idle.
constexpr std::chrono::milliseconds kLookEvery{1};

Error refused(const Segment& memory, std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "pin",
          .detail = std::move(detail),
          .device = fmt::format("GPU {}", memory.device),
          .remedy = std::move(remedy)};
}

class CudaMemory final : public core::DeviceMemory {
 public:
  explicit CudaMemory(std::shared_ptr<OpenGpus> gpus) : gpus_(std::move(gpus)) {}

  Result<Segment> open(Segment memory) override {
    if (memory.opened) return memory;  // allocate() has made it
    VIADUCT_TRY(const auto gpu, gpus_->open(memory.device));
    VIADUCT_TRY(auto facts, classify(*gpu->context(), memory.address, memory.bytes));
    if (facts.memory_class == MemoryClass::kHost)
      return refused(memory, fmt::format("{:#x} is no memory of a GPU", memory.address),
                     "pin it as host memory");
    if (facts.memory_class == MemoryClass::kManaged)
      return refused(memory, "managed memory moves between GPUs and host memory",
                     "allocate it with cudaMalloc or Agent::allocate");
    if (facts.device != memory.device)
      return refused(memory, fmt::format("it is memory of GPU {}", facts.device),
                     "pass the number of that GPU");
    return opened(std::move(memory), {.context = gpu->context(), .facts = std::move(facts)});
  }

  Result<Segment> allocate(std::uint32_t device, std::uint64_t bytes) override {
    VIADUCT_TRY(const auto gpu, gpus_->open(device));
    VIADUCT_TRY(auto allocation, Allocation::make(gpu->context(), bytes));
    Segment memory = Segment::gpu(device, allocation->address(), bytes);
    VIADUCT_TRY(auto facts, classify(*gpu->context(), memory.address, memory.bytes));
    return opened(std::move(memory), {.context = gpu->context(),
                                      .facts = std::move(facts),
                                      .allocation = std::move(allocation)});
  }

  Result<std::unique_ptr<core::PendingSums>> startSums(
      std::uint32_t device, std::span<const core::BlockPiece> pieces) override {
    VIADUCT_TRY(const auto gpu, gpus_->open(device));
    return gpu->summer().startSums(pieces);
  }

  Result<std::uint64_t> sumsAtOnce(std::uint32_t device) override {
    VIADUCT_TRY(const auto gpu, gpus_->open(device));
    return gpu->summer().sumsAtOnce();
  }

 private:
  static Segment opened(Segment memory, DeviceBuffer buffer) {
    memory.opened = std::make_shared<const DeviceBuffer>(std::move(buffer));
    return memory;
  }

  const std::shared_ptr<OpenGpus> gpus_;
};

// The only rail: each GPU has streams of its own behind it.
class CudaRail final : public core::Rail {
 public:
  explicit CudaRail(CudaBackend& backend) : backend_(backend), copier_(*backend.copier()) {}
  std::string_view name() const override { return "gpus"; }
  std::size_t post(const core::Work& work) override {
    return copier_.post(work, static_cast<CudaLink*>(work.link)->pinsFor(work));
  }
  void poll(core::Completions& out) override {
    copier_.poll(out);
    backend_.giveBack();
    if (!copier_.busy() && copier_.waits()) backend_.lookLater();
  }
  void cancel(const core::Sink& sink) override { copier_.cancel(sink); }
  bool busy() const override { return copier_.busy(); }
  void collect(core::Completions& out) override {
    if (copier_.hasEnded()) poll(out);
  }

 private:
  CudaBackend& backend_;
  Copier& copier_;
};

}  // namespace

CudaBackend::CudaBackend(const core::BackendContext& context)
    : poller_(context.poller),
      bell_(std::make_shared<EndBell>()),
      gpus_(std::make_shared<OpenGpus>(context.settings, bell_)),
      copier_(std::make_shared<Copier>(context.settings, gpus_, bell_)),
      device_memory_(std::make_shared<CudaMemory>(gpus_)) {
  rails_.push_back(std::make_unique<CudaRail>(*this));
}

CudaBackend::~CudaBackend() {
  if (timer_ != 0) poller_.forgetTimer(timer_);
  if (watch_ != 0) poller_.forget(watch_);
  if (!closed_) close();
}

std::function<bool()> CudaBackend::close() {
  closed_ = true;
  if (!copier_->stop())
    base::log(base::LogLevel::kError,
              "cuda: a GPU has not ended a copy; its streams stay open until it has");
  auto settled = Copier::settling(copier_);
  while (!settled() && copier_->unregisters() && !registrarHangs()) awaitRegistrar();
  return settled;
}

const core::Capabilities& CudaBackend::can() const {
  static const core::Capabilities facts{.name = "cuda",
                                        .memory = {MemoryKind::kHost, MemoryKind::kDevice},
                                        .same_host = true,
                                        .own_memory = true,
                                        .preference = 15};
  return facts;
}

std::unique_ptr<core::Link> CudaBackend::link(core::LinkSeed seed, core::LinkHost& host) {
  return std::make_unique<CudaLink>(*this, std::move(seed), host);
}

Status CudaBackend::listen() {
  if (watch_ != 0) return Ok{};
  VIADUCT_CHECK(bell_->open());
  // The rail is busy once the bell has rung, and clears it.
  VIADUCT_TRY(watch_, poller_.watch(bell_->fd(), EPOLLIN, [](std::uint32_t) {}));
  addBell(bell_);
  return Ok{};
}

void CudaBackend::lookLater() {
  if (timer_ != 0) return;
  timer_ = poller_.at(poller_.now() + kLookEvery, [this] {
    timer_ = 0;
    bell_->ring();
  });
}

Result<core::Bytes> CudaBackend::pinFor(const core::Audience& audience, std::uint32_t slot,
                                        const Segment& memory) {
  std::shared_ptr<const DeviceBuffer> buffer;
  if (memory.kind == MemoryKind::kDevice) {
    if (!memory.opened)
      return refused(memory, "the memory was not opened by DeviceMemory::open()", "");
    VIADUCT_CHECK(listen());
    buffer = std::static_pointer_cast<const DeviceBuffer>(memory.opened);
    description_.clear();
    for (const auto& gpu : gpus_->all())
      description_ += (description_.empty() ? "" : "; ") + gpu->description();
  }
  auto pinned = std::make_shared<PinnedMemory>(memory, std::move(buffer));
  pinned->audience = audience;
  publish(pinned);
  MemoryKey key{.pin = pinned->number};
  if (pinned->isDevice()) {
    key.memory_class = pinned->buffer->facts.memory_class;
    std::ranges::copy(pinned->buffer->context->device().uuid.bytes, key.gpu.begin());
  }
  slots_[key.pin] = slot;
  copier_->pin(slot, std::move(pinned));
  return encodeKey(key);
}

Status CudaBackend::unpin(std::uint32_t slot) {
  if (const PinnedMemory* memory = copier_->find(slot)) slots_.erase(memory->number);
  return copier_->unpin(slot, [this](const PinnedMemory& memory) {
    std::string peers;
    for (const auto& lender : lenders_)
      if (!lender->takeBack(memory.number)) peers += (peers.empty() ? "" : ", ") + lender->peer();
    return peers;
  });
}

// A mapping cannot be taken back. So a peer that is limited by its card maps only pins that are for
// its session alone.
const PinnedMemory* CudaBackend::pinned(std::uint64_t number, const core::PinRights& rights) const {
  const auto slot = slots_.find(number);
  const PinnedMemory* const found = slot == slots_.end() ? nullptr : copier_->find(slot->second);
  const bool lends = found != nullptr && found->audience.has(rights.session()) &&
                     !(rights.isLimited() && found->audience.isEverybody());
  return lends ? found : nullptr;
}

void CudaBackend::adopt(std::shared_ptr<Lender> lender) {
  std::erase_if(lenders_, [](const auto& one) { return one.use_count() == 1 && one->settled(); });
  lenders_.push_back(std::move(lender));
}

void CudaBackend::giveBack() {
  for (CudaLink* link : links_) link->giveBack();
}

Status CudaBackend::use(const PinnedMemory& memory) {
  VIADUCT_CHECK(listen());
  VIADUCT_TRY(const auto gpu, gpus_->open(memory.buffer->context->ordinal()));
  return Ok{};
}

Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context) {
  return std::unique_ptr<core::Backend>(std::make_unique<CudaBackend>(context));
}

}  // namespace viaduct::cuda
