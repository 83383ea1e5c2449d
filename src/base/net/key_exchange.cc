#include "base/net/key_exchange.h"

namespace viaduct::base {
namespace {

constexpr const char* kCurve = "X25519";

using Peer = std::unique_ptr<EVP_PKEY, decltype(&EVP_PKEY_free)>;
using Context = std::unique_ptr<EVP_PKEY_CTX, decltype(&EVP_PKEY_CTX_free)>;

Error noCurve() {
  return {.code = Code::kUnsupported,
          .operation = "key agreement",
          .detail = "libcrypto could not compute X25519",
          .cause = "this libcrypto, or its configuration in openssl.cnf, leaves X25519 out",
          .remedy = "check that `openssl genpkey -algorithm X25519` works"};
}

}  // namespace

Result<KeyExchange> KeyExchange::from(EVP_PKEY* pair) {
  Pair owned(pair, &EVP_PKEY_free);
  Key ours{};
  std::size_t size = ours.size();
  if (!owned || EVP_PKEY_get_raw_public_key(pair, ours.data(), &size) != 1 || size != ours.size())
    return noCurve();
  return KeyExchange(std::move(owned), ours);
}

Result<KeyExchange> KeyExchange::begin() {
  return from(EVP_PKEY_Q_keygen(nullptr, nullptr, kCurve));
}

Result<KeyExchange> KeyExchange::of(const Key& private_key) {
  return from(EVP_PKEY_new_raw_private_key_ex(nullptr, kCurve, nullptr, private_key.data(),
                                              private_key.size()));
}

Result<Key> KeyExchange::with(const Key& theirs) const {
  const Peer peer(
      EVP_PKEY_new_raw_public_key_ex(nullptr, kCurve, nullptr, theirs.data(), theirs.size()),
      &EVP_PKEY_free);
  const Context context(EVP_PKEY_CTX_new_from_pkey(nullptr, pair_.get(), nullptr),
                        &EVP_PKEY_CTX_free);
  if (!peer || !context || EVP_PKEY_derive_init(context.get()) != 1 ||
      EVP_PKEY_derive_set_peer(context.get(), peer.get()) != 1)
    return noCurve();
  Key secret{};
  std::size_t size = secret.size();
  // libcrypto refuses a secret of zeros, as RFC 7748 asks.
  if (EVP_PKEY_derive(context.get(), secret.data(), &size) != 1 || size != secret.size())
    return Error{.code = Code::kDenied,
                 .operation = "key agreement",
                 .detail = "the other end's public key makes every secret zero"};
  return secret;
}

}  // namespace viaduct::base
