#include "meet/embedded/frame.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <string_view>
#include <utility>

#include "base/printable.h"
#include "base/text.h"

namespace viaduct::meet::embedded {
namespace {

// The header has 4 bytes of length, 1 of type, 3 zeros, and 16 of check.
constexpr std::size_t kTypeAt = 4, kCheckAt = 8;

base::Sha256Digest digestOf(ByteSpan payload) {
  static const base::Hmac plain(Key{});
  return plain.of({payload});
}

// Only the first kHeaderBytes - kCheckAt bytes of the digest are sent.
base::Sha256Digest checkOf(const std::optional<base::Hmac>& mac, std::uint64_t number,
                           ByteSpan start, const base::Sha256Digest& payload) {
  if (!mac) return payload;
  std::array<std::byte, sizeof number> little;
  base::storeLittle(little.data(), number);
  return mac->of({little, start, std::as_bytes(std::span(payload))});
}

Error broken(std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "receive",
          .detail = std::move(detail),
          .cause = "the port belongs to another program, or to another release of Viaduct"};
}

}  // namespace

std::string quoted(ByteSpan bytes) {
  constexpr std::size_t kMost = 60;
  std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
  text = text.substr(0, text.find_first_of("\r\n"));
  return fmt::format("\"{}\"", base::printable(text, kMost));
}

PacketPtr makePacket(Type type, Bytes payload) {
  auto packet = std::make_shared<Packet>();
  packet->type = type;
  packet->payload = std::move(payload);
  packet->digest = digestOf(packet->payload);
  return packet;
}

Header Sealer::seal(const Packet& packet) {
  Header header{};
  base::storeLittle(header.data(), static_cast<std::uint32_t>(packet.payload.size()));
  header[kTypeAt] = static_cast<std::byte>(packet.type);
  const auto check = checkOf(mac_, number_++, ByteSpan(header).first(kCheckAt), packet.digest);
  std::memcpy(&header[kCheckAt], check.data(), kHeaderBytes - kCheckAt);
  return header;
}

// Before the proof, bytes that are no message come from a program that is not Viaduct.
std::string Decoder::foreign(ByteSpan bytes) {
  return fmt::format("the other end is no Viaduct meeting place or member; it sent {}",
                     quoted(bytes));
}

Status Decoder::feed(ByteSpan bytes, const Take& take) {
  if (!held_.empty()) {
    // insert() is not used, because g++ 13 warns of an overflow in it.
    const std::size_t before = held_.size();
    held_.resize(before + bytes.size());
    std::ranges::copy(bytes, std::span(held_).subspan(before).begin());
    bytes = held_;
  }
  VIADUCT_TRY(const std::size_t taken, takeAll(bytes, take));
  const ByteSpan rest = bytes.subspan(taken);
  if (rest.empty())
    held_ = Bytes();  // so that thousands of idle connections need no memory
  else if (held_.empty())
    held_.assign(rest.begin(), rest.end());
  else
    held_.erase(held_.begin(), held_.begin() + static_cast<std::ptrdiff_t>(taken));
  return Ok{};
}

Result<std::size_t> Decoder::takeAll(ByteSpan bytes, const Take& take) {
  std::size_t at = 0;
  while (bytes.size() - at >= kHeaderBytes) {
    const ByteSpan header = bytes.subspan(at, kHeaderBytes);
    const std::size_t length = base::loadLittle<std::uint32_t>(header.data());
    if (length > limit_)
      return broken(
          mac_ ? fmt::format("a message of {} bytes exceeds the limit of {}", length, limit_)
               : foreign(bytes.subspan(at)));
    if (bytes.size() - at - kHeaderBytes < length) break;
    const ByteSpan payload = bytes.subspan(at + kHeaderBytes, length);
    const auto check = checkOf(mac_, number_, header.first(kCheckAt), digestOf(payload));
    if (!base::sameBytes(std::as_bytes(std::span(check)).first(kHeaderBytes - kCheckAt),
                         header.subspan(kCheckAt)))
      return broken(mac_ ? "a message's authentication code is wrong" : foreign(bytes.subspan(at)));
    ++number_;
    VIADUCT_CHECK(take(static_cast<Type>(header[kTypeAt]), payload));
    at += kHeaderBytes + length;
  }
  return at;
}

}  // namespace viaduct::meet::embedded
