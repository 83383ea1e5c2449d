// Our reads and writes on one socket. Turns jobs into frames, and the peer's answers into finished
// ops. It does no system calls. Threads: those of the channel's rail.
#pragma once

#include <string_view>

#include "backends/tcp/buffers.h"
#include "backends/tcp/frame_writer.h"
#include "backends/tcp/remote_pins.h"
#include "backends/tcp/ring_queue.h"
#include "backends/tcp/target_pins.h"
#include "move/class_queue.h"

namespace viaduct::tcp {

class Initiator {
 public:
  Initiator(const TargetPins& pins, const RemotePins& remote) : pins_(pins), remote_(remote) {}

  void add(move::Job& job);
  // Composes no more frames of the job, and cancels its requests.
  void stop(move::Job& job);

  // Sending. compose() puts one data frame into `writer`, and control() the control frames in front
  // of it.
  bool wants() const;
  void control(FrameWriter& writer);
  bool compose(FrameWriter& writer);
  void sent(OutFrame::FrameKind kind);  // the last byte of a frame of this kind was sent
  // The kernel could not read this pin's memory for the WRITE in progress. The rest of the WRITE is
  // sent as zeros.
  void writeFaulted(std::uint32_t slot);

  // Receiving. The functions return the peer's mistake, or an empty text.
  std::string_view acked(std::uint64_t count);
  std::string_view refused(std::uint64_t sequence);
  // Begins a READ_DATA frame. Fills in the places for its bytes. If it fills in none, the bytes are
  // dropped.
  std::string_view answerBegins(const FrameHead& head, InBuffer& into, std::size_t& pieces);
  // True if the arriving answer must not touch memory, because its job was stopped.
  bool answerUnwanted() const { return asked_.front().job->why.has_value(); }
  void answerEnds(FrameStatus status, bool placed);
  // The kernel could not write this pin's memory. The rest of the answer is dropped.
  void answerFaulted(std::uint32_t slot);

  void trim();

 private:
  struct Sent {
    move::Job* job = nullptr;
    std::uint32_t ops = 0;  // number of ops that end in this frame
    std::uint32_t bytes = 0;
    bool refused = false;
  };
  struct Asked {
    move::Job* job = nullptr;
    std::size_t first_op = 0;
    std::uint64_t offset = 0;  // offset in the first op
    std::uint32_t ops = 0;
    std::uint32_t bytes = 0;
  };
  struct FrameCounts {
    std::uint32_t entries = 0, ops = 0;
    std::uint64_t bytes = 0;
  };

  bool readsWant() const;
  bool composeWrite(FrameWriter& writer);
  bool composeRead(FrameWriter& writer);
  FrameCounts fill(FrameWriter& writer, move::Job& job, bool with_payload);

  const TargetPins& pins_;
  const RemotePins& remote_;
  move::ClassQueue writes_, reads_;  // jobs with ops left to send; the next job in turn comes first
  RingQueue<Sent> unacked_;
  RingQueue<Asked> asked_;
  RingQueue<std::uint64_t> cancels_;
  std::uint64_t composed_writes_ = 0, sent_writes_ = 0, acked_ = 0;
  std::uint64_t composed_reads_ = 0, sent_reads_ = 0, answered_ = 0;
  std::uint64_t asked_bytes_ = 0;
  // Bytes of background jobs that are on their way.
  std::uint64_t background_writes_ = 0, background_reads_ = 0;
  bool reads_first_ = false;
};

}  // namespace viaduct::tcp
