// Another agent as we see it. Threads: call from any; copies name the same peer.
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/memory.h>
#include <viaduct/result.h>

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <vector>

namespace viaduct {

namespace agent {
class PeerImpl;
}

enum class PeerState : std::uint8_t {
  kConnecting,  // connecting, for the first time or again
  kReady,       // transfers and notes are possible
  kLost,        // found dead, frozen or unreachable; the agent reconnects in the background
  kGone,        // said goodbye, or was forgotten here; ready again once it connects to us
  kDraining,    // ready, but this peer or this agent drains: what runs ends, nothing new begins
};
const char* peerStateName(PeerState state);

// One backend's connection to this peer, or the reason why there is none.
struct PeerWay {
  std::string backend = {};
  bool usable = false;
  std::string text = {};  // "mapped, cma", or the reason
};

class Peer {
 public:
  explicit Peer(std::shared_ptr<agent::PeerImpl> impl);

  std::string name() const;  // empty until a peer named by address has answered
  PeerState state() const;
  std::uint64_t epoch() const;  // numbers the sessions with this peer, from 1
  // Waits until the peer is ready; the error says why it is not. Fails at once with kDraining if
  // the peer is about to leave: Agent::find() may know its successor.
  Status ready(Deadline until) const;
  // Waits until the session of `epoch` is over: the peer was lost, has left, or has a newer
  // session.
  Status over(std::uint64_t epoch, Deadline until) const;
  // False while a one-sided copy by the peer may still change memory here that the peer has no
  // right to any more: a released Pin, or any Pin after the session. True once the peer has left
  // that copy, or its process is dead. For Agent::self(): false while a device of this host still
  // uses such memory. Each call checks anew.
  bool settled() const;

  std::vector<PinInfo> pins() const;  // the pins that the peer has now
  // Waits until the peer has announced a pin of that label.
  Result<PinInfo> waitPin(const std::string& label, Deadline until) const;
  std::vector<PeerWay> ways() const;

  // Sends bytes, at most kMaxNoteBytes; they arrive once, in the order sent, or the peer is lost.
  Status note(std::span<const std::byte> bytes) const;
  Status note(std::string_view text) const;
  // Sends bytes to a peer that may still be connecting. Keeps a copy, and sends it as soon as the
  // peer is ready. Drops it at `reach`. Fails with kBusy if more than 2 MiB are kept for the peer.
  Status note(std::span<const std::byte> bytes, Deadline reach) const;
  // Ends the session, and stops connecting to the peer.
  void forget() const;

 private:
  friend class Agent;
  std::shared_ptr<agent::PeerImpl> impl_;
};

}  // namespace viaduct
