// Reaches a peer: dials the addresses of its card, one attempt at a time, with a growing back-off.
// Also makes another connection for a session. Threads: under the agent's lock.
#pragma once

#include <viaduct/card.h>

#include <array>
#include <memory>
#include <string>
#include <vector>

#include "agent/peers/peer_states.h"
#include "agent/session/connection.h"
#include "base/net/dialer.h"
#include "base/transitions.h"

namespace viaduct::agent {

class Basis;
class Peers;
class PeerImpl;
class Session;

class Redialer {
 public:
  static constexpr Duration kFirstBackoff = std::chrono::milliseconds(10);
  static constexpr Duration kLastBackoff = std::chrono::seconds(1);

  Redialer(Peers& peers, PeerImpl& peer);
  ~Redialer();

  // Sets the addresses to dial, which hold until forget() or the next aim().
  // `mine`: what the peer may reach here in the sessions that this agent dials.
  void aim(const Card& card, std::vector<Grant> mine = {});
  const std::vector<Grant>& mine() const { return mine_; }
  // The grants of the card; empty if it grants all.
  const std::vector<Grant>& theirs() const { return theirs_; }
  void forget();

  bool isAimed() const;  // there are addresses, not known to be wrong
  bool isWrong() const { return target_.is(Target::kWrong); }
  bool isIdle() const { return reach_.is(Reach::kIdle); }
  bool shakesHands() const { return reach_.is(Reach::kHandshake); }

  // Ends the attempt and the back-off.
  void stop();
  // Dials the peer after the back-off, if it has an address and neither a session nor an attempt.
  void dialLater();
  void resetBackoff() { backoff_ = {}; }
  // Dials `targets` to move the running session to another connection.
  void move(std::vector<std::string> targets, Clock::time_point until);
  // Gives up the handshake over TCP and dials the peer's Unix socket. False: there is none, or it
  // has been tried.
  bool upgrade(const std::string& unix_name);
  // The peer has said that the card is void, so it is not dialed again.
  void cardIsVoid() { target_.step(Target::kVoid); }
  // Records that a session has begun.
  void met(const Hello& theirs);
  // Returns the attempt if it is `session`, otherwise null.
  std::unique_ptr<Session> take(const Session& session);
  void closed(const Session& session, const Error& why);

 private:
  void dial();
  void dialed(Result<base::Fd> socket, const std::string& target);
  void failed(const Error& why);

  Basis& basis_;
  Peers& peers_;
  PeerImpl& peer_;
  base::Machine<Target> target_;
  base::Machine<Reach> reach_;
  Key secret_ = {};
  std::vector<Grant> theirs_, mine_;
  std::string unix_name_, tried_unix_;
  bool on_this_host_ = false;
  std::vector<std::string> addresses_;
  std::unique_ptr<base::Dialer> dialer_;  // while kDialing
  std::unique_ptr<Session> attempt_;      // while kHandshake
  base::Poller::Id timer_ = 0;            // while kBackOff
  Duration backoff_{};
};

}  // namespace viaduct::agent
