// The rules of each frame type: when it may come, its limits, and the time that it may take. Every
// received frame passes them before it is handled. Threads: plain values; FrameOrder: one at a
// time.
#pragma once

#include <viaduct/note.h>
#include <viaduct/parcel.h>
#include <viaduct/result.h>

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "agent/session/features.h"
#include "agent/session/frame.h"
#include "agent/session/messages.h"

namespace viaduct::agent {

// The part of a session in which a frame type may come.
enum class FrameStage : std::uint8_t {
  kProof,    // until both ends have proved that they know the secret
  kHello,    // then until both hellos have arrived
  kVerdict,  // then until the listener has accepted or refused the dialer
  kSession,  // then until the sender's goodbye
  kSynced,   // the part of kSession after the sender's pins
};

struct FrameRule {
  FrameType type;
  std::string_view name;  // as in docs/wire.md
  FrameStage stage;
  std::size_t most_bytes;
  std::size_t most_fds = 0;
  std::size_t most_entries = 0;  // of the longest list in it; decoding refuses more
  std::uint64_t most_times = 0;  // in one life of a session; 0: no limit
  // About the most microseconds for which a frame without a payload holds the agent's lock. A turn
  // of reading ends when its frames have used up Connection's time, so a peer that sends too often
  // waits for the others.
  int cost_us = 1;
  Feature feature = Feature::kBase;  // both ends of the session must have it
};

namespace wire {

inline constexpr std::size_t kCount = sizeof(std::uint32_t);  // before a text, blob or list
inline constexpr std::size_t kNumber = sizeof(std::uint64_t);
inline constexpr std::size_t kKey = sizeof(Key);
inline constexpr std::size_t kMark = kNumber + sizeof(std::uint32_t);
inline constexpr std::size_t kDrainLeft = sizeof(std::uint32_t) + 2 * kNumber;
inline constexpr std::size_t kBye = kCount + kMaxByeBytes + 1;
inline constexpr std::size_t kMarksEnd = kNumber + 1 + 4 * (kCount + kMaxMarksEndBytes);
inline constexpr std::size_t kRefusal = 1 + 4 * (kCount + kMaxReasonBytes);
inline constexpr std::size_t kResume = 2 * kNumber + kKey;

}  // namespace wire

// A row per frame type. A type without a row is unknown: it can be neither sent nor received.
// clang-format off
inline constexpr auto kFrameRules = std::to_array<FrameRule>({
    {FrameType::kHeartbeat, "heartbeat", FrameStage::kSession, wire::kNumber},
    {FrameType::kNote, "note", FrameStage::kSynced, kMaxNoteBytes, 0, 0, 0, 2},
    {FrameType::kPin, "pin", FrameStage::kSession, kMaxFramePayload, 0, kMaxBackends, 0, 20},
    {FrameType::kUnpin, "unpin", FrameStage::kSession, sizeof(std::uint32_t), 0, 0, 0, 20},
    {FrameType::kSynced, "synced", FrameStage::kSession, 0, 0, 0, 1},
    {FrameType::kBackend, "backend", FrameStage::kSession, kMaxFramePayload, kMaxFrameFds, 0, 0, 100},
    {FrameType::kBye, "bye", FrameStage::kSession, wire::kBye, 0, 0, 1},
    {FrameType::kNoteRing, "note ring", FrameStage::kSession, 0, 2, 0, 1, 50},
    {FrameType::kLeaseEnded, "lease ended", FrameStage::kSynced, wire::kNumber + 1, 0, 0, 0, 5},
    {FrameType::kLeaseSettled, "lease settled", FrameStage::kSynced, wire::kNumber, 0, 0, 0, 5},
    {FrameType::kLeaseReturned, "lease returned", FrameStage::kSynced, wire::kNumber, 0, 0, 0, 5},
    {FrameType::kMark, "mark", FrameStage::kSynced, wire::kMark, 0, 0, 0, 3},
    {FrameType::kMarksEnd, "end of marks", FrameStage::kSynced, wire::kMarksEnd, 0, 0, 0, 5},
    {FrameType::kDraining, "draining", FrameStage::kSession, sizeof(std::uint32_t), 0, 0, 0, 50},
    {FrameType::kDrainLeft, "drain left", FrameStage::kSession, wire::kDrainLeft, 0, 0, 0, 5},
    {FrameType::kParcel, "parcel", FrameStage::kSynced, kMaxNoteBytes, 0, kMaxParcelParts, 0, 10, Feature::kParcels},
    {FrameType::kOpen, "open", FrameStage::kProof, kMaxUnprovenPayload, 0, 0, 1, 50},
    {FrameType::kChallenge, "challenge", FrameStage::kProof, wire::kKey, 0, 0, 1, 100},
    {FrameType::kProof, "proof", FrameStage::kProof, wire::kKey, 0, 0, 1, 100},
    {FrameType::kConfirm, "confirm", FrameStage::kProof, wire::kKey, 0, 0, 1, 10},
    {FrameType::kDeny, "deny", FrameStage::kProof, 1, 0, 0, 1},
    {FrameType::kHello, "hello", FrameStage::kHello, kMaxHelloPayload, 0, kMaxAddresses, 1, 100},
    {FrameType::kAccept, "accept", FrameStage::kVerdict, wire::kResume, 0, 0, 1, 100},
    {FrameType::kRefuse, "refuse", FrameStage::kVerdict, wire::kRefusal, 0, 0, 1},
    {FrameType::kResume, "resume", FrameStage::kHello, wire::kResume, 0, 0, 1, 10},
});
// clang-format on

// The row of each type, found without a search. kFrameRules.size(): the type is unknown.
inline constexpr auto kFrameRows = [] {
  std::array<std::uint8_t, 256> rows{};
  rows.fill(kFrameRules.size());
  for (std::size_t row = kFrameRules.size(); row-- > 0;)
    rows[static_cast<std::uint8_t>(kFrameRules[row].type)] = static_cast<std::uint8_t>(row);
  return rows;
}();
constexpr std::size_t rowOf(FrameType type) { return kFrameRows[static_cast<std::uint8_t>(type)]; }
constexpr bool isKnown(FrameType type) { return rowOf(type) != kFrameRules.size(); }
// Null: the type is unknown.
constexpr const FrameRule* ruleOf(FrameType type) {
  return isKnown(type) ? &kFrameRules[rowOf(type)] : nullptr;
}
constexpr bool isHandshake(FrameType type) {
  const FrameRule* const rule = ruleOf(type);
  return rule != nullptr && rule->stage < FrameStage::kSession;
}
// True if the frame counts in its session, over all connections. An end reports this count, so that
// the other end knows which frames have arrived.
constexpr bool isNumbered(FrameType type) {
  return !isHandshake(type) && type != FrameType::kHeartbeat;
}

// The error that ends the session of a peer that breaks a rule.
Error brokenRule(std::string detail);
// Ok if a frame of this type may have this many bytes and descriptors.
Status checkSize(const FrameRule& rule, std::size_t bytes, std::size_t fds);

// The order of the frames in one life of a session, which may move to other connections.
class FrameOrder {
 public:
  // Counts a frame of the session. Fails if it may not come now, or not so often.
  Status take(const FrameRule& rule);

 private:
  std::array<std::uint64_t, kFrameRules.size()> times_{};
};

}  // namespace viaduct::agent
