// The implementation behind Agent: its backends, peers and running transfers. Threads: members are
// called with the agent's lock held unless their comment says otherwise.
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
#include "agent/faults/fault_source.h"
#include "agent/finder.h"
#include "agent/lent_ranges.h"
#include "agent/metrics/exporter.h"
#include "agent/note_backlog.h"
#include "agent/note_rings.h"
#include "agent/pins.h"
#include "agent/posting.h"
#include "agent/progress_engine.h"
#include "agent/session/connection.h"
#include "agent/stages.h"
#include "base/attempt.h"
#include "base/budget.h"
#include "base/net/listener.h"
#include "core/backend.h"
#include "move/rail_runner.h"
#include "move/sections.h"

namespace viaduct::agent {

class BlockMemory;
class HeldLease;
class PeerImpl;
class Session;
class TransferImpl;

// A test sets the number of cores that agents opened from now on assume. 0: the machine's number.
inline std::atomic<unsigned> cores_for_tests{0};

// A rail of the agent.
struct RunRail {
  RunRail(core::Rail& rail, const core::Capabilities& can, move::RailNews& news, std::size_t number)
      : runner(rail, can, news), counts{.number = number} {}
  move::RailRunner runner;
  RailCounts counts;
};

class AgentImpl final : public Progressable, public std::enable_shared_from_this<AgentImpl> {
 public:
  // A test may pass a `clock`, which has to outlive the agent.
  static Result<std::shared_ptr<AgentImpl>> open(Settings settings,
                                                 const base::MovableClock* clock = nullptr);
  ~AgentImpl() override;
  AgentImpl(const AgentImpl&) = delete;
  AgentImpl& operator=(const AgentImpl&) = delete;
  void shutdown();  // takes the lock; not from a callback

  // Returns an error after shutdown() and in a fork()ed child. Needs no lock.
  Status usable(const char* operation) const;
  Status ofThisProcess(const char* operation) const;  // an error in a fork()ed child only
  // True as soon as shutdown() has begun.
  bool closed() const { return closed_.load(std::memory_order_relaxed); }
  using Held = AgentLock::Held;
  Held hold() const;
  ProgressEngine& engine() { return *engine_; }
  Clock::time_point now() const { return engine_->poller().now(); }
  const Settings& settings() const { return settings_; }

  // The interface Progressable, for the progress engine.
  bool progress() override;
  bool busy() const override;
  unsigned busyRails() const override;
  bool runRails() override;
  bool hasNews() const override { return news_.any(); }
  void stopRails() override;
  void startRails() override;
  bool owesCallbacks() const override { return !owed_.empty(); }
  bool allowWakeups() override { return rings_.allowWakeups(); }
  void suppressWakeups() override;
  bool wakeupsSuppressed() const override { return rings_.wakeupsSuppressed(); }
  void runCallbacks() override;

  // Pins
  PinTable& pins() { return *pins_; }
  // The budget for the pins that all peers together have announced.
  base::Budget& peersPinsBytes() { return peers_pins_bytes_; }
  // Storage and memory of GPUs: the segment as its backend has opened it. Blocks, so the caller
  // must not hold the lock. Host memory: the segment itself.
  Result<Segment> opened(const Segment& memory) const;
  Result<Segment> allocateAt(std::uint32_t device, std::uint64_t bytes) const;  // blocks as well
  // The same with the lock held, for a device that the agent uses already.
  Result<Segment> allocateHeld(std::uint32_t device, std::uint64_t bytes) const;
  void giveUp(std::uint64_t whole) const;  // core::Storage::giveUp() at each storage
  Result<PinInfo> pin(const Segment& memory, std::string label,
                      const core::Audience& audience = core::Audience::everybody());
  Status unpin(std::uint32_t slot);  // releases the lock while it waits
  // The pins that there are now, for digests of blocks in them.
  std::shared_ptr<const BlockMemory> blockMemory();

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
  const std::array<std::uint8_t, 16>& id() const { return id_; }
  bool isThisProcess(const Hello& theirs) const;
  bool isThisHost(const std::string& boot) const { return !boot_.empty() && boot == boot_; }
  bool precedes(const Hello& theirs) const { return id_ < theirs.agent; }
  std::size_t backendCount() const { return backends_.size(); }
  core::Backend& backend(std::size_t index) { return *backends_[index]; }
  std::vector<BackendInfo> backendInfos() const;
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
  bool applyEnded();  // true: there was something
  RunRail& runRail(const core::Rail& rail) { return *run_rails_.at(&rail); }
  move::Sections& sections() { return sections_; }
  void shutSections() {
    if (shuts_++ == 0) sections_.shut();
  }
  void openSections() {
    if (--shuts_ == 0) sections_.open();
  }
  // For transfers that are posted in a section.
  CellCounts& cellCounts(unsigned cell) { return cell_counts_[cell]; }
  void apply(core::Completions& completions);
  // Before a link closes, while rails are stopped: appends the works that no rail has taken.
  void giveBack(const core::Link& link, core::Completions& out);
  // Transfers that wait for their peer (TransferOptions::reach).
  void addReaching(TransferImpl& transfer) { reaching_.push_back(&transfer); }
  void removeReaching(TransferImpl& transfer) { std::erase(reaching_, &transfer); }
  // Has them try again, soon and without the lock: a peer has become ready, or has announced a pin.
  void goOnReaching();
  // Ends those of one peer, or all of them.
  void endReaching(const PeerImpl* peer, const Error& why);
  void owe(std::function<void()> callback);

  // Leases
  LentRanges& lentRanges() { return lent_ranges_; }
  // The duration of a new lease, which VIADUCT_FAULTS may shorten.
  Duration lentFor(Duration asked);
  // Aborts the running transfers under this lease.
  void abortUnder(const HeldLease& lease, const Error& why);

  // Fails the running transfers of this peer with `why`. Its links must be closed already.
  void failTransfersOf(const PeerImpl& peer, const Error& why);
  // Sends heartbeats to all peers at least this often, since one peer needs it.
  void beatSooner(Duration every);

  // The next round of progress calls recheck() of every peer.
  void recheckPeers() { recheck_ = true; }
  Counts& counts() { return counts_; }
  Statistics statistics();
  Result<int> eventFd();
  void ringBell();  // also in a section
  bool poll();      // takes the lock

 private:
  explicit AgentImpl(Settings settings);
  bool forked() const;
  Status openBackends(Deadline until);
  Status openBackend(const core::BackendEntry& entry, Deadline until);
  void openStaging();
  Status openFaults();
  void pinScratch();
  void enter(std::unique_ptr<core::Backend> backend);
  Status openListener(Deadline until);
  Status openFinder(Deadline until);
  Status openExporter(Deadline until);
  Status checkHello() const;
  void accept(base::Fd socket, base::Unproven::Place place);
  void letGo();
  void waitUntilSettled(Held& held);
  Status leftByPeers();
  template <class Skill>
  Result<std::shared_ptr<Skill>> skillFor(MemoryKind kind,
                                          std::shared_ptr<Skill> (core::Backend::*skill)()) const;
  template <class Skill>
  Result<std::shared_ptr<Skill>> skillHeld(MemoryKind kind,
                                           std::shared_ptr<Skill> (core::Backend::*skill)()) const;
  Status removePin(std::uint32_t slot);
  void abandon();
  void handleEvents();
  std::vector<std::shared_ptr<TransferImpl>> reachingTransfers() const;
  void tellOverdue();
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
  // Held by the thread that closes the agent; a second thread waits here until that has ended.
  std::mutex closing_;
  std::shared_ptr<ProgressEngine> engine_;
  std::unique_ptr<FaultSource> faults_;  // null without VIADUCT_FAULTS; outlives the backends
  std::vector<std::unique_ptr<core::Backend>> backends_;
  std::unique_ptr<Stages> stages_;     // after the backends that it gives memory to
  std::vector<BackendInfo> left_out_;  // the backends that are not open
  std::deque<RunRail> rails_;          // bundles keep pointers to them, also after shutdown()
  std::map<const core::Rail*, RunRail*> run_rails_;
  // The rails that run without the lock, and those that need it.
  std::vector<move::RailRunner*> alone_, attended_;
  move::RailNews news_;
  move::Sections sections_;         // posting threads copy in them by themselves
  unsigned shuts_ = 0, stops_ = 0;  // the SectionsShuts and Stills that there are
  std::unique_ptr<PinTable> pins_;
  LentRanges lent_ranges_;
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
  Counts counts_;
  std::array<CellCounts, move::Sections::kCells> cell_counts_;
  // No later than the first deadline of a running transfer.
  Clock::time_point due_ = Clock::time_point::max();
  base::Poller::Id due_timer_ = 0;
  std::vector<TransferImpl*> reaching_;  // transfers that wait for their peer
  bool reaches_again_ = false;           // they are about to try again
  std::vector<std::function<void()>> owed_;
  core::Completions completions_;
  bool recheck_ = false;
  base::Fd bell_, bell_poller_;
  std::atomic<bool> bell_rung_{false};
  Duration beat_every_{};
  Clock::time_point last_beat_{};
  base::Poller::Id beat_timer_ = 0;
};

// While it lives, no thread is in a section. Threads: with the agent's lock held.
class SectionsShut {
 public:
  explicit SectionsShut(AgentImpl& agent) : agent_(agent) { agent_.shutSections(); }
  ~SectionsShut() { agent_.openSections(); }
  SectionsShut(const SectionsShut&) = delete;
  SectionsShut& operator=(const SectionsShut&) = delete;

 private:
  AgentImpl& agent_;
};

// While it lives, all rails are stopped as well: this thread may change what rails and posting
// threads use. Threads: with the agent's lock held.
class Still {
 public:
  explicit Still(AgentImpl& agent) : agent_(agent) { agent_.stopRails(); }
  ~Still() { agent_.startRails(); }
  Still(const Still&) = delete;
  Still& operator=(const Still&) = delete;

 private:
  AgentImpl& agent_;
};

}  // namespace viaduct::agent
