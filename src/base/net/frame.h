// Frames in a stream of bytes between two ends: a header with version, type, length, number and
// check, then a payload. The session and the meeting place use them. docs/wire.md has the bytes.
// Pure functions over bytes. Threads: one at a time per object.
#pragma once

#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "base/net/crypto.h"
#include "base/net/handshake.h"
#include "base/net/record_keys.h"

namespace viaduct::base {

inline constexpr std::size_t kFrameHeaderBytes = 40;
inline constexpr std::size_t kMaxFrameFds = 16;

// The frames of one protocol.
struct FrameProtocol {
  std::string_view magic;  // four characters
  Handshake::Version version;
  std::string_view other_end;  // names the other end in errors
  // Whether this version of the protocol has frames of this type.
  bool (*knows)(std::uint8_t type);
  // Ok if a frame of this known type may have so many bytes and descriptors.
  Status (*check_size)(std::uint8_t type, std::size_t bytes, std::size_t fds);
  // True: the check covers the digest of the payload in place of the payload, and the payload is
  // never encrypted. So a payload that many connections send is hashed once. False: frames under a
  // key are encrypted.
  bool by_digest = false;
};

struct Frame {
  std::uint8_t type = 0;
  std::uint8_t minor = 0;  // the sender's version
  std::uint16_t fds = 0;   // the number of file descriptors that travel with it
  ByteSpan payload = {};   // points into the decoder, until its next call
  bool skip = false;       // a type of a newer minor version: to be ignored with its fds
};

// The digest of a payload, for FrameProtocol::by_digest.
Sha256Digest payloadDigest(ByteSpan head, ByteSpan body = {});

// Makes the headers of one direction of a stream, with their check fields, in the order of sending.
class FrameSealer {
 public:
  using Header = std::array<std::byte, kFrameHeaderBytes>;
  explicit FrameSealer(const FrameProtocol& protocol) : protocol_(protocol) {}
  // From the next frame on, the check field is a MAC under `key`, or the tag of the encrypted
  // frame. Before, it is a checksum. Fails if libcrypto lacks the cipher.
  Status useKey(const Key& key);
  bool encrypts() const { return keys_ != nullptr; }
  std::uint64_t sealed() const { return sequence_; }  // the number of sealed frames
  // The header of the next frame, whose payload is `head`, then `body`.
  Header seal(std::uint8_t type, ByteSpan head, ByteSpan body, std::size_t fds);
  // Call it if encrypts(). Returns the header of the next frame, and encrypts the payload in place.
  // Nothing: the library failed, or this is a child of fork(), which has the keys of its parent.
  std::optional<Header> encrypt(std::uint8_t type, std::span<std::byte> payload, std::size_t fds);
  // Returns the header of the next frame, whose payload has `bytes` bytes and this digest.
  Header sealDigest(std::uint8_t type, std::size_t bytes, const Sha256Digest& digest);

 private:
  Header headerOf(std::uint8_t type, std::size_t bytes, std::size_t fds);
  Header sealParts(std::uint8_t type, std::size_t bytes, std::size_t fds, ByteSpan checked_head,
                   ByteSpan checked_body);

  const FrameProtocol& protocol_;
  std::optional<Hmac> mac_;
  std::unique_ptr<RecordKeys> keys_;
  std::uint64_t sequence_ = 0;
};

// Cuts the bytes of one direction into frames. Its buffer has at most 64 KiB, or the size of the
// largest frame within the limit if that is more.
class FrameDecoder {
 public:
  enum class Next : std::uint8_t { kFrame, kMore, kBroken };

  FrameDecoder(const FrameProtocol& protocol, std::size_t limit)
      : protocol_(protocol), limit_(limit) {}

  void setLimit(std::size_t limit) { limit_ = limit; }
  Status useKey(const Key& key);  // as FrameSealer

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
  // Frees the buffer if it holds nothing, so that an idle connection needs no memory.
  void freeBuffer();

 private:
  Next fail(Error why);
  bool checkStart(ByteSpan have);
  bool checkHeader(const std::byte* header);
  bool isGenuine(std::span<std::byte> frame);
  void makeRoom();
  void resize(std::size_t capacity);

  const FrameProtocol& protocol_;
  std::optional<Hmac> mac_;
  std::unique_ptr<RecordKeys> keys_;
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

}  // namespace viaduct::base
