// A peer that knows the secret and obeys no rule: it does the true handshake, and then sends any
// frame, of any size, at any time. lies() has what it says of each frame type. Threads: one at a
// time per object.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "agent/session/frame_rules.h"
#include "agent/session/hello.h"
#include "base/bytes.h"
#include "base/fd.h"
#include "base/net/crypto.h"
#include "base/net/handshake.h"

namespace viaduct::testing {

class LyingPeer {
 public:
  // Connects to "host:port" or "unix:@name", proves the secret, and waits for the hello.
  // `claim`: of the card with that secret.
  static Result<LyingPeer> prove(const std::string& where, const base::Key& secret,
                                 base::Bytes claim = {});
  // Does what prove() does, and begins a session.
  static Result<LyingPeer> meet(const std::string& where, const base::Key& secret,
                                const std::string& name, base::Bytes claim = {});
  // Sends its hello, changed by `change`, and waits for the answer.
  Status introduce(
      const std::string& name,
      const std::function<void(agent::Hello&)>& change = [](agent::Hello&) {});

  // False: the other end has closed, or takes no more bytes for a second.
  bool send(agent::FrameType type, std::span<const std::byte> payload,
            std::span<const int> fds = {});
  // Sends only a header, which announces a payload of `bytes` bytes.
  bool announce(agent::FrameType type, std::size_t bytes);
  // Sends the frame that ends its list of pins, unless it was sent before.
  void sync();
  // Sends a note through the ring that the other end has offered, if there is one.
  void ring(std::span<const std::byte> note);
  // Reads and drops what has arrived. False: the other end has closed.
  bool listen(std::chrono::milliseconds wait = std::chrono::milliseconds(0));
  // Waits until the other end closes, at most ten seconds.
  bool isExpelled();

  // The error of a refused hello.
  const std::optional<Error>& refusal() const { return refusal_; }
  // The next frame of the other end, at most ten seconds later.
  Result<agent::Frame> next();
  const agent::Hello& theirs() const { return theirs_; }
  bool isUnix() const { return is_unix_; }
  // The numbers of frames that it has sent and received.
  std::pair<std::uint64_t, std::uint64_t> frames() const {
    return {sealer_.sealed(), reader_.decoder().taken()};
  }

 private:
  LyingPeer(base::Fd socket, base::Handshake proof, bool is_unix)
      : socket_(std::move(socket)), proof_(std::move(proof)), is_unix_(is_unix) {}
  Status shake();
  agent::FrameSealer::Header headerOf(agent::FrameType type, std::span<std::byte> payload,
                                      std::size_t fds);
  bool sendBytes(std::span<const std::byte> bytes, std::span<const int> fds);
  void takeRing(const agent::Frame& frame);

  base::Fd socket_;
  base::Handshake proof_;
  const bool is_unix_;
  agent::FrameSealer sealer_{agent::kSessionFrames};
  agent::FrameReader reader_{agent::kSessionFrames, agent::kMaxUnprovenPayload};
  agent::Hello theirs_;
  std::optional<Error> refusal_;
  std::vector<base::Fd> ring_;  // the page and the eventfd
  bool closed_ = false, synced_ = false;
};

// The payload of the largest frame of that type that decodes, or the largest of garbage.
base::Bytes largest(agent::FrameType type);

// One habit of a lying peer, in a session that has begun.
struct Lie {
  agent::FrameType type;
  const char* name;
  void (*tell)(LyingPeer& liar);
  bool breaks = true;  // it breaks a rule, and the session ends
};
// All lies: at least one for each frame type.
std::span<const Lie> lies();

}  // namespace viaduct::testing
