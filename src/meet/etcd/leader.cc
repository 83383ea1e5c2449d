#include "meet/etcd/leader.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

namespace viaduct::meet::etcd {
namespace {

Error death(const std::string& who, std::string peer) {
  return {.code = Code::kPeerLost,
          .operation = "group",
          .detail = fmt::format("{} died", who),
          .peer = std::move(peer),
          .cause = "its process ended or hangs, or it cannot reach etcd",
          .remedy = "check that member's log"};
}

}  // namespace

base::Digest proofOf(const std::string& token, const std::string& group, std::uint64_t instance) {
  const base::Hmac hmac(base::secretFromText(token));
  const std::string what = fmt::format("viaduct etcd group {:016x} {}", instance, group);
  return hmac.of({std::as_bytes(std::span(what))});
}

Leader::Leader(Terms terms) : terms_(std::move(terms)) {}

Leader::Leader(Terms terms, const std::vector<LeasedMember>& leased_members,
               const LeadMessage& lead)
    : terms_(std::move(terms)),
      rounds_done_(lead.rounds),
      seen_(lead.seen),
      formed_(true),
      someone_gone_(!lead.gone.empty()) {
  for (const LeasedMember& leased : leased_members) {
    Known& known = known_[leased.id];
    known.leased = leased;
    known.gone = std::ranges::find(lead.gone, leased.id) != lead.gone.end();
    known.next_round = lead.rounds + 1;
  }
}

void Leader::said(MemberId id, LeaseId lease, Revision when, const UpMessage& message) {
  // What is read again after a compaction has been heard before.
  if (over_ || when <= seen_) return;
  seen_ = when;
  if (const auto* join_message = std::get_if<JoinMessage>(&message))
    return join(id, lease, *join_message);
  const auto found = known_.find(id);
  if (found == known_.end()) return vanished(id);
  if (const auto* value_message = std::get_if<ValueMessage>(&message))
    return value(found->second, *value_message);
  goodbye(found->second);
}

void Leader::join(MemberId id, LeaseId lease, const JoinMessage& message) {
  if (!base::sameBytes(std::as_bytes(std::span(message.proof)),
                       std::as_bytes(std::span(terms_.proof))))
    return refuse(id, Code::kDenied, "the token is not this group's",
                  "give all members the same token, or use another group name");
  if (!formed_ && message.size != terms_.size)
    return refuse(id, Code::kInvalid,
                  fmt::format("the group forms with {} members, and this member requests {}; {}",
                              terms_.size, message.size, whoIsThere()),
                  "give all members the same size, or this run another group name");
  waiting_.push_back({id, lease, message, calls_ + 1});
  settle();
}

void Leader::settle() {
  if (over_) return;
  if (!formed_) settleForming();
  if (formed_) settleWhole();
}

void Leader::settleForming() {
  std::erase_if(waiting_, [this](const JoiningMember& one) { return decide(one); });
  if (callIsOpen()) return;
  const bool full = known_.size() == terms_.size;
  if (full && roll_ != 0 && roll_ == calls_) return form();
  if (!full && waiting_.empty()) return;
  call();
  if (full) roll_ = calls_;
}

bool Leader::decide(const JoiningMember& one) {
  const auto& asked = one.message.rank;
  const auto holder = std::ranges::find_if(
      known_, [&](const auto& known) { return asked && known.second.asked == asked; });
  if (holder == known_.end()) {
    if (known_.size() == terms_.size) return false;
    admit(one);
    return true;
  }
  if (holder->second.answered < one.call) return false;
  refuse(one.id, Code::kBusy,
         fmt::format("rank {} is taken by {}; {}", asked.value_or(0),
                     holder->second.leased.member.name, whoIsThere()),
         "give each member a rank of its own, or none");
  return true;
}

void Leader::admit(const JoiningMember& one) {
  known_[one.id] = {.leased = {one.id, one.lease, {0, one.message.name, one.message.about}},
                    .asked = one.message.rank,
                    .arrival = ++arrivals_,
                    .sat = calls_};
  roll_ = 0;
  output_.answers.emplace_back(one.id, AnswerMessage{});
}

// A call that a dead member leaves unanswered ends for us with the death of one of ours.
void Leader::settleWhole() {
  // Once members say goodbye, whoever comes waits for the group's end.
  if (someone_gone_) return waiting_.clear();
  if (callIsOpen()) return;
  std::erase_if(waiting_, [this](const JoiningMember& one) {
    if (one.call > calls_) return false;
    refuse(one.id, Code::kBusy, fmt::format("the group is complete and running; {}", whoIsThere()),
           "wait for the end of that run, or use another group name");
    return true;
  });
  if (!waiting_.empty()) call();
}

bool Leader::callIsOpen() const {
  return std::ranges::any_of(known_, [this](const auto& one) {
    return !one.second.gone && std::max(one.second.sat, one.second.answered) < calls_;
  });
}

// One at a time: it serves all who wait when it is made.
void Leader::call() { output_.call = ++calls_; }

void Leader::answered(MemberId id, std::uint64_t call) {
  const auto found = known_.find(id);
  if (over_ || found == known_.end() || call > calls_) return;
  found->second.answered = std::max(found->second.answered, call);
  settle();
}

void Leader::refuse(MemberId id, Code code, std::string detail, std::string remedy) {
  output_.answers.emplace_back(
      id, AnswerMessage{Error{.code = code,
                              .operation = fmt::format("join group \"{}\"", terms_.group),
                              .detail = std::move(detail),
                              .remedy = std::move(remedy)}});
}

// Ranks that were asked for are kept; the others get the lowest that are free, first come first.
void Leader::form() {
  std::vector<Known*> members;
  std::set<std::uint32_t> taken;
  for (auto& [id, known] : known_) {
    members.push_back(&known);
    if (known.asked) taken.insert(*known.asked);
  }
  std::ranges::sort(members, {}, [](const Known* known) { return known->arrival; });
  std::uint32_t free = 0;
  for (Known* known : members) {
    if (known->asked) {
      known->leased.member.rank = *known->asked;
      continue;
    }
    while (taken.contains(free)) ++free;
    known->leased.member.rank = free++;
  }
  std::ranges::sort(members, {}, [](const Known* known) { return known->leased.member.rank; });
  output_.roster.emplace();
  for (const Known* known : members) output_.roster->push_back(known->leased);
  formed_ = true;
}

// A value whose answer was lost is sent again, and may come when its round is long over.
void Leader::value(Known& from, const ValueMessage& message) {
  if (!formed_ || message.round != from.next_round) return;
  ++from.next_round;
  from.values.push_back(message.value);
  if (someone_gone_) {
    const auto left = std::ranges::find_if(
        known_, [](const auto& one) { return one.second.gone && one.second.values.empty(); });
    if (left != known_.end())
      return end({.code = Code::kPeerLost,
                  .operation = "gather",
                  .detail = fmt::format("{} has left, and {} waits for its value in round {}",
                                        nameOf(left->second), nameOf(from), message.round),
                  .peer = left->second.leased.member.name,
                  .remedy = "let every member take part in all rounds before it finishes"});
  }
  if (from.values.size() == 1) ++ready_;
  finishRounds();
}

void Leader::finishRounds() {
  while (ready_ == known_.size()) {
    std::vector<std::string_view> values(known_.size());
    for (const auto& [id, known] : known_) values[known.leased.member.rank] = known.values.front();
    output_.rounds.emplace_back(++rounds_done_, encodeValues(values));
    ready_ = 0;
    for (auto& [id, known] : known_) {
      known.values.pop_front();
      if (!known.values.empty()) ++ready_;
    }
  }
}

void Leader::goodbye(Known& from) {
  if (!formed_) {
    known_.erase(from.leased.id);  // gave up while it waited
    roll_ = 0;
    return settle();
  }
  from.gone = someone_gone_ = true;
  settle();
  // Whoever leads next has not heard the values of the open round.
  if (ready_ > 0 && (from.values.empty() || from.leased.id == terms_.self))
    end({.code = Code::kPeerLost,
         .operation = "gather",
         .detail = fmt::format("{} has left while others wait for its value in round {}",
                               nameOf(from), rounds_done_ + 1),
         .peer = from.leased.member.name,
         .remedy = "let every member take part in all rounds before it finishes"});
}

void Leader::vanished(MemberId id) {
  std::erase_if(waiting_, [id](const JoiningMember& one) { return one.id == id; });
  const auto found = known_.find(id);
  if (over_ || found == known_.end() || found->second.gone) return;
  const Known& known = found->second;
  if (formed_) return end(death(nameOf(known), known.leased.member.name));
  known_.erase(found);  // its rank is free for the next
  roll_ = 0;
  settle();
}

void Leader::end(Error trouble) {
  over_ = true;
  output_ = {};
  output_.trouble = std::move(trouble);
}

std::string Leader::nameOf(const Known& known) const {
  return fmt::format("rank {} ({})", known.leased.member.rank, known.leased.member.name);
}

std::string Leader::whoIsThere() const {
  std::vector<const Known*> members;
  members.reserve(known_.size());
  for (const auto& [id, known] : known_) members.push_back(&known);
  std::ranges::sort(members, {}, [](const Known* known) {
    return std::pair(known->leased.member.rank, known->arrival);
  });
  std::string out = fmt::format("{} of {} have joined", members.size(), terms_.size);
  for (std::size_t i = 0; i < std::min(members.size(), kNamed); ++i) {
    const Known& known = *members[i];
    out += i == 0 ? ": " : ", ";
    if (formed_ || known.asked)
      out += fmt::format("{} ", formed_ ? known.leased.member.rank : *known.asked);
    out += known.leased.member.name;
  }
  if (members.size() > kNamed) out += fmt::format(" and {} more", members.size() - kNamed);
  return out;
}

std::vector<LeasedMember> Leader::heirs() const {
  std::vector<LeasedMember> out;
  for (const auto& [id, known] : known_)
    if (!known.gone && id != terms_.self) out.push_back(known.leased);
  return out;
}

std::vector<MemberId> Leader::gone() const {
  std::vector<MemberId> out;
  for (const auto& [id, known] : known_)
    if (known.gone) out.push_back(id);
  return out;
}

std::vector<MemberId> Leader::members() const {
  std::vector<MemberId> out;
  out.reserve(known_.size() + waiting_.size());
  for (const auto& [id, known] : known_) out.push_back(id);
  for (const JoiningMember& one : waiting_) out.push_back(one.id);
  return out;
}

bool Leader::saidGoodbye(MemberId id) const {
  const auto found = known_.find(id);
  return found != known_.end() && found->second.gone;
}

}  // namespace viaduct::meet::etcd
