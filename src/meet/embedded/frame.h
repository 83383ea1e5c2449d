// The frames between a member and the embedded server. Threads: plain values.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>

#include "base/fields.h"
#include "base/net/frame.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

using base::Bytes;
using base::ByteSpan;
using base::Key;

// Both ends prove the token by base::Handshake, the member first.
inline constexpr base::Handshake::Version kVersion{.major = 1, .minor = 0};
inline constexpr const char* kBinding = "meeting place";

// The limits of a message: before a member has proved itself, from a member, and from the server. A
// message of the server may hold the values of all members.
inline constexpr std::size_t kMaxUnproven = 512;
inline constexpr std::size_t kMaxFromMember = kMaxValueBytes + std::size_t{16} * 1024;
inline constexpr std::size_t kMaxFromServer = std::size_t{512} << 20U;

enum class Type : std::uint8_t {
  // Messages of the handshake, in the order of sending.
  kOpen = 1,
  kChallenge,
  kProof,
  kConfirm,
  kWelcome,
  kDeny,
  // Messages of a member.
  kJoin = 16,
  kGather,
  kAbandon,
  kFinish,
  kAsk,  // asks for the missing members
  kPublish,
  kWithdraw,
  kFind,
  kForget,
  kPong,
  kBeat,  // a heartbeat; the server also sends it
  // A request to end early. The server sends it on with the rank of the asking member.
  kStop,
  // Messages of the server.
  kRefused = 64,
  kRank,
  kFormed,
  kValues,
  kTrouble,
  kFinished,
  kStatus,
  kAnswer,
  kPing,
};

extern const base::FrameProtocol kMeetFrames;
inline Type typeOf(const base::Frame& frame) { return static_cast<Type>(frame.type); }

// One message, which several connections may share.
struct Packet {
  Type type = Type::kBeat;
  Bytes payload = {};
  base::Sha256Digest digest = {};  // base::payloadDigest()
};
using PacketPtr = std::shared_ptr<const Packet>;
PacketPtr makePacket(Type type, Bytes payload = {});
template <class Message>
PacketPtr makePacket(Type type, const Message& message) {
  return makePacket(type, base::encode(message));
}

}  // namespace viaduct::meet::embedded
