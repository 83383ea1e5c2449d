// The payloads of a session's frames. Threads: plain values.
#pragma once

#include <viaduct/lease.h>
#include <viaduct/mark_stream.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "agent/session/hello.h"
#include "base/fields.h"
#include "base/net/crypto.h"

namespace viaduct {

inline constexpr std::size_t kMaxLabelBytes = 1024;  // of a pin

// The fields of a pin, as in messages and Cards.
auto fields(base::Is<PinInfo> auto& p) {
  return base::list(p.slot, base::atMost(MemoryKind::kObject, p.kind),
                    base::atMost(MemoryAccess::kWriteOnly, p.access), p.device, p.address, p.bytes,
                    base::atMost(kMaxLabelBytes, p.label), base::noOverflow(p.address, p.bytes));
}

}  // namespace viaduct

namespace viaduct::agent {

inline constexpr std::size_t kMaxByeBytes = 1024;
inline constexpr std::size_t kMaxMarksEndBytes = 512;  // each text of an end of marks
inline constexpr std::size_t kMaxReasonBytes = 4096;   // each text of a refusal

// The limits of an agent's announced pins, because its peers keep them and need not trust it with
// their memory. The bytes are those of PinMessage::cost, which is more than the frame. All pins are
// sent when a session begins, and have to fit into its queue.
inline constexpr std::size_t kMaxPins = std::size_t{1} << 16U;
inline constexpr std::size_t kMaxPinsBytes = std::size_t{32} << 20U;
// The limit for all the peers of an agent together.
inline constexpr std::size_t kMaxPinsBytesOfAll = std::size_t{1} << 30U;

// base::decode() refuses payloads that are short, long, out of range or beyond the limits above.

// Announces a pin, with the key of each backend.
struct PinMessage {
  static constexpr std::string_view kName = "pin";
  PinInfo info = {};
  std::uint64_t generation = 0;        // no other pin of the agent has it
  std::vector<BackendBlob> keys = {};  // from Backend::pin()
  // About the memory that a peer needs for this pin in all its tables.
  std::size_t cost() const;
  friend bool operator==(const PinMessage&, const PinMessage&) = default;
};
auto fields(base::Is<PinMessage> auto& m) {
  return base::list(m.info, m.generation, base::atMost(kMaxBackends, m.keys));
}

// A pin is gone.
struct UnpinMessage {
  static constexpr std::string_view kName = "unpin";
  std::uint32_t slot = 0;
};
auto fields(base::Is<UnpinMessage> auto& m) { return std::tie(m.slot); }

// A message of a backend's link to the same backend's link at the other end. A view: copies
// nothing. Connection::sendParts() takes the encoding without `bytes` as the first part of a
// payload.
struct BackendMessage {
  static constexpr std::string_view kName = "backend message";
  std::string_view backend = {};
  std::span<const std::byte> bytes = {};
};
auto fields(base::Is<BackendMessage> auto& m) {
  return base::list(base::line(kMaxNameBytes, m.backend), base::rest(m.bytes));
}

// The owner of a lease ends it. The borrower answers when its last access has ended.
struct LeaseEndedMessage {
  static constexpr std::string_view kName = "end of a lease";
  std::uint64_t number = 0;
  LeaseState outcome = LeaseState::kRevoked;  // kExpired or kRevoked
};
auto fields(base::Is<LeaseEndedMessage> auto& m) {
  return base::list(m.number, base::atMost(LeaseState::kRevoked, m.outcome), base::must([&m] {
                      return m.number != 0 && m.outcome >= LeaseState::kExpired;
                    }));
}

// The borrower's answer to LeaseEndedMessage, or the return of a lease. No access is left, and none
// will follow.
struct LeaseMessage {
  static constexpr std::string_view kName = "lease";
  std::uint64_t number = 0;
};
auto fields(base::Is<LeaseMessage> auto& m) {
  return base::list(m.number, base::must([&m] { return m.number != 0; }));
}

// A mark of a stream.
struct MarkMessage {
  static constexpr std::string_view kName = "mark";
  Mark mark = {};
};
auto fields(base::Is<MarkMessage> auto& m) {
  return base::list(m.mark.stream, base::atMost(kMaxMarks - 1, m.mark.number));
}

// The sender has ended a stream of marks.
struct MarksEndMessage {
  static constexpr std::string_view kName = "end of marks";
  std::uint64_t stream = 0;
  Error why = {};
};
auto fields(base::Is<MarksEndMessage> auto& m) {
  return base::list(
      m.stream, base::atMost(kLastCode, m.why.code),
      base::cutTo(kMaxMarksEndBytes, m.why.operation), base::cutTo(kMaxMarksEndBytes, m.why.detail),
      base::cutTo(kMaxMarksEndBytes, m.why.cause), base::cutTo(kMaxMarksEndBytes, m.why.remedy));
}

// The sender begins to drain, or cancels its drain. Its announcements in a session have the numbers
// 1, 2, 3 and so on: it drains after an odd one.
struct DrainingMessage {
  static constexpr std::string_view kName = "drain";
  std::uint32_t number = 0;
};
auto fields(base::Is<DrainingMessage> auto& m) {
  return base::list(m.number, base::must([&m] { return m.number != 0; }));
}

// The answer to announcement `number`, sent again when the figures change: the sender's transfers
// with the receiver that still run.
struct DrainLeftMessage {
  static constexpr std::string_view kName = "rest of a drain";
  std::uint32_t number = 0;
  std::uint64_t transfers = 0, bytes = 0;
  friend bool operator==(const DrainLeftMessage&, const DrainLeftMessage&) = default;
};
auto fields(base::Is<DrainLeftMessage> auto& m) {
  return base::list(m.number, m.transfers, m.bytes, base::must([&m] { return m.number != 0; }));
}

// The agent ends the session on purpose.
struct ByeMessage {
  static constexpr std::string_view kName = "bye";
  std::string why = {};
  // kDenied: the peer has no right to a session any more, and `why` says why not.
  Code code = Code::kPeerLost;
};
auto fields(base::Is<ByeMessage> auto& m) {
  return base::list(base::cutTo(kMaxByeBytes, m.why), base::atMost(kLastCode, m.code));
}

// Moves a session to the connection that carries this message. Each end sends one: the session's
// life, the number of frames that it has received, and the proof that it is an end of that session.
struct ResumeMessage {
  static constexpr std::string_view kName = "resume";
  std::uint64_t epoch = 0, heard = 0;
  base::Key proof = {};
  friend bool operator==(const ResumeMessage&, const ResumeMessage&) = default;
};
auto fields(base::Is<ResumeMessage> auto& m) { return std::tie(m.epoch, m.heard, m.proof); }

// The listener refuses the dialer, with the error of judge().
struct RefuseMessage {
  static constexpr std::string_view kName = "refusal";
  Error why = {};
};
auto fields(base::Is<RefuseMessage> auto& m) {
  return base::list(
      base::atMost(kLastCode, m.why.code), base::cutTo(kMaxReasonBytes, m.why.operation),
      base::cutTo(kMaxReasonBytes, m.why.detail), base::cutTo(kMaxReasonBytes, m.why.cause),
      base::cutTo(kMaxReasonBytes, m.why.remedy));
}

}  // namespace viaduct::agent
