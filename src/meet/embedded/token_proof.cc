#include "meet/embedded/token_proof.h"

#include <array>
#include <cstring>

namespace viaduct::meet::embedded {

base::Digest TokenProof::over(std::string_view purpose) const {
  std::array<std::byte, 2 * sizeof(Key)> nonces;
  std::memcpy(nonces.data(), member_nonce.data(), sizeof(Key));
  std::memcpy(nonces.data() + sizeof(Key), server_nonce.data(), sizeof(Key));
  return base::deriveKey(token, purpose, nonces);
}

}  // namespace viaduct::meet::embedded
