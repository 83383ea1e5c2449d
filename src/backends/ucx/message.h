// What the two ends of a MessageEndpoint write to each other: a head, with the bytes behind it.
// Threads: pure functions and values.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace viaduct::ucx {

struct Message {
  enum class Kind : std::uint8_t {
    kWrite = 1,  // its bytes go to the extents
    kRead,       // the extents' bytes are asked for
    kData,       // the answer, in order of the questions
    kFlush,      // nothing but a flush
    kFlushed,    // the answer to one that asked for no data
  };
  struct Extent {
    std::uint64_t address = 0, bytes = 0;
    friend bool operator==(const Extent&, const Extent&) = default;
  };
  static constexpr std::size_t kMostExtents = 64;
  // One of UCX's packets over TCP, with its head: less costs more calls, more is put together by
  // the receiver before we see it.
  static constexpr std::uint64_t kMostBytes = 60U << 10U;
  static constexpr std::size_t kShortestHead = 32, kHeadPerExtent = 16;
  static constexpr std::size_t kLongestHead = kShortestHead + kMostExtents * kHeadPerExtent;

  Kind kind = Kind::kFlush;
  bool flush = false;        // say when you have come to here; in the answer: here
  std::uint64_t token = 0;   // the reader's, told over the session: nobody else is heard
  std::uint64_t number = 0;  // of all that this end has written; none is missing or out of order
  std::uint64_t key = 0;     // kWrite, kRead: to the memory the extents lie in
  std::uint32_t count = 0;   // of the extents; none but for kWrite and kRead
  std::array<Extent, kMostExtents> extents;

  std::span<const Extent> list() const { return std::span(extents).first(count); }
};

// The bytes of the head that were written.
std::size_t encode(const Message& message, std::span<std::byte, Message::kLongestHead> out);
// Nothing: it is too short for one.
std::optional<std::uint64_t> tokenOf(std::span<const std::byte> head);
// Nothing: it is no message of ours, or says something that none of ours would, with so many bytes
// behind it.
std::optional<Message> decode(std::span<const std::byte> head, std::size_t bytes_behind);

}  // namespace viaduct::ucx
