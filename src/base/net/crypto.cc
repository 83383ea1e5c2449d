// Uses the SHA256_* calls although EVP replaces them. EVP allocates and locks for every digest,
// which costs several times the hashing of a small frame's two or three blocks.
#define OPENSSL_SUPPRESS_DEPRECATED  // NOLINT(readability-identifier-naming)
#include "base/net/crypto.h"

#include <openssl/crypto.h>

namespace viaduct::base {
namespace {

constexpr std::size_t kBlock = 64;

SHA256_CTX keyedState(const Key& key, std::uint8_t pad) {
  std::array<std::uint8_t, kBlock> block{};
  block.fill(pad);
  for (std::size_t i = 0; i < key.size(); ++i) block[i] ^= key[i];
  SHA256_CTX state;
  SHA256_Init(&state);
  SHA256_Update(&state, block.data(), block.size());
  return state;
}

}  // namespace

Hmac::Hmac(const Key& key) : inner_(keyedState(key, 0x36)), outer_(keyedState(key, 0x5c)) {}

Digest Hmac::of(std::initializer_list<ByteSpan> parts) const {
  Digest digest;
  SHA256_CTX state = inner_;
  for (const ByteSpan part : parts) SHA256_Update(&state, part.data(), part.size());
  SHA256_Final(digest.data(), &state);
  state = outer_;
  SHA256_Update(&state, digest.data(), digest.size());
  SHA256_Final(digest.data(), &state);
  return digest;
}

Key deriveKey(const Key& from, std::string_view purpose, ByteSpan context) {
  // The zero byte ends the purpose, so that two pairs of purpose and context never give the same
  // bytes.
  constexpr std::byte kEnd{0};
  return Hmac(from).of({std::as_bytes(std::span(purpose)), {&kEnd, 1}, context});
}

bool sameBytes(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Key secretFromText(std::string_view text) {
  return Hmac(Key{}).of(
      {std::as_bytes(std::span("viaduct secret", 14)), std::as_bytes(std::span(text))});
}

}  // namespace viaduct::base
