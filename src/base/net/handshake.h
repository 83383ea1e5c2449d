// Two ends of a connection prove to each other that they know a secret, and do not send it. The
// session and the meeting place send these messages in frames of their own. Pure: payloads in,
// payloads out. docs/wire.md has the bytes. Threads: one at a time.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/net/crypto.h"

namespace viaduct::base {

class Handshake {
 public:
  // The messages, in the order of sending: from the dialer, the listener, the dialer.
  enum class Stage : std::uint8_t { kOpen, kChallenge, kProof };
  struct Version {
    std::uint8_t major, minor;
  };
  struct Step {
    Bytes reply = {};  // the payload of the next stage; empty: none
    // The other end knows the secret, and the keys are valid. They seal the frames after `reply`,
    // and after the message just taken.
    bool proven = false;
  };

  // `version` is this end's; only the minor number may differ from the other end's. `binding`
  // describes the path as both ends see it, so that the proofs fail across a relay from one kind of
  // path to another.
  static Result<Handshake> begin(bool dialer, const Key& secret, Version version,
                                 std::string binding);

  Bytes open() const;  // the dialer's first message
  // `their_minor` travels beside the message. kDenied: the other end has another secret. kProtocol:
  // the message is malformed, or out of turn.
  Result<Step> take(Stage stage, ByteSpan payload, std::uint8_t their_minor);

  // Only the two ends know these keys.
  const Key& common() const { return common_; }  // for deriveKey()
  Key sendingKey() const { return directionKey(dialer_); }
  Key receivingKey() const { return directionKey(!dialer_); }

 private:
  Handshake(bool dialer, const Key& secret, const Key& nonce, Version version, std::string binding)
      : dialer_(dialer),
        secret_(secret),
        mine_(nonce),
        version_(version),
        binding_(std::move(binding)),
        due_(dialer ? Stage::kChallenge : Stage::kOpen) {}
  Sha256Digest proof(std::string_view who) const;
  Key directionKey(bool to_listener) const;

  bool dialer_;
  Hmac secret_;
  Key mine_, theirs_ = {};  // nonces
  Version version_;
  std::uint8_t their_minor_ = 0;
  std::string binding_;
  std::optional<Stage> due_;  // of the other end's next message
  Key common_ = {};
};

}  // namespace viaduct::base
