#include "agent/traffic/routes.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "base/log.h"
#include "base/sizes.h"

namespace viaduct::agent {
namespace {

// The default for backends that do not set Capabilities::min_chunk.
constexpr std::uint64_t kMinChunk = 16 << 10;

// Fewer ops are not packed: each chunk costs a round trip over the session.
constexpr std::size_t kLeastPacked = 256;

struct Choice {
  LinkSlot* slot = nullptr;
  std::string_view way;
  friend bool operator==(const Choice&, const Choice&) = default;
};

// The usable links, the most preferred first. Chooses one of them for each pair of pins.
class Router {
 public:
  Router(Basis& basis, PeerImpl& peer, OpKind kind, const core::Requirement& required)
      : basis_(basis),
        peer_(peer),
        kind_(kind),
        gpu_direct_(required.gpu_direct),
        no_staging_(required.no_staging),
        packed_(required.packed),
        encrypted_(required.encrypted) {
    LinkSlot* staging = nullptr;
    links_.reserve(peer.links().size());
    for (const auto& slot : peer.links()) {
      if (slot->link->state().phase != core::LinkState::Phase::kReady) continue;
      const core::Capabilities& can = basis.backend(slot->backend()).can();
      if (can.staged)
        staging = slot.get();
      else if (satisfies(can, required) && (!encrypted_ || isPrivate(*slot)))
        links_.push_back(slot.get());
    }
    // The stage between the two agents has to meet the requirement, so some backend has to meet it.
    const auto may_stage = [&] {
      const bool private_enough = !encrypted_ || peer.isOwn();
      return !links_.empty() ||
             (private_enough && satisfies(basis.backend(staging->backend()).can(), required));
    };
    if (staging != nullptr && !required.no_staging && may_stage()) links_.push_back(staging);
    staging_ = staging;
    // Links of equal preference keep the agent's order, so that the choice never depends on chance.
    const auto rank = [&](const LinkSlot* slot) {
      return std::pair(basis.backend(slot->backend()).can().preference, slot->backend());
    };
    std::sort(links_.begin(), links_.end(),
              [&](const LinkSlot* a, const LinkSlot* b) { return rank(a) < rank(b); });
  }

  // The choice for all ops with the pair of pins of `op`.
  Result<Choice> choose(const core::Op& op) const {
    for (LinkSlot* slot : links_) {
      if (slot == staging_ && gpu_direct_ && touches(MemoryKind::kDevice, op)) continue;
      // A stage at the other end may reach its store over any network.
      if (slot == staging_ && encrypted_ && touches(MemoryKind::kObject, op)) continue;
      if (const auto way = slot->link->reaches(kind_, op.local_pin, op.remote_pin))
        return Choice{slot, *way};
    }
    return refusal(op);
  }

  // Whether ops with this choice are packed into chunks: they are small for its backend, or the
  // requirement asks for it.
  bool packs(const Choice& choice, const core::OpList& list) const {
    const std::uint64_t below = basis_.backend(choice.slot->backend()).can().pack_below;
    const bool small = list.ops.size() >= kLeastPacked && list.bytes / list.ops.size() < below;
    return (small || packed_) && canPack(list);
  }
  Choice packing() const { return {staging_, "packed"}; }

 private:
  bool canPack(const core::OpList& list) const {
    return staging_ != nullptr && !no_staging_ && !peer_.isOwn() &&
           std::ranges::all_of(list.spans, [&](const core::PinSpan& span) {
             const auto remote = peer_.pins().all().find(span.remote_pin);
             return basis_.pins()[span.local_pin].info.kind == MemoryKind::kHost &&
                    remote != peer_.pins().all().end() &&
                    remote->second.info.kind == MemoryKind::kHost;
           });
  }
  bool touches(MemoryKind kind, const core::Op& op) const {
    const auto& announced = peer_.pins().all();
    const auto remote = announced.find(op.remote_pin);
    return basis_.pins()[op.local_pin].info.kind == kind ||
           (remote != announced.end() && remote->second.info.kind == kind);
  }
  // Copies within a host cross no wire.
  bool isPrivate(const LinkSlot& slot) const {
    return basis_.backend(slot.backend()).can().same_host || slot.link->isPrivate();
  }
  Error refusal(const core::Op& op) const {
    std::string said;
    for (const PeerWay& way : peer_.ways())
      said += fmt::format("{}{}: {}", said.empty() ? "" : "; ", way.backend, way.text);
    const bool own = peer_.isOwn();
    if (said.empty()) said = own ? "only networks are open" : "no backend is open at both ends";
    return {
        .code = Code::kUnsupported,
        .operation = "route",
        .detail =
            fmt::format("no backend that the requirement allows reaches {:#x} from {:#x} ({})",
                        op.remote, op.local, said),
        .peer = peer_.name(),
        .cause = own ? "no network reaches the agent's own memory, and no other backend carries it"
                     : "the required path does not exist, or cannot carry this kind of memory",
        .remedy = own ? "open the backend local too (VIADUCT_BACKENDS), or relax `require`"
                      : "relax `require`, open the backend at both ends, or see Peer::ways()"};
  }

  Basis& basis_;
  PeerImpl& peer_;
  const OpKind kind_;
  const bool gpu_direct_, no_staging_, packed_, encrypted_;
  std::vector<LinkSlot*> links_;
  LinkSlot* staging_ = nullptr;
};

// The slice sizes for a link that `served` rails serve.
core::Slicing slicingFor(const Settings& settings, const core::Capabilities& can,
                         std::size_t served) {
  core::Slicing how{.rails = served};
  how.min_chunk = std::max(can.min_chunk, kMinChunk);
  if (settings.min_chunk != 0) how.min_chunk = settings.min_chunk;
  if (settings.striping == Toggle::kOn) how.min_chunk = how.align;
  if (settings.striping == Toggle::kOff) how.rails = 1;
  return how;
}

void sayWhatWasPlanned(const PeerImpl& peer, const Choice& choice, std::string_view backend,
                       const core::Sliced& plan, std::size_t rails, const core::Slicing& how) {
  if (rails < 2 || plan.slices.size() >= rails) return;
  std::uint64_t bytes = 0;
  for (const core::Slice& slice : plan.slices) bytes += slice.bytes;
  base::log(base::LogLevel::kDebug,
            "peer {}: {}/{}: reducing rails from {} to {} for {} bytes: no rail gets less than {}",
            peer.name(), backend, choice.way, rails, plan.slices.size(), bytes,
            base::showSize(how.min_chunk));
}

// The backend's rails that are nearest to any of the local memory.
core::RailMask nearestTo(std::span<const core::PinSpan> spans, const core::Backend& backend) {
  core::RailMask near = 0;
  for (const core::PinSpan& span : spans) near |= backend.near(span.local_pin);
  return near;
}

Bundle::RailUses railsFor(Basis& basis, LinkSlot& slot, std::span<const core::PinSpan> spans) {
  core::Backend& backend = basis.backend(slot.backend());
  const auto rails = backend.rails();
  const core::RailMask near = rails.size() < 2 ? core::kAllRails : nearestTo(spans, backend);
  Bundle::RailUses uses;
  uses.reserve(rails.size());
  for (std::size_t i = 0; i < rails.size(); ++i) {
    RunRail& run = basis.rails().of(*rails[i]);
    uses.push_back({.rail = rails[i].get(),
                    .runner = &run.runner,
                    .counts = &run.counts,
                    .health = &slot.health[i],
                    .name = std::string(rails[i]->name()),
                    .near = near == core::kAllRails || (near >> i & 1U) != 0});
  }
  return uses;
}

void addBundle(Basis& basis, const PeerImpl& peer, const Choice& choice, core::OpList list,
               std::vector<core::Stretch> stretches, const core::Requirement& required,
               Bundles& out) {
  core::Backend& backend = basis.backend(choice.slot->backend());
  core::Link& link = *choice.slot->link;
  Bundle::RailUses uses = railsFor(basis, *choice.slot, list.spans);
  const std::size_t served = Bundle::serving(link, uses);
  const core::Capabilities& can = backend.can();
  const core::Slicing how = slicingFor(basis.settings(), can, served);
  const std::uint64_t whole = list.whole;
  auto plan = core::slice(std::move(list), how);
  sayWhatWasPlanned(peer, choice, can.name, plan, served, how);
  const std::uint32_t first = out.empty() ? 0 : out.back().end();
  out.emplace_back(Bundle::Route{.link = &link,
                                 .backend = can.name,
                                 .way = std::string(choice.way),
                                 .staged = can.staged,
                                 .whole = whole,
                                 .stretches = std::move(stretches),
                                 .required = can.staged ? required : core::Requirement{}},
                   std::move(plan), std::move(uses), first);
}

Error cannotPack(const PeerImpl& peer) {
  return {.code = Code::kUnsupported,
          .operation = "route",
          .detail = "these blocks cannot be packed",
          .peer = peer.name(),
          .cause =
              "only host memory is packed, by one backend, if both agents have the backend "
              "\"staged\" and know packing",
          .remedy = "leave out the requirement \"packed\""};
}

struct RoutedOps {
  Choice choice;
  core::OpList list = {};
  std::vector<core::Stretch> stretches = {};
};

// Divides a list into groups of ops with one choice, in the order of each group's first op.
std::vector<RoutedOps> divide(const core::OpList& list, std::span<const Choice> choices) {
  std::vector<RoutedOps> groups;
  const core::Op* op = list.ops.data();
  std::uint64_t at = 0;
  for (std::size_t i = 0; i < choices.size(); ++i) {
    const core::PinSpan& span = list.spans[i];
    auto group = std::find_if(groups.begin(), groups.end(),
                              [&](const RoutedOps& one) { return one.choice == choices[i]; });
    if (group == groups.end()) {
      group = groups.insert(groups.end(), {.choice = choices[i]});
      group->list.whole = list.whole;
    }
    group->list.spans.push_back(span);
    const std::uint64_t before = group->list.bytes;
    for (const core::Op* const end = op + span.ops; op != end; ++op) {
      group->list.ops.push_back(*op);
      group->list.bytes += op->bytes;
    }
    group->stretches.push_back({.from = at, .bytes = group->list.bytes - before});
    at += group->stretches.back().bytes;
  }
  return groups;
}

}  // namespace

bool satisfies(const core::Capabilities& can, const core::Requirement& required) {
  return (!required.rdma || can.rdma) && (!required.same_host || can.same_host) &&
         (!required.not_tcp || !can.tcp) &&
         (required.backend.empty() || required.backend == can.name);
}

Result<Bundles> route(Basis& basis, PeerImpl& peer, OpKind kind, core::OpList list,
                      const core::Requirement& requirement) {
  const Router router(basis, peer, kind, requirement);
  std::vector<Choice> choices;
  choices.reserve(list.spans.size());
  const core::Op* first = list.ops.data();
  for (const core::PinSpan& span : list.spans) {
    VIADUCT_TRY(Choice choice, router.choose(*first));
    choices.push_back(choice);
    first += span.ops;
  }
  Bundles bundles;
  if (choices.empty()) return bundles;
  // Nearly always all ops have the same choice, and the list is used as it is.
  if (std::all_of(choices.begin(), choices.end(), [&](auto& c) { return c == choices[0]; })) {
    core::Requirement required = requirement;
    required.packed = router.packs(choices[0], list);
    if (required.packed)
      choices[0] = router.packing();
    else if (requirement.packed)
      return cannotPack(peer);
    addBundle(basis, peer, choices[0], std::move(list), {}, required, bundles);
    return bundles;
  }
  if (requirement.packed) return cannotPack(peer);
  for (RoutedOps& group : divide(list, choices))
    addBundle(basis, peer, group.choice, std::move(group.list), std::move(group.stretches),
              requirement, bundles);
  return bundles;
}

}  // namespace viaduct::agent
