// Frames: what a session's stream is made of. Pure over bytes. Threads: one at a time per object.
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

using base::ByteSpan, base::Digest, base::Hmac, base::Key;

inline constexpr std::uint8_t kWireMajor = 1;
inline constexpr std::uint8_t kWireMinor = 3;
inline constexpr std::uint8_t kResumeMinor = 2;  // from here on sessions can go on

inline constexpr std::size_t kFrameHeaderBytes = 40;
// The frame limit: a note of the greatest size, and room for what stands beside it.
inline constexpr std::size_t kMaxFramePayload = kMaxNoteBytes + (std::size_t{64} << 10U);
// While the ends introduce themselves, and before they have proved that they may.
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
  kNoteRing,  // from minor version 1 on
  kReadOnly,  // before the pin it is about; from minor version 3 on
  // The handshake's, in the order they are sent.
  kOpen = 0x40,
  kChallenge,
  kProof,
  kDeny,
  kHello,
  kAccept,
  kRefuse,
  kResume,  // before the dialer's hello; from minor version 2 on
};
bool isKnown(FrameType type);
bool isHandshake(FrameType type);
// Whether it has a number in its session's life, by which the other end says how far it has heard.
inline bool isNumbered(FrameType type) {
  return !isHandshake(type) && type != FrameType::kHeartbeat;
}

struct Frame {
  FrameType type = FrameType::kHeartbeat;
  std::uint8_t minor = 0;  // the sender's version
  std::uint16_t fds = 0;   // how many file descriptors travel with it
  ByteSpan payload = {};   // stands in the decoder, until its next call
  bool skip = false;       // of a newer minor version's type: to be ignored, its fds too
};

// The check fields of one direction of a session, in the order the frames are sent.
class FrameSealer {
 public:
  using Header = std::array<std::byte, kFrameHeaderBytes>;
  // From the next frame on the check is a MAC under `key`; before that it is a checksum.
  void useKey(const Key& key) { mac_.emplace(key); }
  std::uint64_t sealed() const { return sequence_; }  // how many frames
  // The header of the next frame, whose payload is `head`, then `body`.
  Header seal(FrameType type, ByteSpan head, ByteSpan body, std::size_t fds);

 private:
  std::optional<Hmac> mac_;
  std::uint64_t sequence_ = 0;
};

// Turns the bytes of one direction into frames, as they arrive. Never holds more than one header
// and the limit.
class FrameDecoder {
 public:
  enum class Next : std::uint8_t { kFrame, kMore, kBroken };

  explicit FrameDecoder(std::size_t limit = kMaxUnprovenPayload);

  void setLimit(std::size_t limit) { limit_ = limit; }
  void useKey(const Key& key) { mac_.emplace(key); }

  // Where the next bytes go: never empty. wrote() says how many came.
  std::span<std::byte> space();
  void wrote(std::size_t bytes);

  // The next frame; kMore when its bytes are not all here; kBroken, for ever, when the stream
  // cannot be right: error() says why.
  Next next(Frame& out);
  const Error& error() const { return error_; }

  std::uint64_t taken() const { return sequence_; }  // how many frames next() has given
  bool midFrame() const { return end_ > begin_; }    // bytes of an unfinished frame are here
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
  std::size_t wanted_ = kFrameHeaderBytes;  // of the frame at begin_, header included
  unsigned small_reads_ = 0;                // in a row
  bool crowded_ = false;                    // the last read took all the room there was
  bool broken_ = false;
  Error error_;
};

}  // namespace viaduct::agent
