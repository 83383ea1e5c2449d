// The frames of a session's byte stream. Pure functions over bytes. Threads: one at a time per
// object.
#pragma once

#include <viaduct/note.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/net/crypto.h"

namespace viaduct::agent {

using base::ByteSpan, base::Hmac, base::Key;

inline constexpr std::uint8_t kWireMajor = 1;
inline constexpr std::uint8_t kWireMinor = 0;

inline constexpr std::size_t kFrameHeaderBytes = 40;
// The limit of a frame: the largest note, and room for the other fields.
inline constexpr std::size_t kMaxFramePayload = kMaxNoteBytes + (std::size_t{64} << 10U);
// Smaller limits during the hellos, and before an end has proved that it knows the secret.
inline constexpr std::size_t kMaxHelloPayload = std::size_t{64} << 10U;
inline constexpr std::size_t kMaxUnprovenPayload = 64;
inline constexpr std::size_t kMaxFrameFds = 16;

enum class FrameType : std::uint8_t {
  kHeartbeat = 1,
  kNote,
  kPin,
  kUnpin,
  kSynced,
  kBackend,
  kBye,
  kNoteRing,
  // An owner ends a lease, its borrower answers, a borrower returns one.
  kLeaseEnded,
  kLeaseSettled,
  kLeaseReturned,
  // A mark of a stream, and the end of one.
  kMark,
  kMarksEnd,
  // Frames of the handshake. docs/wire.md has their order.
  kOpen = 0x40,
  kChallenge,
  kProof,
  kDeny,
  kHello,
  kAccept,
  kRefuse,
  kResume,  // sent before the dialer's hello
};
struct Frame {
  FrameType type = FrameType::kHeartbeat;
  std::uint8_t minor = 0;  // the sender's version
  std::uint16_t fds = 0;   // the number of file descriptors that travel with it
  ByteSpan payload = {};   // points into the decoder, until its next call
  bool skip = false;       // a type of a newer minor version: to be ignored with its fds
};

// Makes the headers of one direction of a session, with their check fields, in the order of
// sending.
class FrameSealer {
 public:
  using Header = std::array<std::byte, kFrameHeaderBytes>;
  // From the next frame on, the check field is a MAC under `key`. Before, it is a checksum.
  void useKey(const Key& key) { mac_.emplace(key); }
  std::uint64_t sealed() const { return sequence_; }  // the number of sealed frames
  // The header of the next frame, whose payload is `head`, then `body`.
  Header seal(FrameType type, ByteSpan head, ByteSpan body, std::size_t fds);

 private:
  std::optional<Hmac> mac_;
  std::uint64_t sequence_ = 0;
};

// Cuts the bytes of one direction into frames. Its buffer has at most 64 KiB, or the size of the
// largest frame within the limit if that is more.
class FrameDecoder {
 public:
  enum class Next : std::uint8_t { kFrame, kMore, kBroken };

  explicit FrameDecoder(std::size_t limit = kMaxUnprovenPayload);

  void setLimit(std::size_t limit) { limit_ = limit; }
  void useKey(const Key& key) { mac_.emplace(key); }

  // The buffer for the next bytes, which is never empty. Call wrote() with the number of bytes.
  std::span<std::byte> space();
  void wrote(std::size_t bytes);

  // Gives the next frame. kMore: its bytes are incomplete. kBroken: the stream is malformed, for
  // good, and error() has the reason.
  Next next(Frame& out);
  const Error& error() const { return error_; }

  std::uint64_t taken() const { return sequence_; }  // the number of frames that next() has given
  bool midFrame() const { return end_ > begin_; }    // it holds part of a frame
  std::size_t capacity() const { return capacity_; }

 private:
  Next fail(Error why);
  bool checkStart(ByteSpan have);
  bool checkHeader(const std::byte* header);
  void makeRoom();
  void resize(std::size_t capacity);

  std::optional<Hmac> mac_;
  std::uint64_t sequence_ = 0;
  std::size_t limit_;
  std::unique_ptr<std::byte[]> buffer_;
  std::size_t capacity_ = 0, begin_ = 0, end_ = 0;
  std::size_t wanted_ = kFrameHeaderBytes;  // size of the frame at begin_, with its header
  unsigned small_reads_ = 0;                // small reads in a row
  bool crowded_ = false;                    // the last read filled the buffer
  bool broken_ = false;
  Error error_;
};

}  // namespace viaduct::agent
