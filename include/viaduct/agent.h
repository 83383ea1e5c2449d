// One process's end of the fabric. Threads: call from any; callbacks run on the agent's own thread
// or on one that polls or waits. Not across fork(): a child's calls are refused.
#pragma once

#include <viaduct/backend.h>
#include <viaduct/blocks.h>
#include <viaduct/card.h>
#include <viaduct/deadline.h>
#include <viaduct/memory.h>
#include <viaduct/note.h>
#include <viaduct/peer.h>
#include <viaduct/pin.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>
#include <viaduct/statistics.h>
#include <viaduct/transfer.h>

#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

namespace agent {
class AgentImpl;
struct AgentOfAClock;  // of tests
}

struct AllocateOptions {
  std::string label = {};
  bool huge_pages = false;  // 2 MiB pages; an error when the system has none to give
};

class Agent {
 public:
  // With settingsFromEnvironment(): the defaults, changed by VIADUCT_* variables.
  static Result<Agent> open();
  // With exactly these settings, whatever the environment says. Both end within Settings::deadline,
  // also where Settings::listen or meet name a host that no name server answers for.
  static Result<Agent> open(const Settings& settings);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  Agent(Agent&&) noexcept;
  Agent& operator=(Agent&&) noexcept;
  ~Agent();  // close(); Pins and Transfers that outlive it are dead but harmless
  // Says goodbye to all peers. Other threads may be in calls of this agent: those, and later ones,
  // return errors, and waits end. Not from a callback.
  void close();

  const std::string& name() const;
  // In the order in which a transfer tries them (docs/choosing.md), then those that are not open,
  // each with the reason, also where it is not built in.
  std::vector<BackendInfo> backends() const;

  // Memory that peers on this host can map, registered at once and freed with its Pin. It lies in a
  // file of its own. A peer may keep that file; nothing of ours is written there later. kExhausted
  // where the host, the cgroup or a limit of the process cannot give as much; it names the room.
  Result<Pin> allocate(std::uint64_t bytes, const AllocateOptions& options = {});
  // Registers memory of the caller, who keeps it alive at least as long as the Pin.
  Result<Pin> pin(const Segment& memory, std::string label = {});

  Card card() const;
  std::vector<std::byte> exportCard() const { return card().encode(); }
  // Both start to connect in the background and return; see Peer::ready.
  Result<Peer> importCard(std::span<const std::byte> blob);
  Result<Peer> connect(const Card& card);
  // By address, with the group's secret from Settings.
  Result<Peer> connect(std::string_view host_port);
  // By name, at the meeting place of Settings::meet, where every agent is from open() to its end.
  // Waits for the name up to `until`; the peer is then being connected to.
  Result<Peer> find(std::string_view name, Deadline until);
  // This agent as a peer of itself.
  Result<Peer> self();
  // Of those that came from outside, are gone and that nobody holds, the last 256 are known.
  std::vector<Peer> peers() const;
  Result<Peer> peer(std::string_view name) const;

  // Plans a copy once: `kWrite` from `local` to `remote`, `kRead` the other way. Both name the same
  // number of bytes; blocks need not be of equal size. Every byte has to lie in a live Pin here and
  // at the peer; the written side may name no block twice.
  Result<Transfer> plan(OpKind kind, const Peer& peer, const Selection& local,
                        const Selection& remote, TransferOptions options = {});

  // The next note that has arrived, from any peer. Makes no progress: a loop over takeNote() gets
  // its notes from the progress thread; poll() or waitNote() fetch them on the caller's thread.
  std::optional<Note> takeNote();
  Result<Note> waitNote(Deadline until);

  // What the agent has done so far. Takes the lock for some microseconds, and for 10,000 peers for
  // less than a millisecond (docs/measured/metrics.md).
  Statistics statistics() const;

  // Moves everything along once, without blocking; true when something happened.
  bool poll();
  // Readable while poll() has something to do, and once more for notes that have come and transfers
  // that have ended meanwhile: for the caller's own event loop. Poll it, do not read it.
  Result<int> eventFd();

 private:
  friend struct agent::AgentOfAClock;
  explicit Agent(std::shared_ptr<agent::AgentImpl> impl);
  std::shared_ptr<agent::AgentImpl> impl_;
};

}  // namespace viaduct
