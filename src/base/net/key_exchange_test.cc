#include "base/net/key_exchange.h"

#include <gtest/gtest.h>

#include "base/net/hex_testing.h"

namespace viaduct::base {
namespace {

// RFC 7748, section 6.1.
TEST(KeyExchange, GivesThePublishedKeysAndSecret) {
  const auto alice = *KeyExchange::of(
      keyOfHex("77076d0a7318a57d3c16c17251b26645df4c2f87ebc0992ab177fba51db92c2a"));
  const auto bob = *KeyExchange::of(
      keyOfHex("5dab087e624a8a4b79e17f8b83800ee66f3bb1292618b6fd1c2f8b27ff88e0eb"));
  EXPECT_EQ(hexText(alice.publicKey()),
            "8520f0098930a754748b7ddcb43ef75a0dbf3a0d26381af4eba4a98eaa9b4e6a");
  EXPECT_EQ(hexText(bob.publicKey()),
            "de9edb7d7b7dc1b4d35b61c2ece435373f8343c85b78674dadfc7e146f882b4f");
  const char* const secret = "4a5d9d5ba4ce2de1728e3bf480350f25e07e21c947d19e3376f09b3c1e161742";
  EXPECT_EQ(hexText(*alice.with(bob.publicKey())), secret);
  EXPECT_EQ(hexText(*bob.with(alice.publicKey())), secret);
}

// RFC 7748, section 5.2, the first vector: any point, with its unused bit.
TEST(KeyExchange, MultipliesAPublishedPoint) {
  const auto ours = *KeyExchange::of(
      keyOfHex("a546e36bf0527c9d3b16154b82465edd62144c0ac1fc5a18506a2244ba449ac4"));
  EXPECT_EQ(hexText(*ours.with(
                keyOfHex("e6db6867583030db3594c1a424b15f7c726624ec26b3353b10a903a6d0ab1c4c"))),
            "c3da55379de9c6908e94ea4df28d084f32eccf03491c71f754b4075577a28552");
}

TEST(KeyExchange, HasAFreshKeyEachTime) {
  EXPECT_NE(KeyExchange::begin()->publicKey(), KeyExchange::begin()->publicKey());
}

// If a key makes the secret zero, an attacker knows the secret without a private key.
TEST(KeyExchange, RefusesKeysThatMakeTheSecretZero) {
  const auto ours = *KeyExchange::begin();
  for (const Key& weak :
       {Key{}, Key{1},
        keyOfHex("e0eb7a7c3b41b8ae1656e3faf19fc46ada098deb9c32b1fd866205165f49b800")}) {
    const auto secret = ours.with(weak);
    ASSERT_FALSE(secret);
    EXPECT_EQ(secret.error().code, Code::kDenied);
  }
}

}  // namespace
}  // namespace viaduct::base
