// X25519 key agreement (RFC 7748) over libcrypto: two ends exchange public keys, and both compute
// the same secret. An eavesdropper that hears the public keys cannot. Threads: one at a time.
#pragma once

#include <openssl/evp.h>
#include <viaduct/result.h>

#include <memory>
#include <utility>

#include "base/net/crypto.h"

namespace viaduct::base {

class KeyExchange {
 public:
  static Result<KeyExchange> begin();  // with a fresh private key
  // With a given private key, for published test vectors.
  static Result<KeyExchange> of(const Key& private_key);

  const Key& publicKey() const { return public_; }
  // The common secret. kDenied: the other end's key is one that makes every secret zero.
  Result<Key> with(const Key& theirs) const;

 private:
  using Pair = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
  KeyExchange(Pair pair, const Key& public_key) : pair_(std::move(pair)), public_(public_key) {}
  static Result<KeyExchange> from(EVP_PKEY* pair);

  Pair pair_;  // libcrypto wipes the private key when it frees it
  Key public_;
};

}  // namespace viaduct::base
