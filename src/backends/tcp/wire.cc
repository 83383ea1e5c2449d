#include "backends/tcp/wire.h"

#include "base/bytes.h"

namespace viaduct::tcp {

using base::loadLittle;
using base::storeLittle;

void encodeHead(const FrameHead& head, std::byte* to) {
  storeLittle<std::uint32_t>(to, kMagic);
  storeLittle<std::uint8_t>(to + 4, kVersion);
  storeLittle<std::uint8_t>(to + 5, static_cast<std::uint8_t>(head.type));
  storeLittle<std::uint16_t>(to + 6, 0);
  storeLittle<std::uint32_t>(to + 8, head.entries);
  storeLittle<std::uint32_t>(to + 12, static_cast<std::uint32_t>(head.status));
  storeLittle<std::uint64_t>(to + 16, head.payload);
  storeLittle<std::uint64_t>(to + 24, head.sequence);
}

void encodeEntry(const FrameEntry& entry, std::byte* to) {
  storeLittle<std::uint64_t>(to, entry.address);
  storeLittle<std::uint32_t>(to + 8, entry.bytes);
  storeLittle<std::uint32_t>(to + 12, entry.slot);
  storeLittle<std::uint32_t>(to + 16, entry.generation);
}

FrameEntry decodeEntry(const std::byte* from) {
  return {.address = loadLittle<std::uint64_t>(from),
          .bytes = loadLittle<std::uint32_t>(from + 8),
          .slot = loadLittle<std::uint32_t>(from + 12),
          .generation = loadLittle<std::uint32_t>(from + 16)};
}

namespace {

std::string_view checkShape(const FrameHead& head) {
  const bool entries = head.entries > 0;
  const bool payload = head.payload > 0;
  switch (head.type) {
    case DataFrameType::kWrite:
      return entries && payload ? "" : "an empty write";
    case DataFrameType::kReadRequest:
      return entries && !payload ? "" : "a read request of the wrong shape";
    case DataFrameType::kReadData:
      return entries ? "read data with entries" : "";
    case DataFrameType::kAck:
    case DataFrameType::kFail:
    case DataFrameType::kCancel:
      return entries || payload ? "a control frame with a body" : "";
  }
  return "an unknown frame type";
}

}  // namespace

std::string_view decodeHead(std::span<const std::byte, kHeadBytes> from, FrameHead& head) {
  const std::byte* at = from.data();
  if (loadLittle<std::uint32_t>(at) != kMagic) return "no frame begins here";
  if (loadLittle<std::uint8_t>(at + 4) != kVersion) return "a frame of another version";
  if (loadLittle<std::uint16_t>(at + 6) != 0) return "unknown frame flags";
  const auto status = loadLittle<std::uint32_t>(at + 12);
  if (status > static_cast<std::uint32_t>(FrameStatus::kCancelled)) return "an unknown status";
  head = {.type = static_cast<DataFrameType>(loadLittle<std::uint8_t>(at + 5)),
          .entries = loadLittle<std::uint32_t>(at + 8),
          .status = static_cast<FrameStatus>(status),
          .payload = loadLittle<std::uint64_t>(at + 16),
          .sequence = loadLittle<std::uint64_t>(at + 24)};
  if (head.entries > kMaxEntries) return "too many entries in a frame";
  if (head.payload > kMaxFrameBytes) return "a frame too long";
  return checkShape(head);
}

std::uint64_t entryBytes(std::span<const std::byte> entries) {
  std::uint64_t sum = 0;
  for (std::size_t at = 0; at + kEntryBytes <= entries.size(); at += kEntryBytes)
    sum += loadLittle<std::uint32_t>(entries.data() + at + 8);
  return sum;
}

std::string_view checkEntries(const FrameHead& head, std::span<const std::byte> entries) {
  for (std::size_t at = 0; at + kEntryBytes <= entries.size(); at += kEntryBytes)
    if (loadLittle<std::uint32_t>(entries.data() + at + 8) == 0) return "an empty entry";
  const std::uint64_t sum = entryBytes(entries);  // at most 1000 * 4 GiB
  if (sum > kMaxFrameBytes) return "entries of more than a frame may carry";
  if (head.type == DataFrameType::kWrite && sum != head.payload)
    return "entries that do not add up";
  return "";
}

}  // namespace viaduct::tcp
