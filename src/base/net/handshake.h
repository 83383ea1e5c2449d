// Two ends of a connection agree on fresh keys, and prove to each other that they know a secret.
// The session and the meeting place send these messages in frames of their own. Pure: payloads in,
// payloads out. docs/wire.md has the bytes. Threads: one at a time.
//
// The ends exchange X25519 keys first, and mix the secret in after that. So a recording gives
// nothing to an attacker who learns the secret later. An eavesdropper on the wire can test no guess
// of the secret. The dialer proves itself first, so a stranger that only dials an end can test no
// guess either.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <functional>
#include <future>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "base/bytes.h"
#include "base/net/crypto.h"
#include "base/net/key_exchange.h"

namespace viaduct::base {

inline constexpr std::size_t kMaxClaimBytes = 1024;

// Does the one-time work of a process's first handshake in another thread: libcrypto initializes
// itself in 1.5 ms, and libipsec-mb is loaded. The future's destructor waits for this work. The
// future is empty if an earlier call began the work. A fork() must not happen meanwhile.
[[nodiscard]] std::future<void> prepareFirstHandshake();

class Handshake {
 public:
  // The messages, in the order of sending: the dialer and the listener take turns.
  enum class Stage : std::uint8_t { kOpen, kChallenge, kProof, kConfirm };
  struct Version {
    std::uint8_t major, minor;
  };
  struct Step {
    Bytes reply = {};  // the payload of the next stage; empty: none
    // The other end knows the secret, and the keys are valid. They seal the frames after `reply`,
    // and after the message just taken.
    bool proven = false;
  };
  // Returns the secret of a claim that is not empty. Nothing: the claim is unknown, and the dialer
  // is refused exactly like a dialer with a wrong secret. The call should take the same time for
  // all claims.
  using SecretOfClaim = std::function<std::optional<Key>(ByteSpan claim)>;

  // `version` is this end's; only the minor number may differ from the other end's. `binding`
  // describes the path as both ends see it, so that the proofs fail across a relay from one kind of
  // path to another. `claim` names the secret, in at most kMaxClaimBytes. The claim travels in
  // clear and is bound into the keys. The empty claim means the secret of listen().
  static Result<Handshake> dial(const Key& secret, Version version, std::string binding,
                                Bytes claim = {});
  static Result<Handshake> listen(const Key& secret, Version version, std::string binding,
                                  SecretOfClaim of_claim = {});

  Bytes open() const;  // the dialer's first message
  // `their_minor` travels beside the message. kDenied: the other end has another secret. kProtocol:
  // the message is malformed, or out of turn.
  Result<Step> take(Stage stage, ByteSpan payload, std::uint8_t their_minor);

  const Bytes& claim() const { return claim_; }  // of the dialer
  // Only the two ends know these keys.
  const Key& common() const { return common_; }  // for deriveKey()
  Key sendingKey() const { return directionKey(dialer_); }
  Key receivingKey() const { return directionKey(!dialer_); }

 private:
  Handshake(bool dialer, const Key& secret, KeyExchange mine, Version version, std::string binding)
      : dialer_(dialer),
        secret_(secret),
        mine_(std::move(mine)),
        version_(version),
        binding_(std::move(binding)),
        due_(dialer ? Stage::kChallenge : Stage::kOpen) {}
  Status agree();
  Key keyFor(std::string_view purpose) const;
  Status check(std::string_view purpose, const Key& claimed) const;
  Key directionKey(bool to_listener) const;
  Result<Step> takeOpen();
  Result<Step> takeChallenge();
  Result<Step> takeProof(const Key& claimed);
  Result<Step> takeConfirm(const Key& claimed);

  bool dialer_;
  Key secret_;
  SecretOfClaim of_claim_;
  KeyExchange mine_;
  Key theirs_ = {};  // the other end's public key
  Version version_;
  std::uint8_t their_minor_ = 0;
  std::string binding_;
  Bytes claim_;
  std::optional<Stage> due_;  // the stage of the other end's next message
  Key agreed_ = {};           // derived from all that was exchanged, and the secret
  Key common_ = {};
};

}  // namespace viaduct::base
