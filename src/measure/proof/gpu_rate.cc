#include "measure/proof/gpu_rate.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <string>
#include <utility>

#include "cuda/memory.h"
#include "host/pci.h"

namespace viaduct::measure::proof {
namespace {

using std::chrono::steady_clock;

// The smallest size fits into the caches of a GPU, and the largest into none.
constexpr std::uint64_t kSmallestCopy = std::uint64_t{256} << 10U,
                        kLargestCopy = std::uint64_t{256} << 20U;
constexpr int kTries = 4;
// Number of copies between two waits, so that the launch of one copy overlaps with another copy.
constexpr std::uint64_t kCopiesOfPass = 8;
// After a pass of this length, larger buffers would only confirm the rate.
constexpr double kLongPass = 4e-3;  // seconds

std::string idOf(const cuda::Device& device) {
  if (device.uuid == cuda::CUuuid{}) return fmt::format("device {}", device.handle);
  return fmt::format("{:02x}", fmt::join(device.uuid.bytes, ""));
}

// Memory of a GPU, or pinned host memory.
class Memory {
 public:
  static Result<Memory> make(const Gpu& gpu, const cuda::Context& context, std::uint64_t bytes) {
    Memory out;
    if (gpu) {
      VIADUCT_TRY(out.device_, cuda::Allocation::make(gpu, bytes));
      return out;
    }
    VIADUCT_TRY(const auto current, cuda::Current::of(context));
    void* host = nullptr;
    VIADUCT_CUDA_CALL(context, memHostAlloc, &host, bytes, cuda::kHostRegisterPortable);
    out.host_ = {host, [&context](void* memory) {
                   const auto here = cuda::Current::of(context);
                   if (here) context.api().memFreeHost(memory);
                 }};
    return out;
  }
  cuda::CUdeviceptr address() const {
    return device_ ? device_->address() : reinterpret_cast<std::uintptr_t>(host_.get());
  }

 private:
  std::shared_ptr<const cuda::Allocation> device_;
  std::shared_ptr<void> host_;
};

class Copies {
 public:
  Copies(const Gpu& from, const Gpu& to) : from_(from), to_(to), context_(from ? *from : *to) {}
  ~Copies() {
    const auto current = cuda::Current::of(context_);
    if (current && stream_ != nullptr) context_.api().streamDestroy(stream_);
  }
  Copies(const Copies&) = delete;
  Copies& operator=(const Copies&) = delete;

  Result<std::vector<CopyRate>> measure() {
    VIADUCT_TRY(const auto current, cuda::Current::of(context_));
    VIADUCT_CUDA_CALL(context_, streamCreateWithPriority, &stream_, cuda::kStreamNonBlocking, 0);
    std::vector<CopyRate> out;
    double pass = 0;
    for (std::uint64_t bytes = kSmallestCopy; bytes <= kLargestCopy && pass < kLongPass;
         bytes *= 4) {
      VIADUCT_TRY(pass, shortest(bytes));
      out.push_back({bytes, static_cast<double>(kCopiesOfPass * bytes) / pass * 1e-9});
    }
    // A size gets at least the rate of the next larger size. Launches slow small copies down here,
    // but a transfer's kernel makes many copies with one launch.
    for (std::size_t i = out.size() - 1; i > 0; --i)
      out[i - 1].gb_per_s = std::max(out[i - 1].gb_per_s, out[i].gb_per_s);
    return out;
  }

 private:
  // Returns the seconds of the shortest pass.
  Result<double> shortest(std::uint64_t bytes) {
    VIADUCT_TRY(const Memory from, Memory::make(from_, context_, bytes));
    VIADUCT_TRY(const Memory to, Memory::make(to_, context_, bytes));
    double best = 0;
    for (int pass = 0; pass <= kTries; ++pass) {
      const auto start = steady_clock::now();
      const Status launched = launch(from, to, bytes);
      // Waits even after a failure, because copies in flight still use the memory.
      VIADUCT_CUDA_CALL(context_, streamSynchronize, stream_);
      VIADUCT_CHECK(launched);
      const double took = std::chrono::duration<double>(steady_clock::now() - start).count();
      // The time of pass 0, which touches the memory first, does not count.
      if (pass == 1 || took < best) best = took;
    }
    return std::max(best, 1e-9);
  }

  Status launch(const Memory& from, const Memory& to, std::uint64_t bytes) const {
    for (std::uint64_t i = 0; i < kCopiesOfPass; ++i)
      VIADUCT_CUDA_CALL(context_, memcpyAsync, to.address(), from.address(), bytes, stream_);
    return Ok{};
  }

  const Gpu from_, to_;
  const cuda::Context& context_;
  cuda::CUstream stream_ = nullptr;
};

}  // namespace

GpuPlace placeOf(std::uint32_t device, const Gpu& gpu) {
  const cuda::Device& facts = gpu->device();
  return {.device = device,
          .id = idOf(facts),
          .name = facts.name,
          .doubt = host::doubtOfNvidiaGpu(host::Tree(), facts.pci, facts.name)};
}

GpuRate measureGpuRate(const Gpu& from, const Gpu& to) {
  GpuRate out{.from = from ? idOf(from->device()) : "", .to = to ? idOf(to->device()) : ""};
  auto rates = Copies(from, to).measure();
  if (rates)
    out.rates = *std::move(rates);
  else
    out.why_not = rates.error().text();
  return out;
}

}  // namespace viaduct::measure::proof
