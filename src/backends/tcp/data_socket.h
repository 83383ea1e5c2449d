// The socket of a channel in one of its lives. Moves bytes between the kernel and the two sides of
// the protocol, Outbound and Inbound. Threads: progress(), sleep() and tired() are those of the
// channel's rail; all else under the agent's lock.
#pragma once

#include <chrono>
#include <deque>
#include <optional>

#include "backends/tcp/inbound.h"
#include "backends/tcp/outbound.h"
#include "backends/tcp/protection.h"
#include "backends/tcp/records.h"
#include "backends/tcp/tcp_address.h"
#include "base/fd.h"
#include "base/poller.h"
#include "move/channel.h"

namespace viaduct::tcp {

class TcpChannel;

// The state that all links and sockets of a backend share.
struct TcpShared {
  base::Poller& poller;
  std::chrono::milliseconds detect;
  std::chrono::microseconds spin;
  PrivacyOffer offer = {};
  TargetPins pins = {};
  std::deque<Buffers> buffers = {};  // indexed by rail
};

class DataSocket {
 public:
  DataSocket(TcpShared& shared, TcpChannel& channel, const RemotePins& remote,
             const core::PinRights& rights, base::Fd fd, const Protection& protection,
             SocketKeys keys);
  ~DataSocket();
  DataSocket(const DataSocket&) = delete;
  DataSocket& operator=(const DataSocket&) = delete;

  // Has the poller watch the socket and wake its channel.
  Status open();
  int fd() const { return fd_.get(); }

  // Adds a job, and sends at most one frame if that is small and the socket has room now. A large
  // frame waits for progress(), which may run beside other threads.
  void add(move::Job& job);
  void stop(move::Job& job) { initiator_.stop(job); }
  // Receives and sends until nothing moves, or until the turn is over.
  void progress(Clock::time_point now, const move::Turn& turn);
  // tired() is true when nothing has moved for Settings::spin. sleep() then has the poller watch
  // the socket, and returns buffers that no frame uses. awake() restarts the time.
  void awake() { moved_ = shared_.poller.now(); }
  bool tired(Clock::time_point now) const { return now - moved_ > shared_.spin; }
  void sleep();
  void dropSlot(std::uint32_t slot);

  // Measures for how long the peer's kernel has not acknowledged sent data. Returns whether the
  // link has to measure again.
  bool measureSilence(Clock::time_point now);
  Duration silence() const { return silence_; }  // at the last measurement
  // Closes the socket if it has been silent too long, and far longer than all sockets of the link
  // together. If all are silent, the session's heartbeats decide. `least`: the shortest silence of
  // the link's sockets now.
  void judge(Duration least);
  // The socket broke because of one of the two ends, not because of the path. Other sockets of the
  // link would not work either.
  bool endsLink() const { return ends_link_; }

 private:
  bool receive();
  ssize_t receivePlain();
  ssize_t receiveRecords(RecordReader& reader);
  std::string_view received(std::size_t bytes);
  bool send();
  bool send(std::span<const iovec> from);
  bool sendRecords(RecordWriter& writer, bool one_frame);
  void lose(Error why);
  void await(std::size_t bytes);
  void loseTo(std::string_view call, int os_errno);

  TcpShared& shared_;
  TcpChannel& channel_;
  const SocketKeys keys_;
  Initiator initiator_;
  Responder responder_;
  Outbound outbound_;
  Inbound inbound_;
  // Set if all bytes are in records.
  std::optional<RecordWriter> writer_;
  std::optional<RecordReader> reader_;
  base::Fd fd_;
  const base::SocketAddress remote_;  // kept, because a reset socket has no peer address
  base::Poller::Id watch_ = 0;
  bool ends_link_ = false;
  Clock::time_point progressed_, moved_;
  std::optional<Clock::time_point> unheard_since_;  // set while data is unacknowledged
  Duration silence_{};
  // The longest silence of all sockets of the link together, since this socket was last heard.
  Duration common_silence_{};
  bool too_silent_ = false;
  std::size_t awaited_ = 1;  // SO_RCVLOWAT: received bytes that make the socket readable
  bool dry_ = false;         // nothing more to receive in this progress()
  bool full_ = false;        // the socket takes no more in this progress()
};

}  // namespace viaduct::tcp
