#include "measure/load/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/sizes.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kKiB = 1024;
constexpr std::uint64_t kMiB = kKiB * kKiB;
constexpr std::uint64_t kGiB = kKiB * kMiB;
constexpr std::uint64_t kMostBytes = 64 * kGiB;
constexpr std::uint32_t kMostBatch = 1U << 24U;
constexpr std::uint64_t kUsualBytes = 64 * kMiB;  // of one transfer, where the batch is ours
constexpr std::uint64_t kUsualBatch = 64;

Error bad(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "workload",
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

Status check(const Workload& w) {
  if (w.block_bytes == 0) return bad("a block size of 0", "measure blocks of 1 byte or more");
  if (w.batch == 0 || w.batch > kMostBatch)
    return bad(fmt::format("a batch of {} blocks", w.batch),
               fmt::format("use 1 to {} blocks", kMostBatch));
  if (w.block_bytes > kMostBytes || w.block_bytes > kMostBytes / w.batch)
    return bad(
        fmt::format("{} blocks of {} in one transfer", w.batch, base::showSize(w.block_bytes)),
        fmt::format("use at most {} a transfer", base::showSize(kMostBytes)));
  return Ok{};
}

std::vector<std::uint64_t> usualSizes() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 4 * kKiB; size <= 64 * kMiB; size *= 4) sizes.push_back(size);
  return sizes;
}

std::uint32_t usualBatch(std::uint64_t block_bytes) {
  const std::uint64_t fit = kUsualBytes / std::max<std::uint64_t>(block_bytes, 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, kUsualBatch));
}

template <class T>
bool repeats(std::vector<T> values) {
  std::sort(values.begin(), values.end());
  return std::adjacent_find(values.begin(), values.end()) != values.end();
}

}  // namespace

const char* memoryChoiceName(MemoryChoice choice) {
  return choice == MemoryChoice::kAllocate ? "allocate" : "malloc";
}

void encode(base::Writer& to, const Workload& w) {
  to.text(w.backend)
      .put(static_cast<std::uint8_t>(w.op))
      .put(w.block_bytes)
      .put(w.batch)
      .put(w.iterations)
      .put(static_cast<std::uint8_t>(w.memory))
      .put(w.seed);
}

Result<Workload> decodeWorkload(base::Reader& from) {
  Workload w;
  w.backend = from.text();
  const auto op = from.get<std::uint8_t>();
  w.block_bytes = from.get<std::uint64_t>();
  w.batch = from.get<std::uint32_t>();
  w.iterations = from.get<std::uint64_t>();
  const auto memory = from.get<std::uint8_t>();
  w.seed = from.get<std::uint64_t>();
  if (!from.ok() || op > 1 || memory > 1)
    return Error{.code = Code::kProtocol, .operation = "bench", .detail = "no workload"};
  w.op = static_cast<OpKind>(op);
  w.memory = static_cast<MemoryChoice>(memory);
  VIADUCT_CHECK(check(w));
  return w;
}

Result<std::vector<Workload>> workloads(const Sweep& sweep) {
  if (sweep.backends.empty()) return bad("no backend", "name at least one");
  if (repeats(sweep.backends)) return bad("a backend is named twice", "name each once");
  const auto sizes = sweep.block_sizes.empty() ? usualSizes() : sweep.block_sizes;
  if (repeats(sizes)) return bad("a block size is named twice", "name each once");
  std::vector<Workload> out;
  for (const std::string& backend : sweep.backends)
    for (const std::uint64_t size : sizes) {
      out.push_back({.backend = backend,
                     .op = sweep.op,
                     .block_bytes = size,
                     .batch = sweep.batch != 0 ? sweep.batch : usualBatch(size),
                     .iterations = sweep.iterations,
                     .memory = sweep.memory,
                     .seed = out.size() + 1});
      VIADUCT_CHECK(check(out.back()));
    }
  return out;
}

std::vector<std::uint32_t> blockOrder(const Workload& workload, Role role) {
  std::vector<std::uint32_t> order(workload.batch);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(workload.seed * 2 + static_cast<std::uint64_t>(role));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace viaduct::measure
