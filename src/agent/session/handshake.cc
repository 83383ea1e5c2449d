#include "agent/session/handshake.h"

#include <fmt/format.h>

#include <cstring>
#include <span>
#include <utility>

#include "core/setting_name.h"

namespace viaduct::agent {
namespace {

template <std::size_t N>
ByteSpan view(const std::array<std::uint8_t, N>& bytes) {
  return std::as_bytes(std::span(bytes));
}

Error wrongSecret() {
  return {
      .code = Code::kDenied,
      .operation = "handshake",
      .detail = "the secret does not match the other end's",
      .cause =
          "that agent restarted after it gave the Card, or the two have different group secrets",
      .remedy = fmt::format("pass a new Card of that agent, or give both ends the same secret: {}",
                            core::settingName("secret", "VIADUCT_SECRET"))};
}

Error unexpected(const Frame& frame) {
  return {.code = Code::kProtocol,
          .operation = "handshake",
          .detail = fmt::format("an unexpected frame of type {} and {} bytes",
                                static_cast<unsigned>(frame.type), frame.payload.size())};
}

Handshake::HandshakeMessage message(FrameType type, ByteSpan first, ByteSpan second = {}) {
  Handshake::HandshakeMessage out{.type = type, .size = first.size() + second.size()};
  std::memcpy(out.bytes.data(), first.data(), first.size());
  if (!second.empty()) std::memcpy(&out.bytes[first.size()], second.data(), second.size());
  return out;
}

}  // namespace

Handshake::Handshake(bool dialer, const Key& secret, const Key& nonce, std::string binding)
    : dialer_(dialer),
      secret_(secret),
      due_(dialer ? FrameType::kChallenge : FrameType::kOpen),
      mine_(nonce),
      binding_(std::move(binding)) {}

// The proof covers all facts that both ends have exchanged, so that none can be changed on the way:
// versions, both nonces, and the binding.
Digest Handshake::proof(std::string_view who) const {
  const std::array<std::uint8_t, 3> versions{kWireMajor, dialer_ ? kWireMinor : their_minor_,
                                             dialer_ ? their_minor_ : kWireMinor};
  return secret_.of({std::as_bytes(std::span(who)), view(versions), view(dialer_ ? mine_ : theirs_),
                     view(dialer_ ? theirs_ : mine_), std::as_bytes(std::span(binding_))});
}

void Handshake::makeKeys() {
  keys_.common = proof("viaduct session  ");
  keys_.to_listener = base::deriveKey(keys_.common, "frames to the listener");
  keys_.to_dialer = base::deriveKey(keys_.common, "frames to the dialer");
}

Handshake::HandshakeMessage Handshake::open() const {
  return message(FrameType::kOpen, view(mine_));
}

Handshake::HandshakeMessage Handshake::deny(Code code) {
  const auto byte = static_cast<std::byte>(code);
  return message(FrameType::kDeny, {&byte, 1});
}

Result<Handshake::Step> Handshake::take(const Frame& frame) {
  if (frame.type == FrameType::kDeny && frame.payload.size() == 1) {
    if (frame.payload[0] == static_cast<std::byte>(Code::kDenied)) return wrongSecret();
    return Error{.code = Code::kProtocol,
                 .operation = "handshake",
                 .detail = "the other end could not read a frame"};
  }
  if (frame.type != due_) return unexpected(frame);
  switch (due_) {
    case FrameType::kOpen:
      return takeOpen(frame);
    case FrameType::kChallenge:
      return takeChallenge(frame);
    case FrameType::kProof:
      return takeProof(frame);
    default:
      return unexpected(frame);
  }
}

Result<Handshake::Step> Handshake::takeOpen(const Frame& frame) {
  if (frame.payload.size() != theirs_.size()) return unexpected(frame);
  std::memcpy(theirs_.data(), frame.payload.data(), theirs_.size());
  their_minor_ = frame.minor;
  due_ = FrameType::kProof;
  return Step{
      .sends = true,
      .send = message(FrameType::kChallenge, view(mine_), view(proof("viaduct listener ")))};
}

// The dialer is the first end that can see that the secrets differ. It does not show its own proof
// to a listener that has none.
Result<Handshake::Step> Handshake::takeChallenge(const Frame& frame) {
  if (frame.payload.size() != theirs_.size() + sizeof(Digest)) return unexpected(frame);
  std::memcpy(theirs_.data(), frame.payload.data(), theirs_.size());
  their_minor_ = frame.minor;
  if (!base::sameBytes(frame.payload.subspan(theirs_.size()), view(proof("viaduct listener "))))
    return wrongSecret();
  makeKeys();
  due_ = FrameType::kDeny;  // no frame is expected any more
  return Step{.sends = true,
              .send = message(FrameType::kProof, view(proof("viaduct dialer   "))),
              .proven = true};
}

Result<Handshake::Step> Handshake::takeProof(const Frame& frame) {
  if (frame.payload.size() != sizeof(Digest)) return unexpected(frame);
  if (!base::sameBytes(frame.payload, view(proof("viaduct dialer   ")))) return wrongSecret();
  makeKeys();
  due_ = FrameType::kDeny;
  return Step{.proven = true};
}

}  // namespace viaduct::agent
