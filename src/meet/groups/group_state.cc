#include "meet/groups/group_state.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::meet::groups {
namespace {

constexpr std::size_t kNamesInText = 8;

PacketPtr refused(const Error& why) { return makePacket(Type::kRefused, ErrorMessage{why}); }

}  // namespace

std::string GroupState::nameOf(const JoinedMember& member) const {
  const std::string& name = member.request.name;
  if (live_) return fmt::format("rank {} ({})", member.rank, name);
  return member.request.rank ? fmt::format("rank {} ({})", *member.request.rank, name) : name;
}

// Lists members in the order of ranks, or of joining before there are ranks.
std::string GroupState::list(const std::function<bool(const JoinedMember&)>& which) const {
  std::vector<const JoinedMember*> those;
  for (const auto& [guest, member] : joined_)
    if (!which || which(member)) those.push_back(&member);
  std::sort(those.begin(), those.end(), [](const JoinedMember* a, const JoinedMember* b) {
    return std::pair(a->rank, a->order) < std::pair(b->rank, b->order);
  });
  std::string out;
  for (std::size_t i = 0; i < std::min(those.size(), kNamesInText); ++i)
    out += fmt::format("{}{}", i == 0 ? "" : ", ", nameOf(*those[i]));
  if (those.size() > kNamesInText) out += fmt::format(" and {} more", those.size() - kNamesInText);
  return out;
}

void GroupState::join(GuestId guest, const JoinRequest& request) {
  if (over_) return sendAway(guest);
  waiting_.push_back({guest, request, calls_ + 1});
  reconsider();
}

void GroupState::sendAway(GuestId guest) {
  connections_.send(guest, refused({.code = Code::kPeerLost,
                                    .operation = fmt::format("join group {}", group_),
                                    .detail = "the server of this group has ended it"}));
}

// Admits or refuses waiting members, until no further decision is possible.
void GroupState::reconsider() {
  while (admitOne()) {
  }
  if (full() && !live_ && form_call_ == 0) form_call_ = calls_ + 1;
  callIfNeeded();
}

bool GroupState::admitOne() {
  for (auto at = waiting_.begin(); at != waiting_.end(); ++at) {
    const Admission verdict = judge(*at);
    if (verdict == Admission::kWait) continue;
    if (verdict == Admission::kInTheWay && answered_ < at->needs_call) continue;
    const WaitingMember waiting = std::move(*at);
    waiting_.erase(at);
    if (verdict == Admission::kWelcome)
      admit(waiting.guest, waiting.request);
    else
      connections_.send(waiting.guest, refused(refusal(waiting)));
    return true;
  }
  return false;
}

GroupState::Admission GroupState::judge(const WaitingMember& waiting) const {
  if (live_) return finished_ > 0 ? Admission::kWait : Admission::kInTheWay;
  if (joined_.empty()) return Admission::kWelcome;
  if (waiting.request.size != size_) return Admission::kInTheWay;
  if (waiting.request.rank && asked_.contains(*waiting.request.rank)) return Admission::kInTheWay;
  return full() ? Admission::kWait : Admission::kWelcome;
}

Error GroupState::refusal(const WaitingMember& waiting) const {
  Error why{.code = Code::kBusy, .operation = fmt::format("join group {}", group_)};
  if (live_) {
    why.detail =
        fmt::format("the group is complete and running: {} members, for {:.1f} s, {}", size_,
                    std::chrono::duration<double>(Clock::now() - formed_).count(), list());
    why.cause = "a second run has the same name, or an extra, late or restarted member joins";
    why.remedy = "wait for the end of that run, or use another group name";
  } else if (waiting.request.size != size_) {
    const auto first = std::min_element(
        joined_.begin(), joined_.end(),
        [](const auto& a, const auto& b) { return a.second.order < b.second.order; });
    why.code = Code::kInvalid;
    why.detail =
        fmt::format("the group forms with {} members, as {} requested; this member requests {}",
                    size_, nameOf(first->second), waiting.request.size);
    why.cause = "members of one group were started with different sizes";
    why.remedy = "give all members the same size, or use another group name";
  } else {
    const std::uint32_t rank = waiting.request.rank.value_or(0);
    const auto holder = joined_.find(asked_.at(rank));
    why.detail = fmt::format("rank {} is taken by {}", rank, holder->second.request.name);
    why.cause = "two members were started with the same rank";
    why.remedy = "give each its own rank, or none";
  }
  return why;
}

void GroupState::admit(GuestId guest, const JoinRequest& request) {
  if (joined_.empty()) size_ = request.size;
  if (request.rank) asked_.emplace(*request.rank, guest);
  joined_.emplace(guest, JoinedMember{.request = request, .order = ++coming_});
}

// Starts a roll call if one is needed and none runs. A roll call serves all members that began to
// wait before it.
void GroupState::callIfNeeded() {
  if (unanswered_ > 0) return;
  const bool for_waiting =
      std::any_of(waiting_.begin(), waiting_.end(), [&](const WaitingMember& waiting) {
        return waiting.needs_call > calls_ && judge(waiting) == Admission::kInTheWay;
      });
  if (!for_waiting && form_call_ <= calls_) return;
  ++calls_;
  for (auto& [guest, member] : joined_) {
    if (member.finished) continue;
    member.expects_pong = connections_.ping(guest);
    ++unanswered_;
  }
}

void GroupState::pong(GuestId guest, std::uint64_t number) {
  const auto found = joined_.find(guest);
  if (found == joined_.end() || number == 0 || found->second.expects_pong != number) return;
  found->second.expects_pong = 0;
  answered();
}

void GroupState::answered() {
  if (--unanswered_ > 0) return;
  answered_ = calls_;
  if (!live_ && form_call_ != 0 && answered_ >= form_call_) form();
  reconsider();
}

void GroupState::form() {
  form_call_ = 0;
  assignRanks();
  live_ = true;
  epoch_ = ++epochs_;
  round_ = 0;
  formed_ = Clock::now();
  FormedMessage formed{.epoch = epoch_};
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    JoinedMember& member = joined_.at(ranks_[rank]);
    member.rank = rank;
    formed.members.push_back({rank, member.request.name, member.request.about});
  }
  const PacketPtr packet = makePacket(Type::kFormed, formed);
  for (std::uint32_t rank = 0; rank < size_; ++rank) {
    connections_.send(ranks_[rank], makePacket(Type::kRank, NumberMessage{rank}));
    connections_.send(ranks_[rank], packet);
  }
  connections_.say(fmt::format("group {} formed: {} members, epoch {:x}, rank 0 is {}", group_,
                               size_, epoch_, formed.members[0].name));
}

void GroupState::assignRanks() {
  ranks_.assign(size_, 0);
  std::vector<std::pair<std::uint64_t, GuestId>> others;
  for (const auto& [guest, member] : joined_) {
    if (member.request.rank)
      ranks_[*member.request.rank] = guest;
    else
      others.emplace_back(member.order, guest);
  }
  std::sort(others.begin(), others.end());
  auto free = ranks_.begin();
  for (const auto& [order, guest] : others) {
    free = std::find(free, ranks_.end(), GuestId{0});
    *free = guest;
  }
}

Status GroupState::gather(GuestId guest, GatherMessage message) {
  const auto found = joined_.find(guest);
  if (found == joined_.end()) return Ok{};
  JoinedMember& member = found->second;
  if (!live_ || member.finished || member.given || message.round != round_)
    return Error{.code = Code::kProtocol,
                 .operation = "gather",
                 .detail = "the member is not in this round"};
  if (!values_.take(message.value.size())) {
    Error why = values_.refusal(fmt::format("group {}", group_), message.value.size(),
                                "one round of a group", "all members");
    why.remedy = "gather fewer bytes, or use several rounds";
    end(std::move(why));
    return Ok{};
  }
  member.given = true;
  member.value = std::move(message.value);
  ++given_;
  if (finished_ > 0)
    end({.code = Code::kPeerLost,
         .operation = fmt::format("group {}", group_),
         .detail = fmt::format("{} left while {} waits for all", list(&JoinedMember::finished),
                               nameOf(member))});
  else if (given_ == size_)
    finishRound();
  return Ok{};
}

void GroupState::finishRound() {
  ValuesMessage all{.round = round_};
  for (const GuestId guest : ranks_) {
    JoinedMember& member = joined_.at(guest);
    all.values.push_back(std::move(member.value));
    member.value.clear();
    member.given = false;
  }
  given_ = 0;
  ++round_;
  values_.give(values_.used());
  const PacketPtr packet = makePacket(Type::kValues, all);
  for (const GuestId guest : ranks_) connections_.send(guest, packet);
}

void GroupState::requestStop(GuestId guest) {
  const auto found = joined_.find(guest);
  if (found == joined_.end() || !live_) return;
  const PacketPtr packet = makePacket(Type::kStop, NumberMessage{found->second.rank});
  for (const auto& [other, member] : joined_)
    if (!member.finished) connections_.send(other, packet);
}

void GroupState::abandon(GuestId guest, const std::string& reason) {
  const auto found = joined_.find(guest);
  if (found == joined_.end() || !live_) return;
  end({.code = Code::kCancelled,
       .operation = fmt::format("group {}", group_),
       .detail = fmt::format("{} ended it: {}", nameOf(found->second), reason),
       .peer = found->second.request.name});
}

void GroupState::finish(GuestId guest) {
  const auto found = joined_.find(guest);
  if (found == joined_.end() || !live_ || found->second.finished) return;
  found->second.finished = true;
  ++finished_;
  connections_.send(guest, makePacket(Type::kFinished));
  if (given_ > 0) {
    end({.code = Code::kPeerLost,
         .operation = fmt::format("group {}", group_),
         .detail = fmt::format("{} left while {} waits for all", nameOf(found->second),
                               list(&JoinedMember::given))});
  } else if (finished_ == size_) {
    connections_.say(fmt::format("group {} ended: all {} members left", group_, size_));
    clear();
    reconsider();
  } else if (std::exchange(found->second.expects_pong, 0) != 0) {
    answered();
  }
}

void GroupState::gone(GuestId guest, const std::string& how) {
  const auto waiting = std::find_if(waiting_.begin(), waiting_.end(),
                                    [&](const WaitingMember& one) { return one.guest == guest; });
  if (waiting != waiting_.end()) waiting_.erase(waiting);
  const auto found = joined_.find(guest);
  if (found == joined_.end() || found->second.finished) return;
  if (live_) {
    Error why{.code = Code::kPeerLost,
              .operation = fmt::format("group {}", group_),
              .detail = fmt::format("{} died: {}", nameOf(found->second), how),
              .peer = found->second.request.name};
    joined_.erase(found);
    return end(std::move(why));
  }
  if (const auto& rank = found->second.request.rank) asked_.erase(*rank);
  const bool was_called = found->second.expects_pong != 0;
  joined_.erase(found);
  form_call_ = 0;
  if (was_called)
    answered();
  else
    reconsider();
}

void GroupState::end(Error why) {
  connections_.say(fmt::format("group {} ended: {}", group_, why.detail));
  const PacketPtr packet = makePacket(Type::kTrouble, ErrorMessage{std::move(why)});
  for (const auto& [guest, member] : joined_)
    if (!member.finished) connections_.send(guest, packet);
  clear();
  reconsider();
}

void GroupState::clear() {
  joined_.clear();
  values_.give(values_.used());
  asked_.clear();
  ranks_.clear();
  live_ = false;
  given_ = finished_ = 0;
  form_call_ = 0;
  unanswered_ = 0;
  answered_ = calls_;
  if (!once_) return;
  over_ = true;
  for (const WaitingMember& waiting : std::exchange(waiting_, {})) sendAway(waiting.guest);
}

void GroupState::close(const Error& why) {
  if (live_) return end(why);
  for (const auto& [guest, member] : joined_) sendAway(guest);
  clear();
}

// Tells a member, whose wait is about to time out, the reason.
void GroupState::ask(GuestId guest) {
  std::string text;
  if (!joined_.contains(guest))
    text = live_ ? fmt::format("a group of that name is still running: {}",
                               list([](const JoinedMember& s) { return !s.finished; }))
                 : fmt::format("{} holds the place and has not shown that it is alive",
                               list(&JoinedMember::expects_pong));
  else if (live_)
    text = fmt::format("waiting for {}",
                       list([](const JoinedMember& s) { return !s.given && !s.finished; }));
  else
    text = missing();
  connections_.send(guest, makePacket(Type::kStatus, TextMessage{text}));
}

std::string GroupState::missing() const {
  if (full())
    return fmt::format("all {} have joined, but {} has not shown that it is alive", size_,
                       list(&JoinedMember::expects_pong));
  std::string out = fmt::format("{} of {} have joined: {}", joined_.size(), size_, list());
  std::string ranks;
  std::size_t named = 0;
  for (std::uint32_t rank = 0; rank < size_ && !asked_.empty(); ++rank) {
    if (asked_.contains(rank)) continue;
    if (named++ < kNamesInText) ranks += fmt::format("{}{}", ranks.empty() ? "" : ", ", rank);
  }
  if (named > kNamesInText) ranks += fmt::format(" and {} more", named - kNamesInText);
  if (!ranks.empty()) out += fmt::format("; no member requested rank {}", ranks);
  return out;
}

}  // namespace viaduct::meet::groups
