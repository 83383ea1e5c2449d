#include "agent/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agent/core.h"
#include "agent/peer_core.h"

namespace viaduct::agent {
namespace {

// No more rails than bytes over this: below it, a second rail costs more than it carries.
constexpr std::uint64_t kMinChunk = 16 * 1024;

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
    return {.code = Code::kUnsupported,
            .operation = "route",
            .detail =
                fmt::format("no backend that the requirement allows reaches {:#x} from {:#x} ({})",
                            op.remote, op.local, said),
            .peer = peer_.name(),
            .cause = "the required path is not there, or this kind of memory cannot go that way",
            .remedy = "relax `require`, open the backend at both ends, or see Peer::ways()"};
  }

  PeerCore& peer_;
  const OpKind kind_;
  std::vector<LinkSlot*> links_;
  Choice last_;
  std::uint32_t last_local_ = 0, last_remote_ = 0;
};

void addLanes(AgentCore& agent, const Choice& choice, std::vector<core::Op> ops,
              std::vector<Lane>& out) {
  core::Backend& backend = agent.backend(choice.slot->backend());
  std::vector<core::Rail*> rails;
  for (const auto& rail : backend.rails())
    if (choice.slot->link->servedBy(*rail)) rails.push_back(rail.get());
  auto parts = core::stripe(std::move(ops), rails.size(), kMinChunk);
  for (std::size_t i = 0; i < parts.size(); ++i)
    if (!parts[i].empty())
      out.push_back({.rail = rails[i],
                     .link = choice.slot->link.get(),
                     .backend = backend.can().name,
                     .way = choice.way,
                     .rail_name = std::string(rails[i]->name()),
                     .ops = std::move(parts[i])});
}

}  // namespace

Result<std::vector<Lane>> route(AgentCore& agent, PeerCore& peer, OpKind kind,
                                std::vector<core::Op> ops, const core::Requirement& requirement) {
  Router router(agent, peer, kind, requirement);
  std::vector<Lane> lanes;
  if (ops.empty()) return lanes;
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
  addLanes(agent, first, std::move(ops), lanes);
  for (auto& [choice, group] : others) addLanes(agent, choice, std::move(group), lanes);
  return lanes;
}

}  // namespace viaduct::agent
