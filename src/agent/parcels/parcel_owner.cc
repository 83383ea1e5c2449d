#include "agent/parcels/parcel_owner.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace viaduct::agent {
namespace {

Error refused(Code code, const std::string& name, std::string detail, std::string remedy) {
  return {.code = code,
          .operation = fmt::format("parcel {}", name),
          .detail = std::move(detail),
          .remedy = std::move(remedy)};
}

ParcelEnd failed(Error why, std::optional<ParcelPart> part = {}) {
  return {.outcome = ParcelOutcome::kFailed, .part = part, .why = std::move(why)};
}

Error unknownNumber(std::uint64_t number, const char* message) {
  return {.code = Code::kProtocol,
          .operation = "parcel",
          .detail = fmt::format("a {} has number {}, which is out of order", message, number)};
}

std::string textOf(ParcelPart part) {
  return fmt::format("part {} of rank {}", part.component, part.rank);
}

// Says in which field two declarations of one version differ.
std::string difference(const ParcelSpec& there, const ParcelSpec& here) {
  if (there.layout != here.layout)
    return fmt::format("layout {:#x} is published, and this one has {:#x}", there.layout,
                       here.layout);
  if (there.takers != here.takers)
    return fmt::format("{} takers are published, and this one has {}", there.takers, here.takers);
  for (const ParcelPart part : there.parts)
    if (!std::ranges::binary_search(here.parts, part))
      return fmt::format("{} is published, and this one lacks it", textOf(part));
  for (const ParcelPart part : here.parts)
    if (!std::ranges::binary_search(there.parts, part))
      return fmt::format("{} is not published, and this one has it", textOf(part));
  return "it is about to end";
}

}  // namespace

Status ParcelOwner::checkSpec(const ParcelSpec& spec) const {
  const auto bad = [&](std::string detail, std::string remedy) -> Status {
    return refused(Code::kInvalid, spec.name, std::move(detail), std::move(remedy));
  };
  if (spec.name.empty() || spec.name.size() > kMaxParcelName)
    return bad(fmt::format("a name of {} bytes", spec.name.size()),
               fmt::format("give a name of 1 to {} bytes", kMaxParcelName));
  if (spec.parts.empty() || spec.parts.size() > kMaxParcelParts)
    return bad(fmt::format("{} parts", spec.parts.size()),
               fmt::format("declare 1 to {} parts", kMaxParcelParts));
  if (const auto twice = std::ranges::adjacent_find(spec.parts); twice != spec.parts.end())
    return bad(fmt::format("{} is declared twice", textOf(*twice)), "declare each part once");
  if (parcels_.size() >= kMaxParcels)
    return refused(Code::kExhausted, spec.name,
                   fmt::format("{} parcels are published", kMaxParcels),
                   "withdraw parcels that nobody needs");
  return Ok{};
}

std::vector<ParcelOwner::Parcel*> ParcelOwner::versionsOf(const std::string& name) {
  std::vector<Parcel*> out;
  if (const auto found = by_name_.find(name); found != by_name_.end())
    for (const std::uint64_t id : found->second) out.push_back(&parcels_.at(id));
  std::ranges::reverse(out);  // numbers of parcels and versions of a name ascend together
  return out;
}

Result<std::uint64_t> ParcelOwner::publish(ParcelSpec spec) {
  std::ranges::sort(spec.parts);
  VIADUCT_CHECK(checkSpec(spec));
  const auto versions = versionsOf(spec.name);
  for (const Parcel* other : versions)
    if (other->spec.version == spec.version) {
      if (other->spec == spec && !other->closing) return other->id;
      return refused(Code::kInvalid, spec.name,
                     fmt::format("version {}: {}", spec.version, difference(other->spec, spec)),
                     "declare it alike at all publishing ranks, and other contents as a new "
                     "version");
    }
  if (!versions.empty() && versions.front()->spec.version > spec.version)
    return refused(Code::kInvalid, spec.name,
                   fmt::format("version {} is older than version {}, which is there", spec.version,
                               versions.front()->spec.version),
                   "give each publication a higher version");
  if (versions.size() >= kMaxParcelVersions)
    return refused(Code::kExhausted, spec.name,
                   fmt::format("versions {} to {} are there, and the limit is {}",
                               versions.back()->spec.version, versions.front()->spec.version,
                               kMaxParcelVersions),
                   "withdraw the oldest one, or wait until it has ended");
  const std::uint64_t id = ++last_parcel_;
  Parcel& parcel = parcels_[id];
  parcel.id = id;
  for (const ParcelPart part : spec.parts) parcel.parts.emplace(part, PartState{});
  parcel.unready = spec.parts.size();
  parcel.spec = std::move(spec);
  by_name_[parcel.spec.name].insert(id);
  placeWaiting(parcel.spec.name);
  return id;
}

void ParcelOwner::conflict(const ParcelSpec& spec, const Error& why) {
  for (const Parcel* parcel : versionsOf(spec.name))
    if (parcel->spec.version == spec.version && !parcel->whole() && !parcel->closing)
      return end(parcel->id, failed(why));
}

void ParcelOwner::addHolder(std::uint64_t parcel, Holder holder) {
  if (const auto found = parcels_.find(parcel); found != parcels_.end())
    found->second.holders.insert(holder);
}

Status ParcelOwner::ready(std::uint64_t id, ParcelPart part, Holder holder) {
  const auto found = parcels_.find(id);
  if (found == parcels_.end())
    return Error{.code = Code::kStale, .operation = "parcel", .detail = "the parcel has ended"};
  Parcel& parcel = found->second;
  const std::string& name = parcel.spec.name;
  if (parcel.closing && parcel.closing->why) return *parcel.closing->why;
  const auto state = parcel.parts.find(part);
  if (state == parcel.parts.end())
    return refused(Code::kInvalid, name, fmt::format("{} is not declared", textOf(part)),
                   "declare all parts when the parcel is published");
  if (state->second.ready)
    return refused(Code::kInvalid, name, fmt::format("{} was ready before", textOf(part)),
                   "publish another version for other bytes");
  state->second = {.ready = true, .holder = holder};
  --parcel.unready;
  for (TakingGroup* group : parcel.groups)
    if (!group->verdict && !group->cut)
      for (Taker& taker : group->takers) lend(*group, taker, part, holder);
  if (!parcel.whole()) return Ok{};
  supersedeOlder(parcel);
  for (const GroupKey& key : keysOf(parcel))
    if (const auto group = groups_.find(key); group != groups_.end()) decideIfRead(group->second);
  return Ok{};
}

void ParcelOwner::supersedeOlder(const Parcel& parcel) {
  for (Parcel* older : versionsOf(parcel.spec.name))
    if (older->spec.version < parcel.spec.version && !older->closing) {
      older->closing = {.outcome = ParcelOutcome::kSuperseded, .version = older->spec.version};
      finish(*older);
    }
}

void ParcelOwner::end(std::uint64_t id, ParcelEnd end) {
  const auto found = parcels_.find(id);
  if (found == parcels_.end()) return;
  Parcel& parcel = found->second;
  end.version = parcel.spec.version;
  if (!parcel.closing || parcel.closing->outcome == ParcelOutcome::kSuperseded)
    parcel.closing = end;
  for (const GroupKey& key : keysOf(parcel)) {
    const auto group = groups_.find(key);
    if (group == groups_.end()) continue;
    if (group->second.verdict)
      finish(group->second);
    else
      decide(group->second, end);
  }
  if (parcels_.contains(id)) finish(parcels_.at(id));
}

std::vector<ParcelOwner::GroupKey> ParcelOwner::keysOf(const Parcel& parcel) const {
  std::vector<GroupKey> out;
  out.reserve(parcel.groups.size());
  for (const TakingGroup* group : parcel.groups) out.push_back(group->key);
  return out;
}

// The reason for which this rank cannot be in the group.
std::optional<Error> ParcelOwner::objection(const TakingGroup& group,
                                            const WantMessage& want) const {
  const auto differs = [&](const char* field, auto value, auto first) -> std::optional<Error> {
    if (value == first) return std::nullopt;
    return refused(Code::kInvalid, want.name,
                   fmt::format("rank {} of group {} has the {} {}, and another rank has {}",
                               want.rank, want.group, field, value, first),
                   "give all ranks of a group the same values");
  };
  const WantMessage& first = group.first;
  if (auto why = differs("size", want.size, first.size)) return why;
  if (auto why = differs("smallest size", want.at_least, first.at_least)) return why;
  if (auto why = differs("version", want.version, first.version)) return why;
  if (auto why = differs("exact version", want.exact, first.exact)) return why;
  if (auto why = differs("layout", want.layout, first.layout)) return why;
  if (std::ranges::find(group.takers, want.rank, &Taker::rank) == group.takers.end())
    return std::nullopt;
  return refused(Code::kInvalid, want.name,
                 fmt::format("rank {} of group {} asks twice", want.rank, want.group),
                 "give each rank its own number, and each attempt another group name");
}

// The numbers of a session's fetches ascend.
Status ParcelOwner::begins(TakerId id) {
  std::uint64_t& last = sessions_[id.session].last;
  if (id.number <= last) return unknownNumber(id.number, "want");
  last = id.number;
  return Ok{};
}

// Keeps nothing of the fetch that it refuses. A report of that fetch counts as late.
void ParcelOwner::refuse(TakerId id, Error why) {
  tell({.id = id}, VerdictMessage{id.number, failed(std::move(why))});
}

ParcelOwner::TakingGroup& ParcelOwner::groupOf(const GroupKey& key, const WantMessage& want) {
  const auto [at, is_new] = groups_.try_emplace(key);
  if (is_new) {
    at->second.key = key;
    at->second.first = want;
    at->second.decides = want.size == 1 && want.parts.empty();
  }
  return at->second;
}

// A refusal ends the rank's group. All ranks of the group hear of it, also ranks that ask later.
Status ParcelOwner::want(std::uint64_t session, WantMessage want, std::optional<Error> refusal) {
  const TakerId id{session, want.number};
  VIADUCT_CHECK(begins(id));
  GroupKey key{.parcel = want.name, .group = want.group};
  if (want.group.empty()) key.alone = id;
  const auto found = groups_.find(key);
  if (found != groups_.end() && found->second.first.size == 1) {
    refuse(id, refused(Code::kInvalid, want.name,
                       fmt::format("group {} of one rank has asked before", want.group),
                       "give each attempt another group name"));
    return Ok{};
  }
  const bool has_room = sessions_[session].open < kMaxTakers;
  if (!has_room)
    refusal = refused(Code::kExhausted, want.name, fmt::format("{} fetches are open", kMaxTakers),
                      "wait until some have ended");
  if (has_room && (!refusal || want.size > 1)) {
    TakingGroup& group = groupOf(key, want);
    join(group, id, std::move(want), std::move(refusal));
    return Ok{};
  }
  if (want.size > 1) {
    ParcelEnd end = failed(*refusal);
    end.consumer = want.rank;
    decide(groupOf(key, want), std::move(end));
  }
  refuse(id, *std::move(refusal));
  return Ok{};
}

void ParcelOwner::join(TakingGroup& group, TakerId id, WantMessage want,
                       std::optional<Error> refusal) {
  const std::optional<Error> why = refusal ? std::move(refusal) : objection(group, want);
  takers_.emplace(id, &group);
  ++sessions_[id.session].open;
  group.takers.push_back({.id = id, .rank = want.rank, .parts = std::move(want.parts)});
  Taker& taker = group.takers.back();
  if (group.verdict) {
    tell(taker, VerdictMessage{id.number, *group.verdict});
    finish(group);
  } else if (why) {
    ParcelEnd end = failed(*why);
    end.consumer = taker.rank;
    decide(group, std::move(end));
  } else if (group.parcel != nullptr) {
    admit(group, taker);
  } else {
    place(group);
  }
}

void ParcelOwner::placeWaiting(const std::string& name) {
  std::vector<TakingGroup*> waiting;
  for (auto at = groups_.lower_bound({.parcel = name});
       at != groups_.end() && at->first.parcel == name; ++at)
    if (at->second.parcel == nullptr && !at->second.verdict && !at->second.cut)
      waiting.push_back(&at->second);
  for (TakingGroup* group : waiting) place(*group);
}

// Gives the group the newest version with all parts ready, else the newest unfinished one.
void ParcelOwner::place(TakingGroup& group) {
  const WantMessage& want = group.first;
  Parcel* chosen = nullptr;
  bool full = false, older = false;
  for (Parcel* parcel : versionsOf(want.name)) {
    const std::uint64_t version = parcel->spec.version;
    older = older || version > want.version;
    if (want.exact ? version != want.version : version < want.version) continue;
    if (parcel->closing) continue;
    if (parcel->isFull()) {
      full = true;
    } else if (chosen == nullptr || (parcel->whole() && !chosen->whole())) {
      chosen = parcel;
    }
  }
  if (chosen != nullptr) return attach(group, *chosen);
  if (auto end = absence(want, full, older)) decide(group, *std::move(end));
}

// The reason for which the version will not come; none: it may.
std::optional<ParcelEnd> ParcelOwner::absence(const WantMessage& want, bool full,
                                              bool older) const {
  if (full)
    return failed(refused(Code::kStale, want.name, "all groups that may take it have asked already",
                          "publish it for more takers, or ask for the next version"));
  if (!want.exact) return std::nullopt;
  const ParcelEnd* const ended = recentEnd(want.name, want.version);
  if (ended != nullptr && ended->outcome != ParcelOutcome::kWhole) return *ended;
  if (ended != nullptr)
    return failed(refused(Code::kStale, want.name,
                          fmt::format("version {} was taken by all its groups", want.version),
                          "publish it for more takers, or ask for the next version"));
  if (!older) return std::nullopt;
  return ParcelEnd{.outcome = ParcelOutcome::kSuperseded,
                   .version = want.version,
                   .why = refused(Code::kStale, want.name,
                                  fmt::format("a version newer than {} is there", want.version),
                                  "ask for the newer version")};
}

void ParcelOwner::attach(TakingGroup& group, Parcel& parcel) {
  group.parcel = &parcel;
  parcel.groups.insert(&group);
  ++parcel.admitted;
  std::vector<TakerId> ids;
  for (const Taker& taker : group.takers)
    if (!taker.lost) ids.push_back(taker.id);
  TakingGroup* same = nullptr;  // a rank that does not fit ends the group
  for (const TakerId id : ids)
    if (Taker* const taker = find(id, same); taker != nullptr) admit(*same, *taker);
}

void ParcelOwner::admit(TakingGroup& group, Taker& taker) {
  if (group.verdict || group.cut) return;
  const ParcelSpec& spec = group.parcel->spec;
  const auto unknown = std::ranges::find_if(
      taker.parts, [&](ParcelPart part) { return !group.parcel->parts.contains(part); });
  std::optional<Error> why;
  if (group.first.layout != 0 && group.first.layout != spec.layout)
    why = refused(
        Code::kInvalid, spec.name,
        fmt::format("the layout is {:#x}, and {:#x} was wanted", spec.layout, group.first.layout),
        "use the same model, dtype and layout at both ends");
  else if (unknown != taker.parts.end())
    why = refused(Code::kInvalid, spec.name,
                  fmt::format("version {} has no {}", spec.version, textOf(*unknown)),
                  "ask for parts that the publisher declares");
  if (why) {
    ParcelEnd end = failed(*std::move(why));
    end.consumer = taker.rank;
    end.version = spec.version;
    return decide(group, std::move(end));
  }
  if (group.first.size == 1 && !taker.parts.empty())
    group.decides = std::set(taker.parts.begin(), taker.parts.end()).size() == spec.parts.size();
  tell(taker, OfferMessage{taker.id.number, spec.version, spec.layout, spec.parts});
  for (const auto& [part, state] : group.parcel->parts)
    if (state.ready) lend(group, taker, part, state.holder);
}

void ParcelOwner::lend(TakingGroup& group, Taker& taker, ParcelPart part, Holder holder) {
  const bool wanted =
      taker.parts.empty() || std::ranges::find(taker.parts, part) != taker.parts.end();
  if (taker.lost || !wanted) return;
  taker.lent.emplace(part, holder);
  actions_.emplace_back(
      LendPart{.holder = holder, .parcel = group.parcel->id, .part = part, .taker = taker.id});
}

ParcelOwner::Taker* ParcelOwner::find(TakerId id, TakingGroup*& group) {
  const auto found = takers_.find(id);
  if (found == takers_.end()) return nullptr;
  group = found->second;
  return &*std::ranges::find(group->takers, id, &Taker::id);
}

Status ParcelOwner::report(std::uint64_t session, const ReportMessage& report) {
  const auto of = sessions_.find(session);
  if (of == sessions_.end() || report.number > of->second.last)
    return unknownNumber(report.number, "report");
  TakingGroup* group = nullptr;
  Taker* const taker = find({session, report.number}, group);
  if (taker == nullptr || group->verdict) {
    ++late_;
    return Ok{};
  }
  ParcelEnd end = report.end;
  end.consumer = taker->rank;
  if (group->parcel != nullptr) end.version = group->parcel->spec.version;
  if (group->decides) {
    // A rank that gives up before it gets the offer does not know that it decides.
    if (!report.decided && group->cut) end = *group->cut;
    if (end.outcome == ParcelOutcome::kWhole) {
      end.consumer.reset();
      end.ranks = {taker->rank};
    }
    if (!report.decided) tell(*taker, VerdictMessage{report.number, end});
    settle(*group, std::move(end));
  } else if (end.outcome == ParcelOutcome::kWhole) {
    taker->read = group->parcel != nullptr;
    decideIfRead(*group);
  } else {
    decide(*group, std::move(end));
  }
  return Ok{};
}

void ParcelOwner::refuseWaiting(const Error& why) {
  std::vector<TakingGroup*> waiting;
  for (auto& [key, group] : groups_)
    if (group.parcel == nullptr && !group.verdict) waiting.push_back(&group);
  for (TakingGroup* group : waiting) decide(*group, failed(why));
}

void ParcelOwner::lendFailed(TakerId id, ParcelPart part, Error why) {
  TakingGroup* group = nullptr;
  Taker* const taker = find(id, group);
  if (taker == nullptr) return;
  taker->lent.erase(part);
  if (group->verdict) return finish(*group);
  ParcelEnd end = failed(std::move(why), part);
  end.consumer = taker->rank;
  decide(*group, std::move(end));
}

void ParcelOwner::leaseEnded(TakerId id, ParcelPart part) {
  TakingGroup* group = nullptr;
  Taker* const taker = find(id, group);
  if (taker == nullptr) return;
  taker->lent.erase(part);
  finish(*group);
}

// A rank that decides by itself may have decided already, so it is asked, and its report settles
// the group.
void ParcelOwner::decide(TakingGroup& group, ParcelEnd end) {
  if (group.verdict || group.cut) return;
  if (group.parcel != nullptr) end.version = group.parcel->spec.version;
  if (!group.decides) return settle(group, std::move(end));
  group.cut = end;
  for (const Taker& taker : group.takers) {
    tell(taker, VerdictMessage{taker.id.number, end});
    cutOff(group, taker);
  }
}

void ParcelOwner::settle(TakingGroup& group, ParcelEnd end) {
  if (group.verdict) return;
  group.verdict = std::move(end);
  for (const Taker& taker : group.takers) {
    if (!group.decides) tell(taker, VerdictMessage{taker.id.number, *group.verdict});
    if (group.verdict->outcome != ParcelOutcome::kWhole) cutOff(group, taker);
  }
  finish(group);
}

void ParcelOwner::cutOff(const TakingGroup& group, const Taker& taker) {
  if (group.parcel == nullptr) return;
  std::set<Holder> holders;
  for (const auto& [part, holder] : taker.lent) holders.insert(holder);
  for (const Holder holder : holders)
    actions_.emplace_back(CutTaker{holder, group.parcel->id, taker.id});
}

void ParcelOwner::decideIfRead(TakingGroup& group) {
  if (group.verdict || group.takers.size() < group.first.size || group.parcel == nullptr ||
      !group.parcel->whole())
    return;
  ParcelEnd end{.version = group.parcel->spec.version};
  for (const Taker& taker : group.takers) {
    if (!taker.lost && !taker.read) return;
    if (!taker.lost) end.ranks.push_back(taker.rank);
  }
  std::ranges::sort(end.ranks);
  settle(group, std::move(end));
}

void ParcelOwner::lose(TakingGroup& group, Taker& taker, const Error& why) {
  taker.lost = true;
  cutOff(group, taker);
  if (group.verdict) return finish(group);
  const auto lost = static_cast<std::size_t>(std::ranges::count(group.takers, true, &Taker::lost));
  if (group.first.at_least != 0 && group.first.size - lost >= group.first.at_least)
    return decideIfRead(group);
  ParcelEnd end{.outcome = ParcelOutcome::kLost, .consumer = taker.rank, .why = why};
  if (group.parcel != nullptr) end.version = group.parcel->spec.version;
  settle(group, std::move(end));
}

void ParcelOwner::sessionOver(std::uint64_t session, const Error& why) {
  std::vector<TakerId> lost;
  for (auto at = takers_.lower_bound({session, 0});
       at != takers_.end() && at->first.session == session; ++at)
    lost.push_back(at->first);
  for (const TakerId id : lost) {
    TakingGroup* group = nullptr;
    if (Taker* const taker = find(id, group); taker != nullptr) lose(*group, *taker, why);
  }
  sessions_.erase(session);
  std::vector<std::uint64_t> held;
  for (const auto& [id, parcel] : parcels_)
    if (parcel.holders.contains(session)) held.push_back(id);
  for (const std::uint64_t id : held) holderOver(id, session, why);
}

// Ends a parcel whose holder is lost.
void ParcelOwner::holderOver(std::uint64_t id, Holder holder, const Error& why) {
  Parcel& parcel = parcels_.at(id);
  parcel.holders.erase(holder);
  std::optional<ParcelPart> part;
  for (const auto& [one, state] : parcel.parts)
    if (state.holder == holder && !part) part = one;
  // The memory of the lost agent needs no protection any more, so its leases are forgotten.
  for (TakingGroup* group : parcel.groups)
    for (Taker& taker : group->takers)
      std::erase_if(taker.lent, [&](const auto& lent) { return lent.second == holder; });
  end(id, failed(why, part));
}

// Counts the group once nobody of it reads any more.
void ParcelOwner::finish(TakingGroup& group) {
  const bool reads =
      std::ranges::any_of(group.takers, [](const Taker& taker) { return !taker.lent.empty(); });
  if (!group.verdict || reads) return;
  Parcel* const parcel = group.parcel;
  if (!std::exchange(group.counted, true)) {
    if (group.takers.size() < group.first.size) incomplete_.push_back(group.key);
    if (parcel != nullptr) {
      ++parcel->taken;
      actions_.emplace_back(GroupOver{parcel->id, group.key.group, *group.verdict});
    }
  }
  if (group.takers.size() >= group.first.size) {
    forget(group);
  } else if (incomplete_.size() > kMaxIncomplete) {
    const auto oldest = groups_.find(incomplete_.front());
    incomplete_.pop_front();
    if (oldest != groups_.end() && oldest->second.counted) forget(oldest->second);
  }
  if (parcel != nullptr) finish(*parcel);
}

void ParcelOwner::forget(TakingGroup& group) {
  for (const Taker& taker : group.takers) {
    takers_.erase(taker.id);
    if (const auto of = sessions_.find(taker.id.session); of != sessions_.end()) --of->second.open;
  }
  if (group.parcel != nullptr) group.parcel->groups.erase(&group);
  if (!incomplete_.empty()) std::erase(incomplete_, group.key);
  groups_.erase(GroupKey(group.key));
}

void ParcelOwner::finish(Parcel& parcel) {
  const std::uint64_t version = parcel.spec.version;
  if (!parcel.closing && parcel.spec.takers != 0 && parcel.taken >= parcel.spec.takers) {
    if (parcel.whole())
      parcel.closing = {.version = version};
    else
      parcel.closing = {.outcome = ParcelOutcome::kCancelled,
                        .version = version,
                        .why = refused(Code::kCancelled, parcel.spec.name,
                                       "all groups that may take it ended before it was whole",
                                       "publish it for more takers")};
  }
  const auto is_open = [](const TakingGroup* group) { return !group->counted; };
  if (!parcel.closing || std::ranges::any_of(parcel.groups, is_open)) return;
  actions_.emplace_back(ParcelOver{.parcel = parcel.id,
                                   .holders = {parcel.holders.begin(), parcel.holders.end()},
                                   .parts = parcel.parts.size(),
                                   .end = *parcel.closing});
  if (recent_.size() == kRemembered) recent_.pop_front();
  recent_.push_back({parcel.spec.name, parcel.spec.version, *parcel.closing});
  if (recent_.back().end.outcome == ParcelOutcome::kSuperseded)
    recent_.back().end.why =
        refused(Code::kStale, parcel.spec.name,
                fmt::format("a version newer than {} was published", parcel.spec.version),
                "ask for the newer version");
  // The groups stay, so that ranks that have not asked yet hear the verdict.
  for (TakingGroup* group : parcel.groups) group->parcel = nullptr;
  const auto of_name = by_name_.find(parcel.spec.name);
  of_name->second.erase(parcel.id);
  if (of_name->second.empty()) by_name_.erase(of_name);
  parcels_.erase(std::uint64_t{parcel.id});
}

void ParcelOwner::tell(const Taker& taker, ParcelMessage message) {
  if (!taker.lost) actions_.emplace_back(TellTaker{taker.id.session, std::move(message)});
}

const ParcelSpec* ParcelOwner::find(std::uint64_t parcel) const {
  const auto found = parcels_.find(parcel);
  return found == parcels_.end() ? nullptr : &found->second.spec;
}

const ParcelEnd* ParcelOwner::endOf(const std::string& name, std::uint64_t version) {
  for (const Parcel* parcel : versionsOf(name))
    if (parcel->spec.version == version) return nullptr;
  return recentEnd(name, version);
}

const ParcelEnd* ParcelOwner::recentEnd(const std::string& name, std::uint64_t version) const {
  const auto ended = std::ranges::find_if(
      recent_, [&](const EndedParcel& one) { return one.version == version && one.name == name; });
  return ended == recent_.end() ? nullptr : &ended->end;
}

std::uint64_t ParcelOwner::running(std::uint64_t session) const {
  std::uint64_t out = 0;
  for (auto at = takers_.lower_bound({session, 0});
       at != takers_.end() && at->first.session == session; ++at)
    if (at->second->parcel != nullptr && !at->second->verdict) ++out;
  return out;
}

bool ParcelOwner::isLent(TakerId taker, ParcelPart part, Holder holder) const {
  const auto found = takers_.find(taker);
  if (found == takers_.end()) return false;
  const Taker& of = *std::ranges::find(found->second->takers, taker, &Taker::id);
  const auto lent = of.lent.find(part);
  return lent != of.lent.end() && lent->second == holder;
}

std::vector<ParcelPart> ParcelOwner::missing(std::uint64_t parcel) const {
  std::vector<ParcelPart> out;
  if (const auto found = parcels_.find(parcel); found != parcels_.end())
    for (const auto& [part, state] : found->second.parts)
      if (!state.ready) out.push_back(part);
  return out;
}

bool ParcelOwner::isFull(std::uint64_t parcel) const {
  const auto found = parcels_.find(parcel);
  return found != parcels_.end() && found->second.isFull();
}

std::uint64_t ParcelOwner::taken(std::uint64_t parcel) const {
  const auto found = parcels_.find(parcel);
  return found == parcels_.end() ? 0 : found->second.taken;
}

}  // namespace viaduct::agent
