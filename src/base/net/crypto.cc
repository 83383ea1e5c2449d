// Uses the SHA256_* calls although EVP replaces them. EVP allocates and locks for every digest,
// which costs several times the hashing of a small frame's two or three blocks.
#define OPENSSL_SUPPRESS_DEPRECATED  // NOLINT(readability-identifier-naming)
#include "base/net/crypto.h"

#include <fmt/format.h>
#include <openssl/crypto.h>

#include <algorithm>
#include <cstring>

#include "base/random.h"

namespace viaduct::base {
namespace {

constexpr std::size_t kBlock = 64;

Sha256 keyedState(ByteSpan key, std::uint8_t pad) {
  std::array<std::uint8_t, kBlock> block{};
  if (key.size() > kBlock) {
    Sha256 hash;
    hash.add(key);
    const Sha256Digest digest = hash.digest();
    std::memcpy(block.data(), digest.data(), digest.size());
  } else if (!key.empty()) {
    std::memcpy(block.data(), key.data(), key.size());
  }
  for (std::uint8_t& byte : block) byte ^= pad;
  Sha256 state;
  state.add(std::as_bytes(std::span(block)));
  return state;
}

// A sealed text is nonce, ciphertext, tag.
constexpr std::size_t kNonce = 12, kTag = kSealBytes - kNonce;

unsigned char* mutableBytes(std::string& text) {
  return reinterpret_cast<unsigned char*>(text.data());
}
const unsigned char* bytesAt(std::string_view text) {
  return reinterpret_cast<const unsigned char*>(text.data());
}

}  // namespace

Sha256::Sha256() { SHA256_Init(&state_); }
void Sha256::add(ByteSpan part) { SHA256_Update(&state_, part.data(), part.size()); }
Sha256Digest Sha256::digest() const {
  Sha256Digest digest;
  SHA256_CTX last = state_;
  SHA256_Final(digest.data(), &last);
  return digest;
}

Hmac::Hmac(ByteSpan key) : inner_(keyedState(key, 0x36)), outer_(keyedState(key, 0x5c)) {}

Sha256Digest Hmac::of(std::initializer_list<ByteSpan> parts) const {
  Sha256 state = inner_;
  for (const ByteSpan part : parts) state.add(part);
  const Sha256Digest inside = state.digest();
  state = outer_;
  state.add(std::as_bytes(std::span(inside)));
  return state.digest();
}

std::string hexText(const Sha256Digest& digest) {
  std::string out;
  for (const std::uint8_t byte : digest) out += fmt::format("{:02x}", byte);
  return out;
}

Key deriveKey(const Key& from, std::string_view purpose, ByteSpan context) {
  // The zero byte ends the purpose, so that two pairs of purpose and context never give the same
  // bytes.
  constexpr std::byte kEnd{0};
  return Hmac(from).of({std::as_bytes(std::span(purpose)), {&kEnd, 1}, context});
}

Key hkdfExtract(ByteSpan salt, ByteSpan secret) { return Hmac(salt).of({secret}); }

void hkdfExpand(const Key& from, ByteSpan info, std::span<std::uint8_t> out) {
  const Hmac mac(from);
  Sha256Digest block{};
  for (std::uint8_t round = 1; !out.empty(); ++round) {
    const ByteSpan before = round == 1 ? ByteSpan{} : std::as_bytes(std::span(block));
    block = mac.of({before, info, std::as_bytes(std::span(&round, 1))});
    const std::size_t part = std::min(out.size(), block.size());
    std::memcpy(out.data(), block.data(), part);
    out = out.subspan(part);
  }
  wipe(block);
}

void wipe(std::span<std::uint8_t> secret) { OPENSSL_cleanse(secret.data(), secret.size()); }

Cipher::Cipher(const Key& key)
    : sealing_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free),
      unsealing_(EVP_CIPHER_CTX_new(), &EVP_CIPHER_CTX_free) {
  const EVP_CIPHER* const kind = EVP_aes_256_gcm();
  if (sealing_ && EVP_EncryptInit_ex(sealing_.get(), kind, nullptr, key.data(), nullptr) != 1)
    sealing_.reset();
  if (unsealing_ && EVP_DecryptInit_ex(unsealing_.get(), kind, nullptr, key.data(), nullptr) != 1)
    unsealing_.reset();
}

Result<std::string> Cipher::seal(std::string_view text) {
  std::string out(text.size() + kSealBytes, '\0');
  unsigned char* const nonce = mutableBytes(out);
  VIADUCT_CHECK(fillSecret({nonce, kNonce}));
  unsigned char* const tag = nonce + kNonce + text.size();
  EVP_CIPHER_CTX* const context = sealing_.get();
  int written = 0;
  if (context != nullptr && EVP_EncryptInit_ex(context, nullptr, nullptr, nullptr, nonce) == 1 &&
      EVP_EncryptUpdate(context, nonce + kNonce, &written, bytesAt(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_EncryptFinal_ex(context, tag, &written) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_GET_TAG, kTag, tag) == 1)
    return out;
  return Error{.code = Code::kExhausted, .operation = "encrypt", .detail = "libcrypto failed"};
}

std::optional<std::string> Cipher::unseal(std::string_view sealed) {
  if (sealed.size() < kSealBytes) return std::nullopt;
  const std::string_view text = sealed.substr(kNonce, sealed.size() - kSealBytes);
  std::string tag(sealed.substr(sealed.size() - kTag)), out(text.size(), '\0');
  EVP_CIPHER_CTX* const context = unsealing_.get();
  int written = 0;
  if (context != nullptr &&
      EVP_DecryptInit_ex(context, nullptr, nullptr, nullptr, bytesAt(sealed)) == 1 &&
      EVP_DecryptUpdate(context, mutableBytes(out), &written, bytesAt(text),
                        static_cast<int>(text.size())) == 1 &&
      EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_GCM_SET_TAG, kTag, mutableBytes(tag)) == 1 &&
      EVP_DecryptFinal_ex(context, mutableBytes(tag), &written) == 1)
    return out;
  return std::nullopt;
}

bool sameBytes(ByteSpan a, ByteSpan b) {
  return a.size() == b.size() && CRYPTO_memcmp(a.data(), b.data(), a.size()) == 0;
}

Key secretFromText(std::string_view text) {
  return Hmac(Key{}).of(
      {std::as_bytes(std::span("viaduct secret", 14)), std::as_bytes(std::span(text))});
}

}  // namespace viaduct::base
