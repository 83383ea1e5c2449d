// Guests send any messages in any order, and leave at any time. The server does not crash, sends
// nothing to a guest that has left, and is empty when all have left.
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "fuzz/samples.h"
#include "meet/groups/server_state.h"

namespace {

using namespace viaduct::meet::groups;
using viaduct::base::decode, viaduct::base::encode;

class Desk final : public MemberConnections {
 public:
  void send(GuestId to, const PacketPtr& packet) override {
    if (!here.contains(to)) std::abort();
    if (packet->type == Type::kFormed && !decode<FormedMessage>(packet->payload)) std::abort();
  }
  std::uint64_t ping(GuestId to) override {
    if (!here.contains(to)) std::abort();
    return ++pings;
  }
  void say(const std::string&) override {}

  std::set<GuestId> here;
  std::uint64_t pings = 0;
};

// Uses few different values, so that messages of different guests often match.
Bytes messageFor(Type type, std::uint8_t a, std::uint8_t b, const Desk& desk) {
  const std::string name(1, static_cast<char>('a' + a % 2));
  switch (type) {
    case Type::kJoin: {
      JoinMessage join{"/v", {name, 1U + b % 4U, {}, "guest", ""}};
      if ((b & 0x80U) != 0) join.request.rank = (b >> 4U) % 8U;
      return encode(join);
    }
    case Type::kGather:
      return encode(GatherMessage{a % 3U, std::string(b, 'v')});
    case Type::kAbandon:
      return encode(TextMessage{name});
    case Type::kPublish:
    case Type::kFind:
      return encode(NameMessage{b % 4U, "/v", name, "value", "owner"});
    case Type::kPong:
      return encode(NumberMessage{desk.pings - a % 4U});
    default:
      return encode(NumberMessage{b % 4U});
  }
}

}  // namespace

namespace viaduct::fuzz {
// Guests that join, meet, gather and leave: (guest, type, a, b), one byte each.
std::vector<Sample> samples() {
  Sample meeting;
  const auto add = [&](std::uint8_t guest, Type type, std::uint8_t a, std::uint8_t b) {
    meeting.insert(meeting.end(), {guest, static_cast<std::uint8_t>(type), a, b});
  };
  for (std::uint8_t guest = 0; guest < 3; ++guest) add(guest, Type::kJoin, 0, 2);
  for (std::uint8_t guest = 0; guest < 3; ++guest)
    add(guest, Type::kPong, static_cast<std::uint8_t>(2 - guest), 0);
  for (std::uint8_t guest = 0; guest < 3; ++guest) add(guest, Type::kGather, 0, 9);
  add(4, Type::kJoin, 0, 2);
  add(0, Type::kPublish, 1, 1);
  add(1, Type::kFind, 1, 1);
  add(5, Type::kPublish, 1, 1);
  for (std::uint8_t guest = 0; guest < 2; ++guest) add(guest, Type::kFinish, 0, 0);
  add(2, Type::kWelcome, 0, 0);  // leaves
  return {meeting};
}
}  // namespace viaduct::fuzz

// NOLINTNEXTLINE(readability-identifier-naming): libFuzzer calls it so
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  Desk desk;
  ServerState state(desk, 1);
  std::array<GuestId, 8> lives{1, 2, 3, 4, 5, 6, 7, 8};  // no id is used twice
  for (std::size_t at = 0; at + 4 <= size; at += 4) {
    GuestId& life = lives[data[at] % 8U];
    const GuestId guest = life;
    const auto leave = [&](const char* how) {
      life += lives.size();
      if (desk.here.erase(guest) > 0) state.gone(guest, how);
    };
    const auto type = static_cast<Type>(data[at + 1]);
    if (type == Type::kWelcome) {  // no guest sends it: it means that this one leaves
      leave("gone");
      continue;
    }
    desk.here.insert(guest);
    const Bytes payload = messageFor(type, data[at + 2], data[at + 3], desk);
    if (!state.take(guest, type, payload)) leave("did not keep to the protocol");
  }
  while (!desk.here.empty()) {
    const GuestId guest = *desk.here.begin();
    desk.here.erase(guest);
    state.gone(guest, "the end");
  }
  if (state.liveGroups() != 0 || state.names() != 0) std::abort();
  return 0;
}
