// The frames on a data socket. All numbers are little-endian, and each length is checked before it
// is used. NOTES.md has the layout. Threads: pure functions over values.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

namespace viaduct::tcp {

inline constexpr std::uint32_t kMagic = 0x31544456;  // "VDT1"
inline constexpr std::uint8_t kVersion = 1;
inline constexpr std::size_t kHeadBytes = 32;
inline constexpr std::size_t kEntryBytes = 20;
inline constexpr std::size_t kTrailerBytes = 4;

// A record: its length, at most kRecordBytes of the stream of frames, and a tag.
inline constexpr std::size_t kRecordHead = 4;
inline constexpr std::size_t kRecordBytes = std::size_t{16} << 10U;
inline constexpr std::size_t kRecordsAtOnce = 5;

// The limits of one frame. The number of entries is below IOV_MAX, so that one system call sends a
// frame with its head and trailer.
inline constexpr std::uint32_t kMaxEntries = 1000;
inline constexpr std::uint64_t kMaxFrameBytes = std::uint64_t{4} << 20U;
inline constexpr std::size_t kMaxHeadBytes = kHeadBytes + kMaxEntries * kEntryBytes;
// The most WRITEs and READ requests of a peer that are unanswered. Both limit the memory that the
// peer can make us use.
inline constexpr std::size_t kMaxUnacked = 1024;
inline constexpr std::size_t kMaxRequests = 8;

enum class DataFrameType : std::uint8_t {
  kWrite = 1,    // entries, then their bytes
  kReadRequest,  // entries
  kReadData,     // the bytes of a request, then a trailer with the status
  kAck,          // `sequence` WRITE frames are finished here, including refused ones
  kFail,         // WRITE frame `sequence` was refused: `status`
  kCancel,       // the data of READ request `sequence` is not wanted any more
};

// The result of a frame or request, as it is sent.
enum class FrameStatus : std::uint32_t { kOk = 0, kDenied = 1, kCancelled = 2 };
inline constexpr std::uint64_t kStatuses = 3;

struct FrameHead {
  DataFrameType type = DataFrameType::kAck;
  std::uint32_t entries = 0;
  FrameStatus status = FrameStatus::kOk;
  std::uint64_t payload = 0;   // bytes after head and entries, without the trailer
  std::uint64_t sequence = 0;  // number of the WRITE or of the READ request; for ACK, a count
  friend bool operator==(const FrameHead&, const FrameHead&) = default;
};

// One contiguous piece at the target.
struct FrameEntry {
  std::uint64_t address = 0;
  std::uint32_t bytes = 0;
  std::uint32_t slot = 0;
  std::uint32_t generation = 0;  // tells apart the pins that use the slot one after the other
  friend bool operator==(const FrameEntry&, const FrameEntry&) = default;
};

void encodeHead(const FrameHead& head, std::byte* to);
void encodeEntry(const FrameEntry& entry, std::byte* to);
FrameEntry decodeEntry(const std::byte* from);

// decodeHead() and checkEntries() return the mistake, or an empty text.
std::string_view decodeHead(std::span<const std::byte, kHeadBytes> from, FrameHead& head);
// `entries`: the head.entries * kEntryBytes bytes after the head.
std::string_view checkEntries(const FrameHead& head, std::span<const std::byte> entries);

// The sum of FrameEntry::bytes.
std::uint64_t entryBytes(std::span<const std::byte> entries);

}  // namespace viaduct::tcp
