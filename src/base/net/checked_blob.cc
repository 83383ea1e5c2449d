#include "base/net/checked_blob.h"

#include <fmt/format.h>

#include <string>
#include <utility>

#include "base/net/checksum.h"

namespace viaduct::base {
namespace {

constexpr std::size_t kSumBytes = 8;

Error wrongBytes(const BlobKind& kind, std::string detail, std::string cause) {
  return {.code = Code::kInvalid,
          .operation = std::string(kind.taker),
          .detail = std::move(detail),
          .cause = std::move(cause),
          .remedy = fmt::format("pass exactly the bytes that {} returned", kind.maker)};
}

Error truncated(const BlobKind& kind, std::size_t have, std::size_t want) {
  return wrongBytes(kind, fmt::format("the {} is cut short: {} bytes of {}", kind.name, have, want),
                    "the bytes were truncated on their way");
}

}  // namespace

Error corruptedBlob(const BlobKind& kind, std::string detail) {
  return wrongBytes(kind, std::move(detail), "the bytes were changed on their way");
}

Bytes wrapBlob(const BlobKind& kind, std::span<const std::byte> body) {
  Writer blob;
  blob.raw(bytesOf(kind.magic)).put(kind.version).sized(body);
  blob.put(Checksum().add(blob.bytes()).value());
  return blob.take();
}

Result<std::span<const std::byte>> unwrapBlob(const BlobKind& kind,
                                              std::span<const std::byte> blob) {
  if (!kind.magic.starts_with(textOf(blob).substr(0, kind.magic.size())))
    return wrongBytes(kind, fmt::format("these bytes are not a {}", kind.name),
                      "the caller passed other bytes");
  if (blob.size() < kBlobHeadBytes) return truncated(kind, blob.size(), kBlobHeadBytes);
  Reader head(blob.subspan(kind.magic.size()));
  const auto version = head.get<std::uint32_t>();
  const std::uint64_t length = head.get<std::uint32_t>();
  if (version != kind.version)
    return Error{.code = Code::kUnsupported,
                 .operation = std::string(kind.taker),
                 .detail = fmt::format("the {} has version {}; this agent reads version {}",
                                       kind.name, version, kind.version),
                 .cause = "the agent that made it runs another release of Viaduct",
                 .remedy = "install the same release at both ends"};
  const std::uint64_t whole = kBlobHeadBytes + length + kSumBytes;
  if (blob.size() < whole) return truncated(kind, blob.size(), whole);
  if (blob.size() > whole)
    return corruptedBlob(kind, fmt::format("the {} is longer than its header says", kind.name));
  const auto sum = loadLittle<std::uint64_t>(&blob[kBlobHeadBytes + length]);
  if (sum != Checksum().add(blob.first(kBlobHeadBytes + length)).value())
    return corruptedBlob(kind,
                         fmt::format("the {} is corrupted: its checksum is wrong", kind.name));
  return blob.subspan(kBlobHeadBytes, length);
}

}  // namespace viaduct::base
