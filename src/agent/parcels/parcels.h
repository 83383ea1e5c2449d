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
#include "base/attempt.h"
#include "base/poller.h"

namespace viaduct::agent {

class Basis;
class Parcels;
class Traffic;
class TransferImpl;

// A part that this agent has made ready.
struct HeldPart {
  Blocks blocks = {};
  std::vector<Extent> ranges = {};  // core::rangesOf() the blocks
  base::Bytes digests = {};         // encoded; empty without digests
};

// The publisher's end, behind PublishedParcel.
class Publication {
 public:
  Publication(std::shared_ptr<Basis> basis, Parcels& parcels, std::uint64_t id)
      : basis_(std::move(basis)), parcels_(parcels), id_(id) {}
  Basis& basis() const { return *basis_; }
  Parcels& parcels() const { return parcels_; }
  std::uint64_t id() const { return id_; }

  PublishOptions options = {};  // the functions, and whether blocks get digests
  std::map<ParcelPart, HeldPart> parts = {};
  std::uint64_t taken = 0;
  std::optional<ParcelEnd> end = {};
  base::Poller::Id timer = 0;  // of its life
  base::Watchers watchers = {};

 private:
  const std::shared_ptr<Basis> basis_;
  Parcels& parcels_;
  const std::uint64_t id_;
};

// A read of one part.
struct PartRead {
  std::shared_ptr<HeldLease> lease = {};
  std::vector<Digest> digests = {};
  std::shared_ptr<TransferImpl> transfer = {};  // null: not planned yet
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
  std::optional<ParcelEnd> end = {};
  base::Poller::Id timer = 0;  // of its deadline
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
// The error of a fetch that did not end as whole, with the part and the rank.
Error errorOf(const ParcelEnd& end, const std::string& name);

class Parcels final : public ParcelFrames {
 public:
  Parcels(Basis& basis, Traffic& traffic);
  ~Parcels() override;

  // The parts of `options` are declared, and become ready with makeReady().
  Result<std::shared_ptr<Publication>> publish(const std::string& name, PublishOptions options);
  Status makeReady(Publication& publication, ParcelPart part, HeldPart held);
  void withdraw(Publication& publication, ParcelEnd end);
  Result<std::shared_ptr<Fetching>> fetch(std::shared_ptr<PeerImpl> peer, const std::string& name,
                                          FetchOptions options);
  void giveUp(Fetching& fetching, ParcelOutcome outcome, Error why);
  std::vector<ParcelPart> missing(const Publication& publication) const;

  Status heard(PeerImpl& peer, std::span<const std::byte> payload) override;
  void sessionOver(PeerImpl& peer, const Error& why) override;

 private:
  struct ParcelSession {
    std::shared_ptr<PeerImpl> peer;
    std::uint64_t last_fetch = 0;
  };
  struct LentPart {
    std::shared_ptr<PeerImpl> peer;
    std::shared_ptr<LentLease> lease;
  };
  using LentKey = std::pair<TakerId, ParcelPart>;

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
  void over(Fetching& fetching, ParcelEnd end);
  // These two take the lock.
  void read(const std::shared_ptr<Fetching>& fetching, ParcelPart part);
  Status plan(Fetching& fetching, ParcelPart part);
  void readEnded(const std::shared_ptr<Fetching>& fetching, ParcelPart part,
                 std::optional<Error> why);
  void leaseOver(const LentKey& key);
  void changed(base::Watchers& watchers);

  Basis& basis_;
  Traffic& traffic_;
  ParcelOwner owner_;
  std::map<std::uint64_t, std::shared_ptr<Publication>> publications_;
  std::map<LentKey, LentPart> lent_;
  std::map<std::uint64_t, ParcelSession> sessions_;
  std::map<TakerId, std::shared_ptr<Fetching>> fetches_;
  std::vector<std::shared_ptr<Fetching>> stepped_;  // their actions wait
  bool running_ = false;
};

}  // namespace viaduct::agent
