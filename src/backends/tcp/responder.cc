#include "backends/tcp/responder.h"

#include <utility>

#include "base/log.h"

namespace viaduct::tcp {

std::string_view Responder::writeBegins(std::uint64_t sequence) const {
  if (sequence != finished_) return "a write out of order";
  if (finished_ - acked_ >= kMaxUnacked) return "more writes at once than allowed";
  return "";
}

void Responder::writeEnds(FrameStatus status) {
  if (status != FrameStatus::kOk) refused_.push(finished_);
  ++finished_;
}

std::string_view Responder::asked(const FrameHead& head, std::span<const std::byte> entries) {
  if (head.sequence != next_request_) return "a read request out of order";
  if (answers_.size() >= kMaxRequests) return "more read requests at once than allowed";
  ++next_request_;
  ReadAnswer answer{.request = buffers_.requests.take(),
                    .entries = head.entries,
                    .bytes = static_cast<std::uint32_t>(entryBytes(entries))};
  for (std::uint32_t i = 0; i < head.entries; ++i)
    answer.request->entries[i] = decodeEntry(entries.data() + i * kEntryBytes);
  answers_.push(std::move(answer));
  return "";
}

std::string_view Responder::withdrawn(std::uint64_t request) {
  if (request >= next_request_) return "a cancel of an unknown request";
  const std::uint64_t first = next_request_ - answers_.size();
  if (request >= first) answers_[request - first].cancelled = true;
  return "";  // an earlier request is answered already, or its answer is being sent
}

void Responder::control(FrameWriter& writer) {
  while (!refused_.empty() && writer.roomForControl())
    writer.control(
        {.type = DataFrameType::kFail, .status = FrameStatus::kDenied, .sequence = refused_.pop()});
  // All refusals go before the acknowledgement that covers them.
  if (!refused_.empty() || acked_ == finished_ || !writer.roomForControl()) return;
  acked_ = finished_;
  writer.control({.type = DataFrameType::kAck, .sequence = acked_});
}

bool Responder::reachable(const ReadAnswer& answer) const {
  for (std::uint32_t i = 0; i < answer.entries; ++i)
    if (pins_.readable(answer.request->entries[i], rights_) == nullptr) return false;
  return true;
}

bool Responder::compose(FrameWriter& writer) {
  if (answers_.empty()) return false;
  const std::uint64_t id = next_request_ - answers_.size();
  ReadAnswer answer = answers_.pop();
  FrameStatus status = FrameStatus::kOk;
  if (answer.cancelled) status = FrameStatus::kCancelled;
  if (!reachable(answer)) status = FrameStatus::kDenied;
  const bool served = status == FrameStatus::kOk;
  writer.begin();
  for (std::uint32_t i = 0; served && i < answer.entries; ++i) {
    const FrameEntry& entry = answer.request->entries[i];
    writer.payload(pins_.readable(entry, rights_), entry.bytes, entry.slot);
  }
  writer.trailer(status);
  writer.end(
      OutFrame::FrameKind::kAnswer,
      {.type = DataFrameType::kReadData, .payload = served ? answer.bytes : 0, .sequence = id});
  buffers_.requests.give(std::move(answer.request));
  return true;
}

void Responder::faulted(std::uint32_t slot) {
  if (pins_.faulted(slot))
    base::log(base::LogLevel::kWarning,
              "tcp: peers' transfers to pin {}, or to another pin of the same batch, fail: its "
              "memory was unmapped or protected after it was pinned",
              slot);
}

void Responder::clear() {
  while (!answers_.empty()) buffers_.requests.give(answers_.pop().request);
  answers_.reset();
  refused_.reset();
}

void Responder::trim() {
  answers_.trim();
  refused_.trim();
}

}  // namespace viaduct::tcp
