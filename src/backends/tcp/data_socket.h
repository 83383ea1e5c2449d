// The socket of a channel in one of its lives: moves bytes between it and the two halves of the
// protocol. Threads: under the agent's lock.
#pragma once

#include <chrono>
#include <optional>

#include "backends/tcp/inbound.h"
#include "backends/tcp/outbound.h"
#include "backends/tcp/tcp_address.h"
#include "base/fd.h"
#include "base/poller.h"

namespace viaduct::tcp {

class TcpChannel;

// What all of a backend's parts use.
struct TcpShared {
  base::Poller& poller;
  std::chrono::milliseconds detect;
  std::chrono::microseconds spin;
  TargetPins pins = {};
  Buffers buffers = {};
};

class DataSocket {
 public:
  DataSocket(TcpShared& shared, TcpChannel& channel, const RemotePins& remote, base::Fd fd);
  ~DataSocket();
  DataSocket(const DataSocket&) = delete;
  DataSocket& operator=(const DataSocket&) = delete;

  // Lets the poller wake the channel for it from now on.
  Status open();
  int fd() const { return fd_.get(); }

  // add() sends what fits into the socket now, one frame at most.
  void add(move::Job& job);
  void stop(move::Job& job, Error why) { initiator_.stop(job, std::move(why)); }
  // Receives and sends until nothing moves or `until`.
  void progress(Clock::time_point now, Clock::time_point until);
  // Nothing has moved for a while: from here on the poller watches, and buffers go back.
  void awake() { moved_ = shared_.poller.now(); }
  bool tired(Clock::time_point now) const { return now - moved_ > shared_.spin; }
  void sleep();
  void dropSlot(std::uint32_t slot);

  // Looks, every now and then, for how long the peer's kernel has not answered what was sent.
  // False: nothing is waited for.
  bool measureSilence(Clock::time_point now);
  Duration silence() const { return silence_; }  // as last looked
  // Closes the socket if it has been silent too long, and far longer than all sockets of the link
  // together: if all are silent, the session's heartbeats decide. `least`: the shortest silence of
  // the link's sockets now.
  void judge(Duration least);
  // It broke, and not by the way: one of the ends is to blame, and other sockets would do no
  // better.
  bool endsLink() const { return ends_link_; }

 private:
  bool receive();
  bool send();
  void lose(Error why);
  void await(std::size_t bytes);
  void loseTo(std::string_view call, int os_errno);

  TcpShared& shared_;
  TcpChannel& channel_;
  Initiator initiator_;
  Responder responder_;
  Outbound outbound_;
  Inbound inbound_;
  base::Fd fd_;
  const base::SocketAddress remote_;  // a socket that was reset does not know any more
  base::Poller::Id watch_ = 0;
  bool ends_link_ = false;
  Clock::time_point progressed_, moved_;
  std::optional<Clock::time_point> unheard_since_;  // while an answer is waited for
  Duration silence_{};
  Duration common_silence_{};  // the longest one of all sockets together, since this one was heard
  bool too_silent_ = false;
  std::size_t awaited_ = 1;  // bytes that the poller wakes us for
  bool dry_ = false;         // nothing more to receive in this round
  bool full_ = false;        // the socket takes no more in this round
};

}  // namespace viaduct::tcp
