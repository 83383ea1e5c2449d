#include "core/digest.h"

#include <fmt/format.h>

#include "base/bytes.h"
#include "base/fields.h"
#include "base/net/checked_blob.h"

namespace viaduct {

auto fields(base::Is<Digest> auto& d) { return std::tie(d.low, d.high); }

namespace {

constexpr base::BlobKind kDigests{.magic = "VIADDIGS",
                                  .version = 1,
                                  .name = "list of digests",
                                  .maker = "encodeDigests()",
                                  .taker = "decodeDigests"};

}  // namespace

std::string Digest::text() const { return fmt::format("{:016x}{:016x}", high, low); }

Digest digestOf(std::span<const std::byte> bytes) {
  return core::digestFrom(base::blockSums(0, bytes), bytes.size());
}

Status BlockDigest::add(std::uint64_t offset, std::span<const std::byte> piece) {
  if (offset % sizeof(std::uint64_t) != 0)
    return Error{.code = Code::kInvalid,
                 .operation = "digest",
                 .detail = fmt::format("a piece at byte {} of its block", offset),
                 .remedy = "cut blocks at multiples of 8 bytes"};
  const base::BlockSums sums = base::blockSums(offset, piece);
  plain_ += sums.plain;
  product_ += sums.product;
  bytes_ += piece.size();
  return Ok{};
}

void BlockDigest::add(const BlockDigest& other) {
  plain_ += other.plain_;
  product_ += other.product_;
  bytes_ += other.bytes_;
}

Digest BlockDigest::digest() const { return core::digestFrom({plain_, product_}, bytes_); }

std::vector<std::byte> encodeDigests(std::span<const Digest> digests) {
  base::Writer body;
  for (const Digest& digest : digests) base::Fields::put(body, digest);
  return base::wrapBlob(kDigests, body.bytes());
}

Result<std::vector<Digest>> decodeDigests(std::span<const std::byte> bytes) {
  VIADUCT_TRY(const auto body, base::unwrapBlob(kDigests, bytes));
  if (body.size() % sizeof(Digest) != 0)
    return base::corruptedBlob(kDigests, fmt::format("{} bytes of digests", body.size()));
  std::vector<Digest> out(body.size() / sizeof(Digest));
  base::Reader in(body);
  for (Digest& digest : out) base::Fields::get(in, digest);
  return out;
}

}  // namespace viaduct
