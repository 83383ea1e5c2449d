// The names of the values of the public enums.
#include <viaduct/memory.h>
#include <viaduct/peer.h>
#include <viaduct/transfer.h>

namespace viaduct {

const char* memoryKindName(MemoryKind kind) {
  switch (kind) {
    case MemoryKind::kHost:
      return "host";
    case MemoryKind::kDevice:
      return "device";
    case MemoryKind::kFile:
      return "file";
    case MemoryKind::kBlock:
      return "block";
    case MemoryKind::kObject:
      return "object";
  }
  return "?";
}

const char* opKindName(OpKind kind) { return kind == OpKind::kWrite ? "write" : "read"; }

const char* transferStateName(TransferState state) {
  switch (state) {
    case TransferState::kIdle:
      return "idle";
    case TransferState::kRunning:
      return "running";
    case TransferState::kDone:
      return "done";
    case TransferState::kFailed:
      return "failed";
    case TransferState::kCancelled:
      return "cancelled";
  }
  return "?";
}

const char* peerStateName(PeerState state) {
  switch (state) {
    case PeerState::kConnecting:
      return "connecting";
    case PeerState::kReady:
      return "ready";
    case PeerState::kLost:
      return "lost";
    case PeerState::kGone:
      return "gone";
  }
  return "?";
}

}  // namespace viaduct
