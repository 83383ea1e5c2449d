// Reads and writes the frames of a connected stream socket. Threads: one at a time per object.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <list>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "base/fd.h"
#include "base/net/frame.h"

namespace viaduct::base {

// Reads a socket: bytes for the decoder, and file descriptors.
class FrameReader {
 public:
  struct Read {
    std::size_t bytes = 0;
    bool more = false;   // the buffer was filled, so the socket may hold more
    bool ended = false;  // the end of the stream
  };

  FrameReader(const FrameProtocol& protocol, std::size_t limit) : decoder_(protocol, limit) {}

  FrameDecoder& decoder() { return decoder_; }
  const FrameDecoder& decoder() const { return decoder_; }
  void acceptFds() { fds_welcome_ = true; }

  // Calls recvmsg once, into the decoder.
  Result<Read> read(int socket);
  // Gives the fds of a frame. False: they have not all arrived.
  bool takeFds(std::size_t count, std::vector<Fd>& out);

 private:
  FrameDecoder decoder_;
  std::vector<Fd> fds_;
  bool fds_welcome_ = false;
};

// Seals frames, and keeps the bytes that the socket has not accepted yet. After an error, the
// socket sends nothing more.
class FrameWriter {
 public:
  explicit FrameWriter(const FrameProtocol& protocol) : sealer_(protocol) {}

  Status useKey(const Key& key) { return sealer_.useKey(key); }
  std::uint64_t sealed() const { return sealer_.sealed(); }

  // Sends as much as the socket accepts, and keeps a copy of the rest. The payload is `head`, then
  // `body`.
  Status write(int socket, std::uint8_t type, ByteSpan head, ByteSpan body, std::vector<Fd> fds);
  // A payload that several connections send, and that write() does not copy. `counts`: its bytes
  // count as unsent.
  struct Shared {
    std::shared_ptr<const Bytes> payload;
    Sha256Digest digest;  // payloadDigest()
    bool counts = true;
  };
  Status write(int socket, std::uint8_t type, Shared shared);
  Status flush(int socket);
  bool empty() const { return queue_.empty(); }
  std::size_t unsent() const { return unsent_; }

 private:
  // Bytes that one call may send. The fds travel with the first byte.
  struct Span {
    Bytes own = {};
    std::shared_ptr<const Bytes> shared = {};  // in the place of `own`
    bool counts = true;
    std::vector<Fd> fds = {};
    ByteSpan bytes() const { return shared ? *shared : own; }
  };
  Status writeParts(int socket, const FrameSealer::Header& header, ByteSpan head, ByteSpan body,
                    std::vector<Fd> fds);
  void keep(ByteSpan bytes);
  void sent(std::size_t bytes);

  FrameSealer sealer_;
  Bytes encrypted_;        // the payload of the frame that is being written
  std::list<Span> queue_;  // a list, because an empty list needs no memory
  std::size_t begin_ = 0;  // sent bytes of the first span
  std::size_t unsent_ = 0;
};

}  // namespace viaduct::base
