// Bytes that users carry from one process to another: a Card, or an agent's metadata. A blob has
// magic, version and length of its body, then the body, then a checksum of all these bytes, so that
// an error tells how the bytes were damaged. Threads: pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/bytes.h"

namespace viaduct::base {

struct BlobKind {
  std::string_view magic;  // 8 bytes
  std::uint32_t version;
  // For errors: the name of such a blob, the call that makes one, and the call that takes one.
  std::string_view name, maker, taker;
};

inline constexpr std::size_t kBlobHeadBytes = 8 + 4 + 4;

Bytes wrapBlob(const BlobKind& kind, std::span<const std::byte> body);
// Checks a blob, and returns its body.
Result<std::span<const std::byte>> unwrapBlob(const BlobKind& kind,
                                              std::span<const std::byte> blob);
// The error about a body whose content is wrong.
Error corruptedBlob(const BlobKind& kind, std::string detail);

}  // namespace viaduct::base
