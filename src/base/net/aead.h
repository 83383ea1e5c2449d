// Authenticated encryption of records: AES-256-GCM, or ChaCha20-Poly1305 where a processor has no
// instructions for AES. libcrypto computes both. libipsec-mb computes AES-256-GCM where it is
// installed, because it is faster. Threads: one at a time per object.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string_view>

#include "base/net/crypto.h"

namespace viaduct::base {

inline constexpr std::size_t kTagBytes = 16, kNonceBytes = 12;
using Nonce = std::array<std::uint8_t, kNonceBytes>;

enum class AeadKind : std::uint8_t { kAesGcm, kChaCha };

class Aead {
 public:
  virtual ~Aead() = default;
  // Uses `key` from now on. False: the library failed.
  virtual bool useKey(const Key& key) = 0;
  // Encrypts `text` to `to`, which may be the same place, and writes the tag of `aad` and `text`.
  // With an empty text the tag is a MAC of `aad`. A nonce is good for one call. False: the library
  // failed.
  virtual bool seal(const Nonce& nonce, ByteSpan aad, ByteSpan text, std::byte* to,
                    std::byte* tag) = 0;
  // The reverse of seal(). False: the tag is wrong, and the bytes at `to` are undefined.
  virtual bool open(const Nonce& nonce, ByteSpan aad, ByteSpan sealed, std::byte* to,
                    const std::byte* tag) = 0;
  virtual std::string_view library() const = 0;
};

// The use that an Aead is for.
enum class AeadUse : std::uint8_t { kSeal, kOpen };

// Makes an Aead of the fastest library. kUnsupported: libcrypto lacks the cipher.
Result<std::unique_ptr<Aead>> makeAead(AeadKind kind, AeadUse use);
// Make an Aead of libcrypto, or of libipsec-mb. Null: libipsec-mb cannot be used.
Result<std::unique_ptr<Aead>> makeCryptoAead(AeadKind kind, AeadUse use);
std::unique_ptr<Aead> makeIpsecAead();

// True if this processor has instructions for AES. Without them AES-GCM is slow.
bool hasFastAes();

}  // namespace viaduct::base
