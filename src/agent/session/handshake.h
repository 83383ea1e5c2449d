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

// Keys that only the two ends know, once both have proved themselves.
struct SessionKeys {
  Key common = {};       // the base of deriveKey()
  Key to_listener = {};  // seals the dialer's frames
  Key to_dialer = {};
};

class Handshake {
 public:
  // A frame to be sent, protected by a checksum only.
  struct HandshakeMessage {
    FrameType type = FrameType::kOpen;
    std::array<std::byte, kMaxUnprovenPayload> bytes = {};
    std::size_t size = 0;
    ByteSpan payload() const { return ByteSpan(bytes).first(size); }
  };
  struct Step {
    bool sends = false;
    HandshakeMessage send = {};
    // keys() are valid. They seal the frames after `send`, and after the frame just taken.
    bool proven = false;
  };

  // `nonce` must never have been used before. `binding` describes the path as both ends see it, so
  // that the proofs fail across a relay from one kind of path to another.
  Handshake(bool dialer, const Key& secret, const Key& nonce, std::string binding);

  HandshakeMessage open() const;  // the dialer's first frame
  Result<Step> take(const Frame& frame);
  const SessionKeys& keys() const { return keys_; }
  // A frame that refuses the other end before there are keys. It carries only a code.
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
