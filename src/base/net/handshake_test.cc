#include "base/net/handshake.h"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace viaduct::base {
namespace {

using Stage = Handshake::Stage;

// The secret, version and binding of one end.
struct End {
  Key secret = {1};
  std::uint8_t minor = 0;
  std::string binding = "tcp";
};

// The ends after a whole handshake, or the first error.
class Ends {
 public:
  Ends(const End& dialer, const End& listener)
      : dialer_(make(true, dialer)), listener_(make(false, listener)) {
    Bytes message = dialer_.open();
    for (const Stage stage : {Stage::kOpen, Stage::kChallenge, Stage::kProof}) {
      const bool to_dialer = stage == Stage::kChallenge;
      Handshake& taker = to_dialer ? dialer_ : listener_;
      const auto step = taker.take(stage, message, to_dialer ? listener.minor : dialer.minor);
      if (!step) error_ = step.error();
      if (!step) return;
      if (step->proven) ++proven_;
      message = step->reply;
    }
  }

  Handshake dialer_, listener_;
  std::optional<Error> error_;
  int proven_ = 0;

 private:
  static Handshake make(bool dialer, const End& end) {
    return *Handshake::begin(dialer, end.secret, {1, end.minor}, end.binding);
  }
};

TEST(Handshake, GivesBothEndsTheSameKeys) {
  const Ends ends({.minor = 3}, {.minor = 2});
  ASSERT_FALSE(ends.error_) << ends.error_->text();
  EXPECT_EQ(ends.proven_, 2);
  EXPECT_EQ(ends.dialer_.common(), ends.listener_.common());
  EXPECT_EQ(ends.dialer_.sendingKey(), ends.listener_.receivingKey());
  EXPECT_EQ(ends.dialer_.receivingKey(), ends.listener_.sendingKey());
  EXPECT_NE(ends.dialer_.sendingKey(), ends.dialer_.receivingKey());
  EXPECT_NE(Ends({}, {}).dialer_.common(), Ends({}, {}).dialer_.common()) << "fresh nonces";
}

// The formula of docs/wire.md, byte for byte: another implementation relies on it.
TEST(Handshake, HasTheBytesOfTheProtocol) {
  const Key secret{7};
  const std::string nonce_d(32, 'd');
  auto listener = *Handshake::begin(false, secret, {1, 3}, "tcp");
  const auto step = listener.take(Stage::kOpen, bytesOf(nonce_d), 5);
  ASSERT_TRUE(step);
  const std::string_view challenge = textOf(step->reply), nonce_l = challenge.substr(0, 32);
  const std::string said = std::string("viaduct listener ") + '\x01' + '\x05' + '\x03' + nonce_d +
                           std::string(nonce_l) + "tcp";
  const Sha256Digest proof = Hmac(secret).of({bytesOf(said)});
  EXPECT_EQ(challenge.substr(32), textOf(std::as_bytes(std::span(proof))));
  EXPECT_EQ(secretFromText("x"), Hmac(Key{}).of({bytesOf("viaduct secretx")}));
}

TEST(Handshake, AnotherSecretOrBindingEndsItAtTheDialer) {
  for (const End& other : {End{.secret = {2}}, End{.binding = "unix"}}) {
    const Ends ends({}, other);
    ASSERT_TRUE(ends.error_);
    EXPECT_EQ(ends.error_->code, Code::kDenied);
    EXPECT_EQ(ends.proven_, 0) << "the dialer shows no proof";
  }
}

TEST(Handshake, MalformedAndUnexpectedMessagesAreRefused) {
  auto listener = *Handshake::begin(false, {}, {1, 0}, "tcp");
  EXPECT_EQ(listener.take(Stage::kProof, Bytes(32), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kOpen, Bytes(31), 0).error().code, Code::kProtocol);
  EXPECT_TRUE(listener.take(Stage::kOpen, Bytes(32), 0));
  EXPECT_EQ(listener.take(Stage::kOpen, Bytes(32), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kProof, Bytes(33), 0).error().code, Code::kProtocol);
  EXPECT_EQ(listener.take(Stage::kProof, Bytes(32), 0).error().code, Code::kDenied);
}

}  // namespace
}  // namespace viaduct::base
