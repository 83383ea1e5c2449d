// The parcels of an agent: carries out what ParcelOwner and ParcelTaker decide, with leases,
// transfers and frames. Threads: members are called with the agent's lock held unless their comment
// says otherwise.
#pragma once

#include <viaduct/parcel.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "agent/parcels/parcel_owner.h"
#include "agent/parcels/parcel_taker.h"
#include "agent/peers/lease_impl.h"
#include "agent/peers/parcel_frames.h"
#include "agent/session/lease_ticket.h"
#include "base/attempt.h"
#include "base/poller.h"

namespace viaduct::agent {

class Basis;
class Parcels;
class Peers;
class Traffic;
class TransferImpl;

// A part that this agent has made ready.
struct HeldPart {
  TakenBlocks taken = {};
  base::Bytes digests = {};  // encoded; empty without digests
};

// The publisher's end, behind PublishedParcel.
class Publication {
 public:
  Publication(std::shared_ptr<Basis> basis, Parcels& parcels, std::uint64_t id)
      : basis_(std::move(basis)), parcels_(parcels), id_(id) {}
  Basis& basis() const { return *basis_; }
  Parcels& parcels() const { return parcels_; }
  std::uint64_t id() const { return id_; }

  // If another agent decides about the parcel: that agent as a peer, the session with it, and the
  // parcel's number in that session.
  std::shared_ptr<PeerImpl> owner = {};
  std::uint64_t session = 0, number = 0;
  ParcelSpec spec = {};
  std::optional<ParcelEnd> closing = {};

  PublishOptions options = {};  // the functions, and whether blocks get digests
  std::map<ParcelPart, HeldPart> parts = {};
  std::size_t handles = 0;
  // Takes the parcel's name from the meeting place, without the lock. None: the name is not there.
  std::function<void()> retract = {};
  std::uint64_t taken = 0;
  std::optional<ParcelEnd> end = {};
  base::Poller::Id timer = 0;  // for PublishOptions::life
  base::Watchers watchers = {};

 private:
  const std::shared_ptr<Basis> basis_;
  Parcels& parcels_;
  const std::uint64_t id_;
};

// The reads of a fetch from one agent.
struct HolderReads {
  std::vector<ParcelPart> queue = {};  // in the order in which the parts became ready
  std::size_t next = 0;                // the index in the queue of the next part to read
  std::uint64_t running = 0, running_bytes = 0;
};

// A read of one part.
struct PartRead {
  std::shared_ptr<HeldLease> lease = {};
  HolderReads* running_at = nullptr;  // null: it waits in a queue
  std::uint64_t bytes = 0;
  std::vector<Digest> digests = {};
  std::shared_ptr<TransferImpl> transfer = {};  // null: not planned, or has nothing to copy
  std::shared_ptr<base::Watcher> watcher = {};  // for a transfer that runs on after its post
  bool cancelled = false;
};

// The consumer's end, behind ParcelFetch.
class Fetching final : public std::enable_shared_from_this<Fetching> {
 public:
  Fetching(std::shared_ptr<Basis> basis, Parcels& parcels, std::shared_ptr<PeerImpl> peer,
           TakerId id, WantMessage want, FetchOptions of)
      : options(std::move(of)),
        taker(std::move(want)),
        basis_(std::move(basis)),
        parcels_(parcels),
        peer_(std::move(peer)),
        id_(id) {}
  Basis& basis() const { return *basis_; }
  Parcels& parcels() const { return parcels_; }
  const std::shared_ptr<PeerImpl>& peer() const { return peer_; }
  TakerId id() const { return id_; }

  const FetchOptions options;
  ParcelTaker taker;
  std::map<ParcelPart, PartRead> reads = {};
  std::map<const PeerImpl*, HolderReads> holders = {};
  std::optional<ParcelEnd> end = {};
  base::Poller::Id timer = 0;  // for the deadline of the fetch
  base::Watchers watchers = {};

 private:
  const std::shared_ptr<Basis> basis_;
  Parcels& parcels_;
  const std::shared_ptr<PeerImpl> peer_;
  const TakerId id_;
};

// The blocks as a part that can be lent. Makes their digests if the publication wants them, without
// the lock.
Result<HeldPart> heldPart(Publication& publication, const Selection& blocks);
// Says whether these blocks are ready as that part, in this order. Takes the lock.
bool hasPart(Publication& publication, const PublishedPart& part);
// The peer of that name, which may be this agent itself. Null: none is known.
std::shared_ptr<PeerImpl> namedPeer(Peers& peers, const std::string& name);
// The error of a fetch that did not end as whole, with the part and the rank.
Error errorOf(const ParcelEnd& end, const std::string& name);

class Parcels final : public ParcelFrames {
 public:
  Parcels(Basis& basis, Traffic& traffic);
  ~Parcels() override;

  // The parts of `options` are declared, and become ready with makeReady().
  // `owner`: the agent that decides; null: this one. Counts a handle of the publication.
  Result<std::shared_ptr<Publication>> publish(const std::string& name, PublishOptions options,
                                               std::shared_ptr<PeerImpl> owner);
  Status makeReady(const std::shared_ptr<Publication>& publication, ParcelPart part,
                   HeldPart&& held);
  void withdraw(Publication& publication, ParcelEnd end);
  Result<std::shared_ptr<Fetching>> fetch(std::shared_ptr<PeerImpl> peer, const std::string& name,
                                          FetchOptions options);
  void giveUp(Fetching& fetching, ParcelOutcome outcome, Error why);
  std::vector<ParcelPart> missing(const Publication& publication) const;

  // Refuses fetches that wait for a version, because this agent drains.
  void refuseWaiting(const Error& why);
  // The agent closes, and its peers are lost.
  void close();

  Status heard(PeerImpl& peer, std::span<const std::byte> payload) override;
  std::uint64_t running(const PeerImpl& peer) const override;
  void sessionOver(PeerImpl& peer, const Error& why) override;

 private:
  struct ParcelSession {
    std::shared_ptr<PeerImpl> peer;
    std::uint64_t last_fetch = 0, last_add = 0;  // numbers that this agent has given
    std::uint64_t heard_add = 0;                 // the last number that the peer has given
    std::size_t added_parts = 0;                 // of the peer's parcels here
  };
  // A lease for a taker. `owner` is the session of the agent that decides; 0: this agent.
  struct LentKey {
    std::uint64_t owner = 0;
    TakerId taker = {};
    ParcelPart part = {};
    friend auto operator<=>(const LentKey&, const LentKey&) = default;
  };
  struct LentPart {
    std::shared_ptr<PeerImpl> peer;
    std::shared_ptr<LentLease> lease;
    std::shared_ptr<Publication> publication;
  };
  using SessionNumber = std::pair<std::uint64_t, std::uint64_t>;  // a session, and a number in it

  ParcelSession& sessionOf(PeerImpl& peer);
  Status hear(PeerImpl& peer, ParcelMessage message);
  Status hearAsOwner(PeerImpl& peer, WantMessage want);
  Status hearAsTaker(TakerId id, ParcelMessage message);
  // Carries out actions until none is left.
  void run();
  void run(TellTaker& tell);
  void run(LendPart& lend);
  void run(CutTaker& cut);
  void run(GroupOver& over);
  void run(ParcelOver& over);
  void runOf(const std::shared_ptr<Fetching>& fetching);
  void begin(const std::shared_ptr<Fetching>& fetching, ReadyMessage ready);
  void startReads(const std::shared_ptr<Fetching>& fetching, HolderReads& holder);
  void cancelReads(const std::shared_ptr<Fetching>& fetching);
  void over(Fetching& fetching, ParcelEnd end);
  // These two take the lock.
  void read(const std::shared_ptr<Fetching>& fetching, ParcelPart part);
  Status plan(Fetching& fetching, ParcelPart part);
  // `why`: none if the result of the transfer counts.
  void readEnded(const std::shared_ptr<Fetching>& fetching, ParcelPart part,
                 std::optional<Error> why);
  Result<ReadyMessage> lendPart(const LentKey& key, const std::shared_ptr<Publication>& publication,
                                const std::shared_ptr<PeerImpl>& peer);
  void cutLeases(std::uint64_t owner, TakerId taker);
  void leaseOver(const LentKey& key);
  void publicationOver(Publication& publication, const ParcelEnd& end);

  // In joined_parcels.cc: parcels with parts at several agents. As the owner:
  Status hearAdd(PeerImpl& peer, AddMessage add);
  Status hearOfAdded(PeerImpl& peer, const ParcelMessage& message);
  void askHolder(const LendPart& lend);
  void tellHolders(const ParcelOver& over);
  // As a holder:
  Result<std::shared_ptr<Publication>> join(const std::string& name, PublishOptions options,
                                            std::shared_ptr<PeerImpl> owner);
  Status hearAsHolder(PeerImpl& peer, const ParcelMessage& message);
  LentMessage lent(const LendMessage& asked, PeerImpl& owner);
  void endJoined(const std::shared_ptr<Publication>& publication);
  void holderLost(std::uint64_t session);
  void ownerLost(std::uint64_t session, const Error& why);
  void changed(base::Watchers& watchers);

  Basis& basis_;
  Traffic& traffic_;
  ParcelOwner owner_;
  std::map<std::uint64_t, std::shared_ptr<Publication>> publications_;
  std::map<LentKey, LentPart> lent_;
  std::map<std::uint64_t, ParcelSession> sessions_;
  // The parcels of this agent to which other ranks have added parts. added_: the parcel, by session
  // and the rank's number for it. number_of_: that number, by session and parcel.
  std::map<SessionNumber, std::uint64_t> added_, number_of_;
  std::map<SessionNumber, std::shared_ptr<Publication>> joined_;  // of parcels with other owners
  std::map<TakerId, std::shared_ptr<Fetching>> fetches_;
  std::vector<std::shared_ptr<Fetching>> stepped_;  // fetches with actions to carry out
  bool running_ = false;
};

}  // namespace viaduct::agent
