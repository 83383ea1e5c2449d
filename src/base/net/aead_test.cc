#include "base/net/aead.h"

#include <gtest/gtest.h>
#include <openssl/evp.h>

#include <span>
#include <string>
#include <vector>

#include "base/net/hex_testing.h"

namespace viaduct::base {
namespace {

// A published record: key, nonce, additional data, text, sealed text, tag.
struct Vector {
  AeadKind kind;
  std::string_view key, nonce, aad, text, sealed, tag;
};

const Vector kVectors[] = {
    // "The Galois/Counter Mode of Operation", test cases 13, 14 and 16.
    {AeadKind::kAesGcm, "0000000000000000000000000000000000000000000000000000000000000000",
     "000000000000000000000000", "", "", "", "530f8afbc74536b9a963b4f1c4cb738b"},
    {AeadKind::kAesGcm, "0000000000000000000000000000000000000000000000000000000000000000",
     "000000000000000000000000", "", "00000000000000000000000000000000",
     "cea7403d4d606b6e074ec5d3baf39d18", "d0d1c8a799996bf0265b98b5d48ab919"},
    {AeadKind::kAesGcm, "feffe9928665731c6d6a8f9467308308feffe9928665731c6d6a8f9467308308",
     "cafebabefacedbaddecaf888", "feedfacedeadbeeffeedfacedeadbeefabaddad2",
     "d9313225f88406e5a55909c5aff5269a86a7a9531534f7da2e4c303d8a318a72"
     "1c3c0c95956809532fcf0e2449a6b525b16aedf5aa0de657ba637b39",
     "522dc1f099567d07f47f37a32a84427d643a8cdcbfe5c0c97598a2bd2555d1aa"
     "8cb08e48590dbb3da7b08b1056828838c5f61e6393ba7a0abcc9f662",
     "76fc6ece0f4e1768cddf8853bb2d551b"},
    // RFC 8439, section 2.8.2.
    {AeadKind::kChaCha, "808182838485868788898a8b8c8d8e8f909192939495969798999a9b9c9d9e9f",
     "070000004041424344454647", "50515253c0c1c2c3c4c5c6c7",
     "4c616469657320616e642047656e746c656d656e206f662074686520636c6173"
     "73206f66202739393a204966204920636f756c64206f6666657220796f75206f"
     "6e6c79206f6e652074697020666f7220746865206675747572652c2073756e73"
     "637265656e20776f756c642062652069742e",
     "d31a8d34648e60db7b86afbc53ef7ec2a4aded51296e08fea9e2b5a736ee62d6"
     "3dbea45e8ca9671282fafb69da92728b1a71de0a9e060b2905d6a5b67ecd3b36"
     "92ddbd7f2d778b8c9803aee328091b58fab324e4fad675945585808b4831d7bc"
     "3ff4def08e4b7a9de576d26586cec64b6116",
     "1ae10b594f09e26a7e902ecbd0600691"},
};

Nonce nonceOfHex(std::string_view hex) {
  const Bytes bytes = bytesOfHex(hex);
  Nonce nonce{};
  std::memcpy(nonce.data(), bytes.data(), nonce.size());
  return nonce;
}

// The libraries that can compute a kind here.
std::vector<std::unique_ptr<Aead>> allOf(AeadKind kind, AeadUse use) {
  std::vector<std::unique_ptr<Aead>> out;
  out.push_back(std::move(*makeCryptoAead(kind, use)));
  if (auto fast = kind == AeadKind::kAesGcm ? makeIpsecAead() : nullptr)
    out.push_back(std::move(fast));
  return out;
}

TEST(Aead, EveryLibraryGivesThePublishedRecords) {
  for (const Vector& one : kVectors)
    for (const AeadUse use : {AeadUse::kSeal, AeadUse::kOpen})
      for (const auto& aead : allOf(one.kind, use)) {
        const Bytes text = bytesOfHex(one.text), sealed = bytesOfHex(one.sealed),
                    tag = bytesOfHex(one.tag), aad = bytesOfHex(one.aad);
        const Nonce nonce = nonceOfHex(one.nonce);
        ASSERT_TRUE(aead->useKey(keyOfHex(one.key)));
        Bytes made(text.size()), made_tag(kTagBytes);
        if (use == AeadUse::kSeal) {
          ASSERT_TRUE(aead->seal(nonce, aad, text, made.data(), made_tag.data()));
          EXPECT_EQ(made, sealed) << aead->library();
          EXPECT_EQ(made_tag, tag) << aead->library();
        } else {
          ASSERT_TRUE(aead->open(nonce, aad, sealed, made.data(), tag.data())) << aead->library();
          EXPECT_EQ(made, text) << aead->library();
        }
      }
}

// libcrypto and libipsec-mb at two ends of one connection, at many lengths, with and without text.
TEST(Aead, TheLibrariesUnderstandOneAnother) {
  if (!makeIpsecAead()) GTEST_SKIP() << "skipped: no libipsec-mb";
  const auto crypto = std::move(*makeCryptoAead(AeadKind::kAesGcm, AeadUse::kOpen));
  const auto fast = makeIpsecAead();
  ASSERT_TRUE(crypto->useKey({5}) && fast->useKey({5}));
  Bytes text(16384);
  for (std::size_t i = 0; i < text.size(); ++i) text[i] = static_cast<std::byte>(i * 7);
  Nonce nonce{};
  for (std::size_t bytes = 0; bytes < text.size(); bytes = bytes * 5 / 4 + 1) {
    nonce[0] = static_cast<std::uint8_t>(nonce[0] + 1);
    const ByteSpan part(text.data(), bytes);
    Bytes sealed(bytes), opened(bytes), tag(kTagBytes);
    ASSERT_TRUE(fast->seal(nonce, part, part, sealed.data(), tag.data()));
    EXPECT_TRUE(crypto->open(nonce, part, sealed, opened.data(), tag.data())) << bytes;
    EXPECT_TRUE(std::equal(part.begin(), part.end(), opened.begin()));
    ASSERT_TRUE(fast->seal(nonce, part, {}, nullptr, tag.data()));
    EXPECT_TRUE(crypto->open(nonce, part, {}, nullptr, tag.data())) << bytes;
  }
}

// Sets the properties of an openssl.cnf that leaves the ciphers out.
TEST(Aead, ALibraryWithoutTheCipherIsNamedWithWhatToDo) {
  ASSERT_EQ(EVP_set_default_properties(nullptr, "cipher=absent"), 1);
  const auto aes = makeCryptoAead(AeadKind::kAesGcm, AeadUse::kSeal);
  const auto chacha = makeCryptoAead(AeadKind::kChaCha, AeadUse::kOpen);
  ASSERT_EQ(EVP_set_default_properties(nullptr, ""), 1);
  ASSERT_FALSE(aes);
  ASSERT_FALSE(chacha);
  EXPECT_EQ(aes.error().code, Code::kUnsupported);
  EXPECT_NE(aes.error().text().find("libcrypto has no AES-256-GCM"), std::string::npos);
  EXPECT_NE(chacha.error().text().find("libcrypto has no ChaCha20-Poly1305"), std::string::npos);
  for (const auto* const one : {&aes, &chacha})
    EXPECT_NE(one->error().remedy.find("openssl list -cipher-algorithms"), std::string::npos);
  EXPECT_TRUE(makeCryptoAead(AeadKind::kAesGcm, AeadUse::kSeal));
}

TEST(Aead, AChangedBitAnywhereIsNoticed) {
  for (const AeadKind kind : {AeadKind::kAesGcm, AeadKind::kChaCha})
    for (const auto& opener : allOf(kind, AeadUse::kOpen)) {
      const auto sealer = std::move(*makeCryptoAead(kind, AeadUse::kSeal));
      ASSERT_TRUE(sealer->useKey({7}) && opener->useKey({7}));
      const Bytes aad(20, std::byte{1}), text(100, std::byte{2});
      Bytes sealed(text.size()), tag(kTagBytes), opened(text.size());
      ASSERT_TRUE(sealer->seal({}, aad, text, sealed.data(), tag.data()));
      for (Bytes* const part : {&sealed, &tag})
        for (std::size_t bit = 0; bit < 8 * part->size(); ++bit) {
          const auto flip = static_cast<std::byte>(1U << (bit % 8));
          (*part)[bit / 8] ^= flip;
          EXPECT_FALSE(opener->open({}, aad, sealed, opened.data(), tag.data())) << bit;
          (*part)[bit / 8] ^= flip;
        }
      EXPECT_FALSE(opener->open({}, Bytes(20), sealed, opened.data(), tag.data()));
      EXPECT_FALSE(opener->open({1}, aad, sealed, opened.data(), tag.data()));
      EXPECT_TRUE(opener->open({}, aad, sealed, opened.data(), tag.data()));
    }
}

}  // namespace
}  // namespace viaduct::base
