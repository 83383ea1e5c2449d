#include "measure/proof/scene.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::measure::proof {
namespace {

const RailSockets* railNamed(const Reading& reading, const std::string& name) {
  const auto at = std::ranges::find(reading.rails, name, &RailSockets::rail);
  return at == reading.rails.end() ? nullptr : &*at;
}

std::uint64_t droppedBefore(const Reading& reading, const std::string& interface) {
  const auto at = std::ranges::find(reading.links, interface, &host::LinkFacts::name);
  return at == reading.links.end() ? 0 : at->dropped;
}

// Adds the interfaces of a counter domain. Call it for only one member of the domain, because its
// members share them.
void addInterfaces(const CounterDomain& domain, const Observation& seen, causes::Member& member) {
  member.links = seen.after.links;
  for (host::LinkFacts& link : member.links)
    link.dropped -= std::min(link.dropped, droppedBefore(seen.before, link.name));
  for (const DeviceTraffic& line : domain.lines)
    if (line.sent.counted)
      member.interfaces.push_back({line.device->name, line.sent.counted->bytes});
}

void addRails(const Observation& seen, causes::Member& member) {
  for (const RailSockets& after : seen.after.rails) {
    const RailSockets* const before = railNamed(seen.before, after.rail);
    member.rails.push_back({after.rail, before == nullptr
                                            ? after.figures
                                            : causes::between(before->figures, after.figures)});
  }
}

// Returns the growth of a time summed over threads. If a thread ended, its time is
// missing in `after`, and the growth may be unknown (0).
double grown(double before, double after) { return std::max(0.0, after - before); }

causes::Member memberOf(const Account& account, std::uint32_t rank) {
  const Observation& seen = account.seen()[rank];
  const auto& [before, after] = std::tie(seen.before.times, seen.after.times);
  causes::Member out{
      .name = fmt::format("rank {}", rank),
      .host = seen.place.boot_id,
      .limits = seen.limits,
      .seconds = static_cast<double>(seen.after.causes_at_ns - seen.before.causes_at_ns) * 1e-9,
      .times = {.ran = grown(before.ran, after.ran),
                .waited = grown(before.waited, after.waited),
                .throttled = grown(before.throttled, after.throttled),
                .busy = grown(before.busy, after.busy)}};
  addRails(seen, out);
  const CounterDomain& domain = account.domains()[account.domainOf(rank)];
  if (domain.place == &seen.place) addInterfaces(domain, seen, out);
  return out;
}

}  // namespace

causes::Scene sceneOf(const Account& account, const RowFacts& facts, const Limits& limits) {
  causes::Scene out;
  for (std::uint32_t rank = 0; rank < account.seen().size(); ++rank)
    out.members.push_back(memberOf(account, rank));
  const auto& binding = limits.binding;
  out.row = causes::RowState{.of_ceiling = binding ? facts.gb_per_s / binding->gb_per_s : 0,
                             .in_memory = binding && binding->what == Binding::kMemory,
                             .pages = facts.pages,
                             .block = facts.block,
                             .working_set = facts.working_set,
                             .cores_busy = facts.cores_busy,
                             .cores_others = facts.cores_others,
                             .cores = facts.cores};
  return out;
}

}  // namespace viaduct::measure::proof
