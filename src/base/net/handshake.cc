#include "base/net/handshake.h"

#include <array>
#include <span>

#include "base/fields.h"
#include "base/random.h"

namespace viaduct::base {
namespace {

// One length for all, so that no label and its context read like another pair.
constexpr std::string_view kOfListener = "viaduct listener ", kOfDialer = "viaduct dialer   ",
                           kOfSession = "viaduct session  ";

template <std::size_t N>
ByteSpan view(const std::array<std::uint8_t, N>& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace

Result<Handshake> Handshake::begin(bool dialer, const Key& secret, Version version,
                                   std::string binding) {
  Key nonce;
  VIADUCT_CHECK(fillSecret(nonce));
  return Handshake(dialer, secret, nonce, version, std::move(binding));
}

// The proof covers all facts that both ends have exchanged, so that none can be changed on the way:
// versions, both nonces, and the binding.
Sha256Digest Handshake::proof(std::string_view who) const {
  const std::array<std::uint8_t, 3> versions{version_.major,
                                             dialer_ ? version_.minor : their_minor_,
                                             dialer_ ? their_minor_ : version_.minor};
  return secret_.of({bytesOf(who), view(versions), view(dialer_ ? mine_ : theirs_),
                     view(dialer_ ? theirs_ : mine_), bytesOf(binding_)});
}

Key Handshake::directionKey(bool to_listener) const {
  return deriveKey(common_, to_listener ? "frames to the listener" : "frames to the dialer");
}

Bytes Handshake::open() const { return encode(mine_); }

// The dialer is the first end that can see that the secrets differ. It does not show its own proof
// to a listener that has none.
Result<Handshake::Step> Handshake::take(Stage stage, ByteSpan payload, std::uint8_t their_minor) {
  Reader in(payload);
  Key nonce = theirs_;
  Sha256Digest claimed = {};
  if (stage != Stage::kProof) Fields::get(in, nonce);
  if (stage != Stage::kOpen) Fields::get(in, claimed);
  if (stage != due_ || !in.finished())
    return Error{.code = Code::kProtocol,
                 .operation = "handshake",
                 .detail = "a message of the handshake is malformed, or out of turn"};
  due_.reset();
  theirs_ = nonce;
  if (stage != Stage::kProof) their_minor_ = their_minor;
  if (stage == Stage::kOpen) {
    due_ = Stage::kProof;
    return Step{.reply = encode(mine_, proof(kOfListener))};
  }
  const Sha256Digest expected = proof(dialer_ ? kOfListener : kOfDialer);
  if (!sameBytes(view(claimed), view(expected)))
    return Error{.code = Code::kDenied,
                 .operation = "handshake",
                 .detail = "the secret does not match the other end's"};
  common_ = proof(kOfSession);
  Step step{.proven = true};
  if (dialer_) step.reply = encode(proof(kOfDialer));
  return step;
}

}  // namespace viaduct::base
