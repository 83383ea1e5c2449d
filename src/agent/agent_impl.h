// The implementation behind Agent: its backends, peers and running transfers. Threads: members are
// called with the agent's lock held unless their comment says otherwise.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/finder.h"
#include "agent/ground/ground.h"
#include "agent/metrics/exporter.h"
#include "agent/note_backlog.h"
#include "agent/note_rings.h"
#include "agent/posting.h"
#include "agent/session/connection.h"
#include "agent/stages.h"
#include "base/attempt.h"
#include "base/budget.h"
#include "base/net/listener.h"
#include "core/backend.h"

namespace viaduct::agent {

class BlockMemory;
class HeldLease;
class PeerImpl;
class Session;
class TransferImpl;

// A test sets the number of cores that agents opened from now on assume. 0: the machine's number.
inline std::atomic<unsigned> cores_for_tests{0};

class AgentImpl final : public Ground, public Progressable {
 public:
  // A test may pass a `clock`, which has to outlive the agent.
  static Result<std::shared_ptr<AgentImpl>> open(Settings settings,
                                                 const base::MovableClock* clock = nullptr);
  ~AgentImpl() override;
  void shutdown();  // takes the lock; not from a callback

  std::shared_ptr<AgentImpl> shared() {
    return std::static_pointer_cast<AgentImpl>(shared_from_this());
  }

  // The interface Progressable, for the progress engine.
  bool progress() override;
  bool busy() const override;
  unsigned busyRails() const override { return rails_.busyAlone(); }
  bool runRails() override { return rails_.runAlone(); }
  bool hasNews() const override { return rails_.haveNews(); }
  void stopRails() override { rails_.stop(); }
  void startRails() override { rails_.start(); }
  bool owesCallbacks() const override { return Ground::owesCallbacks(); }
  bool allowWakeups() override { return rings_.allowWakeups(); }
  void suppressWakeups() override;
  bool wakeupsSuppressed() const override { return rings_.wakeupsSuppressed(); }
  void runCallbacks() override { Ground::runCallbacks(); }

  // Pins
  // The budget for the pins that all peers together have announced.
  base::Budget& peersPinsBytes() { return peers_pins_bytes_; }
  Result<PinInfo> pin(const Segment& memory, std::string label,
                      const core::Audience& audience = core::Audience::everybody());
  Status unpin(std::uint32_t slot);  // releases the lock while it waits

  // Peers
  std::uint64_t newSession() { return ++last_session_; }  // a number for core::LinkSeed::session
  Result<std::shared_ptr<PeerImpl>> connect(const Card& card);
  Result<std::shared_ptr<PeerImpl>> connectTo(std::string_view host_port);
  // The agent as its own peer, which is ready. Fails if descriptors or memory are short.
  Result<std::shared_ptr<PeerImpl>> self();
  std::shared_ptr<PeerImpl> findPeer(std::string_view name) const;
  std::shared_ptr<PeerImpl> findOther(std::string_view name) const;
  // Asks the meeting place for the Card under that name. Blocks, so the caller must not hold the
  // agent's lock.
  Result<Card> find(const std::string& name, Deadline until) const;
  const std::vector<std::shared_ptr<PeerImpl>>& peers() const { return peers_; }
  Card card() const;
  Hello hello(std::uint64_t last_epoch) const;
  const std::array<std::uint8_t, 32>& secret() const { return secret_; }
  bool isThisProcess(const Hello& theirs) const;
  bool precedes(const Hello& theirs) const { return id_ < theirs.agent; }
  // An accepted connection has proved that it knows the secret. Finds or makes its peer and returns
  // the session's life, or an error that refuses the connection.
  Result<Life> admit(Session& session, const Hello& theirs);
  // A peer that was dialed by address has told its name. Merges it with a peer that is known under
  // this name.
  void joinByName(const std::shared_ptr<PeerImpl>& peer);
  // `known` takes the place of `peer`, which is the same agent.
  void replace(const std::shared_ptr<PeerImpl>& peer, std::shared_ptr<PeerImpl> known);
  std::unique_ptr<Session> takeNewcomer(Session& session);
  void bury(std::unique_ptr<Session> session);  // destroyed at the end of this round of progress

  // Notes
  void arrived(PeerImpl& from, base::Bytes note);
  std::optional<Note> takeNote();
  bool hasNote() const { return !notes_.empty(); }
  base::Watchers& noteWatchers() { return note_watchers_; }
  NoteRings& noteRings() { return rings_; }

  // Transfers
  void enter(Posting& posting) { running_.add(posting); }     // it begins to run
  void leave(Posting& posting) { running_.remove(posting); }  // and has ended
  // At `due`, calls overdue() of transfers whose deadline has passed.
  void expectBy(Clock::time_point due);
  // Transfers that wait for their peer (TransferOptions::reach).
  void addReaching(TransferImpl& transfer) { reaching_.push_back(&transfer); }
  void removeReaching(TransferImpl& transfer) { std::erase(reaching_, &transfer); }
  // Has them try again, soon and without the lock: a peer has become ready, or has announced a pin.
  void goOnReaching();
  // Ends those of one peer, or all of them.
  void endReaching(const PeerImpl* peer, const Error& why);

  // Leases
  // Aborts the running transfers under this lease.
  void abortUnder(const HeldLease& lease, const Error& why);

  // Fails the running transfers of this peer with `why`. Its links must be closed already.
  void failTransfersOf(const PeerImpl& peer, const Error& why);
  // Sends heartbeats to all peers at least this often, since one peer needs it.
  void beatSooner(Duration every);

  // The next round of progress calls recheck() of every peer.
  void recheckPeers() { recheck_ = true; }
  Statistics statistics();

 private:
  explicit AgentImpl(Settings settings);
  void openStaging();
  Status openListener(Deadline until);
  Status openFinder(Deadline until);
  Status openExporter(Deadline until);
  Status checkHello() const;
  void accept(base::Fd socket, base::Unproven::Place place);
  void letGo();
  void waitUntilSettled(Held& held);
  Status leftByPeers();
  Status removePin(std::uint32_t slot);
  void abandon();
  std::vector<std::shared_ptr<TransferImpl>> reachingTransfers() const;
  void tellOverdue();
  void beat();
  void forgetDeparted();
  void scheduleBeat(Clock::time_point now);
  void holdUp(PeerImpl& from);
  void letSendersGoOn();

  std::array<std::uint8_t, 32> secret_{};
  // Held by the thread that closes the agent; a second thread waits here until that has ended.
  std::mutex closing_;
  std::unique_ptr<Stages> stages_;  // after the backends that it gives memory to
  std::unique_ptr<base::Listener> listener_;
  std::unique_ptr<Finder> finder_;      // null without a meeting place
  std::unique_ptr<Exporter> exporter_;  // null without a metrics endpoint
  std::string metrics_endpoint_;
  base::Budget peers_pins_bytes_{kMaxPinsBytesOfAll};
  std::vector<std::shared_ptr<PeerImpl>> peers_;
  std::shared_ptr<PeerImpl> self_;  // one of them; null before the first self()
  std::uint64_t last_session_ = 0;
  // After shutdown(): the peers whose one-sided copies may still touch memory here. The function
  // says whether that has ended.
  std::vector<std::pair<std::string, std::function<bool()>>> unsettled_;
  std::vector<std::unique_ptr<Session>> newcomers_;  // accepted, not yet admitted to a peer
  std::vector<std::unique_ptr<Session>> graveyard_;
  NoteRings rings_;
  NoteBacklog notes_;
  base::Watchers note_watchers_;
  // The running postings. Transfer handles and staging own them. A handle's destructor waits for
  // the transfer's end, and takes the lock once, before it frees the transfer. Shared pointers here
  // would cost four atomic operations a post.
  HookedList<Posting, &Posting::running_hook> running_;
  // No later than the first deadline of a running transfer.
  Clock::time_point due_ = Clock::time_point::max();
  base::Poller::Id due_timer_ = 0;
  std::vector<TransferImpl*> reaching_;  // transfers that wait for their peer
  bool reaches_again_ = false;           // they are about to try again
  bool recheck_ = false;
  Duration beat_every_{};
  Clock::time_point last_beat_{};
  base::Poller::Id beat_timer_ = 0;
};

}  // namespace viaduct::agent
