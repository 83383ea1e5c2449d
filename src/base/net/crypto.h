// Message authentication over libcrypto, cheap for small messages. Threads: const calls from any.
#pragma once

#include <openssl/evp.h>
#include <openssl/sha.h>
#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace viaduct::base {

using Key = std::array<std::uint8_t, 32>;
using Digest = std::array<std::uint8_t, 32>;
using ByteSpan = std::span<const std::byte>;

// HMAC-SHA-256 with the work that depends only on the key done once. Allocates nothing.
class Hmac {
 public:
  explicit Hmac(const Key& key);
  // Of the parts as if they stood one after the other.
  Digest of(std::initializer_list<ByteSpan> parts) const;

 private:
  SHA256_CTX inner_, outer_;
};

// A key for one purpose; says nothing about `from` or the keys for other purposes.
Key deriveKey(const Key& from, std::string_view purpose, ByteSpan context = {});

// AES-256-GCM, each text under a fresh random nonce: nobody without the key can read or change it.
// Threads: one at a time.
inline constexpr std::size_t kSealBytes = 28;  // that sealing adds
class Cipher {
 public:
  explicit Cipher(const Key& key);
  Result<std::string> seal(std::string_view text);
  // Nothing for a text that was not sealed with this key, or was changed.
  std::optional<std::string> unseal(std::string_view sealed);

 private:
  using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
  Context sealing_, unsealing_;
};

// Takes the same time wherever the two differ.
bool sameBytes(ByteSpan a, ByteSpan b);

// A group's secret as people write it, as a key. Guessable text stays guessable.
Key secretFromText(std::string_view text);

}  // namespace viaduct::base
