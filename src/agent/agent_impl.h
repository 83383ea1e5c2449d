// The implementation behind Agent: its backends, peers and running transfers. Threads: members are
// called with the agent's lock held unless their comment says otherwise.
#pragma once

#include <viaduct/agent.h>

#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <vector>

#include "agent/basis/basis.h"
#include "agent/finder.h"
#include "agent/parcels/parcels.h"
#include "agent/peers/peers.h"
#include "agent/progress/progress_engine.h"
#include "agent/traffic/stages.h"
#include "agent/traffic/traffic.h"
#include "base/net/metrics_server.h"
#include "host/rdma.h"

namespace viaduct::agent {

// A test sets the number of cores that agents opened from now on assume. 0: the machine's number.
inline std::atomic<unsigned> cores_for_tests{0};

class AgentImpl final : public Basis, public Progressable {
 public:
  // A test may pass a `clock`, which has to outlive the agent.
  static Result<std::shared_ptr<AgentImpl>> open(Settings settings,
                                                 const base::MovableClock* clock = nullptr);
  AgentImpl(const AgentImpl&) = delete;
  AgentImpl& operator=(const AgentImpl&) = delete;
  ~AgentImpl() override;
  void shutdown();  // takes the lock; not from a callback

  // The interface Progressable, for the progress engine.
  bool progress() override;
  bool busy() const override { return peers_.busy() || rails_.busy(); }
  bool awaitsPeers() const override { return !traffic_.empty() || busy(); }
  unsigned busyRails() const override { return rails_.busyAlone(); }
  bool runRails() override { return rails_.runAlone(); }
  bool hasNews() const override { return rails_.haveNews(); }
  void stopRails() override { rails_.stop(); }
  void startRails() override { rails_.start(); }
  bool owesCallbacks() const override { return Basis::owesCallbacks(); }
  bool allowWakeups() override { return peers_.noteRings().allowWakeups(); }
  void suppressWakeups() override;
  void callLoop() override { ringBell(); }
  bool wakeupsSuppressed() const override { return peers_.noteRings().wakeupsSuppressed(); }
  void runCallbacks() override { Basis::runCallbacks(); }

  Peers& peers() { return peers_; }
  Parcels& parcels() { return parcels_; }
  Traffic& traffic() { return traffic_; }
  Status unpin(std::uint32_t slot);  // releases the lock while it waits
  // Asks the meeting place for the Card under that name. Blocks, so the caller must not hold the
  // agent's lock.
  Result<Card> find(const std::string& name, Deadline until) const;
  // ownerOf() waits, without the lock, until the agent that announced the parcel is a ready peer.
  struct ReadyOwner {
    std::shared_ptr<PeerImpl> peer;
    std::array<std::uint8_t, 16> id;
  };
  Result<ReadyOwner> ownerOf(const std::string& parcel, Deadline until);
  // mayAnnounce(): whether a parcel can be announced at the meeting place. announce() announces it
  // until its last handle is closed, and blocks.
  Status mayAnnounce(const std::string& parcel, bool has_other_owner) const;
  Status announce(Publication& publication, const std::string& parcel);
  Statistics statistics();
  // Whether nobody may still use released memory.
  bool settled() { return peers_.settled(); }
  // These three take the lock themselves.
  Result<std::vector<DrainLeft>> drain(Deadline until);
  Status undrain();
  DrainState drainState();

 private:
  explicit AgentImpl(Settings settings);
  void openStaging();
  Status openFinder(Deadline until);
  Result<Finder*> placeFor(const std::string& operation) const;
  Result<std::shared_ptr<PeerImpl>> readyOwner(const AnnouncedOwner& owner, Deadline until);
  Status openExporter(Deadline until);
  Result<std::uint64_t> startDrain();
  void endRest(const std::vector<DrainLeft>& rest);
  void letGo();
  void waitUntilSettled(Held& held);
  Status removePin(std::uint32_t slot);
  void abandon();

  // Held by the thread that closes the agent; a second thread that closes it waits here until the
  // first is done.
  std::mutex closing_;
  Traffic traffic_;
  Parcels parcels_;
  Peers peers_;
  std::unique_ptr<Stages> stages_;                 // freed after the backends that use its memory
  std::unique_ptr<Finder> finder_;                 // null without a meeting place
  std::unique_ptr<base::MetricsServer> exporter_;  // null without a metrics endpoint
  std::string metrics_endpoint_;
  std::mutex naming_;  // held while the name is withdrawn or published again; taken before the lock
  std::uint64_t drain_ = 0, last_drain_ = 0;  // number of the running drain, or 0; last number
  bool drain_ends_ = false;                   // undrain() comes too late now
  const std::uint64_t rdma_ports_ = host::rdmaPorts().size();
};

}  // namespace viaduct::agent
