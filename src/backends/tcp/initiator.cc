#include "backends/tcp/initiator.h"

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/prefetch.h"

namespace viaduct::tcp {

namespace {

// The most payload of one of our frames. At this size head and acknowledgement cost nothing, and a
// cancel, which waits for the end of a frame, is still quick: docs/measured/tcp.md.
constexpr std::uint64_t kFrameBytes = std::uint64_t{2} << 20U;
// The limit for requested READ bytes that have not arrived. The peer needs data to send while our
// next request is on its way. A larger window only delays a cancel.
constexpr std::uint64_t kReadWindow = 4 * kFrameBytes;

std::string_view verb(const move::Job& job) {
  return job.work.kind == OpKind::kWrite ? "write" : "read";
}

Error withdrawnHere(const move::Job& job, const core::Op& op) {
  return {.code = Code::kDenied,
          .operation = std::string(verb(job)),
          .detail = "local pin " + std::to_string(op.local_pin) +
                    " is withdrawn, or does not hold all of the bytes"};
}

Error unknownThere(const move::Job& job, const core::Op& op) {
  return {.code = Code::kDenied,
          .operation = std::string(verb(job)),
          .detail = "the peer has withdrawn pin " + std::to_string(op.remote_pin)};
}

Error refusedThere(const move::Job& job) {
  return {.code = Code::kDenied,
          .operation = std::string(verb(job)),
          .detail =
              "the peer refused: its memory is unregistered, withdrawn, read-only, unmapped or "
              "protected"};
}

Error faultHere(const move::Job& job, std::uint32_t slot) {
  return {.code = Code::kDenied,
          .operation = std::string(verb(job)),
          .detail = "the memory of local pin " + std::to_string(slot) +
                    ", or of another pin of the same batch, cannot be used",
          .os_errno = EFAULT,
          .cause = "the memory was unmapped or protected after it was pinned",
          .remedy = "keep memory mapped and accessible while its Pin exists"};
}

}  // namespace

void Initiator::add(move::Job& job) {
  (job.work.kind == OpKind::kWrite ? writes_ : reads_).push(job);
}

void Initiator::stop(move::Job& job) {
  if (!job.allPosted()) (job.work.kind == OpKind::kWrite ? writes_ : reads_).remove(job);
  for (std::size_t i = 0; i < asked_.size(); ++i)
    if (asked_[i].job == &job) cancels_.push(answered_ + i);
}

void Initiator::trim() {
  unacked_.trim();
  asked_.trim();
  cancels_.trim();
}

bool Initiator::readsWant() const {
  return reads_.mayServe(background_reads_) && asked_.size() < kMaxRequests &&
         asked_bytes_ < kReadWindow;
}

bool Initiator::wants() const {
  return !cancels_.empty() ||
         (writes_.mayServe(background_writes_) && unacked_.size() < kMaxUnacked) || readsWant();
}

void Initiator::control(FrameWriter& writer) {
  while (!cancels_.empty() && writer.roomForControl())
    writer.control({.type = DataFrameType::kCancel, .sequence = cancels_.pop()});
}

bool Initiator::compose(FrameWriter& writer) {
  reads_first_ = !reads_first_;
  if (reads_first_) return composeRead(writer) || composeWrite(writer);
  return composeWrite(writer) || composeRead(writer);
}

// Takes ops from the job's front until the frame is full, or until an op is not possible.
Initiator::FrameCounts Initiator::fill(FrameWriter& writer, move::Job& job, bool with_payload) {
  FrameCounts batch;
  const std::uint64_t most = move::isBackground(job) ? move::kBackgroundTurn : kFrameBytes;
  std::uint32_t slot = FrameWriter::kNoSlot, generation = 0;
  while (!job.allPosted() && batch.entries < kMaxEntries && batch.bytes < most) {
    const core::Op& op = job.work.ops[job.next_op];
    const std::uint64_t bytes = std::min(op.bytes - job.offset, most - batch.bytes);
    std::byte* const local = pins_.local(op.local_pin, op.local + job.offset, bytes);
    if (op.remote_pin != slot) {
      slot = op.remote_pin;
      generation = remote_.generation(slot);
    }
    if (local == nullptr || bytes == 0 || generation == 0) {
      job.why = generation == 0 ? unknownThere(job, op) : withdrawnHere(job, op);
      break;
    }
    writer.entry({.address = op.remote + job.offset,
                  .bytes = static_cast<std::uint32_t>(bytes),
                  .slot = slot,
                  .generation = generation});
    if (with_payload) writer.payload(local, bytes, op.local_pin);
    ++batch.entries;
    batch.bytes += bytes;
    job.offset += bytes;
    if (job.offset == op.bytes) {
      ++batch.ops;
      ++job.next_op;
      job.offset = 0;
    }
  }
  return batch;
}

bool Initiator::composeWrite(FrameWriter& writer) {
  while (writes_.mayServe(background_writes_) && unacked_.size() < kMaxUnacked) {
    move::Job& job = writes_.pop(background_writes_);
    writer.begin();
    const FrameCounts batch = fill(writer, job, true);
    if (batch.entries == 0) {
      writer.undoBegin();
      job.table->settle(job);
      continue;
    }
    writer.end(OutFrame::FrameKind::kWrite, {.type = DataFrameType::kWrite,
                                             .entries = batch.entries,
                                             .payload = batch.bytes,
                                             .sequence = composed_writes_++});
    unacked_.push({&job, batch.ops, static_cast<std::uint32_t>(batch.bytes), false});
    ++job.outstanding;
    if (move::isBackground(job)) background_writes_ += batch.bytes;
    writes_.served(job, batch.bytes);
    if (!job.why && !job.allPosted()) writes_.push(job);
    return true;
  }
  return false;
}

bool Initiator::composeRead(FrameWriter& writer) {
  while (readsWant()) {
    move::Job& job = reads_.pop(background_reads_);
    const Asked from{&job, job.next_op, job.offset, 0, 0};
    writer.begin();
    const FrameCounts batch = fill(writer, job, false);
    if (batch.entries == 0) {
      writer.undoBegin();
      job.table->settle(job);
      continue;
    }
    writer.end(OutFrame::FrameKind::kRequest, {.type = DataFrameType::kReadRequest,
                                               .entries = batch.entries,
                                               .sequence = composed_reads_++});
    asked_.push(
        {&job, from.first_op, from.offset, batch.ops, static_cast<std::uint32_t>(batch.bytes)});
    asked_bytes_ += batch.bytes;
    ++job.outstanding;
    if (move::isBackground(job)) background_reads_ += batch.bytes;
    reads_.served(job, batch.bytes);
    if (!job.why && !job.allPosted()) reads_.push(job);
    return true;
  }
  return false;
}

void Initiator::sent(OutFrame::FrameKind kind) {
  if (kind == OutFrame::FrameKind::kWrite) ++sent_writes_;
  if (kind == OutFrame::FrameKind::kRequest) ++sent_reads_;
}

// Marks the last write as refused, so that acked() does not count its zeros as moved bytes.
void Initiator::writeFaulted(std::uint32_t slot) {
  Sent& last = unacked_[unacked_.size() - 1];
  last.refused = true;
  last.job->table->stop(*last.job, faultHere(*last.job, slot));
}

void Initiator::answerFaulted(std::uint32_t slot) {
  move::Job& job = *asked_.front().job;
  job.table->stop(job, faultHere(job, slot));
}

std::string_view Initiator::acked(std::uint64_t count) {
  // The peer cannot have finished a frame that is still being sent. Accepting such an ACK would
  // release memory that the kernel still reads.
  if (count < acked_ || count > sent_writes_) return "an acknowledgement of unsent data";
  for (; acked_ < count; ++acked_) {
    const Sent done = unacked_.pop();
    move::Job& job = *done.job;
    --job.outstanding;
    if (move::isBackground(job)) background_writes_ -= done.bytes;
    if (!done.refused) {
      job.moved.ops += done.ops;
      job.moved.bytes += done.bytes;
    }
    job.table->settle(job);
  }
  return "";
}

std::string_view Initiator::refused(std::uint64_t sequence) {
  if (sequence < acked_ || sequence >= sent_writes_) return "a refusal of unsent data";
  Sent& frame = unacked_[sequence - acked_];
  frame.refused = true;
  frame.job->table->stop(*frame.job, refusedThere(*frame.job));
  return "";
}

std::string_view Initiator::answerBegins(const FrameHead& head, InBuffer& into,
                                         std::size_t& pieces) {
  pieces = 0;
  if (asked_.empty() || head.sequence != answered_ || answered_ >= sent_reads_)
    return "unrequested data";
  const Asked& asked = asked_.front();
  if (head.payload != 0 && head.payload != asked.bytes) return "data of another length";
  if (head.payload == 0 || asked.job->why) return "";
  std::uint64_t offset = asked.offset, left = asked.bytes;
  for (std::size_t i = asked.first_op; left > 0; ++i, offset = 0) {
    const core::Op& op = asked.job->work.ops[i];
    const std::uint64_t bytes = std::min(op.bytes - offset, left);
    std::byte* const local = pins_.local(op.local_pin, op.local + offset, bytes);
    if (local == nullptr) {
      asked.job->table->stop(*asked.job, withdrawnHere(*asked.job, op));
      pieces = 0;
      return "";
    }
    base::willWrite(local);
    into.slot[pieces] = op.local_pin;
    into.iov[pieces++] = {local, bytes};
    left -= bytes;
  }
  return "";
}

void Initiator::answerEnds(FrameStatus status, bool placed) {
  const Asked asked = asked_.pop();
  ++answered_;
  asked_bytes_ -= asked.bytes;
  move::Job& job = *asked.job;
  --job.outstanding;
  if (move::isBackground(job)) background_reads_ -= asked.bytes;
  if (placed && status == FrameStatus::kOk && !job.why) {
    job.moved.ops += asked.ops;
    job.moved.bytes += asked.bytes;
  } else {
    job.table->stop(job, refusedThere(job));
  }
  job.table->settle(job);
}

}  // namespace viaduct::tcp
