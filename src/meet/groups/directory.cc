#include "meet/groups/directory.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::meet::groups {
namespace {

// Limits for one member's entries, claims and searches. They are ample, because an agent publishes
// only one Card.
constexpr std::size_t kMaxRequests = 10'000;
constexpr std::size_t kMaxBytes = std::size_t{16} << 20U;
// The memory of a request beside its texts.
constexpr std::size_t kRequestBytes = 256;

template <class Map, class Which>
std::size_t eraseIf(Map& map, Which which) {
  return std::erase_if(map, [&](const auto& item) { return which(item.second); });
}

}  // namespace

void Directory::answer(NameRequest to, const std::string& value) {
  connections_.send(to.guest, makePacket(Type::kAnswer, AnswerMessage{to.number, {}, value}));
}

void Directory::refuse(NameRequest to, Error why) {
  connections_.send(to.guest,
                    makePacket(Type::kAnswer, AnswerMessage{to.number, std::move(why), {}}));
}

Directory::MemberUsage::MemberUsage(base::Budget& memory) : bytes(kMaxBytes, &memory) {}

// Counts the request for its member. False: it exceeds a limit, and was refused.
bool Directory::open(NameRequest& request, const NameMessage& message) {
  MemberUsage& account = accounts_.try_emplace(request.guest, memory_).first->second;
  const std::size_t bytes = kRequestBytes + message.name_space.size() + message.name.size() +
                            message.value.size() + message.owner.size();
  if (account.requests >= kMaxRequests) {
    refuse(request,
           {.code = Code::kExhausted,
            .operation = "directory",
            .detail = fmt::format("one member has {} names and searches, which is the limit",
                                  kMaxRequests)});
    return false;
  }
  if (!account.bytes.take(bytes)) {
    refuse(request, account.bytes.refusal("directory", bytes, "one member", "all members"));
    return false;
  }
  ++account.requests;
  request.bytes = bytes;
  return true;
}

void Directory::close(const NameRequest& request) {
  MemberUsage& account = accounts_.at(request.guest);
  --account.requests;
  account.bytes.give(request.bytes);
}

void Directory::publish(GuestId guest, NameMessage message) {
  NameRequest by{guest, message.request};
  if (!open(by, message)) return;
  const Name name{message.name_space, message.name};
  const auto found = entries_.find(name);
  if (found == entries_.end() || found->second.by.guest == guest)
    return enter(name, by, std::move(message.owner), std::move(message.value));
  // The entry may belong to a process that was killed. The claim is refused only if its owner
  // answers the ping.
  claims_.emplace(name, PendingClaim{by, std::move(message.owner), std::move(message.value),
                                     connections_.ping(found->second.by.guest)});
}

void Directory::enter(const Name& name, NameRequest by, std::string owner, std::string value) {
  answer(by, {});
  const auto [from, to] = seekers_.equal_range(name);
  for (auto seeker = from; seeker != to; ++seeker) {
    answer(seeker->second, value);
    close(seeker->second);
  }
  seekers_.erase(from, to);
  const auto before = entries_.find(name);
  if (before != entries_.end()) close(before->second.by);
  entries_.insert_or_assign(name, NameRecord{by, std::move(owner), std::move(value)});
}

void Directory::remove(const Name& name) {
  entries_.erase(name);
  const auto claim = claims_.find(name);
  if (claim == claims_.end()) return;
  PendingClaim next = std::move(claim->second);
  claims_.erase(claim);
  enter(name, next.by, std::move(next.owner), std::move(next.value));
  // The remaining claims compete with the new owner, so ping the new owner.
  const auto [from, to] = claims_.equal_range(name);
  for (auto other = from; other != to; ++other)
    other->second.pong = connections_.ping(next.by.guest);
}

void Directory::withdraw(GuestId guest, std::uint32_t request) {
  const auto found = std::find_if(entries_.begin(), entries_.end(), [&](const auto& entry) {
    return entry.second.by.is(guest, request);
  });
  if (found != entries_.end()) {
    close(found->second.by);
    remove(Name(found->first));
  }
  answer({guest, request}, {});
}

void Directory::find(GuestId guest, const NameMessage& message) {
  const Name name{message.name_space, message.name};
  NameRequest by{guest, message.request};
  if (const auto found = entries_.find(name); found != entries_.end())
    return answer(by, found->second.value);
  if (open(by, message)) seekers_.emplace(name, by);
}

void Directory::forget(GuestId guest, std::uint32_t request) {
  const auto closes = [&](const NameRequest& by) {
    if (!by.is(guest, request)) return false;
    close(by);
    return true;
  };
  eraseIf(seekers_, closes);
  eraseIf(claims_, [&](const PendingClaim& claim) { return closes(claim.by); });
}

void Directory::pong(GuestId guest, std::uint64_t number) {
  for (auto claim = claims_.begin(); claim != claims_.end();) {
    const auto entry = entries_.find(claim->first);
    if (claim->second.pong != number || entry == entries_.end() ||
        entry->second.by.guest != guest) {
      ++claim;
      continue;
    }
    refuse(claim->second.by, {.code = Code::kBusy,
                              .operation = "publish",
                              .detail = fmt::format("the name \"{}\" belongs to {}, which is alive",
                                                    claim->first.second, entry->second.owner),
                              .cause = "two processes were given the same name",
                              .remedy = "give each its own name, or its own namespace"});
    close(claim->second.by);
    claim = claims_.erase(claim);
  }
}

void Directory::gone(GuestId guest) {
  if (accounts_.erase(guest) == 0) return;
  eraseIf(seekers_, [&](const NameRequest& seeker) { return seeker.guest == guest; });
  eraseIf(claims_, [&](const PendingClaim& claim) { return claim.by.guest == guest; });
  std::vector<Name> names;
  for (const auto& [name, entry] : entries_)
    if (entry.by.guest == guest) names.push_back(name);
  for (const Name& name : names) remove(name);
}

}  // namespace viaduct::meet::groups
