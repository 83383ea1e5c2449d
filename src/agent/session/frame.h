// The frame types of a session, and the limits of its frames. Threads: plain values.
#pragma once

#include <viaduct/note.h>

#include <cstddef>
#include <cstdint>

#include "base/net/crypto.h"
#include "base/net/frame_socket.h"

namespace viaduct::agent {

using base::ByteSpan, base::Frame, base::FrameDecoder, base::FrameReader, base::FrameSealer,
    base::kFrameHeaderBytes, base::kMaxFrameFds, base::Key;

inline constexpr base::Handshake::Version kWireVersion{.major = 1, .minor = 0};

// The limit of a frame: the largest note, and room for the other fields.
inline constexpr std::size_t kMaxFramePayload = kMaxNoteBytes + (std::size_t{64} << 10U);
// Smaller limits during the hellos, and before an end has proved that it knows the secret.
inline constexpr std::size_t kMaxHelloPayload = std::size_t{64} << 10U;
inline constexpr std::size_t kMaxUnprovenPayload =
    sizeof(Key) + sizeof(std::uint32_t) + base::kMaxClaimBytes;

enum class FrameType : std::uint8_t {
  kHeartbeat = 1,
  kNote,
  kPin,
  kUnpin,
  kSynced,
  kBackend,
  kBye,
  kNoteRing,
  // An owner ends a lease, its borrower answers, a borrower returns a lease.
  kLeaseEnded,
  kLeaseSettled,
  kLeaseReturned,
  // A mark of a stream, and the end of a stream of marks.
  kMark,
  kMarksEnd,
  // An end is about to leave, or stays after all. Either end says how much it still moves.
  kDraining,
  kDrainLeft,
  kParcel,  // a message of a parcel, in one order with notes
  // Frames of the handshake. docs/wire.md has their order.
  kOpen = 0x40,
  kChallenge,
  kProof,
  kConfirm,
  kDeny,
  kHello,
  kAccept,
  kRefuse,
  kResume,  // sent before the dialer's hello
};

// The frames of sessions, with the limits of frame_rules.h.
extern const base::FrameProtocol kSessionFrames;
constexpr std::uint8_t numberOf(FrameType type) { return static_cast<std::uint8_t>(type); }
inline FrameType typeOf(const base::Frame& frame) { return static_cast<FrameType>(frame.type); }

}  // namespace viaduct::agent
