// The implementation behind Agent: its backends, peers and transfers in flight. Threads:
// members with the agent's lock held exclusively unless they say otherwise.
#pragma once

#include <viaduct/agent.h>

#include <array>
#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "agent/agent_lock.h"
#include "agent/counts.h"
#include "agent/finder.h"
#include "agent/metrics/exporter.h"
#include "agent/note_backlog.h"
#include "agent/note_rings.h"
#include "agent/pins.h"
#include "agent/polled_rail.h"
#include "agent/progress_engine.h"
#include "agent/session/connection.h"
#include "base/budget.h"
#include "base/net/listener.h"
#include "core/backend.h"

namespace viaduct::agent {

class PeerImpl;
class Session;
class TransferImpl;

// Instead of the machine's, for agents that a test opens from now on; 0: the machine's.
inline std::atomic<unsigned> cores_for_tests{0};

class AgentImpl final : public Progressable, public std::enable_shared_from_this<AgentImpl> {
 public:
  // `clock`: a test's, which outlives the agent.
  static Result<std::shared_ptr<AgentImpl>> open(Settings settings,
                                                 const base::MovableClock* clock = nullptr);
  ~AgentImpl() override;
  AgentImpl(const AgentImpl&) = delete;
  AgentImpl& operator=(const AgentImpl&) = delete;
  void shutdown();  // takes the lock itself; not from a callback

  // An error after shutdown() and in a fork()ed child. No lock needed.
  Status usable(const char* operation) const;
  Status ofThisProcess(const char* operation) const;                       // the latter alone
  bool closed() const { return closed_.load(std::memory_order_relaxed); }  // or about to be
  using Held = AgentLock::Held;
  Held hold() const;
  ProgressEngine& engine() { return *engine_; }
  Clock::time_point now() const { return engine_->poller().now(); }
  const Settings& settings() const { return settings_; }

  // Progressable
  bool progress() override;
  bool busy() const override;
  unsigned busySharedRails() override;
  RailPass pollSharedRails() override;
  bool owesCallbacks() const override { return !owed_.empty(); }
  bool allowWakeups() override { return rings_.allowWakeups(); }
  void suppressWakeups() override;
  bool wakeupsSuppressed() const override { return rings_.wakeupsSuppressed(); }
  void runCallbacks() override;

  // Pins
  PinTable& pins() { return *pins_; }
  base::Budget& peersPinsBytes() { return peers_pins_bytes_; }  // what all peers have announced
  Result<PinInfo> pin(const Segment& memory, std::string label);
  Status unpin(std::uint32_t slot);  // the lock is free while it waits

  // Peers
  Result<std::shared_ptr<PeerImpl>> connect(const Card& card);
  Result<std::shared_ptr<PeerImpl>> connectTo(std::string_view host_port);
  std::shared_ptr<PeerImpl> findPeer(std::string_view name) const;
  // The Card that the meeting place has under that name. Waits: without the lock.
  Result<Card> find(const std::string& name, Deadline until) const;
  const std::vector<std::shared_ptr<PeerImpl>>& peers() const { return peers_; }
  Card card() const;
  Hello hello(std::uint64_t last_epoch) const;
  const std::array<std::uint8_t, 32>& secret() const { return secret_; }
  bool isSelf(const Hello& theirs) const { return theirs.agent == id_; }
  bool isThisProcess(const Hello& theirs) const;
  bool isThisHost(const std::string& boot) const { return !boot_.empty() && boot == boot_; }
  bool precedes(const Hello& theirs) const { return id_ < theirs.agent; }
  std::size_t backendCount() const { return backends_.size(); }
  core::Backend& backend(std::size_t index) { return *backends_[index]; }
  std::vector<BackendInfo> backendInfos() const;
  // A connection from outside has proved itself: whom it belongs to, or why it may not come in.
  Result<Life> admit(Session& session, const Hello& theirs);
  // Joins a peer that was named by address with what its name turned out to be.
  void joinByName(const std::shared_ptr<PeerImpl>& peer);
  std::unique_ptr<Session> takeNewcomer(Session& session);
  void bury(std::unique_ptr<Session> session);  // destroyed at the end of this round of progress

  // Notes
  void arrived(PeerImpl& from, base::Bytes note);
  std::optional<Note> takeNote();
  bool hasNote() const { return !notes_.empty(); }
  NoteRings& noteRings() { return rings_; }

  // Transfers
  core::Tag takeOff(TransferImpl& transfer);  // gives it a tag
  void land(core::Tag tag);
  void expectBy(Clock::time_point due);           // of a flight: who is then not over is told
  void pollRail(Held& held, std::size_t number);  // of RailCounts; may let go of the lock meanwhile
  RailCounts& railCounts(const core::Rail& rail) { return rail_counts_.at(&rail); }
  CellCounts& cellCounts(unsigned cell) { return cell_counts_[cell]; }  // of a shared section
  void apply(core::Completions& completions);
  void waitForRoom(std::shared_ptr<TransferImpl> transfer);
  void owe(std::function<void()> callback);

  // What still runs to this peer fails with `why`; its links are closed already.
  void failTransfersOf(const PeerImpl& peer, const Error& why);
  // A peer wants heartbeats this often.
  void beatSooner(Duration every);

  // A peer asks to be looked at in the next round of progress.
  void recheckPeers() { recheck_ = true; }
  Counts& counts() { return counts_; }
  Statistics statistics() const;
  Result<int> eventFd();
  void ringBell();  // also in a shared section
  bool poll();      // takes the lock itself

 private:
  explicit AgentImpl(Settings settings);
  bool forked() const;
  Status openBackends(Deadline until);
  Status openBackend(const core::BackendEntry& entry, Deadline until);
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
  void offerWaiting();
  void tellOverdue();
  RailPass pollShared(const Shared& shared, PolledRail& rail);
  bool applyEnded();
  RailCounts railTotals(const core::Rail& rail) const;
  void beat();
  void forgetDeparted();
  void scheduleBeat(Clock::time_point now);
  void holdUp(PeerImpl& from);
  void letSendersGoOn();

  const Settings settings_;
  std::array<std::uint8_t, 16> id_{};
  std::array<std::uint8_t, 32> secret_{};
  std::string boot_;
  std::uint64_t fork_generation_ = 0;
  std::atomic<bool> closed_{false};
  std::mutex closing_;  // held while one thread closes: a second one waits for the end
  std::shared_ptr<ProgressEngine> engine_;
  std::vector<std::unique_ptr<core::Backend>> backends_;
  std::vector<BackendInfo> left_out_;  // those that are not open
  std::deque<PolledRail> rails_;
  std::vector<PolledRail*> shared_rails_;  // the rails that are polled in shared sections
  std::atomic<bool> has_ended_{false};     // one of them has completions
  std::map<const core::Rail*, RailCounts> rail_counts_;
  std::unique_ptr<PinTable> pins_;
  std::unique_ptr<base::Listener> listener_;
  std::unique_ptr<Finder> finder_;      // where a meeting place is set
  std::unique_ptr<Exporter> exporter_;  // where metrics are
  std::string metrics_endpoint_;
  base::Budget peers_pins_bytes_{kMaxPinsBytesOfAll};
  std::vector<std::shared_ptr<PeerImpl>> peers_;
  // Of an agent that has closed: peers that were inside memory here, and whether they have left.
  std::vector<std::pair<std::string, std::function<bool()>>> unsettled_;
  std::vector<std::unique_ptr<Session>> newcomers_;  // accepted, not yet known
  std::vector<std::unique_ptr<Session>> graveyard_;
  NoteRings rings_;
  NoteBacklog notes_;
  // By the tag's low half. Their handles own them, and wait for their end and for the lock before
  // they let go: shared owners here would cost four atomic operations a post.
  std::vector<TransferImpl*> flights_;
  std::vector<std::uint32_t> free_flights_;
  std::uint64_t last_flight_ = 0;
  Counts counts_;
  std::array<CellCounts, AgentLock::kCells> cell_counts_;
  Clock::time_point due_ = Clock::time_point::max();  // the first of all flights', or before it
  base::Poller::Id due_timer_ = 0;
  std::vector<std::shared_ptr<TransferImpl>> waiting_;  // have ops that no rail has taken
  std::vector<std::function<void()>> owed_;
  core::Completions completions_;
  bool recheck_ = false;
  base::Fd bell_, bell_poller_;
  std::atomic<bool> bell_rung_{false};
  Duration beat_every_{};
  Clock::time_point last_beat_{};
  base::Poller::Id beat_timer_ = 0;
};

}  // namespace viaduct::agent
