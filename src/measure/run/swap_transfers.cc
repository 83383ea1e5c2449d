#include "measure/run/swap_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "base/sizes.h"
#include "measure/run/swap_ways.h"
#include "measure/workload/swap_contents.h"

namespace viaduct::measure::swap {
namespace {

using Seconds = std::chrono::duration<double>;

// The GPU is at the far end of each transfer.
constexpr std::uint32_t kHostDevice = 1, kGpuDevice = 0;

}  // namespace

// The pools on both sides. Their memory is large enough for the largest row of the run. The rows
// that now take turns use a part of the memory, with contents for blocks of their size.
class Pools {
 public:
  void begin(const WorkerState& worker, const Workload& row) {
    const std::uint64_t places = placesFor(row.batch);
    bytes_ = places * row.block_bytes;
    into_gpu_ = row.swap->direction == Direction::kIn;
    // Both sides have their own random order.
    for (PoolContents* side : {&host_contents_, &device_contents_})
      *side = {.seed = worker.spec.seed,
               .block_bytes = row.block_bytes,
               .places = placesOf(row.swap->order, row.batch,
                                  worker.spec.seed + (side == &device_contents_ ? 1 : 0))};
  }

  Result<std::unique_ptr<Copying>> way(WorkerState& worker, const Workload& row) const {
    if (row.swap->way == Way::kOneCall)
      return std::unique_ptr<Copying>(
          std::make_unique<CallsCopying>(gpu_, callsOf(row), row.block_bytes));
    VIADUCT_TRY(Peer self, worker.agent.self());
    VIADUCT_TRY(Selection host, selectionOf(row, *host_, host_contents_));
    VIADUCT_TRY(Selection device, selectionOf(row, *device_, device_contents_));
    return std::unique_ptr<Copying>(std::make_unique<TransferCopying>(
        worker.agent, std::move(self), into_gpu_ ? OpKind::kWrite : OpKind::kRead, std::move(host),
        std::move(device)));
  }

  // Writes fresh contents into the blocks of the source, and guards everywhere else.
  Status refill() {
    host_contents_.epoch = device_contents_.epoch = ++epoch_;
    host_contents_.guard_epoch = device_contents_.guard_epoch = ++epoch_;
    const Mirror* const gpu = device_->mirror();
    VIADUCT_CHECK(into_gpu_ ? host_contents_.fill(hostPool())
                            : host_contents_.fillAsGuards(hostPool()));
    return into_gpu_ ? device_contents_.fillAsGuards(devicePool(), gpu)
                     : device_contents_.fill(devicePool(), gpu);
  }

  // After a copy, checks that both pools have the source's blocks, and all guard blocks. Returns
  // the first wrong bytes.
  Result<std::string> check(Agent& agent) {
    agent.poll();  // orders the accesses of the agent's thread before ours
    VIADUCT_TRY(const Wrong in_gpu, device_contents_.verify(devicePool(), device_->mirror()));
    if (in_gpu) return fmt::format("in GPU memory, {}", *in_gpu);
    VIADUCT_TRY(const Wrong in_host, host_contents_.verify(hostPool()));
    return in_host ? fmt::format("in host memory, {}", *in_host) : std::string();
  }

  bool intoGpu() const { return into_gpu_; }
  std::uint32_t gpu() const { return *device_->gpu(); }
  std::string gpuName() const { return gpu_->device().name; }
  std::uint64_t bytes() const { return bytes_; }

  Status allocate(WorkerState& worker) {
    const Spec& spec = worker.spec;
    std::uint64_t block = 0, most = 0;
    for (const Workload& row : spec.rows)
      if (const std::uint64_t bytes = placesFor(row.batch) * row.block_bytes; bytes > most) {
        most = bytes;
        block = row.block_bytes;
      }
    VIADUCT_TRY(Gpu gpu, gpuOf(worker.settings, Mode::kSg, *spec.initiator_gpu, 0));
    auto device = Buffer::make(worker.agent, most, {.gpu = gpu}, "swap gpu");
    if (!device) {
      Error why = std::move(device).error();
      if (why.code != Code::kExhausted) return why;
      why.detail +=
          fmt::format("; {} blocks of {} and their guards need {}", spec.rows.front().batch,
                      base::showSize(block), base::roundedSize(most));
      why.remedy = "use a smaller --batch, or smaller --block-sizes";
      return why;
    }
    VIADUCT_TRY(Buffer host,
                Buffer::make(worker.agent, most,
                             {.choice = spec.memory, .huge_pages = spec.huge_pages}, "swap host"));
    device_.emplace(*std::move(device));
    host_.emplace(std::move(host));
    gpu_ = std::move(gpu);
    return Ok{};
  }

 private:
  static Result<Selection> selectionOf(const Workload& row, const Buffer& memory,
                                       const PoolContents& contents) {
    VIADUCT_TRY(Blocks blocks, Blocks::strided({.base = memory.address(),
                                                .bytes = row.block_bytes,
                                                .count = placesFor(row.batch)}));
    return Selection{.blocks = std::move(blocks), .indices = contents.places};
  }

  std::vector<CallsCopying::Call> callsOf(const Workload& row) const {
    std::vector<CallsCopying::Call> out;
    for (std::uint32_t i = 0; i < row.batch; ++i) {
      const std::uint64_t here = host_->address() + host_contents_.places[i] * row.block_bytes;
      const std::uint64_t there = device_->address() + device_contents_.places[i] * row.block_bytes;
      out.push_back({.to = into_gpu_ ? there : here, .from = into_gpu_ ? here : there});
    }
    return out;
  }

  std::span<std::byte> hostPool() const { return host_->bytes().first(bytes_); }
  // Returns the host memory that mirrors the pool on the GPU.
  std::span<std::byte> devicePool() const { return device_->bytes().first(bytes_); }

  Gpu gpu_;
  std::optional<Buffer> host_, device_;
  bool into_gpu_ = true;
  std::uint64_t bytes_ = 0;  // of each pool, for the rows that take turns now
  std::uint64_t epoch_ = 0;
  PoolContents host_contents_, device_contents_;
};

namespace {

class SwapTransfers final : public RowTransfers {
 public:
  SwapTransfers(WorkerState& worker, const Workload& row, std::shared_ptr<Pools> pools)
      : worker_(worker), row_(row), pools_(std::move(pools)) {}

  const Workload& row() const override { return row_; }

  std::string name() const override {
    return fmt::format("{} {} {}, {}", directionName(row_.swap->direction),
                       orderName(row_.swap->order), base::showSize(row_.block_bytes),
                       wayName(row_.swap->way));
  }

  bool anyOrder() const override { return true; }

  Status prepare() override {
    pools_->begin(worker_, row_);
    VIADUCT_TRY(way_, pools_->way(worker_, row_));
    VIADUCT_CHECK(checkedCopy());
    return pools_->refill();  // all further copies are checked together
  }

  std::vector<Goal> warmUp() const override {
    return {{.iterations = 1, .time = worker_.spec.warmup}};
  }

  Schedule schedule(const WarmUp& /*warm*/) override {
    // The rows that take turns (the two ways to copy the same blocks) share the duration.
    const Duration each = worker_.spec.duration / (2 * worker_.spec.repeat);
    Schedule out{.repeat = {.iterations = 1, .time = each}, .repeats = worker_.spec.repeat};
    out.planned.of_seconds = Seconds(each).count() * worker_.spec.repeat;
    return out;
  }

  void begin() override {
    before_ = way_->path();
    copies_ = 0;
    latency_ = planned_ = {};
  }

  Status finish() override {
    VIADUCT_TRY(const std::string wrong, pools_->check(worker_.agent));
    note(wrong);
    claims_ = way_->path().since(before_);
    return checkedCopy();
  }

  Status move(const Goal& goal, const Moving& moving) override {
    times_ = {};
    times_.start = Clock::now();
    auto now = times_.start, look = now;
    do {
      if (now >= look) look = moving.look();
      if (moving.orders.load() == measure::Order::kCancel)
        return Error{.code = Code::kCancelled, .operation = "bench"};
      VIADUCT_CHECK(way_->copy());
      const auto ended = Clock::now();
      latency_.record(nanoseconds(ended - now));
      planned_.record(nanoseconds(way_->planned()));
      now = ended;
      ++times_.iterations;
      ++copies_;
    } while (now < times_.start + goal.time && moving.orders.load() == measure::Order::kGoOn);
    times_.parts = {{times_.iterations * row_.bytes(), Seconds(now - times_.start).count()}};
    return Ok{};
  }

  std::uint64_t bytesMoved() const override { return copies_ * row_.bytes(); }

  void tell(RoundShare& round) const override {
    round.streams.push_back({.stream = 0,
                             .iterations = times_.iterations,
                             .start_ns = nanoseconds(times_.start.time_since_epoch()),
                             .parts = times_.parts});
  }

  std::vector<proof::Claim> claims() const override {
    return {{.peer = worker_.rank,
             .op = pools_->intoGpu() ? OpKind::kWrite : OpKind::kRead,
             .path = claims_,
             .device = kHostDevice,
             .far_device = kGpuDevice}};
  }

  void tell(RowShare& row) const override {
    row.latency = latency_;
    if (!way_) return;
    if (row_.swap->way == Way::kViaduct) row.prep = planned_;
    row.transfers = copies_;
    row.bytes = bytesMoved();
    row.mismatch = wrong_;
    row.checks = checks_;
    row.missed = missed_;
    row.streams.push_back({.stream = 0,
                           .iterations = copies_,
                           .bytes = bytesMoved(),
                           .latency_us = latencyOf(latency_)});
    row.gpus.push_back(pools_->gpu());
  }

  void complete(Composed& made) const override {
    made.row.kind = SwapRow{.direction = directionName(row_.swap->direction),
                            .order = orderName(row_.swap->order),
                            .way = wayName(row_.swap->way),
                            .gpu = pools_->gpuName(),
                            .guard_bytes = 2 * (pools_->bytes() - row_.bytes())};
    made.row.scheme = "swap";
    made.row.op = pools_->intoGpu() ? OpKind::kWrite : OpKind::kRead;
  }

 private:
  static std::uint64_t nanoseconds(Duration time) {
    return static_cast<std::uint64_t>(std::chrono::nanoseconds(time).count());
  }

  void note(const std::string& wrong) {
    ++checks_;
    if (!wrong.empty()) ++missed_;
    if (wrong_.empty() && !wrong.empty())
      wrong_ = fmt::format("{}: {}", wayName(row_.swap->way), wrong);
  }

  // Copies fresh contents, and checks every byte of both pools.
  Status checkedCopy() {
    VIADUCT_CHECK(pools_->refill());
    VIADUCT_CHECK(way_->copy());
    VIADUCT_TRY(const std::string wrong, pools_->check(worker_.agent));
    note(wrong);
    return Ok{};
  }

  WorkerState& worker_;
  const Workload& row_;
  const std::shared_ptr<Pools> pools_;
  std::unique_ptr<Copying> way_;
  Path before_, claims_;  // the path at begin(); the path of the timed copies
  LaneTimes times_ = {};  // of the last round
  Histogram latency_, planned_;
  std::uint64_t copies_ = 0, checks_ = 0, missed_ = 0;
  std::string wrong_;
};

}  // namespace

Result<std::shared_ptr<Pools>> makePools(WorkerState& worker) {
  auto out = std::make_shared<Pools>();
  VIADUCT_CHECK(out->allocate(worker));
  return out;
}

std::unique_ptr<RowTransfers> swapTransfers(WorkerState& worker, const Workload& row,
                                            std::shared_ptr<Pools> pools) {
  return std::make_unique<SwapTransfers>(worker, row, std::move(pools));
}

}  // namespace viaduct::measure::swap
