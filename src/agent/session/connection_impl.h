// What a Connection is made of: its socket and its frames (connection.cc), and how its ends meet
// (connection_meeting.cc). Threads: as Connection.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/session/connection.h"
#include "agent/session/handshake.h"
#include "agent/session/inbox.h"
#include "agent/session/messages.h"
#include "agent/session/outbox.h"
#include "agent/session/socket_facts.h"

namespace viaduct::agent {

class Connection::Impl {
 public:
  Impl(base::Fd socket, Role role, ConnectionConfig config, base::Poller& poller,
       ConnectionUser& user)
      : socket_(std::move(socket)),
        role_(role),
        config_(std::move(config)),
        poller_(poller),
        user_(user) {}
  ~Impl() {
    if (gone_ != nullptr) *gone_ = true;
    leavePoller();
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  Status start();
  Status send(FrameType type, ByteSpan head, ByteSpan body, std::span<const int> fds);
  void pause(bool paused);
  void readNow();

  const Hello& theirs() const { return theirs_; }
  bool isUnix() const { return socket_facts_.is_unix; }
  int peerPid() const { return socket_facts_.peer_pid; }
  const std::string& remoteText() const { return socket_facts_.remote; }
  Key derive(std::string_view purpose) const { return base::deriveKey(common_, purpose); }
  const std::optional<ResumeMessage>& resume() const { return resume_; }
  bool proves(const Key& life) const;
  bool canResume() const { return !socket_facts_.is_unix && their_minor_ >= kResumeMinor; }
  std::uint64_t numberedHeard() const { return numbered_heard_; }
  base::Hearing hearing() const { return base::hearingOf(socket_.get()); }
  Clock::time_point lastHeard() const { return last_heard_; }
  std::size_t unsent() const { return outbox_.unsent(); }
  std::uint64_t framesSent() const { return sealer_.sealed(); }
  std::uint64_t framesHeard() const { return inbox_.decoder().taken(); }

 private:
  enum class Phase : std::uint8_t { kProving, kMeeting, kAwaitingVerdict, kReady, kClosed };

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
bool Connection::Impl::tell(Call call) {
  bool gone = false;
  gone_ = &gone;
  call();
  if (gone) return false;
  gone_ = nullptr;
  return phase_ != Phase::kClosed;
}

}  // namespace viaduct::agent
