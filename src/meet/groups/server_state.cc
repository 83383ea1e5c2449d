#include "meet/groups/server_state.h"

#include <fmt/format.h>

#include <algorithm>

#include "base/printable.h"

namespace viaduct::meet::groups {

Status checkJoin(const JoinRequest& request, std::size_t max_about) {
  Error why{.code = Code::kInvalid,
            .operation = fmt::format("join group {}", base::printable(request.group))};
  if (request.group.empty() || request.group.size() > kMaxNameBytes)
    why.detail = fmt::format("a group's name has 1 to {} bytes", kMaxNameBytes);
  else if (request.size == 0 || request.size > kMaxMembers)
    why.detail = fmt::format("size {}: a group has 1 to {} members", request.size, kMaxMembers);
  else if (request.rank && *request.rank >= request.size)
    why.detail = fmt::format("rank {} does not exist in a group of {}: ranks are 0 to {}",
                             *request.rank, request.size, request.size - 1);
  else if (request.name.size() > kMaxNameBytes)
    why.detail = fmt::format("a member's name has at most {} bytes", kMaxNameBytes);
  else if (!base::isPrintable(request.group) || !base::isPrintable(request.name))
    why.detail = "a name has a control character, or bytes that are not UTF-8";
  else if (request.about.size() > max_about)
    why.detail = fmt::format("a member's description has at most {} bytes", max_about);
  else
    return Ok{};
  return why;
}

Status ServerState::take(GuestId guest, Type type, ByteSpan payload) {
  if (type == Type::kJoin) return join(guest, payload);
  if (type == Type::kPublish || type == Type::kFind) {
    VIADUCT_TRY(auto message, base::decode<NameMessage>(payload));
    type == Type::kPublish ? names_.publish(guest, std::move(message))
                           : names_.find(guest, message);
  } else if (type == Type::kWithdraw || type == Type::kForget) {
    VIADUCT_TRY(const auto request, base::decode<NumberMessage>(payload));
    const auto number = static_cast<std::uint32_t>(request.number);
    type == Type::kWithdraw ? names_.withdraw(guest, number) : names_.forget(guest, number);
  } else if (type == Type::kPong) {
    VIADUCT_TRY(const auto pong, base::decode<NumberMessage>(payload));
    names_.pong(guest, pong.number);
  }
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return Ok{};
  const GuestGroup group = found->second;
  VIADUCT_CHECK(takeOfMember(guest, *group.state, type, payload));
  tidy(group.name);
  return Ok{};
}

// Ignores types that are not for groups.
Status ServerState::takeOfMember(GuestId guest, GroupState& group, Type type, ByteSpan payload) {
  if (type == Type::kGather) {
    VIADUCT_TRY(auto message, base::decode<GatherMessage>(payload));
    return group.gather(guest, std::move(message));
  }
  if (type == Type::kAbandon) {
    VIADUCT_TRY(const auto message, base::decode<TextMessage>(payload));
    group.abandon(guest, message.text);
  } else if (type == Type::kFinish) {
    group.finish(guest);
  } else if (type == Type::kAsk) {
    group.ask(guest);
  } else if (type == Type::kStop) {
    group.requestStop(guest);
  } else if (type == Type::kPong) {
    VIADUCT_TRY(const auto pong, base::decode<NumberMessage>(payload));
    group.pong(guest, pong.number);
  }
  return Ok{};
}

Status ServerState::join(GuestId guest, ByteSpan payload) {
  VIADUCT_TRY(auto message, base::decode<JoinMessage>(payload));
  if (guests_.contains(guest))
    return Error{.code = Code::kProtocol, .operation = "join", .detail = "joined twice"};
  if (const Status right = checkJoin(message.request, kMaxAboutBytes + base::kSealBytes); !right) {
    connections_.send(guest, makePacket(Type::kRefused, ErrorMessage{right.error()}));
    return Ok{};
  }
  const Name name{message.name_space, message.request.group};
  auto& group_state = groups_[name];
  if (!group_state)
    group_state =
        std::make_shared<GroupState>(message.request.group, connections_, epochs_, memory_, once_);
  guests_.emplace(guest, GuestGroup{name, group_state});
  group_state->join(guest, message.request);
  return Ok{};
}

void ServerState::gone(GuestId guest, const std::string& how) {
  names_.gone(guest);
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return;
  const GuestGroup group = std::move(found->second);
  guests_.erase(found);
  group.state->gone(guest, how);
  tidy(group.name);
}

void ServerState::tidy(const Name& name) {
  const auto found = groups_.find(name);
  if (found != groups_.end() && found->second->empty() && !found->second->over())
    groups_.erase(found);
}

void ServerState::close(const Error& why) {
  for (const auto& [name, group_state] : groups_) group_state->close(why);
}

bool ServerState::over() const {
  return std::any_of(groups_.begin(), groups_.end(),
                     [](const auto& group_state) { return group_state.second->over(); });
}

std::size_t ServerState::liveGroups() const {
  return static_cast<std::size_t>(
      std::count_if(groups_.begin(), groups_.end(),
                    [](const auto& group_state) { return group_state.second->live(); }));
}

}  // namespace viaduct::meet::groups
