#include "base/net/crypto.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "base/net/checksum.h"
#include "base/net/hex_testing.h"

namespace viaduct::base {
namespace {

ByteSpan bytes(std::string_view text) { return std::as_bytes(std::span(text)); }

Key keyOf(std::string_view text) {
  Key key{};
  for (std::size_t i = 0; i < text.size(); ++i) key[i] = static_cast<std::uint8_t>(text[i]);
  return key;
}

// RFC 4231, test cases 1 and 2. A shorter key equals one padded with zeros.
TEST(Hmac, GivesThePublishedDigests) {
  Key eleven{};
  for (std::size_t i = 0; i < 20; ++i) eleven[i] = 0x0b;
  EXPECT_EQ(hexText(Hmac(eleven).of({bytes("Hi There")})),
            "b0344c61d8db38535ca8afceaf0bf12b881dc200c9833da726e9376c2e32cff7");
  EXPECT_EQ(hexText(Hmac(keyOf("Jefe")).of({bytes("what do ya want "), {}, bytes("for nothing?")})),
            "5bdcc146bf60754e6a042426089575c75a003f089d2739839dec58b964ec3843");
}

// RFC 4231, test case 6: a key that is longer than a block.
TEST(Hmac, HashesALongKey) {
  const std::string key(131, '\xaa');
  EXPECT_EQ(hexText(Hmac(bytes(key))
                        .of({bytes("Test Using Larger Than Block-Size Key - Hash Key "
                                   "First")})),
            "60e431591ee0b67f0d8a26aacbf5b77f8e0bc6213728c5140546040f0ee37f54");
}

// RFC 5869, test cases 1, 2 and 3: short, long, and empty inputs.
TEST(Hkdf, GivesThePublishedKeys) {
  const auto numbers = [](int from, int to) {
    Bytes out;
    for (int i = from; i < to; ++i) out.push_back(static_cast<std::byte>(i));
    return out;
  };
  const Bytes eleven(22, std::byte{0x0b});
  const auto expand = [](const Key& key, ByteSpan info, std::size_t bytes) {
    std::vector<std::uint8_t> out(bytes);
    hkdfExpand(key, info, out);
    return Bytes(std::as_bytes(std::span(out)).begin(), std::as_bytes(std::span(out)).end());
  };
  const Key one = hkdfExtract(numbers(0, 13), eleven);
  EXPECT_EQ(hexText(one), "077709362c2e32df0ddc3f0dc47bba6390b6c73bb50f9c3122ec844ad7c2b3e5");
  EXPECT_EQ(expand(one, numbers(0xf0, 0xfa), 42),
            bytesOfHex("3cb25f25faacd57a90434f64d0362f2a2d2d0a90cf1a5a4c5db02d56ecc4c5bf"
                       "34007208d5b887185865"));
  const Key two = hkdfExtract(numbers(0x60, 0xb0), numbers(0, 0x50));
  EXPECT_EQ(hexText(two), "06a6b88c5853361a06104c9ceb35b45cef760014904671014a193f40c15fc244");
  EXPECT_EQ(expand(two, numbers(0xb0, 0x100), 82),
            bytesOfHex("b11e398dc80327a1c8e7f78c596a49344f012eda2d4efad8a050cc4c19afa97c"
                       "59045a99cac7827271cb41c65e590e09da3275600c2f09b8367793a9aca3db71"
                       "cc30c58179ec3e87c14c01d5c1f3434f1d87"));
  const Key three = hkdfExtract({}, eleven);
  EXPECT_EQ(hexText(three), "19ef24a32c717b167f33a91d6f648bdf96596776afdb6377ac434c1c293ccb04");
  EXPECT_EQ(expand(three, {}, 42),
            bytesOfHex("8da4e775a563c18f715f802a063c5a31b8a11f5c5ee1879ec3454e5f3c738d2d"
                       "9d201395faa4b61a96c8"));
}

// FIPS 180-2, examples 1 and 2.
TEST(Sha256, GivesThePublishedDigests) {
  Sha256 hash;
  hash.add(bytes("a"));
  hash.add(bytes("bc"));
  EXPECT_EQ(hexText(hash.digest()),
            "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  hash = {};
  hash.add(bytes("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq"));
  EXPECT_EQ(hexText(hash.digest()),
            "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
}

TEST(Hmac, CanBeUsedAgain) {
  const Hmac mac(keyOf("key"));
  const Sha256Digest first = mac.of({bytes("one")});
  EXPECT_NE(first, mac.of({bytes("two")}));
  EXPECT_EQ(first, mac.of({bytes("one")}));
}

TEST(DeriveKey, EveryPurposeAndContextHasItsOwn) {
  const Key from = keyOf("from");
  EXPECT_NE(deriveKey(from, "a"), deriveKey(from, "b"));
  EXPECT_NE(deriveKey(from, "a"), deriveKey(keyOf("other"), "a"));
  EXPECT_NE(deriveKey(from, "ab"), deriveKey(from, "a", bytes("b")));
  EXPECT_EQ(deriveKey(from, "a", bytes("b")), deriveKey(from, "a", bytes("b")));
}

TEST(SecretFromText, DiffersWithTheText) {
  EXPECT_EQ(secretFromText("team"), secretFromText("team"));
  EXPECT_NE(secretFromText("team"), secretFromText("Team"));
  EXPECT_NE(secretFromText(""), Key{});
}

TEST(SameBytes, ComparesAllOfThem) {
  EXPECT_TRUE(sameBytes(bytes("abc"), bytes("abc")));
  EXPECT_FALSE(sameBytes(bytes("abc"), bytes("abd")));
  EXPECT_FALSE(sameBytes(bytes("abc"), bytes("ab")));
  EXPECT_TRUE(sameBytes({}, {}));
}

TEST(Checksum, DoesNotDependOnTheParts) {
  std::string text;
  for (int i = 0; i < 100; ++i) text += static_cast<char>(i * 7);
  const auto whole = Checksum().add(bytes(text)).value();
  for (std::size_t a = 0; a < text.size(); a += 3)
    for (std::size_t b = a; b < text.size(); b += 5) {
      const std::string_view v = text;
      EXPECT_EQ(whole, Checksum()
                           .add(bytes(v.substr(0, a)))
                           .add(bytes(v.substr(a, b - a)))
                           .add(bytes(v.substr(b)))
                           .value());
    }
}

TEST(Checksum, SeesEveryChangedByteAndEveryLength) {
  std::string text(37, 'x');
  const auto whole = Checksum().add(bytes(text)).value();
  for (char& c : text)
    for (int bit = 0; bit < 8; ++bit) {
      c = static_cast<char>(c ^ (1 << bit));
      EXPECT_NE(whole, Checksum().add(bytes(text)).value());
      c = static_cast<char>(c ^ (1 << bit));
    }
  const std::string zeros(64, '\0');
  for (std::size_t i = 0; i < zeros.size(); ++i)
    EXPECT_NE(Checksum().add(bytes(zeros.substr(i))).value(),
              Checksum().add(bytes(zeros.substr(i + 1))).value());
}

TEST(Seal, GivesTheTextToTheSameKeyAlone) {
  Cipher cipher(Key{1, 2, 3}), same(Key{1, 2, 3}), other(Key{1, 2, 4});
  for (const std::string text :
       {"", "x", "two", "a text that is longer than a block of the cipher"}) {
    const auto sealed = cipher.seal(text);
    ASSERT_TRUE(sealed) << sealed.error().text();
    EXPECT_EQ(sealed->size(), text.size() + kSealBytes);
    EXPECT_EQ(same.unseal(*sealed), text);
    EXPECT_FALSE(other.unseal(*sealed));
    EXPECT_NE(*cipher.seal(text), *sealed) << "equal texts do not look equal";
    EXPECT_EQ(text.size() > 8 && sealed->find(text) != sealed->npos, false) << "it is in the clear";
  }
}

TEST(Seal, SeesEveryChange) {
  Cipher cipher(Key{9});
  const std::string sealed = *cipher.seal("text");
  for (std::size_t i = 0; i < sealed.size(); ++i) {
    std::string changed = sealed;
    changed[i] = static_cast<char>(changed[i] ^ 1);
    EXPECT_FALSE(cipher.unseal(changed)) << i;
    EXPECT_FALSE(cipher.unseal(sealed.substr(0, i))) << i;
  }
  EXPECT_FALSE(cipher.unseal(sealed + "x"));
}

// docs/wire.md gives this example, so that another implementation can check itself.
TEST(Checksum, IsTheOneOfTheProtocol) {
  EXPECT_EQ(fmt::format("{:016x}", Checksum().add(bytes("123456789")).value()), "73bf3be495c27cf3");
}

}  // namespace
}  // namespace viaduct::base
