// The lies that a peer can tell with each frame type.
#include <sys/eventfd.h>

#include <array>
#include <string>
#include <utility>

#include "agent/parcels/parcel_messages.h"
#include "agent/session/messages.h"
#include "agent/session/note_ring.h"
#include "backends/local/local_message.h"
#include "base/shared_memory.h"
#include "move/fabric_message.h"
#include "move/staging/staging_message.h"
#include "support/lying_peer.h"

namespace viaduct::testing {

using agent::FrameType;
using base::Bytes;

namespace {

constexpr int kOften = 1000;

// Sends the payloads make(0), make(1), ... in frames of this type.
void often(LyingPeer& liar, FrameType type, int times, const auto& make) {
  for (int i = 0; i < times && liar.send(type, make(i)); ++i) continue;
}

std::uint64_t number(int i) { return static_cast<std::uint64_t>(i) + 1; }

agent::PinMessage pinOf(int slot, std::size_t keys, std::size_t bytes) {
  agent::PinMessage pin{.info = {.label = std::string(kMaxLabelBytes, 'l'),
                                 .address = 4096 * number(slot),
                                 .bytes = 4096,
                                 .slot = static_cast<std::uint32_t>(slot)}};
  pin.keys.resize(keys, {.backend = "tcp", .bytes = Bytes(bytes)});
  return pin;
}

void toBackend(LyingPeer& liar, const std::string& backend, const Bytes& message,
               std::span<const int> fds = {}) {
  Bytes payload = base::encode(agent::BackendMessage{.backend = backend});
  payload.insert(payload.end(), message.begin(), message.end());
  liar.send(FrameType::kBackend, payload, fds);
}

void toStaging(LyingPeer& liar, const move::StagingMessage& message) {
  toBackend(liar, "staged", move::encode(message));
}

Error longError() {
  return {.code = Code::kDenied, .operation = "lie", .detail = std::string(4096, 'd')};
}

// A request for `pieces` pieces that all go to one address.
move::StorageRequest request(std::size_t pieces) {
  move::StorageRequest request;
  request.pieces.assign(pieces, {.bytes = std::uint64_t{1} << 20U});
  return request;
}

move::StorageAnswer answer(std::size_t shares) {
  move::StorageAnswer answer;
  for (std::size_t i = 0; i < shares; ++i)
    answer.shares.push_back({.backend = "lie", .way = "way", .rail = std::to_string(i), .ops = 1});
  return answer;
}

void everyBackendHearsGarbage(LyingPeer& liar) {
  for (const auto& backend : liar.theirs().backends)
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{1}, std::size_t{64}, kMaxNoteBytes})
      toBackend(liar, backend.backend, Bytes(bytes, std::byte{1}));
}

void stagingHearsTooOften(LyingPeer& liar) {
  liar.sync();
  toStaging(liar, move::RingRequest{});
  for (std::uint32_t i = 0; i < kOften / 10 && liar.listen(); ++i) {
    toStaging(liar, request(move::kMostPieces));
    toStaging(liar, answer(move::kMostShares));
    toStaging(liar, move::StorageCancel{i});
    toStaging(liar, move::WholeEnd{i});
    toStaging(liar, move::RingAnswer{.place = i, .error = longError()});
  }
}

void fabricsHearTooOften(LyingPeer& liar) {
  liar.sync();
  const auto tell = [&](const std::string& backend, const move::FabricMessage& message) {
    toBackend(liar, backend, move::encode(message));
  };
  for (const auto& [backend, address] : liar.theirs().backends) {
    if (backend != "ofi" && backend != "ucx") continue;
    for (std::uint32_t i = 0; i < kOften / 10 && liar.listen(); ++i) {
      tell(backend, move::KeyRequest{.slot = i % 8, .generation = i % 4});
      tell(backend, move::KeyAnswer{.slot = i, .generation = 1, .keys = {{Bytes(move::kMaxKey)}}});
      tell(backend, move::PingChannel{.channel = i, .life = i});
      tell(backend, move::PollingNotice{.awake = true, .channel = i, .life = i});
    }
  }
}

void localHearsManyFiles(LyingPeer& liar) {
  if (!liar.isUnix()) return everyBackendHearsGarbage(liar);
  const auto memory = base::SharedMemory::allocate(1 << 20);
  if (!memory) return;
  for (std::uint32_t i = 0; i < 100; ++i)
    toBackend(liar, "local", local::encode(local::FileOffer{.file = i, .bytes = 1 << 20}),
              std::array{memory->fd()});
}

void offersARing(LyingPeer& liar) {
  const base::Fd bell(::eventfd(0, EFD_NONBLOCK | EFD_CLOEXEC));
  const auto memory = base::SharedMemory::allocate(sizeof(agent::RingPage));
  if (!memory || !liar.isUnix()) {
    liar.send(FrameType::kNoteRing, {});
    return;
  }
  for (int i = 0; i < 2; ++i)
    liar.send(FrameType::kNoteRing, {}, std::array{memory->fd(), bell.get()});
}

constexpr std::size_t kKeyOfPin = agent::kMaxBlobBytes;

constexpr auto kLies = std::to_array<Lie>({
    {FrameType::kHeartbeat, "confirms frames that nobody has sent",
     [](LyingPeer& liar) { liar.send(FrameType::kHeartbeat, base::encode(~std::uint64_t{0})); }},
    {FrameType::kHeartbeat, "beats too often",
     [](LyingPeer& liar) {
       often(liar, FrameType::kHeartbeat, kOften, [](int) { return Bytes(); });
     },
     false},
    {FrameType::kNote, "sends a note before its pins",
     [](LyingPeer& liar) { liar.send(FrameType::kNote, Bytes(1)); }},
    {FrameType::kNote, "sends large notes",
     [](LyingPeer& liar) {
       liar.sync();
       often(liar, FrameType::kNote, 3, [](int) { return largest(FrameType::kNote); });
     },
     false},
    {FrameType::kNote, "sends empty notes, also through the ring",
     [](LyingPeer& liar) {
       liar.sync();
       for (int i = 0; i < 100; ++i) liar.ring({});
       often(liar, FrameType::kNote, kOften, [](int) { return Bytes(); });
     },
     false},
    {FrameType::kPin, "has more memory registered than a peer keeps",
     [](LyingPeer& liar) {
       often(liar, FrameType::kPin, 40,
             [](int i) { return base::encode(pinOf(i, 31, kKeyOfPin)); });
     }},
    {FrameType::kPin, "has a pin with too many keys",
     [](LyingPeer& liar) {
       liar.send(FrameType::kPin, base::encode(pinOf(1, agent::kMaxBackends + 1, 1)));
     }},
    {FrameType::kPin, "announces one slot again and again",
     [](LyingPeer& liar) {
       often(liar, FrameType::kPin, kOften, [](int i) { return base::encode(pinOf(i % 7, 1, 8)); });
     },
     false},
    {FrameType::kUnpin, "withdraws pins that it never had",
     [](LyingPeer& liar) {
       often(liar, FrameType::kUnpin, kOften,
             [](int i) { return base::encode(static_cast<std::uint32_t>(i)); });
     },
     false},
    {FrameType::kSynced, "has sent all pins twice",
     [](LyingPeer& liar) {
       liar.sync();
       liar.send(FrameType::kSynced, {});
     }},
    {FrameType::kBackend, "tells every backend garbage", everyBackendHearsGarbage, false},
    {FrameType::kBackend, "asks for 43,000 pieces",
     [](LyingPeer& liar) { toStaging(liar, request(43'000)); }},
    {FrameType::kBackend, "answers with 16,000 shares",
     [](LyingPeer& liar) { toStaging(liar, answer(16'000)); }},
    {FrameType::kBackend, "stages too often", stagingHearsTooOften, false},
    {FrameType::kBackend, "asks fabrics for keys too often", fabricsHearTooOften, false},
    {FrameType::kBackend, "offers files before it says hello", localHearsManyFiles, false},
    {FrameType::kBye, "goes on after its goodbye",
     [](LyingPeer& liar) {
       liar.send(FrameType::kBye, largest(FrameType::kBye));
       liar.send(FrameType::kHeartbeat, {});
     }},
    {FrameType::kNoteRing, "offers its ring twice, or without descriptors", offersARing},
    {FrameType::kLeaseEnded, "ends leases that were never lent",
     [](LyingPeer& liar) {
       liar.sync();
       often(liar, FrameType::kLeaseEnded, kOften,
             [](int i) { return base::encode(agent::LeaseEndedMessage{.number = 2 * number(i)}); });
     },
     false},
    {FrameType::kLeaseSettled, "settles a lease that it never had",
     [](LyingPeer& liar) {
       liar.sync();
       liar.send(FrameType::kLeaseSettled, base::encode(agent::LeaseMessage{1}));
     }},
    {FrameType::kLeaseReturned, "returns a lease that it never had",
     [](LyingPeer& liar) {
       liar.sync();
       liar.send(FrameType::kLeaseReturned, base::encode(agent::LeaseMessage{1}));
     }},
    {FrameType::kDraining, "takes back a drain that never began",
     [](LyingPeer& liar) {
       liar.send(FrameType::kDraining, base::encode(agent::DrainingMessage{2}));
     }},
    {FrameType::kDraining, "begins to drain and takes it back, again and again",
     [](LyingPeer& liar) {
       liar.sync();
       often(liar, FrameType::kDraining, kOften, [](int i) {
         return base::encode(agent::DrainingMessage{static_cast<std::uint32_t>(number(i))});
       });
     },
     /*breaks=*/false},
    {FrameType::kDrainLeft, "answers a drain that never began",
     [](LyingPeer& liar) {
       liar.send(FrameType::kDrainLeft, base::encode(agent::DrainLeftMessage{.number = 1}));
     }},
    {FrameType::kParcel, "reports the end of a fetch that it never began",
     [](LyingPeer& liar) {
       liar.sync();
       liar.send(FrameType::kParcel, agent::encodeParcel(agent::ReportMessage{.number = 1}));
     }},
    {FrameType::kParcel, "gives a verdict on a fetch that nobody began",
     [](LyingPeer& liar) {
       liar.sync();
       liar.send(FrameType::kParcel, agent::encodeParcel(agent::VerdictMessage{.number = 1}));
     }},
    {FrameType::kParcel, "wants ever new parcels that nobody publishes",
     [](LyingPeer& liar) {
       liar.sync();
       often(liar, FrameType::kParcel, 5 * kOften, [](int i) {
         return agent::encodeParcel(agent::WantMessage{.number = number(i), .name = "none"});
       });
     },
     false},
    {FrameType::kMark, "marks ever new streams",
     [](LyingPeer& liar) {
       liar.sync();
       often(liar, FrameType::kMark, kOften, [](int i) {
         return base::encode(agent::MarkMessage{{.stream = number(i), .number = kMaxMarks - 1}});
       });
     },
     false},
    {FrameType::kMark, "has a mark above the limit",
     [](LyingPeer& liar) {
       liar.sync();
       liar.send(FrameType::kMark, base::encode(agent::MarkMessage{{.number = kMaxMarks}}));
     }},
    {FrameType::kMarksEnd, "ends ever new streams",
     [](LyingPeer& liar) {
       liar.sync();
       often(liar, FrameType::kMarksEnd, kOften,
             [](int i) { return base::encode(agent::MarksEndMessage{number(i), longError()}); });
     },
     false},
    {FrameType::kOpen, "opens the handshake again",
     [](LyingPeer& liar) { liar.send(FrameType::kOpen, largest(FrameType::kOpen)); }},
    {FrameType::kChallenge, "challenges in a session",
     [](LyingPeer& liar) { liar.send(FrameType::kChallenge, largest(FrameType::kChallenge)); }},
    {FrameType::kProof, "proves in a session",
     [](LyingPeer& liar) { liar.send(FrameType::kProof, largest(FrameType::kProof)); }},
    {FrameType::kConfirm, "confirms in a session",
     [](LyingPeer& liar) { liar.send(FrameType::kConfirm, largest(FrameType::kConfirm)); }},
    {FrameType::kDeny, "denies a session that it began",
     [](LyingPeer& liar) { liar.send(FrameType::kDeny, largest(FrameType::kDeny)); }},
    {FrameType::kHello, "says hello twice",
     [](LyingPeer& liar) { liar.send(FrameType::kHello, largest(FrameType::kHello)); }},
    {FrameType::kAccept, "accepts itself",
     [](LyingPeer& liar) { liar.send(FrameType::kAccept, largest(FrameType::kAccept)); }},
    {FrameType::kRefuse, "refuses after the verdict",
     [](LyingPeer& liar) { liar.send(FrameType::kRefuse, largest(FrameType::kRefuse)); }},
    {FrameType::kResume, "resumes in a session",
     [](LyingPeer& liar) { liar.send(FrameType::kResume, largest(FrameType::kResume)); }},
});

}  // namespace

std::span<const Lie> lies() { return kLies; }

Bytes largest(FrameType type) { return Bytes(agent::ruleOf(type)->most_bytes, std::byte{1}); }

}  // namespace viaduct::testing
