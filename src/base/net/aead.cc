#include "base/net/aead.h"

#include <openssl/evp.h>
#if defined(__aarch64__)
#include <sys/auxv.h>
#endif

namespace viaduct::base {
namespace {

using CipherPtr = std::unique_ptr<EVP_CIPHER, decltype(&EVP_CIPHER_free)>;
using ContextPtr = std::unique_ptr<EVP_CIPHER_CTX, decltype(&EVP_CIPHER_CTX_free)>;

const unsigned char* rawOf(ByteSpan bytes) {
  return reinterpret_cast<const unsigned char*>(bytes.data());
}
unsigned char* rawAt(std::byte* bytes) { return reinterpret_cast<unsigned char*>(bytes); }

class CryptoAead final : public Aead {
 public:
  CryptoAead(CipherPtr cipher, ContextPtr context, AeadUse use)
      : cipher_(std::move(cipher)), context_(std::move(context)), use_(use) {}

  bool useKey(const Key& key) override {
    return use_ == AeadUse::kSeal
               ? EVP_EncryptInit_ex2(context_.get(), cipher_.get(), key.data(), nullptr, nullptr) ==
                     1
               : EVP_DecryptInit_ex2(context_.get(), cipher_.get(), key.data(), nullptr, nullptr) ==
                     1;
  }
  bool seal(const Nonce& nonce, ByteSpan aad, ByteSpan text, std::byte* to,
            std::byte* tag) override {
    EVP_CIPHER_CTX* const c = context_.get();
    int count = 0;
    return EVP_EncryptInit_ex2(c, nullptr, nullptr, nonce.data(), nullptr) == 1 &&
           EVP_EncryptUpdate(c, nullptr, &count, rawOf(aad), static_cast<int>(aad.size())) == 1 &&
           (text.empty() || EVP_EncryptUpdate(c, rawAt(to), &count, rawOf(text),
                                              static_cast<int>(text.size())) == 1) &&
           EVP_EncryptFinal_ex(c, rawAt(tag), &count) == 1 &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_GET_TAG, kTagBytes, tag) == 1;
  }
  bool open(const Nonce& nonce, ByteSpan aad, ByteSpan sealed, std::byte* to,
            const std::byte* tag) override {
    EVP_CIPHER_CTX* const c = context_.get();
    int count = 0;
    std::array<unsigned char, kTagBytes> last{};  // Final writes nothing for these ciphers
    return EVP_DecryptInit_ex2(c, nullptr, nullptr, nonce.data(), nullptr) == 1 &&
           EVP_DecryptUpdate(c, nullptr, &count, rawOf(aad), static_cast<int>(aad.size())) == 1 &&
           (sealed.empty() || EVP_DecryptUpdate(c, rawAt(to), &count, rawOf(sealed),
                                                static_cast<int>(sealed.size())) == 1) &&
           EVP_CIPHER_CTX_ctrl(c, EVP_CTRL_AEAD_SET_TAG, kTagBytes, const_cast<std::byte*>(tag)) ==
               1 &&
           EVP_DecryptFinal_ex(c, last.data(), &count) == 1;
  }
  std::string_view library() const override { return "libcrypto"; }

 private:
  CipherPtr cipher_;
  ContextPtr context_;
  AeadUse use_;
};

}  // namespace

Result<std::unique_ptr<Aead>> makeCryptoAead(AeadKind kind, AeadUse use) {
  const char* const name = kind == AeadKind::kAesGcm ? "AES-256-GCM" : "ChaCha20-Poly1305";
  CipherPtr cipher(EVP_CIPHER_fetch(nullptr, name, nullptr), &EVP_CIPHER_free);
  ContextPtr context(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free);
  if (!cipher || !context)
    return Error{.code = Code::kUnsupported,
                 .operation = "encrypt",
                 .detail = std::string("libcrypto has no ") + name,
                 .cause = "this libcrypto, or its configuration in openssl.cnf, leaves it out",
                 .remedy =
                     "see `openssl list -cipher-algorithms`, and activate the default provider "
                     "in openssl.cnf"};
  return std::unique_ptr<Aead>(
      std::make_unique<CryptoAead>(std::move(cipher), std::move(context), use));
}

Result<std::unique_ptr<Aead>> makeAead(AeadKind kind, AeadUse use) {
  if (kind == AeadKind::kAesGcm)
    if (auto fast = makeIpsecAead()) return fast;
  return makeCryptoAead(kind, use);
}

bool hasFastAes() {
#if defined(__x86_64__)
  return __builtin_cpu_supports("aes") && __builtin_cpu_supports("pclmul");
#elif defined(__aarch64__)
  constexpr unsigned long kAes = 1UL << 3U, kPmull = 1UL << 4U;  // HWCAP_AES, HWCAP_PMULL
  return (::getauxval(AT_HWCAP) & (kAes | kPmull)) == (kAes | kPmull);
#else
  return false;
#endif
}

}  // namespace viaduct::base
