// AES-256-GCM of libipsec-mb, which is loaded at its first use where it is installed. Its functions
// for one processor are exported by name. The library's manager structure has pointers to the same
// functions, at offsets that differ between its versions.
#if defined(__x86_64__)
#include <cpuid.h>
#endif

#include <cstring>
#include <optional>

#include "base/environment.h"
#include "base/log.h"
#include "base/net/aead.h"
#include "base/shared_library.h"

namespace viaduct::base {
namespace {

// The library's structures, with room to spare: 1,008 and 88 bytes in version 1.3.
struct alignas(64) ExpandedKey {
  std::array<std::uint8_t, 4096> bytes;
};
struct alignas(64) GcmState {
  std::array<std::uint8_t, 256> bytes;
};

struct Functions {
  void (*prepare)(const void* key, ExpandedKey* into);
  void (*encrypt)(const ExpandedKey*, GcmState*, std::uint8_t* to, const std::uint8_t* from,
                  std::uint64_t bytes, const std::uint8_t* nonce, const std::uint8_t* aad,
                  std::uint64_t aad_bytes, std::uint8_t* tag, std::uint64_t tag_bytes);
  decltype(encrypt) decrypt;
};

#if defined(__x86_64__)
// clang 14 does not know these two names for __builtin_cpu_supports().
bool hasVectorAes() {
  unsigned a = 0, b = 0, c = 0, d = 0;
  constexpr unsigned kWanted = bit_VAES | bit_VPCLMULQDQ;
  return __get_cpuid_count(7, 0, &a, &b, &c, &d) != 0 && (c & kWanted) == kWanted;
}
#endif

// The suffix of the fastest functions that this processor can run; null: none.
const char* variant() {
#if defined(__x86_64__)
  if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") && hasVectorAes())
    return "vaes_avx512";
  if (__builtin_cpu_supports("avx2") && hasFastAes()) return "avx_gen4";
#endif
  return nullptr;
}

class IpsecAead final : public Aead {
 public:
  explicit IpsecAead(const Functions& functions) : functions_(functions) {}
  ~IpsecAead() override { wipe(key_.bytes); }
  IpsecAead(const IpsecAead&) = delete;
  IpsecAead& operator=(const IpsecAead&) = delete;

  bool useKey(const Key& key) override {
    functions_.prepare(key.data(), &key_);
    return true;
  }
  bool seal(const Nonce& nonce, ByteSpan aad, ByteSpan text, std::byte* to,
            std::byte* tag) override {
    run(functions_.encrypt, nonce, aad, text, to, reinterpret_cast<std::uint8_t*>(tag));
    return true;
  }
  bool open(const Nonce& nonce, ByteSpan aad, ByteSpan sealed, std::byte* to,
            const std::byte* tag) override {
    std::array<std::uint8_t, kTagBytes> expected{};
    run(functions_.decrypt, nonce, aad, sealed, to, expected.data());
    return sameBytes(std::as_bytes(std::span(expected)), {tag, kTagBytes});
  }
  std::string_view library() const override { return "libipsec-mb"; }

 private:
  void run(decltype(Functions::encrypt) call, const Nonce& nonce, ByteSpan aad, ByteSpan from,
           std::byte* to, std::uint8_t* tag) {
    call(&key_, &state_, reinterpret_cast<std::uint8_t*>(to),
         reinterpret_cast<const std::uint8_t*>(from.data()), from.size(), nonce.data(),
         reinterpret_cast<const std::uint8_t*>(aad.data()), aad.size(), tag, kTagBytes);
  }

  Functions functions_;
  ExpandedKey key_{};
  GcmState state_{};
};

// Runs a part of test case 16 of the publication of GCM. A library of another version that fails
// the test is not used.
bool computesGcm(const Functions& functions) {
  IpsecAead aead(functions);
  if (!aead.useKey(Key{})) return false;
  std::array<std::byte, 16> text{}, sealed{};
  std::array<std::byte, kTagBytes> tag{};
  constexpr std::array<std::uint8_t, 16> kSealedZeros{0xce, 0xa7, 0x40, 0x3d, 0x4d, 0x60,
                                                      0x6b, 0x6e, 0x07, 0x4e, 0xc5, 0xd3,
                                                      0xba, 0xf3, 0x9d, 0x18};
  constexpr std::array<std::uint8_t, 16> kTagOfZeros{0xd0, 0xd1, 0xc8, 0xa7, 0x99, 0x99,
                                                     0x6b, 0xf0, 0x26, 0x5b, 0x98, 0xb5,
                                                     0xd4, 0x8a, 0xb9, 0x19};
  return aead.seal({}, {}, text, sealed.data(), tag.data()) &&
         sameBytes(sealed, std::as_bytes(std::span(kSealedZeros))) &&
         sameBytes(tag, std::as_bytes(std::span(kTagOfZeros))) &&
         aead.open({}, {}, sealed, text.data(), tag.data());
}

std::optional<Functions> load() {
  const char* const suffix = variant();
  if (suffix == nullptr) return std::nullopt;
  const auto library = SharedLibrary::open("libIPSec_MB.so.1");
  if (!library) return std::nullopt;
  const auto name = [suffix](std::string_view what) {
    return std::string("aes_gcm_").append(what).append("_256_").append(suffix);
  };
  Functions found{};
  if (library->bind(name("pre").c_str(), found.prepare) &&
      library->bind(name("enc").c_str(), found.encrypt) &&
      library->bind(name("dec").c_str(), found.decrypt) && computesGcm(found))
    return found;
  log(LogLevel::kWarning, "libipsec-mb is installed, but its AES-256-GCM cannot be used");
  return std::nullopt;
}

}  // namespace

std::unique_ptr<Aead> makeIpsecAead() {
  static const std::optional<Functions> functions = load();
  return functions ? std::make_unique<IpsecAead>(*functions) : nullptr;
}

}  // namespace viaduct::base
