#include "backends/cuda/open_gpu.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "backends/cuda/calibrate.h"
#include "backends/cuda/kernel/copy_rows_ptx.h"
#include "base/guarded.h"
#include "base/log.h"
#include "base/sizes.h"
#include "cuda/driver_thread.h"

namespace viaduct::cuda {
namespace {

// The groups of a launch. Each has 512 threads with four loads of 16 bytes in flight. The memory of
// an H200 needs about 4 MiB in flight. PCIe and NVLink need far less, so a launch over them leaves
// other multiprocessors free.
constexpr std::uint32_t kGroupsWithin = 128, kGroupsOverBus = 16;
// The sizes that are used without a measurement.
constexpr Sizes kUsualKernelBelow = {64 * base::kKiB, 64 * base::kKiB, base::kMiB};

// The measured sizes of this process's devices.
base::Guarded<std::map<std::pair<const Driver*, CUdevice>, Sizes>>& measured() {
  static base::Guarded<std::map<std::pair<const Driver*, CUdevice>, Sizes>> all;
  return all;
}

// Asks the driver whether the GPU of the context can address memory of the GPU with that UUID.
// True if the driver does not show that GPU.
bool driverSaysAddressable(const Context& context, const GpuId& other) {
  if (other == GpuId{}) return true;  // an old driver shows no UUID
  const Driver& driver = context.driver();
  for (std::uint32_t i = 0; i < driver.devices(); ++i) {
    const auto device = driver.device(i);
    if (!device || device->uuid.bytes != other) continue;
    int can = device->handle == context.device().handle ? 1 : 0;
    if (can == 0) driver.api().deviceCanAccessPeer(&can, context.device().handle, device->handle);
    return can != 0;
  }
  return true;
}

}  // namespace

Result<std::shared_ptr<OpenGpu>> OpenGpu::open(const Driver& driver, std::uint32_t ordinal,
                                               AutoSize kernel_below,
                                               const std::shared_ptr<EndBell>& bell) {
  VIADUCT_TRY(auto context, Context::retain(driver, ordinal));
  const auto out = endsSoon(new OpenGpu(std::move(context)));
  if (kernel_below != std::uint64_t{0}) {
    // With 0 the copy engines copy everything, and no kernel is needed.
    auto loaded = GpuKernel::load(out->context_, kCopyRowsPtx, "viaduct_copy_rows");
    if (loaded) {
      out->kernel_ = *std::move(loaded);
    } else {
      out->no_kernel_ = loaded.error().text();
      base::log(base::LogLevel::kWarning, "cuda: small blocks are copied slowly: {}",
                out->no_kernel_);
    }
  }
  for (std::size_t i = 0; i < kDirections; ++i) {
    const auto direction = static_cast<Direction>(i);
    const std::uint32_t groups =
        std::clamp<std::uint32_t>(out->context_->device().multiprocessors, 1,
                                  direction == Direction::kWithin ? kGroupsWithin : kGroupsOverBus);
    VIADUCT_TRY(out->streams_[i],
                CopyStream::open(out->context_, direction, out->kernel_.get(), groups, bell));
  }
  if (out->kernel_ == nullptr) return out;
  if (kernel_below)
    out->kernel_below_.fill(*kernel_below);
  else
    VIADUCT_CHECK(out->measure());
  return out;
}

// Takes the sizes that this process has measured before, or measures them.
Status OpenGpu::measure() {
  auto sizes = measured().with([&](auto& all) -> Result<Sizes> {
    const std::pair key(&context_->driver(), context_->device().handle);
    if (const auto known = all.find(key); known != all.end()) return known->second;
    VIADUCT_TRY(const Sizes fresh, calibrate(context_, streams_));
    all.emplace(key, fresh);
    return fresh;
  });
  // Often the GPU's memory is full, so that there is no room for the buffers of the calibration.
  if (!sizes && sizes.error().code == Code::kExhausted) {
    base::log(base::LogLevel::kInfo, "cuda: {}: not calibrated: {}", context_->device().name,
              sizes.error().text());
    kernel_below_ = kUsualKernelBelow;
    return Ok{};
  }
  VIADUCT_TRY(kernel_below_, std::move(sizes));
  return Ok{};
}

bool OpenGpu::canReach(const Context& other) {
  if (other.ordinal() == context_->ordinal()) return true;
  if (other.ordinal() >= kMostDevices) return false;
  std::atomic<PeerAccess>& known = reach_[other.ordinal()];
  if (known == PeerAccess::kUnknown) {
    int can = 0;
    context_->api().deviceCanAccessPeer(&can, context_->device().handle, other.device().handle);
    if (can != 0) {
      const auto current = Current::of(*context_);
      const CUresult enabled = current ? context_->api().ctxEnablePeerAccess(other.handle(), 0)
                                       : CUresult::kInvalidContext;
      can = enabled == CUresult::kSuccess || enabled == CUresult::kPeerAccessAlreadyEnabled ? 1 : 0;
    }
    known = can != 0 ? PeerAccess::kYes : PeerAccess::kNo;
  }
  return known == PeerAccess::kYes;
}

bool OpenGpu::mayAddress(const GpuId& other) const {
  return addressable_.with([&](auto& all) {
    const auto known = all.find(other);
    if (known != all.end()) return known->second;
    return all.emplace(other, driverSaysAddressable(*context_, other)).first->second;
  });
}

std::string OpenGpu::description() const {
  if (kernel_ == nullptr)
    return fmt::format("{}, no kernel{}{}", context_->device().name, no_kernel_.empty() ? "" : ": ",
                       no_kernel_);
  return fmt::format("{}, kernel below {} (in), {} (out), {} (within)", context_->device().name,
                     base::formatSize(kernelBelow(Direction::kIn)),
                     base::formatSize(kernelBelow(Direction::kOut)),
                     base::formatSize(kernelBelow(Direction::kWithin)));
}

}  // namespace viaduct::cuda
