#include "backends/ucx/message.h"

#include <algorithm>

#include "base/bytes.h"

namespace viaduct::ucx {
namespace {

constexpr std::uint32_t kMark = 0x316c5556;  // "VUl1"

// Whether kind, extents and length agree. The length of kData is checked later, against its read.
bool plausible(const Message& message, std::size_t bytes_behind) {
  std::uint64_t total = 0;
  for (const Extent& one : message.list()) {
    if (one.bytes > Message::kMostBytes) return false;
    total += one.bytes;
  }
  switch (message.kind) {
    case Message::Kind::kWrite:
      return message.count > 0 && total == bytes_behind;
    case Message::Kind::kRead:
      return message.count > 0 && total <= Message::kMostBytes && bytes_behind == 0;
    case Message::Kind::kData:
      return message.count == 0;
    case Message::Kind::kFlush:
    case Message::Kind::kFlushed:
      return message.flush && message.count == 0 && bytes_behind == 0;
  }
  return false;
}

}  // namespace

std::size_t encode(const Message& message, std::span<std::byte, Message::kLongestHead> out) {
  std::byte* at = out.data();
  const auto put = [&at](auto value) {
    base::storeLittle(at, value);
    at += sizeof value;
  };
  put(kMark);
  put(static_cast<std::uint8_t>(message.kind));
  put(static_cast<std::uint8_t>(message.flush ? 1 : 0));
  put(static_cast<std::uint16_t>(message.count));
  put(message.token);
  put(message.number);
  put(message.key);
  for (const Extent& one : message.list()) {
    put(one.address);
    put(one.bytes);
  }
  return static_cast<std::size_t>(at - out.data());
}

std::optional<std::uint64_t> tokenOf(std::span<const std::byte> head) {
  constexpr std::size_t kAt = 8;
  if (head.size() < kAt + sizeof(std::uint64_t)) return std::nullopt;
  return base::loadLittle<std::uint64_t>(head.data() + kAt);
}

std::optional<Message> decode(std::span<const std::byte> head, std::size_t bytes_behind) {
  base::Reader in(head);
  const auto mark = in.get<std::uint32_t>();
  Message out;
  out.kind = static_cast<Message::Kind>(in.get<std::uint8_t>());
  const auto flush = in.get<std::uint8_t>();
  out.flush = flush == 1;
  out.count = in.get<std::uint16_t>();
  out.token = in.get<std::uint64_t>();
  out.number = in.get<std::uint64_t>();
  out.key = in.get<std::uint64_t>();
  if (mark != kMark || flush > 1 || out.count > Message::kMostExtents) return std::nullopt;
  for (std::uint32_t i = 0; i < out.count; ++i) {
    const auto address = in.get<std::uint64_t>();
    out.extents[i] = {.address = address, .bytes = in.get<std::uint64_t>()};
  }
  if (!in.finished() || !plausible(out, bytes_behind)) return std::nullopt;
  return out;
}

}  // namespace viaduct::ucx
