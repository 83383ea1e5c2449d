// What the stream between a member and the embedded server is made of. Pure over bytes. Threads:
// one at a time per object.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>

#include "base/bytes.h"
#include "base/net/crypto.h"
#include "meet/meeting.h"

namespace viaduct::meet::embedded {

using base::Bytes;
using base::ByteSpan;
using base::Key;

inline constexpr std::size_t kHeaderBytes = 24;
// Before a member has proved itself; what a member says; what all members together get to hear.
inline constexpr std::size_t kMaxUnproven = 512;
inline constexpr std::size_t kMaxFromMember = kMaxValueBytes + std::size_t{16} * 1024;
inline constexpr std::size_t kMaxFromServer = std::size_t{512} << 20U;

enum class Type : std::uint8_t {
  // The handshake's, in the order they are sent.
  kOpen = 1,
  kChallenge,
  kProof,
  kWelcome,
  kDeny,
  // A member's.
  kJoin = 16,
  kGather,
  kAbandon,
  kFinish,
  kAsk,  // whom it waits for
  kPublish,
  kWithdraw,
  kFind,
  kForget,
  kPong,
  kBeat,  // the server's as well
  kStop,  // a request to end early; from the server with the rank of the member that asks
  // The server's.
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

// One message; the same bytes may be on their way to many.
struct Packet {
  Type type = Type::kBeat;
  Bytes payload = {};
  base::Digest digest = {};  // of the payload
};
using PacketPtr = std::shared_ptr<const Packet>;
PacketPtr makePacket(Type type, Bytes payload = {});

using Header = std::array<std::byte, kHeaderBytes>;

// One direction's check fields, in the order the packets are sent. Under a key the check is a MAC
// over number, type, length and the payload's digest; before that it guards against accidents only.
class Sealer {
 public:
  void useKey(const Key& key) { mac_.emplace(key); }
  Header seal(const Packet& packet);

 private:
  std::optional<base::Hmac> mac_;
  std::uint64_t number_ = 0;
};

// Finds the messages in one direction's bytes. Holds no more than the bytes of one unfinished
// message that have come.
class Decoder {
 public:
  explicit Decoder(std::size_t limit) : limit_(limit) {}
  void setLimit(std::size_t limit) { limit_ = limit; }
  void useKey(const Key& key) { mac_.emplace(key); }

  // `take` gets each message, which stands in `bytes` or here for the time of the call; it may
  // change limit and key. An error, ours or from `take`, is for ever.
  using Take = std::function<Status(Type type, ByteSpan payload)>;
  Status feed(ByteSpan bytes, const Take& take);
  std::size_t held() const { return held_.capacity(); }

 private:
  Result<std::size_t> takeAll(ByteSpan bytes, const Take& take);

  std::optional<base::Hmac> mac_;
  std::uint64_t number_ = 0;
  std::size_t limit_;
  Bytes held_;
};

}  // namespace viaduct::meet::embedded
