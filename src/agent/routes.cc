#include "agent/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agent/core.h"
#include "agent/peer_core.h"
#include "base/log.h"
#include "base/sizes.h"

namespace viaduct::agent {
namespace {

// Of backends that do not ask for more.
constexpr std::uint64_t kMinChunk = 16 << 10;

bool satisfies(const core::Capabilities& can, const core::Requirement& required) {
  return (!required.rdma || can.rdma) && (!required.same_host || can.same_host) &&
         (!required.not_tcp || !can.tcp) &&
         (required.backend.empty() || required.backend == can.name);
}

struct Choice {
  LinkSlot* slot = nullptr;
  std::string_view way;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The usable links, the most preferred first, and a choice among them per pair of pins.
class Router {
 public:
  Router(AgentCore& agent, PeerCore& peer, OpKind kind, const core::Requirement& required)
      : peer_(peer), kind_(kind) {
    for (const auto& slot : peer.links())
      if (satisfies(agent.backend(slot->backend()).can(), required) &&
          slot->link->state().phase == core::LinkState::Phase::kReady)
        links_.push_back(slot.get());
    // Among equals the agent's order, so that the choice never depends on chance.
    const auto rank = [&](const LinkSlot* slot) {
      return std::pair(agent.backend(slot->backend()).can().preference, slot->backend());
    };
    std::sort(links_.begin(), links_.end(),
              [&](const LinkSlot* a, const LinkSlot* b) { return rank(a) < rank(b); });
  }

  // The same pair comes many times in a row: one comparison then.
  Result<Choice> choose(const core::Op& op) {
    if (last_.slot != nullptr && op.local_pin == last_local_ && op.remote_pin == last_remote_)
      return last_;
    for (LinkSlot* slot : links_)
      if (const auto way = slot->link->reaches(kind_, op.local_pin, op.remote_pin)) {
        last_ = {slot, *way};
        last_local_ = op.local_pin;
        last_remote_ = op.remote_pin;
        return last_;
      }
    return refusal(op);
  }

 private:
  Error refusal(const core::Op& op) const {
    std::string said;
    for (const PeerWay& way : peer_.ways())
      said += fmt::format("{}{}: {}", said.empty() ? "" : "; ", way.backend, way.text);
    if (said.empty()) said = "no backend is open at both ends";
    return {.code = Code::kUnsupported,
            .operation = "route",
            .detail =
                fmt::format("no backend that the requirement allows reaches {:#x} from {:#x} ({})",
                            op.remote, op.local, said),
            .peer = peer_.name(),
            .cause = "the required path does not exist, or cannot carry this kind of memory",
            .remedy = "relax `require`, open the backend at both ends, or see Peer::ways()"};
  }

  PeerCore& peer_;
  const OpKind kind_;
  std::vector<LinkSlot*> links_;
  Choice last_;
  std::uint32_t last_local_ = 0, last_remote_ = 0;
};

// How finely ops are divided for this link, of whose rails so many serve.
core::Slicing slicingFor(const Settings& settings, const core::Capabilities& can,
                         std::size_t served) {
  core::Slicing how{.rails = served};
  how.min_chunk = std::max(can.min_chunk, kMinChunk);
  if (settings.min_chunk != 0) how.min_chunk = settings.min_chunk;
  if (settings.striping == Toggle::kOn) how.min_chunk = how.align;
  if (settings.striping == Toggle::kOff) how.rails = 1;
  return how;
}

void sayWhatWasPlanned(const PeerCore& peer, const Choice& choice, std::string_view backend,
                       const core::Sliced& plan, std::size_t rails, const core::Slicing& how) {
  if (rails < 2 || plan.slices.size() >= rails) return;
  std::uint64_t bytes = 0;
  for (const core::Slice& slice : plan.slices) bytes += slice.bytes;
  base::log(base::LogLevel::kDebug,
            "peer {}: {} over {} of {} rails of {}/{}: no rail gets less than {}", peer.name(),
            base::showSize(bytes), plan.slices.size(), rails, backend, choice.way,
            base::showSize(how.min_chunk));
}

// Of its rails those nearest to any of the memory here.
core::RailMask nearestTo(std::span<const core::Op> ops, const core::Backend& backend) {
  core::RailMask near = 0;
  std::uint32_t last = 0;
  for (const core::Op& op : ops) {
    if (near != 0 && op.local_pin == last) continue;
    last = op.local_pin;
    near |= backend.near(last);
  }
  return near;
}

std::vector<Bundle::Lane> lanesFor(AgentCore& agent, core::Backend& backend,
                                   std::span<const core::Op> ops) {
  const auto rails = backend.rails();
  const core::RailMask near = rails.size() < 2 ? core::kAllRails : nearestTo(ops, backend);
  std::vector<Bundle::Lane> lanes;
  lanes.reserve(rails.size());
  for (std::size_t i = 0; i < rails.size(); ++i)
    lanes.push_back({.rail = rails[i].get(),
                     .load = &agent.load(*rails[i]),
                     .name = std::string(rails[i]->name()),
                     .near = near == core::kAllRails || (near >> i & 1U) != 0});
  return lanes;
}

void addBundle(AgentCore& agent, const PeerCore& peer, const Choice& choice,
               std::vector<core::Op> ops, std::vector<Bundle>& out) {
  core::Backend& backend = agent.backend(choice.slot->backend());
  core::Link& link = *choice.slot->link;
  std::vector<Bundle::Lane> lanes = lanesFor(agent, backend, ops);
  const std::size_t served = Bundle::serving(link, lanes);
  const core::Capabilities& can = backend.can();
  const core::Slicing how = slicingFor(agent.settings(), can, served);
  auto plan = core::slice(std::move(ops), how);
  sayWhatWasPlanned(peer, choice, can.name, plan, served, how);
  const std::uint32_t first_tag = out.empty() ? 0 : out.back().endTag();
  out.emplace_back(Bundle::Way{.link = &link, .backend = can.name, .way = std::string(choice.way)},
                   std::move(plan), std::move(lanes), first_tag);
}

}  // namespace

Result<std::vector<Bundle>> route(AgentCore& agent, PeerCore& peer, OpKind kind,
                                  std::vector<core::Op> ops, const core::Requirement& requirement) {
  Router router(agent, peer, kind, requirement);
  std::vector<Bundle> bundles;
  if (ops.empty()) return bundles;
  VIADUCT_TRY(const Choice first, router.choose(ops.front()));
  // Nearly always every op goes the same way, and the list can be handed on as it is.
  std::vector<std::pair<Choice, std::vector<core::Op>>> others;
  std::size_t same = 0;
  for (const core::Op& op : ops) {
    VIADUCT_TRY(const Choice choice, router.choose(op));
    if (choice == first) {
      ops[same++] = op;
      continue;
    }
    auto group = std::find_if(others.begin(), others.end(),
                              [&](const auto& other) { return other.first == choice; });
    if (group == others.end()) group = others.insert(others.end(), {choice, {}});
    group->second.push_back(op);
  }
  ops.resize(same);
  addBundle(agent, peer, first, std::move(ops), bundles);
  for (auto& [choice, group] : others) addBundle(agent, peer, choice, std::move(group), bundles);
  return bundles;
}

}  // namespace viaduct::agent
