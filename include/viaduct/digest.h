// Digests of blocks: 128 bits from which a reader sees whether a block has the right bytes.
// docs/digests.md. Threads: plain values and functions.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace viaduct {

// Depends on the bytes, their order and their number, but not on their address. It finds faults,
// and does not protect against an attacker who chooses the bytes.
struct Digest {
  std::uint64_t low = 0, high = 0;
  std::string text() const;  // 32 hexadecimal digits
  friend bool operator==(const Digest&, const Digest&) = default;
};

Digest digestOf(std::span<const std::byte> bytes);

// The digest of a block that is added piece by piece, in any order: from several layers or threads.
class BlockDigest {
 public:
  // A piece that starts at byte `offset` of the block. Fails with kInvalid unless `offset` is a
  // multiple of 8. Not checked: all pieces but the block's last one have a multiple of 8 bytes, and
  // the pieces cover the block once.
  Status add(std::uint64_t offset, std::span<const std::byte> piece);
  // Adds all pieces that `other` has, which are other parts of the same block.
  void add(const BlockDigest& other);
  // The digest of a block that consists of the added pieces.
  Digest digest() const;

 private:
  std::uint64_t plain_ = 0, product_ = 0, bytes_ = 0;
};

// Digests as bytes for a note or another message: 16 bytes for each digest, and 24 more in all.
std::vector<std::byte> encodeDigests(std::span<const Digest> digests);
// Refuses all bytes that encodeDigests() cannot have made.
Result<std::vector<Digest>> decodeDigests(std::span<const std::byte> bytes);

}  // namespace viaduct
