// Copies with memory of GPU 0, by an agent and by plain calls of the driver, in turns. Prints a
// table: the rate of each in GB/s (median of the rounds), and the ratio of the two.
//   gpu_bench [ROUNDS [digests]]
// Bytes are counted once. Each copy is checked once, which registers the host memory, also for the
// plain copies. These are one cuMemcpyAsync for each block. Then digests of blocks in random order:
// by Agent::digestBlocks, and by a launch of the sum kernel over a table that is ready. The floor
// is the rate at which the GPU's memory is read and written during a cuMemcpyAsync of 1 GiB, which
// is twice that of the copy. With `digests` only these.
#include <fmt/format.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <numeric>
#include <random>
#include <span>
#include <string_view>
#include <vector>

#include "backends/cuda/gpu_kernel.h"
#include "backends/cuda/kernel/sum_rows_ptx.h"
#include "backends/cuda/mapped_memory.h"
#include "backends/cuda/sum_table.h"
#include "backends/cuda/warp.h"
#include "base/block_sums.h"
#include "base/sizes.h"
#include "cuda/context.h"
#include "cuda/memory.h"
#include "median.h"
#include "must.h"

namespace {

using namespace std::chrono_literals;
using Clock = std::chrono::steady_clock;
using viaduct::cuda::Context;
using viaduct::cuda::CUresult;
using viaduct::cuda::Current;
using viaduct::cuda::CUstream;

using viaduct::base::kGiB;
using viaduct::base::kKiB;
using viaduct::base::kMiB;

constexpr std::uint64_t kRoom = 2048 * kMiB;  // of each side
constexpr std::size_t kPlainBlocks = 4096;    // most blocks of a plain copy

void mustCall(CUresult result) {
  if (result != CUresult::kSuccess) die(fmt::format("the driver: error {}", int(result)));
}

template <class F>
double secondsOf(F work) {
  const auto begun = Clock::now();
  work();
  return std::chrono::duration<double>(Clock::now() - begun).count();
}

enum class Order { kInOrder, kGather, kScatter, kShuffle };
struct Row {
  const char* what;
  const char* from;
  const char* to;
  std::uint64_t block;
  std::uint64_t bytes;
  Order order;
};

class Bench {
 public:
  explicit Bench(int rounds)
      : rounds_(rounds),
        driver_(must(viaduct::cuda::driver("libcuda.so.1"))),
        context_(must(Context::retain(*driver_, 0))),
        agent_(must(viaduct::Agent::open({.name = "bench", .listen = {}, .backends = {"cuda"}}))),
        self_(must(agent_.self())) {
    pins_.push_back(must(agent_.allocate(kRoom, {.label = "host"})));
    const double opening = secondsOf(
        [&] { pins_.push_back(must(agent_.allocate(kRoom, {.label = "gpu", .device = 0}))); });
    pins_.push_back(must(agent_.allocate(kRoom, {.label = "gpu too", .device = 0})));
    for (const auto& backend : agent_.backends())
      if (backend.name == "cuda") fmt::print("{}\n", backend.text);
    fmt::print("first allocation of memory of the GPU: {:.0f} ms\n\n", opening * 1e3);
    must(self_.ready(30s));
    for (const char* label : {"host", "gpu", "gpu too"}) must(self_.waitPin(label, 30s));
    const Current current = must(Current::of(*context_));
    mustCall(
        context_->api().streamCreateWithPriority(&stream_, viaduct::cuda::kStreamNonBlocking, 0));
  }

  void run(const Row& row) {
    const auto count = static_cast<std::uint32_t>(row.bytes / row.block);
    const Indices from =
        order(count, row.order == Order::kGather || row.order == Order::kShuffle, 3);
    const Indices to =
        order(count, row.order == Order::kScatter || row.order == Order::kShuffle, 5);
    std::vector<viaduct::Transfer> transfer;
    double planning = secondsOf([&] {
      transfer.push_back(
          must(agent_.plan(viaduct::OpKind::kWrite, self_, blocks(row.from, row.block, count, from),
                           blocks(row.to, row.block, count, to), {.require = "gpu-direct"})));
    });
    const auto ours = [&] {
      must(transfer.front().post());
      must(transfer.front().wait(60s));
    };
    check(row, from, to, ours);
    const Current current = must(Current::of(*context_));
    std::vector<double> our, plain;
    for (int round = 0; round < rounds_; ++round) {
      our.push_back(double(row.bytes) / secondsOf(ours) / 1e9);
      plain.push_back(double(plainBlocks(from) * row.block) /
                      secondsOf([&] { copyPlainly(row, from, to); }) / 1e9);
    }
    fmt::print("{:<10} {:>9} {:>8}   {:>9.2f} {:>9.2f} {:>7.2f}   {:>8.0f}\n", row.what, row.block,
               count, median(our), median(plain), median(our) / median(plain),
               planning * 1e9 / count);
    std::fflush(stdout);
  }

  // The driver compiles the kernel for its GPU, or has it in its cache.
  void digestFirst() const {
    const auto one = blocks("gpu", 4 * kKiB, 1, {});
    fmt::print("\nfirst digest: {:.1f} ms\n",
               secondsOf([&] { must(agent_.digestBlocks(one)); }) * 1e3);
  }

  void digest(std::uint64_t block, std::uint32_t count) {
    const Indices numbers = order(count, true, 7);
    const viaduct::Selection there = blocks("gpu", block, count, numbers);
    const std::uint64_t bytes = block * count, base = pin("gpu").info().address;
    SumTable table(context_, base, block, numbers);
    const Current current = must(Current::of(*context_));
    checkDigests(there, base);
    std::vector<double> ours, by_kernel, floor, our_ratio, kernel_ratio;
    for (int round = 0; round < rounds_; ++round) {
      floor.push_back(2 * double(kGiB) / secondsOf([&] {
                        mustCall(context_->api().memcpyAsync(pin("gpu too").info().address, base,
                                                             kGiB, stream_));
                        mustCall(context_->api().streamSynchronize(stream_));
                      }) /
                      1e9);
      by_kernel.push_back(double(bytes) / secondsOf([&] {
                            must(table.launch(stream_));
                            mustCall(context_->api().streamSynchronize(stream_));
                          }) /
                          1e9);
      ours.push_back(double(bytes) / secondsOf([&] { must(agent_.digestBlocks(there)); }) / 1e9);
      our_ratio.push_back(ours.back() / floor.back());
      kernel_ratio.push_back(by_kernel.back() / floor.back());
    }
    fmt::print("{:>10} {:>8}   {:>12.1f} {:>9.1f} {:>9.1f}   {:>12.2f} {:>9.2f}\n", block, count,
               median(ours), median(by_kernel), median(floor), median(our_ratio),
               median(kernel_ratio));
    std::fflush(stdout);
  }

 private:
  using Indices = std::vector<std::uint32_t>;

  // A launch of the sum kernel over all of some blocks.
  class SumTable {
   public:
    SumTable(const std::shared_ptr<const Context>& context, std::uint64_t base, std::uint64_t block,
             const Indices& numbers)
        : kernel_(must(viaduct::cuda::GpuKernel::load(context, viaduct::cuda::kSumRowsPtx,
                                                      "viaduct_sum_rows"))),
          groups_(2 * context->device().multiprocessors) {
      std::vector<viaduct::core::BlockPiece> pieces;
      for (const std::uint32_t number : numbers)
        pieces.push_back({.address = base + number * block, .bytes = block});
      const std::uint64_t most = viaduct::cuda::mostBytesOfSumRow(
          block * numbers.size(), groups_ * viaduct::cuda::kMostWarpsOfGroup);
      const std::size_t room =
          viaduct::cuda::roomForSums(pieces.size(), block * numbers.size(), most);
      using viaduct::cuda::MappedMemory;
      rows_ = must(MappedMemory::allocate(context, room * sizeof(viaduct::cuda::SumRow)));
      sums_ = must(MappedMemory::allocate(context, room * sizeof(viaduct::base::BlockSums)));
      count_ =
          viaduct::cuda::cutSums(pieces, most, static_cast<viaduct::cuda::SumRow*>(rows_.host()));
    }
    viaduct::Status launch(CUstream stream) {
      viaduct::cuda::CUdeviceptr rows = rows_.device(), sums = sums_.device();
      std::array<void*, 3> arguments{&rows, &sums, &count_};
      return kernel_->launch(stream, count_, groups_, arguments);
    }

   private:
    const std::unique_ptr<const viaduct::cuda::GpuKernel> kernel_;
    const std::uint32_t groups_;
    std::uint32_t count_ = 0;
    viaduct::cuda::MappedMemory rows_, sums_;
  };

  void checkDigests(const viaduct::Selection& there, std::uint64_t base) const {
    const auto digests = must(agent_.digestBlocks(there));
    const std::vector<std::byte> copy = read("gpu", there.blocks.bytes());
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const auto block = there.blocks[there.indices[i]];
      if (digests[i] !=
          viaduct::digestOf(std::span(copy).subspan(block.address - base, block.bytes)))
        die(fmt::format("block {} of {} bytes has a wrong digest", i, block.bytes));
    }
  }

  static Indices order(std::uint32_t count, bool shuffled, unsigned seed) {
    Indices out(count);
    std::iota(out.begin(), out.end(), 0U);
    if (shuffled) std::shuffle(out.begin(), out.end(), std::mt19937(seed));
    return out;
  }
  const viaduct::Pin& pin(std::string_view label) const {
    return pins_[label == "host" ? 0 : label == "gpu" ? 1 : 2];
  }
  viaduct::Selection blocks(const char* label, std::uint64_t bytes, std::uint64_t count,
                            const Indices& indices) const {
    return {.blocks = must(viaduct::Blocks::strided(
                {.base = pin(label).info().address, .bytes = bytes, .count = count})),
            .indices = indices};
  }
  static std::size_t plainBlocks(const Indices& indices) {
    return std::min(indices.size(), kPlainBlocks);
  }
  void copyPlainly(const Row& row, const Indices& from, const Indices& to) const {
    const std::uint64_t a = pin(row.from).info().address, b = pin(row.to).info().address;
    for (std::size_t i = 0; i < plainBlocks(from); ++i)
      mustCall(context_->api().memcpyAsync(b + to[i] * row.block, a + from[i] * row.block,
                                           row.block, stream_));
    mustCall(context_->api().streamSynchronize(stream_));
  }

  std::vector<std::byte> read(const char* label, std::uint64_t bytes) const {
    std::vector<std::byte> out(bytes);
    if (std::string_view(label) == "host")
      std::memcpy(out.data(), pin(label).bytes().data(), bytes);
    else
      must(viaduct::cuda::copyToHost(*context_, out, pin(label).info().address));
    return out;
  }
  void write(const char* label, const std::vector<std::byte>& bytes) const {
    if (std::string_view(label) == "host")
      std::memcpy(pin(label).bytes().data(), bytes.data(), bytes.size());
    else
      must(viaduct::cuda::copyToDevice(*context_, pin(label).info().address, bytes));
  }
  template <class F>
  void check(const Row& row, const Indices& from, const Indices& to, F move) const {
    std::vector<std::byte> sent(row.bytes);
    std::uint64_t word = row.block;
    for (std::uint64_t at = 0; at + 8 <= row.bytes; at += 8) {
      word = word * 6'364'136'223'846'793'005U + 1'442'695'040'888'963'407U;
      std::memcpy(&sent[at], &word, 8);
    }
    write(row.from, sent);
    write(row.to, std::vector<std::byte>(row.bytes));
    move();
    const std::vector<std::byte> arrived = read(row.to, row.bytes);
    for (std::size_t i = 0; i < from.size(); ++i)
      if (std::memcmp(&arrived[to[i] * row.block], &sent[from[i] * row.block], row.block) != 0)
        die(fmt::format("{} {}: block {} is wrong", row.what, row.block, i));
  }

  const int rounds_;
  const viaduct::cuda::Driver* driver_;
  const std::shared_ptr<const Context> context_;
  viaduct::Agent agent_;
  std::vector<viaduct::Pin> pins_;
  viaduct::Peer self_;
  CUstream stream_ = nullptr;
};

void runCopies(Bench& bench) {
  fmt::print("{:<10} {:>9} {:>8}   {:>9} {:>9} {:>7}   {:>8}\n", "", "block", "blocks", "ours",
             "plain", "ratio", "plan ns/block");
  for (const std::uint64_t bytes : {64 * kMiB, 512 * kMiB, kRoom}) {
    bench.run({"within", "gpu", "gpu too", bytes, bytes, Order::kInOrder});
    bench.run({"in", "host", "gpu", bytes, bytes, Order::kInOrder});
    bench.run({"out", "gpu", "host", bytes, bytes, Order::kInOrder});
  }
  for (const std::uint64_t block : {4 * kKiB, 8 * kKiB, 16 * kKiB, 64 * kKiB, kMiB}) {
    const std::uint64_t bytes = 512 * kMiB;
    bench.run({"gather", "gpu", "gpu too", block, bytes, Order::kGather});
    bench.run({"scatter", "gpu", "gpu too", block, bytes, Order::kScatter});
    bench.run({"shuffle", "gpu", "gpu too", block, bytes, Order::kShuffle});
  }
  for (const Order order : {Order::kGather, Order::kScatter})
    bench.run({order == Order::kGather ? "gather" : "scatter", "gpu", "gpu too", 16 * kKiB, kRoom,
               order});
  for (const std::uint64_t block : {4 * kKiB, 8 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB}) {
    const std::uint64_t bytes = std::min(512 * kMiB, block * 16384);
    bench.run({"in", "host", "gpu", block, bytes, Order::kShuffle});
    bench.run({"out", "gpu", "host", block, bytes, Order::kShuffle});
  }
  // One small transfer at a time.
  bench.run({"in", "host", "gpu", 4 * kKiB, 4 * kKiB, Order::kInOrder});
  bench.run({"out", "gpu", "host", 4 * kKiB, 4 * kKiB, Order::kInOrder});
  bench.run({"in", "host", "gpu", 4 * kKiB, 64 * 4 * kKiB, Order::kShuffle});
  bench.run({"out", "gpu", "host", 4 * kKiB, 64 * 4 * kKiB, Order::kShuffle});
  bench.run({"within", "gpu", "gpu too", 4 * kKiB, 64 * 4 * kKiB, Order::kShuffle});
}

void runDigests(Bench& bench) {
  bench.digestFirst();
  fmt::print("\n{:>10} {:>8}   {:>12} {:>9} {:>9}   {:>12} {:>9}\n", "block", "blocks",
             "digestBlocks", "kernel", "floor", "ratio", "ratio");
  for (const std::uint64_t block :
       {kGiB, 16 * kMiB, kMiB, 256 * kKiB, 64 * kKiB, 16 * kKiB, 4 * kKiB})
    bench.digest(block, static_cast<std::uint32_t>(kGiB / block));
  bench.digest(5000, 200'000);
  bench.digest(4 * kKiB, 64);  // one small selection at a time
}

}  // namespace

int main(int argc, char** argv) {
  const bool digests_only = argc > 2 && std::string_view(argv[2]) == "digests";
  Bench bench(argc > 1 ? std::atoi(argv[1]) : 9);
  if (!digests_only) runCopies(bench);
  runDigests(bench);
  return 0;
}
