// Our own reads and writes on one socket: turns jobs into frames and answers into progress. Knows
// no socket. Threads: under the agent's lock.
#pragma once

#include <string_view>

#include "backends/tcp/buffers.h"
#include "backends/tcp/frame_writer.h"
#include "backends/tcp/remote_pins.h"
#include "backends/tcp/ring.h"
#include "backends/tcp/target_pins.h"
#include "move/job_table.h"

namespace viaduct::tcp {

class Initiator {
 public:
  Initiator(const TargetPins& pins, const RemotePins& remote) : pins_(pins), remote_(remote) {}

  void add(move::Job& job);
  // No more frames of it; it fails with `why` once the peer has answered those that are out.
  void stop(move::Job& job, Error why);

  // Sending. compose() and control() put one frame, or what rides in front of it, into `writer`.
  bool wants() const;
  void control(FrameWriter& writer);
  bool compose(FrameWriter& writer);
  void sent(OutFrame::Kind kind);  // the last byte of such a frame has left
  // The system could not read this pin's memory for the WRITE under way, which has zeros from here.
  void writeFaulted(std::uint32_t slot);

  // Receiving. The views say what the peer did wrong; empty: nothing.
  std::string_view acked(std::uint64_t count);
  std::string_view refused(std::uint64_t sequence);
  // READ_DATA begins. Fills in where its bytes go; no pieces: nowhere, drain them.
  std::string_view answerBegins(const FrameHead& head, InBuffer& into, std::size_t& pieces);
  // True while the answer that is arriving must not touch memory.
  bool answerUnwanted() const { return asked_.front().job->why.has_value(); }
  void answerEnds(FrameStatus status, bool placed);
  // The system could not write this pin's memory: what is left of the answer is drained.
  void answerFaulted(std::uint32_t slot);

  void trim();

 private:
  struct Sent {
    move::Job* job = nullptr;
    std::uint32_t ops = 0;  // that end in this frame
    std::uint32_t bytes = 0;
    bool refused = false;
  };
  struct Asked {
    move::Job* job = nullptr;
    std::size_t first_op = 0;
    std::uint64_t offset = 0;  // into the first op
    std::uint32_t ops = 0;
    std::uint32_t bytes = 0;
  };
  struct Batch {
    std::uint32_t entries = 0, ops = 0;
    std::uint64_t bytes = 0;
  };

  bool readsWant() const;
  bool composeWrite(FrameWriter& writer);
  bool composeRead(FrameWriter& writer);
  Batch fill(FrameWriter& writer, move::Job& job, bool with_payload);
  static void settle(move::Job& job);

  const TargetPins& pins_;
  const RemotePins& remote_;
  move::JobQueue writes_, reads_;  // with something left to frame, the next in turn first
  Ring<Sent> unacked_;
  Ring<Asked> asked_;
  Ring<std::uint64_t> cancels_;
  std::uint64_t composed_writes_ = 0, sent_writes_ = 0, acked_ = 0;
  std::uint64_t composed_reads_ = 0, sent_reads_ = 0, answered_ = 0;
  std::uint64_t asked_bytes_ = 0;
  bool reads_first_ = false;
};

}  // namespace viaduct::tcp
