// The messages between two MessageEndpoints: a head, followed by the data. Threads: pure functions
// and values.
#pragma once

#include <viaduct/blocks.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

namespace viaduct::ucx {

struct Message {
  enum class Kind : std::uint8_t {
    kWrite = 1,  // writes the data to the extents
    kRead,       // requests the bytes of the extents
    kData,       // the answer to a kRead; answers keep the order of the reads
    kFlush,      // a flush without data
    kFlushed,    // the answer to a flush in a kWrite or kFlush
  };
  static constexpr std::size_t kMostExtents = 64;
  // The most data of a message, which fits with its head into one TCP packet of UCX. Less data
  // costs more calls; more data is copied once more, because UCX assembles the packets.
  static constexpr std::uint64_t kMostBytes = 60U << 10U;
  static constexpr std::size_t kShortestHead = 32, kHeadPerExtent = 16;
  static constexpr std::size_t kLongestHead = kShortestHead + kMostExtents * kHeadPerExtent;

  Kind kind = Kind::kFlush;
  bool flush = false;        // asks for an answer to a flush; in an answer, it is that answer
  std::uint64_t token = 0;   // the receiver's secret from the session; without it nothing is read
  std::uint64_t number = 0;  // counts the sender's messages, so that a gap shows
  std::uint64_t key = 0;     // for kWrite and kRead: key of the memory with the extents
  std::uint32_t count = 0;   // number of extents; 0 except for kWrite and kRead
  std::array<Extent, kMostExtents> extents;

  std::span<const Extent> list() const { return std::span(extents).first(count); }
};

// Writes the head to `out`, and returns its length.
std::size_t encode(const Message& message, std::span<std::byte, Message::kLongestHead> out);
// The token of a head; nothing if the head is too short.
std::optional<std::uint64_t> tokenOf(std::span<const std::byte> head);
// Reads a head that is followed by that many bytes of data. Nothing: it is not a valid message.
std::optional<Message> decode(std::span<const std::byte> head, std::size_t bytes_behind);

}  // namespace viaduct::ucx
