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
using Sha256Digest = std::array<std::uint8_t, 32>;
using ByteSpan = std::span<const std::byte>;

// SHA-256 of bytes that come in parts. Allocates nothing.
class Sha256 {
 public:
  Sha256();
  void add(ByteSpan part);
  Sha256Digest digest() const;  // of the parts so far

 private:
  SHA256_CTX state_;
};

// HMAC-SHA-256. The constructor does the work that depends only on the key. Allocates nothing.
class Hmac {
 public:
  explicit Hmac(const Key& key) : Hmac(std::as_bytes(std::span(key))) {}
  explicit Hmac(ByteSpan key);  // of any length
  // The digest of all parts, joined in order.
  Sha256Digest of(std::initializer_list<ByteSpan> parts) const;

 private:
  Sha256 inner_, outer_;
};

std::string hexText(const Sha256Digest& digest);  // in lower case

// Derives the key for one purpose. It reveals nothing about `from` or the keys for other purposes.
Key deriveKey(const Key& from, std::string_view purpose, ByteSpan context = {});

// HKDF with SHA-256 (RFC 5869). Extract: a key from `salt` and secret input. Expand: `out.size()`
// bytes, at most 8,160, for the use that `info` names.
Key hkdfExtract(ByteSpan salt, ByteSpan secret);
void hkdfExpand(const Key& from, ByteSpan info, std::span<std::uint8_t> out);

// Overwrites a secret that is no longer needed.
void wipe(std::span<std::uint8_t> secret);

// AES-256-GCM. Each text has a fresh random nonce, so that without the key it cannot be read or
// changed. Threads: one at a time.
inline constexpr std::size_t kSealBytes = 28;  // bytes that sealing adds to a text
class Cipher {
 public:
  explicit Cipher(const Key& key);
  Result<std::string> seal(std::string_view text);
  // Returns nothing for a text that was changed, or sealed with another key.
  std::optional<std::string> unseal(std::string_view sealed);

 private:
  using Context = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;
  Context sealing_, unsealing_;
};

// Compares in a time that does not depend on the position of a difference.
bool sameBytes(ByteSpan a, ByteSpan b);

// Makes a key from a group's secret in text form. A guessable text stays guessable.
Key secretFromText(std::string_view text);

}  // namespace viaduct::base
