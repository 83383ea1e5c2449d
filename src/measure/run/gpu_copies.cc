#include "measure/run/gpu_copies.h"

#include <algorithm>
#include <map>
#include <set>
#include <tuple>

namespace viaduct::measure {
namespace {

class Plan {
 public:
  explicit Plan(std::span<const GpuMember> by_rank) : by_rank_(by_rank), turns_(by_rank.size()) {}

  // Returns the id of the GPU of a member's device, or an empty text.
  std::string gpuOf(std::uint32_t rank, std::uint32_t device) const {
    const auto& gpus = by_rank_[rank].gpus;
    const auto at = std::ranges::find(gpus, device, &proof::GpuPlace::device);
    return at == gpus.end() ? "" : at->id;
  }

  // Adds the copies in both directions to the first member of the host that has both GPUs.
  void add(const std::string& boot_id, const std::string& one, const std::string& other) {
    const auto member = std::ranges::find_if(by_rank_, [&](const GpuMember& some) {
      return some.boot_id == boot_id && has(some, one) && has(some, other);
    });
    if (member == by_rank_.end()) return;
    auto& copies = turns_[static_cast<std::size_t>(member - by_rank_.begin())].copies;
    for (const GpuCopy& copy : {GpuCopy{one, other}, GpuCopy{other, one}})
      if (known_.emplace(boot_id, copy.from, copy.to).second) copies.push_back(copy);
  }

  std::vector<GpuTurn> turns() && {
    std::map<std::string, std::uint32_t> next;  // the next free turn, by host
    for (std::size_t rank = 0; rank < turns_.size(); ++rank)
      if (!turns_[rank].copies.empty()) turns_[rank].turn = next[by_rank_[rank].boot_id]++;
    return std::move(turns_);
  }

 private:
  static bool has(const GpuMember& member, const std::string& id) {
    return id.empty() ||
           std::ranges::find(member.gpus, id, &proof::GpuPlace::id) != member.gpus.end();
  }

  const std::span<const GpuMember> by_rank_;
  std::set<std::tuple<std::string, std::string, std::string>> known_;
  std::vector<GpuTurn> turns_;
};

}  // namespace

std::vector<GpuTurn> gpuTurns(const Layout& layout, std::span<const GpuMember> by_rank) {
  Plan plan(by_rank);
  for (const Pair& pair : pairsOf(layout)) {
    const std::uint32_t here = layout.initiatorRank(pair.initiator);
    const std::uint32_t there = layout.targetRank(pair.target);
    const std::string one = plan.gpuOf(here, pair.initiator);
    const std::string other = layout.stored() ? "" : plan.gpuOf(there, pair.target);
    if (!one.empty()) plan.add(by_rank[here].boot_id, one, "");
    if (!other.empty()) plan.add(by_rank[there].boot_id, other, "");
    if (!one.empty() && !other.empty() && by_rank[here].boot_id == by_rank[there].boot_id)
      plan.add(by_rank[here].boot_id, one, other);
  }
  return std::move(plan).turns();
}

}  // namespace viaduct::measure
