// One connection of a session: handshake, frames and back-pressure. Threads: all calls are made
// under the owner's lock, which is also that of the Poller. Callbacks run in the Poller's handlers
// or inside readNow(), never inside send() or open().
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/session/frame.h"
#include "agent/session/hello.h"
#include "agent/session/messages.h"
#include "agent/session/socket_facts.h"
#include "base/fd.h"
#include "base/net/crypto.h"
#include "base/net/handshake.h"
#include "base/net/hearing.h"
#include "base/poller.h"

namespace viaduct::agent {

// A life of a session, as seen by one end. A connection begins a life, or resumes the life that
// another connection carried before.
struct Life {
  std::uint64_t epoch = 0;
  std::uint64_t heard = 0;  // numbered frames received over earlier connections
  Key key = {};             // a secret of both ends, made when the life began
};

// The callbacks of a connection. Each of them may destroy the Connection.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  // The other end has proved that it knows the secret, and has sent its hello. After a returned
  // error, closed() is called with it. At the dialer, any value continues (our hello is sent), and
  // an error closes. At the listener, the value is the life of the session, and an error is sent as
  // the refusal. If resume() is empty, only the epoch of the value counts. Otherwise the value is
  // the whole life that resume() names.
  virtual Result<Life> judge(const Hello& theirs) = 0;
  virtual void established(std::uint64_t epoch) = 0;
  // `payload` points into the Connection, and is valid during the call.
  virtual void frame(FrameType type, std::span<const std::byte> payload,
                     std::vector<base::Fd> fds) = 0;
  virtual void closed(const Error& why) = 0;  // the last call
};

struct ConnectionConfig {
  Key secret = {};         // the secret of an empty claim
  base::Bytes claim = {};  // dialer: names the secret, if it is not the other agent's own
  // Listener: the secret of a claim that is not empty.
  base::Handshake::SecretOfClaim secret_of_claim = {};
  std::function<Hello()> mine = {};  // called once; at the listener after the dialer's proof
  std::optional<Life> resume = {};   // dialer: the life to resume
  Clock::time_point handshake_until = {};
  std::size_t max_unsent = std::size_t{4} << 20U;
};

class Connection {
 public:
  enum class Role : std::uint8_t { kDialer, kListener };

  // `socket` is a connected stream socket, TCP or Unix. Begins the handshake.
  static Result<std::unique_ptr<Connection>> open(base::Fd socket, Role role,
                                                  ConnectionConfig config, base::Poller& poller,
                                                  ConnectionUser& user);
  ~Connection() {  // closes without a goodbye and without calling the user
    if (gone_ != nullptr) *gone_ = true;
    leavePoller();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Writes as much as the socket accepts, and queues the rest. Returns kBusy, and sends nothing, if
  // too many bytes are queued: more than max_unsent for a note, and twice that for other frames. So
  // notes leave room for frames that keep the two ends consistent. The queue never exceeds twice
  // max_unsent and one frame. Fds, at most kMaxFrameFds, pass only over Unix sockets; the
  // caller keeps its copies. If the socket fails, the error is returned here, and the poller calls
  // closed().
  Status send(FrameType type, std::span<const std::byte> payload, std::span<const int> fds = {}) {
    return sendParts(type, payload, {}, fds);
  }
  // Like send(), with the payload in two parts.
  Status sendParts(FrameType type, std::span<const std::byte> head, std::span<const std::byte> body,
                   std::span<const int> fds = {});

  // While paused, no frame is delivered and lastHeard() does not change. If the other end has
  // closed, its last frames (at most a socket's buffer) are delivered in spite of the pause. Then
  // closed() is called. After the pause, a timer or readNow() delivers frames that were read before
  // it.
  void pauseReading(bool paused);
  // Reads once without waiting for the poller, and delivers the frames. Does nothing inside a
  // callback.
  void readNow();
  // The user's callback uses up this many microseconds of the current turn of reading.
  void spend(int microseconds) { turn_left_ = std::max(turn_left_ - microseconds, 0); }

  Clock::time_point lastHeard() const { return last_heard_; }
  const Hello& theirs() const { return theirs_; }  // valid from judge() on
  bool isUnix() const { return socket_facts_.is_unix; }
  // The peer's pid in our PID namespace. 0: not visible, or TCP.
  int peerPid() const { return socket_facts_.peer_pid; }
  // The other end, as "127.0.0.1:4242", "unix:@viaduct-..." or "unix:pid 4242".
  const std::string& remoteText() const { return socket_facts_.remote; }
  // The dialer's claim. Valid from judge() on.
  const base::Bytes& claim() const { return claim_; }
  // A secret that only the two ends of this connection know. Valid from judge() on.
  Key deriveKey(std::string_view purpose) const { return base::deriveKey(common_, purpose); }
  // The other end's message about the life that is resumed. Listener: valid from judge() on, and
  // the caller still has to check with proves() that the dialer knows the life's key. Dialer: valid
  // from established() on.
  const std::optional<ResumeMessage>& resume() const { return resume_; }
  bool proves(const Key& life) const;
  // True if the session may move to another connection.
  bool canResume() const { return !socket_facts_.is_unix; }
  // Empty for a Unix socket.
  base::Hearing hearing() const { return base::hearingOf(socket_.get()); }
  std::size_t unsent() const { return writer_.unsent(); }
  // The number of frames of this connection, including its handshake. Sent frames include queued
  // ones, and received frames include the frame that is being delivered. Both ends count the same.
  std::uint64_t framesSent() const { return writer_.sealed(); }
  std::uint64_t framesHeard() const { return reader_.decoder().taken(); }
  // The number of received frames that count for the session's life, see isNumbered().
  std::uint64_t numberedHeard() const { return numbered_heard_; }

 private:
  Connection(base::Fd socket, Role role, ConnectionConfig config, base::Poller& poller,
             ConnectionUser& user)
      : socket_(std::move(socket)),
        role_(role),
        config_(std::move(config)),
        poller_(poller),
        user_(user) {}

  // The first four values equal those of FrameStage.
  enum class ConnectionPhase : std::uint8_t {
    kProving,
    kMeeting,
    kAwaitingVerdict,
    kReady,
    kClosed
  };

  Status start();
  // A function that returns bool may have called the user. After false the connection is closed,
  // and perhaps destroyed, so the caller has to return at once.
  void onEvents(std::uint32_t events);
  bool readTurn();
  bool readOnce(FrameReader::Read& got);
  bool deliver();
  std::optional<Error> outOfTurn(const Frame& frame) const;
  bool take(const Frame& frame);
  bool prove(const Frame& frame);
  Result<base::Handshake::Step> takeProof(const Frame& frame);
  Status useKeys();
  bool meet(const Frame& frame);
  bool introduce(const Result<Life>& verdict);
  bool answer(const Result<Life>& verdict);
  bool hearVerdict(const Frame& frame);
  bool hearResume(const Frame& frame);
  bool hearLife(const Frame& accept, std::uint64_t& epoch);
  ResumeMessage resumeOf(const Life& life) const;
  Key resumeProof(const Key& life, bool of_dialer) const;
  bool establish(std::uint64_t epoch);
  Result<base::Bytes> ourHello();
  bool say(FrameType type, ByteSpan payload);
  bool fail(Error why);
  template <class Call>
  bool tell(Call call);

  void deny(Code code);
  Status write(FrameType type, ByteSpan head, ByteSpan body, std::vector<base::Fd> fds);
  void sendFailed(const Error& why);
  void flush();
  void soon();
  void onSoon();
  void readLast(const Error& why);
  void listen();
  void leavePoller();
  bool mayRead() const { return !paused_ || ended_; }
  Error protocolError(std::string detail) const;

  base::Fd socket_;
  const Role role_;
  const ConnectionConfig config_;
  base::Poller& poller_;
  ConnectionUser& user_;

  ConnectionPhase phase_ = ConnectionPhase::kProving;
  std::optional<base::Handshake> proof_;  // until this end has the session's keys
  Key common_ = {};                       // the base of deriveKey()
  base::Bytes claim_;                     // see claim()
  base::Bytes hello_;                     // dialer: its own encoded hello
  std::uint64_t last_epoch_ = 0;          // the last epoch that our hello named
  FrameReader reader_{kSessionFrames, kMaxUnprovenPayload};
  base::FrameWriter writer_{kSessionFrames};
  Hello theirs_;
  std::optional<ResumeMessage> resume_;  // see resume()
  std::uint64_t numbered_heard_ = 0;
  // The socket accepts no more bytes. The peer's last frames are still read.
  std::optional<Error> send_error_;
  int last_reads_ = 0;  // reads since send_error_ was set
  int turn_left_ = 0;   // microseconds of the current turn of reading
  Clock::time_point last_heard_ = poller_.now();
  SocketFacts socket_facts_;

  bool paused_ = false;
  // The other end has closed, or a send has failed. The last frames are read even if paused.
  bool ended_ = false;
  bool* gone_ = nullptr;  // set while a callback runs
  base::Poller::Id watch_ = 0, handshake_timer_ = 0, soon_timer_ = 0;
  std::uint32_t watched_ = 0;
};

// Calls the user. Returns false if the call closed or destroyed the connection.
template <class Call>
bool Connection::tell(Call call) {
  bool gone = false;
  gone_ = &gone;
  call();
  if (gone) return false;
  gone_ = nullptr;
  return phase_ != ConnectionPhase::kClosed;
}

}  // namespace viaduct::agent
