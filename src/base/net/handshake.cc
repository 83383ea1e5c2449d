#include "base/net/handshake.h"

#include <array>
#include <atomic>
#include <span>
#include <utility>

#include "base/fields.h"
#include "base/net/aead.h"
#include "base/random.h"

namespace viaduct::base {
namespace {

constexpr std::string_view kTranscript = "viaduct handshake", kOfDialer = "viaduct dialer",
                           kOfListener = "viaduct listener", kOfSession = "viaduct session";

template <std::size_t N>
ByteSpan view(const std::array<std::uint8_t, N>& bytes) {
  return std::as_bytes(std::span(bytes));
}

}  // namespace

std::future<void> prepareFirstHandshake() {
  static std::atomic<bool> prepared = false;
  if (prepared.exchange(true)) return {};
  // If no thread can be started, the first handshake does this work.
  return std::async(std::launch::async | std::launch::deferred, [] {
    static_cast<void>(KeyExchange::begin());
    static_cast<void>(makeAead(AeadKind::kAesGcm, AeadUse::kSeal));
  });
}

Result<Handshake> Handshake::dial(const Key& secret, Version version, std::string binding,
                                  Bytes claim) {
  VIADUCT_TRY(auto mine, KeyExchange::begin());
  Handshake handshake(true, secret, std::move(mine), version, std::move(binding));
  handshake.claim_ = std::move(claim);
  return handshake;
}

Result<Handshake> Handshake::listen(const Key& secret, Version version, std::string binding,
                                    SecretOfClaim of_claim) {
  VIADUCT_TRY(auto mine, KeyExchange::begin());
  Handshake handshake(false, secret, std::move(mine), version, std::move(binding));
  handshake.of_claim_ = std::move(of_claim);
  return handshake;
}

// Derives a key from all facts that both ends have exchanged, so that none can be changed on the
// way. The secret goes in after the public keys have been exchanged, so only the two ends can test
// it.
Status Handshake::agree() {
  const std::array<std::uint8_t, 3> versions{version_.major,
                                             dialer_ ? version_.minor : their_minor_,
                                             dialer_ ? their_minor_ : version_.minor};
  Writer said;
  said.text(kTranscript).raw(view(versions)).text(binding_).sized(claim_);
  const Key& ours = mine_.publicKey();
  said.raw(view(dialer_ ? ours : theirs_)).raw(view(dialer_ ? theirs_ : ours));
  Sha256 transcript;
  transcript.add(said.bytes());
  VIADUCT_TRY(Key exchanged, mine_.with(theirs_));
  Key shared = hkdfExtract(view(transcript.digest()), view(exchanged));
  agreed_ = hkdfExtract(view(shared), view(secret_));
  common_ = keyFor(kOfSession);
  for (Key* const one : {&exchanged, &shared, &secret_}) wipe(*one);
  return Ok{};
}

Key Handshake::keyFor(std::string_view purpose) const {
  Key key{};
  hkdfExpand(agreed_, bytesOf(purpose), key);
  return key;
}

Key Handshake::directionKey(bool to_listener) const {
  return deriveKey(common_, to_listener ? "frames to the listener" : "frames to the dialer");
}

Bytes Handshake::open() const { return encode(mine_.publicKey(), claim_); }

Status Handshake::check(std::string_view purpose, const Key& claimed) const {
  if (sameBytes(view(claimed), view(keyFor(purpose)))) return Ok{};
  return Error{.code = Code::kDenied,
               .operation = "handshake",
               .detail = "the secret does not match the other end's"};
}

Result<Handshake::Step> Handshake::take(Stage stage, ByteSpan payload, std::uint8_t their_minor) {
  Reader in(payload);
  const bool proves = stage == Stage::kProof || stage == Stage::kConfirm;
  Key proof = {}, key = theirs_;
  if (proves)
    Fields::get(in, proof);
  else
    Fields::get(in, key);
  Bytes claim = claim_;
  if (stage == Stage::kOpen) Fields::get(in, atMost(kMaxClaimBytes, claim));
  if (stage != due_ || !in.finished())
    return Error{.code = Code::kProtocol,
                 .operation = "handshake",
                 .detail = "a message of the handshake is malformed, or out of turn"};
  due_.reset();
  theirs_ = key;
  claim_ = std::move(claim);
  if (!proves) their_minor_ = their_minor;
  switch (stage) {
    case Stage::kOpen:
      return takeOpen();
    case Stage::kChallenge:
      return takeChallenge();
    case Stage::kProof:
      return takeProof(proof);
    case Stage::kConfirm:
      return takeConfirm(proof);
  }
  return Step{};
}

Result<Handshake::Step> Handshake::takeOpen() {
  due_ = Stage::kProof;
  return Step{.reply = encode(mine_.publicKey())};
}

Result<Handshake::Step> Handshake::takeChallenge() {
  VIADUCT_CHECK(agree());
  due_ = Stage::kConfirm;
  return Step{.reply = encode(keyFor(kOfDialer))};
}

// An unknown claim gets a secret that nobody knows, so that it is refused like a wrong secret.
Result<Handshake::Step> Handshake::takeProof(const Key& claimed) {
  if (!claim_.empty()) {
    const auto known = of_claim_ ? of_claim_(claim_) : std::nullopt;
    if (known) secret_ = *known;
    if (!known) VIADUCT_CHECK(fillSecret(secret_));
  }
  VIADUCT_CHECK(agree());
  VIADUCT_CHECK(check(kOfDialer, claimed));
  Step step{.reply = encode(keyFor(kOfListener)), .proven = true};
  wipe(agreed_);
  return step;
}

Result<Handshake::Step> Handshake::takeConfirm(const Key& claimed) {
  VIADUCT_CHECK(check(kOfListener, claimed));
  wipe(agreed_);
  return Step{.proven = true};
}

}  // namespace viaduct::base
