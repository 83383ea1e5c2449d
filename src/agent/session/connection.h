// One socket of a session: handshake, frames, back-pressure. Threads: all calls under the owner's
// lock, that of the Poller; callbacks run from the Poller's handlers or inside readNow(), never
// inside send() or open().
#pragma once

#include <viaduct/deadline.h>
#include <viaduct/result.h>

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
#include "agent/session/handshake.h"
#include "agent/session/hello.h"
#include "agent/session/inbox.h"
#include "agent/session/messages.h"
#include "agent/session/outbox.h"
#include "agent/session/socket_facts.h"
#include "base/fd.h"
#include "base/net/crypto.h"
#include "base/net/hearing.h"
#include "base/poller.h"

namespace viaduct::agent {

// A life of a session as one end knows it. A connection begins one, or goes on with one that
// another connection carried before.
struct Life {
  std::uint64_t epoch = 0;
  std::uint64_t heard = 0;  // numbered frames, before this connection
  Key key = {};             // a secret of the two ends, made when it began
};

// Whom a connection tells. Every call may destroy the Connection.
class ConnectionUser {
 public:
  virtual ~ConnectionUser() = default;
  // The other end has proved itself and said who it is. Dialer: any value goes on (our hello is
  // sent), an error closes. Listener: the life that begins, only its epoch, or the whole of the
  // one that resume() asks to go on with; or the error that is sent as the refusal. After an error
  // closed() is called with it.
  virtual Result<Life> judge(const Hello& theirs) = 0;
  virtual void established(std::uint64_t epoch) = 0;
  // `payload` stands in the Connection, for the time of the call.
  virtual void frame(FrameType type, std::span<const std::byte> payload,
                     std::vector<base::Fd> fds) = 0;
  virtual void closed(const Error& why) = 0;  // the last call
};

struct ConnectionConfig {
  Key secret = {};
  std::function<Hello()> mine = {};  // asked once, and not for a stranger
  std::optional<Life> resume = {};   // dialer: the life to go on with
  Clock::time_point handshake_until = {};
  std::size_t max_unsent = std::size_t{4} << 20U;
};

class Connection {
 public:
  enum class Role : std::uint8_t { kDialer, kListener };

  // `socket`: a connected stream socket, TCP or Unix. The handshake begins at once.
  static Result<std::unique_ptr<Connection>> open(base::Fd socket, Role role,
                                                  ConnectionConfig config, base::Poller& poller,
                                                  ConnectionUser& user);
  ~Connection() {  // closes without a word and without calling the user
    if (gone_ != nullptr) *gone_ = true;
    leavePoller();
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;

  // Writes at once what the socket takes and queues the rest. kBusy, and nothing is sent, when more
  // than max_unsent waits already, for a note, or twice that: notes that a peer does not take leave
  // room for what keeps the two ends in step. So at most twice that and one frame ever wait. Fds,
  // kMaxFrameFds of them, only on Unix sockets; the caller keeps his. After a failure of the socket
  // the error comes back here, and closed() is called from the poller.
  Status send(FrameType type, std::span<const std::byte> payload, std::span<const int> fds = {}) {
    return sendParts(type, payload, {}, fds);
  }
  // The same with the payload in two parts.
  Status sendParts(FrameType type, std::span<const std::byte> head, std::span<const std::byte> body,
                   std::span<const int> fds = {});

  // While paused no frame comes and lastHeard() stands still. When the other end has closed, what
  // it sent before (a socket's buffer at most) comes in spite of the pause, then closed(). Once
  // unpaused, what was read before comes from the poller (a timer that is due) or readNow().
  void pauseReading(bool paused);
  // Reads once without waiting for the poller, and delivers. Does nothing inside a callback.
  void readNow();

  Clock::time_point lastHeard() const { return last_heard_; }
  const Hello& theirs() const { return theirs_; }  // from judge() on
  bool isUnix() const { return socket_facts_.is_unix; }
  // As our PID namespace sees it; 0: unseen, or TCP.
  int peerPid() const { return socket_facts_.peer_pid; }
  // "127.0.0.1:4242", "unix:@viaduct-...", "unix:pid 4242".
  const std::string& remoteText() const { return socket_facts_.remote; }
  // A secret that the two ends of this connection have in common, and nobody else. From judge() on.
  Key deriveKey(std::string_view purpose) const { return base::deriveKey(common_, purpose); }
  // What the other end says of the life that goes on. Listener: from judge() on, and proves() is
  // still to be asked whether it knows that life's key; dialer: from established() on.
  const std::optional<ResumeMessage>& resume() const { return resume_; }
  bool proves(const Key& life) const;
  // Whether its session may go on over another connection one day: TCP, and the peer knows how.
  bool canResume() const { return !socket_facts_.is_unix && their_minor_ >= kResumeMinor; }
  // Nothing for a Unix socket.
  base::Hearing hearing() const { return base::hearingOf(socket_.get()); }
  std::size_t unsent() const { return outbox_.unsent(); }
  // Frames of this connection, its handshake's included: sent, queued ones too; and heard, the one
  // that is being handed over included. The ends agree on them.
  std::uint64_t framesSent() const { return sealer_.sealed(); }
  std::uint64_t framesHeard() const { return inbox_.decoder().taken(); }
  // Those that have a number in the session's life.
  std::uint64_t numberedHeard() const { return numbered_heard_; }

 private:
  Connection(base::Fd socket, Role role, ConnectionConfig config, base::Poller& poller,
             ConnectionUser& user)
      : socket_(std::move(socket)),
        role_(role),
        config_(std::move(config)),
        poller_(poller),
        user_(user) {}

  enum class Phase : std::uint8_t { kProving, kMeeting, kAwaitingVerdict, kReady, kClosed };

  Status start();
  // Those that return bool may have called the user: false means that the connection is closed,
  // and perhaps destroyed: return at once.
  void onEvents(std::uint32_t events);
  bool readTurn();
  bool readOnce(Inbox::Read& got);
  bool deliver();
  bool take(const Frame& frame);
  bool prove(const Frame& frame);
  void useKeys();
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

  Status write(FrameType type, ByteSpan head, ByteSpan body, std::vector<base::Fd> fds);
  void sendFailed(const Error& why);
  void flush();
  void soon();
  void onSoon();
  void listen();
  void leavePoller();
  bool mayRead() const { return !paused_ || ended_; }
  Error protocolError(std::string detail) const;

  base::Fd socket_;
  const Role role_;
  const ConnectionConfig config_;
  base::Poller& poller_;
  ConnectionUser& user_;

  Phase phase_ = Phase::kProving;
  std::unique_ptr<Handshake> proof_;  // until it is given
  Key common_ = {};                   // what deriveKey() starts from
  base::Bytes hello_;                 // dialer: ours
  std::uint64_t last_epoch_ = 0;      // that our hello named
  FrameSealer sealer_;
  Inbox inbox_;
  Outbox outbox_;
  Hello theirs_;
  std::uint8_t their_minor_ = 0;
  std::optional<ResumeMessage> resume_;  // what the other end said of the life it goes on with
  std::uint64_t numbered_heard_ = 0;
  std::optional<Error> send_error_;  // the socket takes nothing more; reading finds out the rest
  Clock::time_point last_heard_ = poller_.now();
  SocketFacts socket_facts_;

  bool paused_ = false;
  bool ended_ = false;    // the other end has closed: what it sent before is read, paused or not
  bool* gone_ = nullptr;  // set while the user is being called
  base::Poller::Id watch_ = 0, handshake_timer_ = 0, soon_timer_ = 0;
  std::uint32_t watched_ = 0;
};

// Calls the user: false when that was the end of the connection.
template <class Call>
bool Connection::tell(Call call) {
  bool gone = false;
  gone_ = &gone;
  call();
  if (gone) return false;
  gone_ = nullptr;
  return phase_ != Phase::kClosed;
}

}  // namespace viaduct::agent
