// The handle of one agent: this process's end of its sessions. Threads: call from any; callbacks
// run on the agent's progress thread, or on a thread that polls, waits or closes the agent. After
// fork(), a child's calls are refused.
#pragma once

#include <viaduct/backend.h>
#include <viaduct/blocks.h>
#include <viaduct/card.h>
#include <viaduct/deadline.h>
#include <viaduct/digest.h>
#include <viaduct/drain.h>
#include <viaduct/lease.h>
#include <viaduct/mark_stream.h>
#include <viaduct/memory.h>
#include <viaduct/note.h>
#include <viaduct/parcel.h>
#include <viaduct/peer.h>
#include <viaduct/pin.h>
#include <viaduct/result.h>
#include <viaduct/settings.h>
#include <viaduct/statistics.h>
#include <viaduct/transfer.h>

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct {

namespace agent {
class AgentImpl;
struct AgentOfAClock;  // for tests: opens an agent on a clock that the test moves
}  // namespace agent

struct AllocateOptions {
  std::string label = {};
  // Takes 2 MiB pages; allocate() fails if the system has too few. Peers on this host map such
  // memory only for reading: docs/choosing.md
  bool huge_pages = false;
  // Allocates memory of the GPU with this number under CUDA_VISIBLE_DEVICES, not host memory.
  std::optional<std::uint32_t> device = {};
};

class Agent {
 public:
  // Opens with settingsFromEnvironment(): the defaults, changed by VIADUCT_* variables.
  static Result<Agent> open();
  // Opens with exactly these settings, and reads no environment variable. Both overloads end within
  // Settings::deadline, even if no name server answers for a host in Settings::listen or meet.
  static Result<Agent> open(const Settings& settings);
  Agent(const Agent&) = delete;
  Agent& operator=(const Agent&) = delete;
  Agent(Agent&&) noexcept;
  Agent& operator=(Agent&&) noexcept;
  ~Agent();  // calls close(); Pins and Transfers that outlive the agent are dead but harmless
  // Says goodbye to all peers. Running and later calls from other threads return errors, and waits
  // end. A callback must not call it.
  void close();

  // Leaves without losing a transfer (docs/drain.md), then closes the agent. Gives up the published
  // name, and tells all peers. From then on, neither end begins a new session, plan, post, stream
  // of marks or lease with this agent: these calls fail with kDraining, and no byte moves. Running
  // transfers go on to their end, as do live leases with the posts under them, and open streams
  // with their posts. Returns when all of that has ended, or after `until`. Then it ends the rest
  // within twice Settings::grace: it revokes the leases, and fails the transfers. The result has
  // that rest, and is empty if nothing was cut off. Any error leaves the agent open; kCancelled:
  // undrain() was called. A callback must not call it.
  Result<std::vector<DrainLeft>> drain(Deadline until);
  // Cancels a running drain(): publishes the name again, and tells all peers. Fails with kInvalid
  // if no drain runs or its deadline has passed. If the name belongs to a successor now, the error
  // says so and the drain goes on.
  Status undrain();
  // The work that a running drain() still waits for.
  DrainState drainState() const;

  const std::string& name() const;
  // The open backends, in the order in which a transfer tries them (docs/choosing.md). Then the
  // backends that are not open or not built in, each with the reason.
  std::vector<BackendInfo> backends() const;

  // Memory that peers on this host can map, registered at once and freed with its Pin. It lies in a
  // file of its own: a peer may keep that file, but nothing of ours is written there later. Fails
  // with kExhausted if the host, the cgroup or a process limit has too little memory.
  Result<Pin> allocate(std::uint64_t bytes, const AllocateOptions& options = {});
  // Registers the caller's memory. The caller keeps it until Pin::release() says that it may be
  // freed.
  Result<Pin> pin(const Segment& memory, std::string label = {});

  // The card that grants all pins, now and later, for reading and writing.
  Card card() const;
  std::vector<std::byte> exportCard() const { return card().encode(); }
  // A card that grants no more than `grant`. Its holder sees, reads and writes only the granted
  // pins. docs/cards.md
  Result<Card> card(Grant grant) const;
  Result<std::vector<std::byte>> exportCard(Grant grant) const;
  // Revokes a card with a grant, and all cards that were narrowed from it. On return their sessions
  // have ended, and their transfers end. `until`: the end of the card's grant, when the agent
  // forgets its id; without it the id is remembered as long as the agent lives. Fails with
  // kExhausted, and revokes nothing, if 65,536 ids are remembered.
  Status revokeCard(const CardId& id,
                    std::optional<std::chrono::system_clock::time_point> until = {});
  Status revokeCard(const Card& card);
  // Revokes all cards with a grant. Cards without a grant, which grant all pins, stay valid.
  Status revokeCards();
  // Both calls start to connect in the background and return; see Peer::ready. `mine` limits the
  // pins and the access that the peer gets here in sessions that this agent dials; none: no limit.
  Result<Peer> importCard(std::span<const std::byte> blob, std::optional<Grant> mine = {});
  Result<Peer> connect(const Card& card, std::optional<Grant> mine = {});
  // Connects by address, with the group's secret from Settings.
  Result<Peer> connect(std::string_view host_port);
  // Finds a peer by name at the meeting place of Settings::meet, where each agent publishes its
  // name in open(). Waits for the name up to `until`. On return the peer may still be connecting.
  Result<Peer> find(std::string_view name, Deadline until);
  // This agent as a peer of itself, which is ready. Transfers with it need a backend that works
  // without a network, such as local or file.
  Result<Peer> self();
  // All known peers. Remembers at most 256 departed peers that connected to us and that no handle
  // refers to.
  std::vector<Peer> peers() const;
  Result<Peer> peer(std::string_view name) const;

  // Plans a copy once: `kWrite` from `local` to `remote`, `kRead` the other way. Both name the same
  // number of bytes; blocks need not be of equal size. Every byte has to lie in a live Pin here and
  // at the peer; the written side may name no block twice.
  Result<Transfer> plan(OpKind kind, const Peer& peer, const Selection& local,
                        const Selection& remote, TransferOptions options = {});
  // Plans a copy to or from the blocks of a lease at these positions of BorrowedLease::blocks();
  // without positions, all of them. Its posts are part of the lease: after its end they fail with
  // kStale.
  Result<Transfer> plan(OpKind kind, const BorrowedLease& lease, const Selection& local,
                        Indices positions = {}, TransferOptions options = {});

  // Lends pinned blocks to `peer` for a time. A lease is a promise between the two agents about
  // transfers that name it; it takes no access from other transfers.
  Result<Lease> lease(const Peer& peer, const Selection& blocks, LeaseOptions options = {});
  // Takes a lease that `peer` has granted this agent, once. Fails with kStale if it has ended.
  // `on_end` runs as LeaseOptions::on_end does.
  Result<BorrowedLease> borrow(const Peer& peer, std::span<const std::byte> ticket,
                               std::function<void(LeaseState)> on_end = {});

  // The digests of blocks in pinned host memory or memory of GPUs, one for each block of the
  // selection. The calling thread computes them. The memory must stay pinned and unchanged
  // meanwhile.
  Result<std::vector<Digest>> digestBlocks(const Selection& selection) const;
  // Computes the digests of blocks as digestBlocks() does, and compares them with `digests`. Fails
  // with kCorrupt, and the error names the first block that has another digest.
  Status checkBlocks(const Selection& selection, std::span<const Digest> digests) const;

  // Takes the next note that has arrived, from any peer. Makes no progress: a loop over takeNote()
  // gets its notes from the progress thread. poll() and waitNote() fetch notes on the caller's
  // thread.
  std::optional<Note> takeNote();
  Result<Note> waitNote(Deadline until);

  // Opens this end of a stream of marks with `peer`, in the present session. Marks that came before
  // are there at once. kExhausted: some of them were dropped, because the early marks of streams
  // that nobody had opened took more than 1 MiB.
  Result<MarkStream> openMarks(const Peer& peer, MarkStreamOptions options);

  // Publishes a parcel under this name. A second call with the same declaration gives the same
  // parcel.
  Result<PublishedParcel> publish(const std::string& name, PublishOptions options);
  // Fetches a parcel that `owner` has published, or will publish before the deadline.
  Result<ParcelFetch> fetch(const Peer& owner, const std::string& name, FetchOptions options);
  // Fetches a parcel that was published with PublishOptions::at_place, without naming its owner.
  // Waits until the owner is known and ready, up to the deadline of the fetch.
  Result<ParcelFetch> fetch(const std::string& name, FetchOptions options);
  // Waits up to `until` for the owner of a parcel that was published with PublishOptions::at_place.
  // On return the peer is ready. Ignores an entry that the owner's agent left before a restart.
  Result<ParcelOwnerFound> findParcel(const std::string& name, Deadline until);

  // Counts since open(), and the present state. Delays the agent's other calls by some
  // microseconds, and with 10,000 peers by less than a millisecond (docs/measured/metrics.md).
  Statistics statistics() const;

  // Makes progress on everything once, without blocking. Returns true if something happened.
  bool poll();
  // A descriptor for the caller's own event loop. It is readable while poll() has something to do,
  // and once more after notes or marks arrived or transfers ended, even before the first eventFd().
  // Watch it, but never read from it.
  Result<int> eventFd();

 private:
  friend struct agent::AgentOfAClock;
  explicit Agent(std::shared_ptr<agent::AgentImpl> impl);
  std::shared_ptr<agent::AgentImpl> impl_;
};

}  // namespace viaduct
