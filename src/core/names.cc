// The names of the values of the public enums.
#include <viaduct/lease.h>
#include <viaduct/memory.h>
#include <viaduct/peer.h>
#include <viaduct/settings.h>
#include <viaduct/statistics.h>
#include <viaduct/transfer.h>

#include <array>
#include <cstddef>

#include "base/words.h"

namespace viaduct {
namespace {

constexpr base::Words<MemoryKind, 5> kMemoryKindNames{{{"host", MemoryKind::kHost},
                                                       {"device", MemoryKind::kDevice},
                                                       {"file", MemoryKind::kFile},
                                                       {"block", MemoryKind::kBlock},
                                                       {"object", MemoryKind::kObject}}};
constexpr base::Words<TransferState, 5> kTransferStateNames{
    {{"idle", TransferState::kIdle},
     {"running", TransferState::kRunning},
     {"done", TransferState::kDone},
     {"failed", TransferState::kFailed},
     {"cancelled", TransferState::kCancelled}}};
constexpr base::Words<PeerState, 5> kPeerStateNames{{{"connecting", PeerState::kConnecting},
                                                     {"ready", PeerState::kReady},
                                                     {"lost", PeerState::kLost},
                                                     {"gone", PeerState::kGone},
                                                     {"draining", PeerState::kDraining}}};
constexpr base::Words<LeaseState, 6> kLeaseStateNames{{{"live", LeaseState::kLive},
                                                       {"ending", LeaseState::kEnding},
                                                       {"returned", LeaseState::kReturned},
                                                       {"expired", LeaseState::kExpired},
                                                       {"revoked", LeaseState::kRevoked},
                                                       {"peer lost", LeaseState::kPeerLost}}};
constexpr base::Words<Privacy, kPrivacies> kPrivacyNames{{{"auto", Privacy::kAuto},
                                                          {"off", Privacy::kOff},
                                                          {"frames", Privacy::kFrames},
                                                          {"integrity", Privacy::kIntegrity},
                                                          {"encrypted", Privacy::kEncrypted},
                                                          {"required", Privacy::kRequired}}};
constexpr base::Words<FaultKind, kFaultKinds> kFaultKindNames{
    {{"delay", FaultKind::kDelay},
     {"stop", FaultKind::kStop},
     {"corrupt", FaultKind::kCorrupt},
     {"drop-rail", FaultKind::kDropRail},
     {"kill-peer", FaultKind::kKillPeer},
     {"late-lease", FaultKind::kLateLease}}};

}  // namespace

const char* memoryKindName(MemoryKind kind) { return base::wordOf(kMemoryKindNames, kind); }
const char* priorityName(Priority priority) {
  constexpr std::array<const char*, kPriorities> kNames{"urgent", "normal", "background"};
  return kNames[static_cast<std::size_t>(priority)];
}
const char* opKindName(OpKind kind) { return kind == OpKind::kWrite ? "write" : "read"; }
const char* transferStateName(TransferState state) {
  return base::wordOf(kTransferStateNames, state);
}
const char* leaseStateName(LeaseState state) { return base::wordOf(kLeaseStateNames, state); }
const char* peerStateName(PeerState state) { return base::wordOf(kPeerStateNames, state); }
const char* privacyName(Privacy privacy) { return base::wordOf(kPrivacyNames, privacy); }
const char* faultKindName(FaultKind kind) { return base::wordOf(kFaultKindNames, kind); }

}  // namespace viaduct
