#include "measure/swap/swap_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <memory>
#include <utility>

#include "base/sizes.h"
#include "measure/proof/gpu_rate.h"
#include "measure/proof/memory_rate.h"
#include "measure/stats/statistics.h"
#include "measure/swap/places.h"
#include "measure/swap/ways.h"

namespace viaduct::measure::swap {

namespace {

constexpr auto kGpuLabel = "swap gpu";

using Seconds = std::chrono::duration<double>;

class Swap {
 public:
  Swap(const SwapRequest& request, const MemberScene& scene, SwapResult& result)
      : request_(request), scene_(scene), result_(result) {}

  Status run() {
    VIADUCT_TRY(gpu_, gpuOf(request_.settings, Mode::kSg, request_.gpu, 0));
    result_.gpu = gpu_->device().name;
    say(0, "measuring the GPU's copies");
    rates_[0] = proof::measureGpuRate(nullptr, gpu_);
    rates_[1] = proof::measureGpuRate(gpu_, nullptr);
    VIADUCT_CHECK(allocate());
    VIADUCT_CHECK(connect());
    const std::vector<Case> cases = casesOf(request_);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      say(i, fmt::format("{} {} {}", directionName(cases[i].direction), orderName(cases[i].order),
                         base::showSize(cases[i].block_bytes)));
      VIADUCT_TRY(CaseResult done, CaseRun(*this, cases[i]).run());
      result_.cases.push_back(std::move(done));
    }
    return Ok{};
  }

 private:
  // One size, direction and order.
  class CaseRun {
   public:
    CaseRun(Swap& swap, const Case& one)
        : swap_(swap), request_(swap.request_), case_(one), out_{.of = one} {
      const std::uint64_t places = placesFor(request_.blocks);
      bytes_ = places * one.block_bytes;
      out_.guard_bytes = 2 * (places - request_.blocks) * one.block_bytes;
      // Both sides have their own random order.
      for (Contents* side : {&host_, &device_})
        *side = {.seed = request_.seed,
                 .block_bytes = one.block_bytes,
                 .places = placesOf(one.order, request_.blocks,
                                    request_.seed + (side == &device_ ? 1 : 0))};
    }

    Result<CaseResult> run() {
      VIADUCT_CHECK(makeWays());
      for (auto& way : ways_) VIADUCT_CHECK(checkedCopy(*way));
      VIADUCT_CHECK(refill());
      VIADUCT_CHECK(round(*ways_[0], request_.warmup));
      for (std::uint32_t i = 0; i < request_.rounds; ++i)
        for (const std::size_t way : i % 2 == 0 ? kForth : kBack) VIADUCT_CHECK(timed(way));
      VIADUCT_CHECK(check());
      for (auto& way : ways_) VIADUCT_CHECK(checkedCopy(*way));
      for (std::size_t i = 0; i < ways_.size(); ++i) {
        out_.ways[i].copied_by = ways_[i]->copiedBy();
        out_.ways[i].path = ways_[i]->path();
      }
      ceilings();
      return std::move(out_);
    }

   private:
    static constexpr std::array<std::size_t, 2> kForth{0, 1}, kBack{1, 0};

    struct Round {
      double seconds = 0, plan_seconds = 0;
      std::uint64_t copies = 0;
    };

    std::uint64_t copyBytes() const { return request_.blocks * case_.block_bytes; }
    bool in() const { return case_.direction == Direction::kIn; }
    std::span<std::byte> hostPool() const { return swap_.host_->bytes().first(bytes_); }
    // The mirror of the pool on the GPU.
    std::span<std::byte> devicePool() const { return swap_.device_->bytes().first(bytes_); }

    Status makeWays() {
      VIADUCT_TRY(Selection host, selectionOf(*swap_.host_, host_));
      VIADUCT_TRY(Selection device, selectionOf(*swap_.device_, device_));
      ways_[0] = std::make_unique<TransferCopying>(swap_.scene_.agent, *swap_.self_,
                                                   in() ? OpKind::kWrite : OpKind::kRead,
                                                   std::move(host), std::move(device));
      std::vector<CallsCopying::Call> calls;
      for (std::uint32_t i = 0; i < request_.blocks; ++i) {
        const std::uint64_t there = swap_.host_->address() + host_.places[i] * case_.block_bytes;
        const std::uint64_t here = swap_.device_->address() + device_.places[i] * case_.block_bytes;
        calls.push_back({.to = in() ? here : there, .from = in() ? there : here});
      }
      ways_[1] = std::make_unique<CallsCopying>(swap_.gpu_, std::move(calls), case_.block_bytes);
      return Ok{};
    }

    Result<Selection> selectionOf(const Buffer& memory, const Contents& contents) const {
      VIADUCT_TRY(Blocks blocks, Blocks::strided({.base = memory.address(),
                                                  .bytes = case_.block_bytes,
                                                  .count = placesFor(request_.blocks)}));
      return Selection{.blocks = std::move(blocks), .indices = contents.places};
    }

    // Writes fresh contents into the blocks of the source, and guards everywhere else.
    Status refill() {
      host_.epoch = device_.epoch = ++epoch_;
      host_.guard_epoch = device_.guard_epoch = ++epoch_;
      if (in()) {
        host_.fill(hostPool());
        device_.fillAsGuards(devicePool());
      } else {
        host_.fillAsGuards(hostPool());
        device_.fill(devicePool());
      }
      return swap_.device_->mirror()->push(devicePool());
    }

    // Both memories have the blocks of the source now, and all guards.
    Status check() {
      swap_.scene_.agent.poll();  // orders the accesses of the agent's thread before ours
      VIADUCT_CHECK(swap_.device_->mirror()->pull(devicePool()));
      for (const bool of_gpu : {true, false}) {
        const auto wrong = of_gpu ? device_.check(devicePool()) : host_.check(hostPool());
        if (wrong && out_.wrong.empty())
          out_.wrong = fmt::format("in {} memory, {}", of_gpu ? "GPU" : "host", *wrong);
      }
      return Ok{};
    }

    Status checkedCopy(Copying& way) {
      VIADUCT_CHECK(refill());
      VIADUCT_CHECK(way.copy());
      const bool was_right = out_.wrong.empty();
      VIADUCT_CHECK(check());
      if (was_right && !out_.wrong.empty())
        out_.wrong = fmt::format(
            "{}: {}", wayName(&way == ways_[0].get() ? Way::kViaduct : Way::kOneCall), out_.wrong);
      return Ok{};
    }

    // Copies for at least that time, and once at least.
    Result<Round> round(Copying& way, std::chrono::nanoseconds time) const {
      Round out;
      const Duration planned = way.planned();
      const auto start = Clock::now();
      do {
        if (swap_.scene_.stop.load()) return Error{.code = Code::kCancelled, .operation = "bench"};
        VIADUCT_CHECK(way.copy());
        ++out.copies;
        out.seconds = Seconds(Clock::now() - start).count();
      } while (out.seconds < Seconds(time).count());
      out.plan_seconds = Seconds(way.planned() - planned).count();
      return out;
    }

    Status timed(std::size_t way) {
      VIADUCT_TRY(const Round done, round(*ways_[way], request_.duration / (2 * request_.rounds)));
      const auto copies = static_cast<double>(done.copies);
      WayResult& out = out_.ways[way];
      out.gb_per_s.push_back(copies * static_cast<double>(copyBytes()) / done.seconds * 1e-9);
      if (way == 0) out.plan_us.push_back(done.plan_seconds / copies * 1e6);
      return Ok{};
    }

    void ceilings() {
      const proof::GpuRate& rate = swap_.rates_[in() ? 0 : 1];
      if (rate.rates.empty()) {
        out_.ceiling_unknown = rate.why_not;
        return;
      }
      const double most = proof::copyCeiling(rate.rates, copyBytes());
      for (WayResult& way : out_.ways) {
        const double reached = median(way.gb_per_s);
        if (reached <= most)
          way.ceiling = Ceiling{
              .name = in() ? fmt::format("copy from pinned host memory to {}", swap_.result_.gpu)
                           : fmt::format("copy from {} to pinned host memory", swap_.result_.gpu),
              .gb_per_s = most,
              .percent = reached / most * 100};
      }
    }

    Swap& swap_;
    const SwapRequest& request_;
    const Case case_;
    CaseResult out_;
    std::uint64_t bytes_ = 0;  // of each pool
    Contents host_, device_;
    std::uint64_t epoch_ = 0;
    std::array<std::unique_ptr<Copying>, 2> ways_;  // by Way
  };

  void say(std::size_t number, const std::string& what) const {
    if (scene_.progress.step) scene_.progress.step(number, what);
  }

  Status allocate() {
    const std::uint64_t block = std::ranges::max(request_.block_sizes);
    const std::uint64_t bytes = placesFor(request_.blocks) * block;
    auto device = Buffer::make(scene_.agent, bytes, {.gpu = gpu_}, kGpuLabel);
    if (!device) {
      Error why = std::move(device).error();
      if (why.code == Code::kExhausted) {
        why.detail += fmt::format("; {} blocks of {} and their guards need {}", request_.blocks,
                                  base::showSize(block), base::showSize(bytes));
        why.remedy = "use a smaller --batch, or smaller --block-sizes";
      }
      return why;
    }
    device_ = std::make_unique<Buffer>(*std::move(device));
    VIADUCT_TRY(Buffer host, Buffer::make(scene_.agent, bytes, request_.host, "swap host"));
    host_ = std::make_unique<Buffer>(std::move(host));
    return Ok{};
  }

  Status connect() {
    VIADUCT_TRY(Peer self, scene_.agent.self());
    self_.emplace(std::move(self));
    return Ok{};
  }

  const SwapRequest& request_;
  const MemberScene& scene_;
  SwapResult& result_;
  Gpu gpu_;
  std::array<proof::GpuRate, 2> rates_ = {};  // by Direction
  std::unique_ptr<Buffer> host_, device_;
  std::optional<Peer> self_;
};

}  // namespace

std::vector<Case> casesOf(const SwapRequest& request) {
  std::vector<Case> out;
  for (const std::uint64_t bytes : request.block_sizes)
    for (const auto& direction : kDirections)
      for (const auto& order : kOrders) out.push_back({direction.value, order.value, bytes});
  return out;
}

Status runSwap(const SwapRequest& request, const MemberScene& scene, SwapResult& result) {
  return Swap(request, scene, result).run();
}

}  // namespace viaduct::measure::swap
