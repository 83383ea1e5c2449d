// The peer's reads and writes on one socket. Acknowledges the writes, and answers the reads. It
// does no system calls. Threads: those of the channel's rail.
#pragma once

#include <memory>
#include <span>
#include <string_view>

#include "backends/tcp/buffers.h"
#include "backends/tcp/frame_writer.h"
#include "backends/tcp/ring_queue.h"
#include "backends/tcp/target_pins.h"

namespace viaduct::tcp {

class Responder {
 public:
  // `rights`: of the peer, as core::LinkSeed::rights.
  Responder(TargetPins& pins, Buffers& buffers, const core::PinRights& rights)
      : pins_(pins), buffers_(buffers), rights_(rights) {}

  // The place that an entry of the peer's write names; null: the peer may not write there.
  std::byte* writable(const FrameEntry& entry) const { return pins_.writable(entry, rights_); }

  // Receiving. The functions return the peer's mistake, or an empty text.
  std::string_view writeBegins(std::uint64_t sequence) const;
  void writeEnds(FrameStatus status);
  std::string_view asked(const FrameHead& head, std::span<const std::byte> entries);
  std::string_view withdrawn(std::uint64_t request);

  // Sending.
  bool wants() const { return acked_ != finished_ || !refused_.empty() || !answers_.empty(); }
  void control(FrameWriter& writer);
  bool compose(FrameWriter& writer);

  // The kernel could not write or read this pin's memory. Logs a warning, once for each pin.
  void faulted(std::uint32_t slot);

  void clear();
  void trim();

 private:
  struct ReadAnswer {
    std::unique_ptr<RequestBuffer> request;
    std::uint32_t entries = 0;
    std::uint32_t bytes = 0;
    bool cancelled = false;
  };
  bool reachable(const ReadAnswer& answer) const;

  TargetPins& pins_;
  Buffers& buffers_;
  const core::PinRights& rights_;
  std::uint64_t finished_ = 0;  // number of finished WRITE frames, including refused ones
  std::uint64_t acked_ = 0;     // number in the last ACK
  RingQueue<std::uint64_t> refused_;
  RingQueue<ReadAnswer> answers_;
  std::uint64_t next_request_ = 0;  // sequence number of the next request that arrives
};

}  // namespace viaduct::tcp
