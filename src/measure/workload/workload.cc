#include "measure/workload/workload.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>
#include <utility>

#include "base/random.h"
#include "base/sizes.h"
#include "base/text.h"

namespace viaduct::measure {
namespace {

constexpr std::uint64_t kMostBytes = 64 * base::kGiB;
constexpr std::uint32_t kMostBatch = 1U << 24U;
constexpr std::uint64_t kUsualBytes = 64 * base::kMiB;  // the most bytes of a default batch
constexpr std::uint64_t kUsualBatch = 64;

Error badWorkload(std::string detail, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "workload",
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

}  // namespace

bool roundsTakeTurns(const Workload& row, const Workload& next) {
  if (row.stages && next.stages) return true;
  if (!row.swap || !next.swap || row.block_bytes != next.block_bytes) return false;
  return row.swap->direction == next.swap->direction && row.swap->order == next.swap->order;
}

Status check(const Workload& w) {
  if (w.block_bytes == 0) return badWorkload("the block size is 0", "use blocks of 1 byte or more");
  if (w.batch == 0 || w.batch > kMostBatch)
    return badWorkload(fmt::format("a batch of {} blocks is out of range", w.batch),
                       fmt::format("use 1 to {} blocks", kMostBatch));
  if (w.block_bytes > kMostBytes || w.block_bytes > kMostBytes / w.batch)
    return badWorkload(fmt::format("{} blocks of {} exceed the limit of one transfer", w.batch,
                                   base::showSize(w.block_bytes)),
                       fmt::format("use at most {} per transfer", base::showSize(kMostBytes)));
  return Ok{};
}

std::vector<std::string_view> requirementWords(std::string_view require) {
  std::vector<std::string_view> words;
  while (!require.empty()) {
    const auto comma = require.find(',');
    words.push_back(base::trimmed(require.substr(0, comma)));
    require = comma == std::string_view::npos ? "" : require.substr(comma + 1);
  }
  return words;
}

std::string requireOfTransfer(std::string_view require) {
  std::string out;
  for (const std::string_view word : requirementWords(require))
    if (word != kProvenPath) out += (out.empty() ? "" : ",") + std::string(word);
  return out;
}

std::string requireOf(const Workload& row, std::string_view require) {
  std::string more = requireOfTransfer(require);
  if (row.backend.empty()) return more;
  return fmt::format("backend:{}{}{}", row.backend, more.empty() ? "" : ",", more);
}

std::vector<std::uint64_t> usualBlockSizes() {
  std::vector<std::uint64_t> sizes;
  for (std::uint64_t size = 4 * base::kKiB; size <= 64 * base::kMiB; size *= 4)
    sizes.push_back(size);
  return sizes;
}

std::uint32_t usualBatch(std::uint64_t block_bytes) {
  const std::uint64_t fit = kUsualBytes / std::max<std::uint64_t>(block_bytes, 1);
  return static_cast<std::uint32_t>(std::clamp<std::uint64_t>(fit, 1, kUsualBatch));
}

std::vector<std::uint32_t> blockOrder(std::uint32_t batch, std::uint64_t seed, Role role) {
  std::vector<std::uint32_t> order(batch);
  std::iota(order.begin(), order.end(), 0U);
  base::Random random(seed * 2 + static_cast<std::uint64_t>(role));
  for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

}  // namespace viaduct::measure
