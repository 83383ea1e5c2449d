// Serves the storage requests of one peer: copies between the pinned storage of this agent and the
// ring that it lends to the peer. Threads: under the agent's exclusive lock.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <vector>

#include "move/staging/staging_host.h"
#include "move/staging/staging_message.h"

namespace viaduct::move {

class StagingServer final : private HopOwner {
 public:
  // `wake` is called when progress() has work that needs no further event. `ring` returns a ring,
  // as StagingHost::ring() does. None: there is no memory now, and `ring` is called again later.
  using RingSource = std::function<Result<std::optional<StagingRing>>(RingPlace)>;
  StagingServer(StagingHost& host, std::function<Status(const StagingMessage&)> send,
                std::function<void()> wake, RingSource ring)
      : host_(host), send_(std::move(send)), wake_(std::move(wake)), ring_(std::move(ring)) {}

  void take(const RingRequest& request);
  void take(const RingReturn& given);
  void take(StorageRequest&& request);
  void take(const StorageCancel& cancel);
  void take(const WholeEnd& end);
  // Asks for the lent rings back. Returns for how long the peer has kept a recalled ring: the
  // longest such time, or 0.
  Duration recall();
  void progress();
  void close();

 private:
  void hopEnded(std::uint32_t chunk, HopEnd end) override;
  struct Served {
    std::optional<StorageRequest> request = {};
    std::unique_ptr<Hop> hop = {};  // null: it waits for its turn
    std::optional<HopEnd> ended = {};
    bool waits() const { return request && !hop && !ended; }
  };
  struct LentRing {
    StagingRing ring;
    bool returned = false;  // it is freed once no request uses it
    std::optional<Clock::time_point> recalled = {};
  };
  const StagingRing* lent(RingPlace place) const;
  void recall(RingPlace place, LentRing& lent);
  void freeReturned();
  void lendWanted();
  void answer(RingPlace place, Result<StagingRing> ring);
  Status check(const StorageRequest& request) const;
  Status checkAccess(const StoragePiece& piece, bool store, bool packed) const;
  // Whether the request is for host memory, whose pieces the peer has packed or wants packed.
  bool isPacked(const StorageRequest& request) const;
  Status checkWhole(std::uint64_t whole);
  void start(std::uint32_t number);
  std::optional<Error> forPeer(std::optional<Error> why, const StorageRequest& request) const;
  void answer(std::uint32_t number);

  StagingHost& host_;
  const std::function<Status(const StagingMessage&)> send_;
  const std::function<void()> wake_;
  const RingSource ring_;
  std::map<RingPlace, LentRing> lent_;
  std::vector<RingPlace> wanted_;                  // by requests without an answer, in their order
  std::vector<Served> served_;                     // indexed by the request's first chunk
  std::map<std::uint64_t, std::uint64_t> wholes_;  // the peer's numbers, and this agent's
};

}  // namespace viaduct::move
