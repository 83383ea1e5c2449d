#include "base/net/handshake.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/fields.h"

namespace viaduct::base {
namespace {

using Stage = Handshake::Stage;

// The secret, version, binding and claim of one end.
struct End {
  Key secret = {1};
  std::uint8_t minor = 0;
  std::string binding = "tcp";
  Bytes claim = {};                             // of the dialer
  Handshake::SecretOfClaim of_claim = nullptr;  // of the listener
};

// The ends after a whole handshake, or the first error.
class Ends {
 public:
  Ends(const End& dialer, const End& listener)
      : dialer_(*Handshake::dial(dialer.secret, {1, dialer.minor}, dialer.binding, dialer.claim)),
        listener_(*Handshake::listen(listener.secret, {1, listener.minor}, listener.binding,
                                     listener.of_claim)) {
    messages_.push_back(dialer_.open());
    for (const Stage stage : {Stage::kOpen, Stage::kChallenge, Stage::kProof, Stage::kConfirm}) {
      const bool to_dialer = stage == Stage::kChallenge || stage == Stage::kConfirm;
      Handshake& taker = to_dialer ? dialer_ : listener_;
      const auto step =
          taker.take(stage, messages_.back(), to_dialer ? listener.minor : dialer.minor);
      if (!step) {
        error_ = step.error();
        return;
      }
      if (step->proven) ++proven_;
      if (!step->reply.empty()) messages_.push_back(step->reply);
    }
  }

  Handshake dialer_, listener_;
  std::vector<Bytes> messages_;
  std::optional<Error> error_;
  int proven_ = 0;
};

TEST(Handshake, GivesBothEndsTheSameKeys) {
  const Ends ends({.minor = 3}, {.minor = 2});
  ASSERT_FALSE(ends.error_) << ends.error_->text();
  EXPECT_EQ(ends.proven_, 2);
  EXPECT_EQ(ends.dialer_.common(), ends.listener_.common());
  EXPECT_EQ(ends.dialer_.sendingKey(), ends.listener_.receivingKey());
  EXPECT_EQ(ends.dialer_.receivingKey(), ends.listener_.sendingKey());
  EXPECT_NE(ends.dialer_.sendingKey(), ends.dialer_.receivingKey());
  EXPECT_NE(Ends({}, {}).dialer_.common(), Ends({}, {}).dialer_.common()) << "fresh keys";
}

// The formulas of docs/wire.md, byte for byte: another implementation relies on them. The test
// plays the dialer.
TEST(Handshake, HasTheBytesOfTheProtocol) {
  const auto view = [](const Key& key) { return std::as_bytes(std::span(key)); };
  const Key secret{7};
  const Bytes claim(3, std::byte{'c'});
  const auto ours = *KeyExchange::begin();
  auto listener = *Handshake::listen({}, {1, 3}, "tcp", [&](ByteSpan) { return secret; });
  const auto challenge = listener.take(Stage::kOpen, encode(ours.publicKey(), claim), 5);
  ASSERT_TRUE(challenge);
  const Key theirs = *decode<Key>(challenge->reply, "key");
  Writer said;
  said.text("viaduct handshake").put<std::uint8_t>(1).put<std::uint8_t>(5).put<std::uint8_t>(3);
  said.text("tcp").sized(claim).raw(view(ours.publicKey())).raw(view(theirs));
  Sha256 transcript;
  transcript.add(said.bytes());
  const Key shared = Hmac(transcript.digest()).of({view(*ours.with(theirs))});
  const Key agreed = Hmac(shared).of({view(secret)});
  const auto keyFor = [&](std::string_view purpose) {
    constexpr std::byte kRound{1};
    return Hmac(agreed).of({bytesOf(purpose), {&kRound, 1}});
  };
  const auto confirm = listener.take(Stage::kProof, encode(keyFor("viaduct dialer")), 5);
  ASSERT_TRUE(confirm) << confirm.error().text();
  EXPECT_EQ(confirm->reply, encode(keyFor("viaduct listener")));
  EXPECT_EQ(listener.common(), keyFor("viaduct session"));
  EXPECT_EQ(secretFromText("x"), Hmac(Key{}).of({bytesOf("viaduct secretx")}));
}

TEST(Handshake, AnotherSecretOrBindingEndsItAtTheListener) {
  for (const End& other : {End{.secret = {2}}, End{.binding = "unix"}}) {
    const Ends ends({}, other);
    ASSERT_TRUE(ends.error_);
    EXPECT_EQ(ends.error_->code, Code::kDenied);
    EXPECT_EQ(ends.messages_.size(), 3U) << "the listener shows no proof";
    EXPECT_EQ(ends.proven_, 0);
  }
}

// A recording has the public keys and both proofs. Even an attacker who has the secret cannot
// compute a proof again without a private key of that handshake. So a recording tests no guess.
TEST(Handshake, ARecordingTestsNoGuess) {
  const Ends recorded({}, {});
  ASSERT_EQ(recorded.messages_.size(), 4U);
  auto listener = *Handshake::listen(End{}.secret, {1, 0}, "tcp");
  ASSERT_TRUE(listener.take(Stage::kOpen, recorded.messages_[0], 0));
  EXPECT_EQ(listener.take(Stage::kProof, recorded.messages_[2], 0).error().code, Code::kDenied);
  auto dialer = *Handshake::dial(End{}.secret, {1, 0}, "tcp");
  const auto proof = dialer.take(Stage::kChallenge, recorded.messages_[1], 0);
  ASSERT_TRUE(proof);
  EXPECT_NE(proof->reply, recorded.messages_[2]);
  EXPECT_EQ(dialer.take(Stage::kConfirm, recorded.messages_[3], 0).error().code, Code::kDenied);
}

TEST(Handshake, AClaimSelectsItsSecret) {
  const Bytes claim(kMaxClaimBytes, std::byte{'x'});
  const Key granted{9};
  const auto known = [&](ByteSpan said) {
    return sameBytes(said, claim) ? std::optional(granted) : std::nullopt;
  };
  const Ends ends({.secret = granted, .claim = claim}, {.of_claim = known});
  ASSERT_FALSE(ends.error_) << ends.error_->text();
  EXPECT_EQ(ends.listener_.claim(), claim);
  EXPECT_EQ(ends.dialer_.common(), ends.listener_.common());
  // Everybody can see the claim, so the secret of one claim must not be valid for another claim.
  EXPECT_TRUE(Ends({.secret = granted}, {.of_claim = known}).error_);
  EXPECT_TRUE(Ends({.claim = claim}, {.of_claim = known}).error_);
}

// An unknown claim is answered like a known one, and refused at the proof like a wrong secret.
TEST(Handshake, AnUnknownClaimIsRefusedLikeAWrongSecret) {
  const Bytes claim(5, std::byte{'x'});
  const auto nobody = [](ByteSpan) -> std::optional<Key> { return std::nullopt; };
  const Ends wrong({.secret = {2}}, {});
  for (const Handshake::SecretOfClaim& of_claim : {Handshake::SecretOfClaim(nobody), {}}) {
    const Ends ends({.claim = claim}, {.of_claim = of_claim});
    ASSERT_TRUE(ends.error_);
    EXPECT_EQ(ends.error_->text(), wrong.error_->text());
    EXPECT_EQ(ends.messages_.size(), wrong.messages_.size());
  }
}

TEST(Handshake, MalformedAndUnexpectedMessagesAreRefused) {
  const auto openOf = [](std::size_t claim) { return encode(Key{9}, Bytes(claim)); };
  auto listener = *Handshake::listen({}, {1, 0}, "tcp");
  EXPECT_EQ(listener.take(Stage::kProof, Bytes(32), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kOpen, Bytes(32), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kOpen, openOf(kMaxClaimBytes + 1), 0).error().code,
            Code::kProtocol);
  EXPECT_TRUE(listener.take(Stage::kOpen, openOf(0), 0));
  EXPECT_EQ(listener.take(Stage::kOpen, openOf(0), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kProof, Bytes(33), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kProof, Bytes(32), 0).error().code, Code::kDenied);
}

TEST(Handshake, IsPreparedOnceInAProcess) {
  static_cast<void>(prepareFirstHandshake());  // another test may have been the first
  EXPECT_FALSE(prepareFirstHandshake().valid());
}

// If a public key is zero, everybody knows the agreed X25519 value. Only the secret would then
// protect the keys.
TEST(Handshake, APublicKeyOfZerosIsRefused) {
  auto dialer = *Handshake::dial({1}, {1, 0}, "tcp");
  EXPECT_EQ(dialer.take(Stage::kChallenge, encode(Key{}), 0).error().code, Code::kDenied);
}

}  // namespace
}  // namespace viaduct::base
