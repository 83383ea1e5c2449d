// Copies with memory of GPU 0, by an agent and by plain calls of the driver, in turns. Prints a
// table: the rate of each in GB/s (median of the rounds), and the ratio of the two.
//   gpu_bench [ROUNDS [digests]]
// Bytes are counted once. Each copy is checked once, which registers the host memory, also for the
// plain copies. A plain copy is one cuMemcpyAsync for each block. Then the program measures digests
// of blocks in random order: by Agent::digestBlocks, and by a launch of the sum kernel over a table
// that is ready. The floor is the rate at which the GPU's memory is read and written during a
// cuMemcpyAsync of 1 GiB, which is twice that of the copy. With `digests`, the program measures
// only the digests.
#include <array>
#include <memory>
#include <optional>

#include "backends/cuda/gpu_kernel.h"
#include "backends/cuda/kernel/sum_rows_ptx.h"
#include "backends/cuda/mapped_memory.h"
#include "backends/cuda/sum_table.h"
#include "backends/cuda/warp.h"
#include "base/block_sums.h"
#include "base/sizes.h"
#include "cuda/context.h"
#include "cuda/memory.h"
#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;
using cuda::Context;
using cuda::CUresult;
using cuda::Current;
using cuda::CUstream;

using base::kGiB;
using base::kKiB;
using base::kMiB;

constexpr std::uint64_t kRoom = 2048 * kMiB;  // of each side
constexpr std::size_t kPlainBlocks = 4096;    // most blocks of a plain copy

void mustCall(CUresult result) {
  if (result != CUresult::kSuccess) die(fmt::format("the driver: error {}", int(result)));
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
  Bench(const cuda::Driver& driver, int rounds)
      : rounds_(rounds),
        context_(must(Context::retain(driver, 0))),
        agent_(must(Agent::open({.name = "bench", .listen = {}, .backends = {"cuda"}}))),
        self_(must(agent_.self())) {
    pins_.push_back(must(agent_.allocate(kRoom, {.label = "host"})));
    const double opening = secondsOf(
        [&] { pins_.push_back(must(agent_.allocate(kRoom, {.label = "gpu", .device = 0}))); });
    pins_.push_back(must(agent_.allocate(kRoom, {.label = "gpu too", .device = 0})));
    for (const auto& backend : agent_.backends())
      if (backend.name == "cuda") fmt::print("{}\n", backend.text);
    fmt::print("first allocation of memory of the GPU: {:.0f} ms\n\n", opening * 1e3);
    must(self_.ready(kLong));
    for (const char* label : {"host", "gpu", "gpu too"}) must(self_.waitPin(label, kLong));
    const Current current = must(Current::of(*context_));
    mustCall(context_->api().streamCreateWithPriority(&stream_, cuda::kStreamNonBlocking, 0));
  }

  void run(Table& table, const Row& row) {
    const auto count = static_cast<std::uint32_t>(row.bytes / row.block);
    const Indices from =
        order(count, row.order == Order::kGather || row.order == Order::kShuffle, 3);
    const Indices to =
        order(count, row.order == Order::kScatter || row.order == Order::kShuffle, 5);
    std::optional<Transfer> transfer;
    const double planning = secondsOf([&] {
      transfer = must(agent_.plan(OpKind::kWrite, self_, of(row.from, row.block, count, from),
                                  of(row.to, row.block, count, to), {.require = "gpu-direct"}));
    });
    check(row, from, to, [&] { postAndWait(*transfer); });
    const Current current = must(Current::of(*context_));
    const auto [our, plain] =
        inTurns({rounds_}, {[&](int) { return secondsOf([&] { postAndWait(*transfer); }); },
                            [&](int) { return secondsOf([&] { copyPlainly(row, from, to); }); }});
    const Samples our_rate = gigabytes(row.bytes) / our,
                  plain_rate = gigabytes(plainBlocks(from) * row.block) / plain;
    table.row(row.what, row.block, count, our_rate, plain_rate,
              our_rate.median() / plain_rate.median(), planning * 1e9 / count);
  }

  // Times the first digest, for which the driver compiles the kernel or finds it in its cache.
  void digestFirst() const {
    const auto one = of("gpu", 4 * kKiB, 1, {});
    fmt::print("\nfirst digest: {:.1f} ms\n",
               secondsOf([&] { must(agent_.digestBlocks(one)); }) * 1e3);
  }

  void digest(Table& table, std::uint64_t block, std::uint32_t count) {
    const Indices numbers = order(count, true, 7);
    const Selection there = of("gpu", block, count, numbers);
    const std::uint64_t base = pin("gpu").info().address;
    SumTable sums(context_, base, block, numbers);
    const Current current = must(Current::of(*context_));
    checkDigests(there, base);
    const auto timed = [&](double bytes, const auto& work) {
      return gigabytes(bytes) / secondsOf([&] {
               work();
               mustCall(context_->api().streamSynchronize(stream_));
             });
    };
    const auto all = static_cast<double>(block * count);
    const auto [floor, by_kernel, ours] = inTurns(
        {rounds_}, {[&](int) {
                      return timed(2.0 * kGiB, [&] {
                        mustCall(context_->api().memcpyAsync(pin("gpu too").info().address, base,
                                                             kGiB, stream_));
                      });
                    },
                    [&](int) { return timed(all, [&] { must(sums.launch(stream_)); }); },
                    [&](int) {
                      return gigabytes(all) / secondsOf([&] { must(agent_.digestBlocks(there)); });
                    }});
    table.row(block, count, ours, by_kernel, floor, ours / floor, by_kernel / floor);
  }

 private:
  static double gigabytes(auto bytes) { return static_cast<double>(bytes) / 1e9; }

  // Some blocks as the arguments of the kernel that sums them, ready to be launched again and
  // again.
  class SumTable {
   public:
    SumTable(const std::shared_ptr<const Context>& context, std::uint64_t base, std::uint64_t block,
             const Indices& numbers)
        : kernel_(must(cuda::GpuKernel::load(context, cuda::kSumRowsPtx, "viaduct_sum_rows"))),
          groups_(2 * context->device().multiprocessors) {
      std::vector<core::BlockPiece> pieces;
      for (const std::uint32_t number : numbers)
        pieces.push_back({.address = base + number * block, .bytes = block});
      const std::uint64_t most =
          cuda::mostBytesOfSumRow(block * numbers.size(), groups_ * cuda::kMostWarpsOfGroup);
      const std::size_t room = cuda::roomForSums(pieces.size(), block * numbers.size(), most);
      using cuda::MappedMemory;
      rows_ = must(MappedMemory::allocate(context, room * sizeof(cuda::SumRow)));
      sums_ = must(MappedMemory::allocate(context, room * sizeof(base::BlockSums)));
      count_ = cuda::cutSums(pieces, most, static_cast<cuda::SumRow*>(rows_.host()));
    }
    Status launch(CUstream stream) {
      cuda::CUdeviceptr rows = rows_.device(), sums = sums_.device();
      std::array<void*, 3> arguments{&rows, &sums, &count_};
      return kernel_->launch(stream, count_, groups_, arguments);
    }

   private:
    const std::unique_ptr<const cuda::GpuKernel> kernel_;
    const std::uint32_t groups_;
    std::uint32_t count_ = 0;
    cuda::MappedMemory rows_, sums_;
  };

  void checkDigests(const Selection& there, std::uint64_t base) const {
    const auto digests = must(agent_.digestBlocks(there));
    const std::vector<std::byte> copy = read("gpu", there.blocks.bytes());
    for (std::size_t i = 0; i < digests.size(); ++i) {
      const auto block = there.blocks[there.indices[i]];
      if (digests[i] != digestOf(std::span(copy).subspan(block.address - base, block.bytes)))
        die(fmt::format("block {} of {} bytes has a wrong digest", i, block.bytes));
    }
  }

  static Indices order(std::uint32_t count, bool random, unsigned seed) {
    if (random) return shuffled(count, seed);
    Indices out(count);
    std::iota(out.begin(), out.end(), 0U);
    return out;
  }
  const Pin& pin(std::string_view label) const {
    return pins_[label == "host" ? 0 : label == "gpu" ? 1 : 2];
  }
  Selection of(const char* label, std::uint64_t bytes, std::uint64_t count,
               const Indices& indices) const {
    return blocks({.base = pin(label).info().address, .bytes = bytes, .count = count}, indices);
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
      must(cuda::copyToHost(*context_, out, pin(label).info().address));
    return out;
  }
  void write(const char* label, const std::vector<std::byte>& bytes) const {
    if (std::string_view(label) == "host")
      std::memcpy(pin(label).bytes().data(), bytes.data(), bytes.size());
    else
      must(cuda::copyToDevice(*context_, pin(label).info().address, bytes));
  }
  template <class F>
  void check(const Row& row, const Indices& from, const Indices& to, F move) const {
    std::vector<std::byte> sent(row.bytes);
    base::Random random(row.block);
    for (std::uint64_t at = 0; at + 8 <= row.bytes; at += 8) {
      const std::uint64_t word = random.next();
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
  const std::shared_ptr<const Context> context_;
  Agent agent_;
  std::vector<Pin> pins_;
  Peer self_;
  CUstream stream_ = nullptr;
};

void runCopies(Bench& bench) {
  Table table({words("", 10), figure("block", 0, 10), figure("blocks", 0), figure("ours", 2),
               figure("plain", 2), figure("ratio", 2), figure("plan ns/block", 0)});
  for (const std::uint64_t bytes : {64 * kMiB, 512 * kMiB, kRoom}) {
    bench.run(table, {"within", "gpu", "gpu too", bytes, bytes, Order::kInOrder});
    bench.run(table, {"in", "host", "gpu", bytes, bytes, Order::kInOrder});
    bench.run(table, {"out", "gpu", "host", bytes, bytes, Order::kInOrder});
  }
  for (const std::uint64_t block : {4 * kKiB, 8 * kKiB, 16 * kKiB, 64 * kKiB, kMiB}) {
    const std::uint64_t bytes = 512 * kMiB;
    bench.run(table, {"gather", "gpu", "gpu too", block, bytes, Order::kGather});
    bench.run(table, {"scatter", "gpu", "gpu too", block, bytes, Order::kScatter});
    bench.run(table, {"shuffle", "gpu", "gpu too", block, bytes, Order::kShuffle});
  }
  for (const Order order : {Order::kGather, Order::kScatter})
    bench.run(table, {order == Order::kGather ? "gather" : "scatter", "gpu", "gpu too", 16 * kKiB,
                      kRoom, order});
  for (const std::uint64_t block : {4 * kKiB, 8 * kKiB, 16 * kKiB, 64 * kKiB, 256 * kKiB}) {
    const std::uint64_t bytes = std::min(512 * kMiB, block * 16384);
    bench.run(table, {"in", "host", "gpu", block, bytes, Order::kShuffle});
    bench.run(table, {"out", "gpu", "host", block, bytes, Order::kShuffle});
  }
  // One small transfer at a time.
  bench.run(table, {"in", "host", "gpu", 4 * kKiB, 4 * kKiB, Order::kInOrder});
  bench.run(table, {"out", "gpu", "host", 4 * kKiB, 4 * kKiB, Order::kInOrder});
  bench.run(table, {"in", "host", "gpu", 4 * kKiB, 64 * 4 * kKiB, Order::kShuffle});
  bench.run(table, {"out", "gpu", "host", 4 * kKiB, 64 * 4 * kKiB, Order::kShuffle});
  bench.run(table, {"within", "gpu", "gpu too", 4 * kKiB, 64 * 4 * kKiB, Order::kShuffle});
}

void runDigests(Bench& bench) {
  bench.digestFirst();
  Table table({figure("block", 0, 10), figure("blocks", 0), figure("digestBlocks", 1),
               figure("kernel", 1), figure("floor", 1), figure("ratio", 2), figure("ratio", 2)});
  for (const std::uint64_t block :
       {kGiB, 16 * kMiB, kMiB, 256 * kKiB, 64 * kKiB, 16 * kKiB, 4 * kKiB})
    bench.digest(table, block, static_cast<std::uint32_t>(kGiB / block));
  bench.digest(table, 5000, 200'000);
  bench.digest(table, 4 * kKiB, 64);  // one small selection at a time
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "gpu_bench [ROUNDS [digests]]");
  const auto driver = cuda::driver("libcuda.so.1");
  if (!driver) return fmt::print("skipped: {}\n", driver.error().text()), 0;
  Bench bench(**driver, given.number(0, 9));
  if (given.text(1) != "digests") runCopies(bench);
  runDigests(bench);
}
