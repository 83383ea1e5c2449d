// What members of a group tell each other through keys, as bytes. Whoever may write to etcd may
// have written anything: what is no message decodes to nothing. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "base/net/crypto.h"
#include "meet/etcd/gateway.h"
#include "meet/meeting.h"

namespace viaduct::meet::etcd {

using MemberId = std::uint64_t;  // random, one for each attempt to join

constexpr std::size_t kNamed = 8;  // members in one error; the others are counted

// Who leads the forming of a group.
struct GroupHead {
  std::uint64_t instance = 0;  // random; the group's other keys stand under it
  std::string identity = {};   // of the leader's process; empty: unknown
  std::string who = {};        // the leader, for people
};
std::string encode(const GroupHead& head);
std::optional<GroupHead> decodeHead(std::string_view bytes);

// From a member to the leader. A member's later message replaces its earlier one.
struct JoinMessage {
  std::uint32_t size = 0;
  std::optional<std::uint32_t> rank = {};
  base::Digest proof = {};  // that it knows the token
  std::string name = {}, about = {};
};
struct ValueMessage {
  std::uint64_t round = 0;  // from 1
  std::string value = {};
};
struct ByeMessage {};
using UpMessage = std::variant<JoinMessage, ValueMessage, ByeMessage>;
std::string encode(const UpMessage& message);
std::optional<UpMessage> decodeUp(std::string_view bytes);

// From the leader to one who wants to join: welcome, or why not.
struct AnswerMessage {
  std::optional<Error> refused = {};
};
std::string encode(const AnswerMessage& message);
std::optional<AnswerMessage> decodeAnswer(std::string_view bytes);

// From the leader to all: who leads. Its key lives as long as the leader.
struct LeadMessage {
  bool over = false;  // nobody: join anew
  MemberId leader = 0;
  Revision seen = 0;                // what members said up to here is taken into account
  std::uint64_t rounds = 0;         // that all have given their values for
  std::vector<MemberId> gone = {};  // said goodbye
};
std::string encode(const LeadMessage& message);
std::optional<LeadMessage> decodeLead(std::string_view bytes);

// From the leader to all: whoever is there answers with the call's number, under a key of its own.
struct CallMessage {
  std::uint64_t number = 0;  // from 1
};
std::string encode(const CallMessage& message);
std::optional<CallMessage> decodeCall(std::string_view bytes);

// From anybody to all: that they are to end early what they do together.
struct StopMessage {
  std::uint32_t rank = 0;  // of the member that asks
};
std::string encode(const StopMessage& message);
std::optional<StopMessage> decodeStop(std::string_view bytes);

// From anybody to all: what ended the group.
std::string encode(const Error& trouble);
std::optional<Error> decodeTrouble(std::string_view bytes);

// From the leader to all: a round's outcome, cut into parts that etcd takes.
inline constexpr std::size_t kPartBytes = std::size_t{768} * 1024;
struct PartMessage {
  std::uint64_t round = 0;  // 0: the roster
  std::uint32_t part = 0, parts = 1;
  std::string bytes = {};
};
std::string encode(const PartMessage& message);
std::optional<PartMessage> decodePart(std::string_view bytes);
std::vector<PartMessage> cut(std::uint64_t round, std::string_view bytes);

// The roster as its members need it: whoever takes over the lead has to know the others' leases.
struct LeasedMember {
  MemberId id = 0;
  LeaseId lease = 0;
  Member member = {};
};
std::string encodeRoster(const std::vector<LeasedMember>& leased_members);
std::optional<std::vector<LeasedMember>> decodeRoster(std::string_view bytes);

std::string encodeValues(const std::vector<std::string_view>& values);
std::optional<std::vector<std::string>> decodeValues(std::string_view bytes);

// A published name's value and whose it is.
struct EntryMessage {
  std::string identity = {}, value = {};
};
std::string encode(const EntryMessage& message);
std::optional<EntryMessage> decodeEntry(std::string_view bytes);

}  // namespace viaduct::meet::etcd
