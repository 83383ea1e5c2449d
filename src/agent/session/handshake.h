// The proof of both ends that they know the secret. Pure: frames in, frames out. Threads: one at a
// time.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>

#include "agent/session/frame.h"
#include "base/net/crypto.h"

namespace viaduct::agent {

// What only the two ends know once both have proved themselves.
struct SessionKeys {
  Key common = {};       // deriveKey()s start from it
  Key to_listener = {};  // seals what the dialer sends
  Key to_dialer = {};
};

class Handshake {
 public:
  // A frame to be sent, still under a checksum.
  struct HandshakeMessage {
    FrameType type = FrameType::kOpen;
    std::array<std::byte, kMaxUnprovenPayload> bytes = {};
    std::size_t size = 0;
    ByteSpan payload() const { return ByteSpan(bytes).first(size); }
  };
  struct Step {
    bool sends = false;
    HandshakeMessage send = {};
    bool proven = false;  // keys() are there, and seal every frame after `send` and after this one
  };

  // `nonce` has never been used before. `binding`: what both ends can see of the way between them;
  // a relay between two different ways makes the proofs fail.
  Handshake(bool dialer, const Key& secret, const Key& nonce, std::string binding);

  HandshakeMessage open() const;  // the dialer's first
  Result<Step> take(const Frame& frame);
  const SessionKeys& keys() const { return keys_; }
  // Tells the other end that it is refused, before there are keys: a code, nothing else.
  static HandshakeMessage deny(Code code);

 private:
  Digest proof(std::string_view who) const;
  void makeKeys();
  Result<Step> takeOpen(const Frame& frame);
  Result<Step> takeChallenge(const Frame& frame);
  Result<Step> takeProof(const Frame& frame);

  bool dialer_;
  Hmac secret_;
  FrameType due_;
  Key mine_, theirs_ = {};
  std::uint8_t their_minor_ = 0;
  std::string binding_;
  SessionKeys keys_;
};

}  // namespace viaduct::agent
