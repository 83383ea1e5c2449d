#include "meet/embedded/hall.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::meet::embedded {

Status checkJoin(const JoinRequest& request) {
  Error why{.code = Code::kInvalid, .operation = fmt::format("join group {}", request.group)};
  if (request.group.empty() || request.group.size() > kMaxNameBytes)
    why.detail = fmt::format("a group's name has 1 to {} bytes", kMaxNameBytes);
  else if (request.size == 0 || request.size > kMaxMembers)
    why.detail = fmt::format("size {}: a group has 1 to {} members", request.size, kMaxMembers);
  else if (request.rank && *request.rank >= request.size)
    why.detail = fmt::format("rank {} does not exist in a group of {}: ranks are 0 to {}",
                             *request.rank, request.size, request.size - 1);
  else if (request.name.size() > kMaxNameBytes)
    why.detail = fmt::format("a member's name has at most {} bytes", kMaxNameBytes);
  else if (request.about.size() > kMaxAboutBytes)
    why.detail = fmt::format("a member's description has at most {} bytes", kMaxAboutBytes);
  else
    return Ok{};
  return why;
}

Status Hall::take(GuestId guest, Type type, ByteSpan payload) {
  switch (type) {
    case Type::kJoin:
      return join(guest, payload);
    case Type::kPublish:
    case Type::kFind:
    case Type::kWithdraw:
    case Type::kForget:
      return takeName(guest, type, payload);
    case Type::kPong: {
      VIADUCT_TRY(const auto pong, NumberMessage::decode(payload));
      names_.pong(guest, pong.number);
      break;
    }
    case Type::kGather:
    case Type::kAbandon:
    case Type::kFinish:
    case Type::kAsk:
    case Type::kStop:
      break;
    default:  // of a newer member: whether we understand it was settled by the version
      return Ok{};
  }
  return takeOfMember(guest, type, payload);
}

Status Hall::join(GuestId guest, ByteSpan payload) {
  VIADUCT_TRY(auto message, JoinMessage::decode(payload));
  if (guests_.contains(guest))
    return Error{.code = Code::kProtocol, .operation = "join", .detail = "joined twice"};
  if (const Status right = checkJoin(message.request); !right) {
    post_.send(guest, makePacket(Type::kRefused, ErrorMessage{right.error()}.encode()));
    return Ok{};
  }
  const Name name{message.name_space, message.request.group};
  auto& table = tables_[name];
  if (!table) table = std::make_shared<Table>(message.request.group, post_, epochs_, memory_);
  guests_.emplace(guest, Place{name, table});
  table->join(guest, message.request);
  return Ok{};
}

Status Hall::takeName(GuestId guest, Type type, ByteSpan payload) {
  if (type == Type::kWithdraw || type == Type::kForget) {
    VIADUCT_TRY(const auto request, NumberMessage::decode(payload));
    const auto number = static_cast<std::uint32_t>(request.number);
    type == Type::kWithdraw ? names_.withdraw(guest, number) : names_.forget(guest, number);
    return Ok{};
  }
  VIADUCT_TRY(auto message, NameMessage::decode(payload));
  type == Type::kPublish ? names_.publish(guest, std::move(message)) : names_.find(guest, message);
  return Ok{};
}

Status Hall::takeOfMember(GuestId guest, Type type, ByteSpan payload) {
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return Ok{};
  const Place place = found->second;
  Table& table = *place.table;
  if (type == Type::kGather) {
    VIADUCT_TRY(auto message, GatherMessage::decode(payload));
    VIADUCT_CHECK(table.gather(guest, std::move(message)));
  } else if (type == Type::kAbandon) {
    VIADUCT_TRY(const auto message, TextMessage::decode(payload));
    table.abandon(guest, message.text);
  } else if (type == Type::kFinish) {
    table.finish(guest);
  } else if (type == Type::kAsk) {
    table.ask(guest);
  } else if (type == Type::kStop) {
    table.requestStop(guest);
  } else {
    VIADUCT_TRY(const auto pong, NumberMessage::decode(payload));
    table.pong(guest, pong.number);
  }
  tidy(place.name);
  return Ok{};
}

void Hall::gone(GuestId guest, const std::string& how) {
  names_.gone(guest);
  const auto found = guests_.find(guest);
  if (found == guests_.end()) return;
  const Place place = std::move(found->second);
  guests_.erase(found);
  place.table->gone(guest, how);
  tidy(place.name);
}

void Hall::tidy(const Name& name) {
  const auto found = tables_.find(name);
  if (found != tables_.end() && found->second->empty()) tables_.erase(found);
}

std::size_t Hall::liveGroups() const {
  return static_cast<std::size_t>(std::count_if(
      tables_.begin(), tables_.end(), [](const auto& table) { return table.second->live(); }));
}

}  // namespace viaduct::meet::embedded
