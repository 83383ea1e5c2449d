// The frames between a member and the embedded server. Pure functions over bytes. Threads: one at a
// time per object.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/fields.h"
#include "base/net/crypto.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

using base::Bytes;
using base::ByteSpan;
using base::Key;

inline constexpr std::size_t kHeaderBytes = 24;
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
  kBeat,  // the server also sends it
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

// One message, which several connections may share.
struct Packet {
  Type type = Type::kBeat;
  Bytes payload = {};
  base::Sha256Digest digest = {};  // of the payload
};
using PacketPtr = std::shared_ptr<const Packet>;
PacketPtr makePacket(Type type, Bytes payload = {});
template <class Message>
PacketPtr makePacket(Type type, const Message& message) {
  return makePacket(type, base::encode(message));
}

using Header = std::array<std::byte, kHeaderBytes>;

// Makes the headers of one direction, in the order of sending. With a key the check is a MAC over
// number, type, length and the payload's digest. Without, it detects accidental changes only.
class Sealer {
 public:
  void useKey(const Key& key) { mac_.emplace(key); }
  Header seal(const Packet& packet);

 private:
  std::optional<base::Hmac> mac_;
  std::uint64_t number_ = 0;
};

// The first line of bytes from outside, in quotation marks: printable, and cut if it is long.
std::string quoted(ByteSpan bytes);

// Finds the messages in the bytes of one direction. Holds at most the received bytes of one
// unfinished message.
class Decoder {
 public:
  explicit Decoder(std::size_t limit) : limit_(limit) {}
  void setLimit(std::size_t limit) { limit_ = limit; }
  void useKey(const Key& key) { mac_.emplace(key); }

  // Calls `take` for each message, whose payload is valid during the call. `take` may change limit
  // and key. After an error, the decoder is unusable.
  using Take = std::function<Status(Type type, ByteSpan payload)>;
  Status feed(ByteSpan bytes, const Take& take);
  std::size_t held() const { return held_.capacity(); }
  // The received bytes of an unfinished message.
  ByteSpan unfinished() const { return held_; }

 private:
  static std::string foreign(ByteSpan bytes);
  Result<std::size_t> takeAll(ByteSpan bytes, const Take& take);

  std::optional<base::Hmac> mac_;
  std::uint64_t number_ = 0;
  std::size_t limit_;
  Bytes held_;
};

}  // namespace viaduct::meet::embedded
