#include "agent/traffic/stages.h"

#include <sys/mman.h>
#include <sys/uio.h>

#include <algorithm>
#include <atomic>
#include <climits>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "agent/traffic/posting.h"
#include "agent/traffic/routes.h"
#include "agent/traffic/traffic.h"
#include "base/keep_forever.h"
#include "move/staging/staging_backend.h"

namespace viaduct::agent {
namespace {

// NOLINTNEXTLINE(performance-no-int-to-ptr): a registered address becomes memory here
std::byte* pointer(std::uint64_t address) { return reinterpret_cast<std::byte*>(address); }

// A hop over the backends of the agent.
class PostedHop final : public Posting {
 public:
  PostedHop(Traffic& traffic, std::shared_ptr<PeerImpl> peer, OpKind kind, Priority priority,
            move::HopOwner& owner, std::uint32_t chunk)
      : Posting(traffic, std::move(peer), kind, priority), owner_(&owner), chunk_(chunk) {}

  Status start(core::OpList list, core::Requirement required) {
    if (!peer_->isOpen()) return peer_->notReady("staging");
    required.no_staging = true;
    required.packed = false;
    VIADUCT_TRY(auto bundles, route(*basis_, *peer_, kind_, std::move(list), required));
    take(std::move(bundles));
    epoch_ = peer_->epoch();
    begun_ = basis_->now();
    begin();
    offer();
    endIfOver();
    return Ok{};
  }
  void cancel() {
    abort({.code = Code::kCancelled, .operation = "transfer", .peer = peer_->name()});
  }
  // Ends without telling the owner.
  void leaveOwner() {
    owner_ = nullptr;
    cancel();
  }

 private:
  void over() override {
    end(outcome());
    basis_->engine().takeOverNow();  // the staged transfer goes on
    if (owner_ == nullptr) return;
    Path path;
    addTo(path);
    // The session's end also ends copies that the kernel or a GPU has not finished.
    const bool unsettled = peer_->endedEpoch() >= epoch_ && !peer_->settled();
    owner_->hopEnded(chunk_,
                     {.error = error_, .shares = std::move(path.shares), .unsettled = unsettled});
  }

  move::HopOwner* owner_;
  const std::uint32_t chunk_;
  std::uint64_t epoch_ = 0;  // the session of the hop
};

// Hops that were dropped while they ran.
using Hops = std::vector<std::unique_ptr<PostedHop>>;

class HopHandle final : public move::Hop {
 public:
  HopHandle(std::unique_ptr<PostedHop> hop, std::shared_ptr<Hops> left)
      : hop_(std::move(hop)), left_(std::move(left)) {}
  HopHandle(const HopHandle&) = delete;
  HopHandle& operator=(const HopHandle&) = delete;
  ~HopHandle() override {
    if (!hop_->running()) return;
    PostedHop& hop = *left_->emplace_back(std::move(hop_));
    hop.leaveOwner();
  }
  void cancel() override { hop_->cancel(); }

 private:
  std::unique_ptr<PostedHop> hop_;
  const std::shared_ptr<Hops> left_;
};

// A copy that has ended inside start().
class EndedHop final : public move::Hop {
 public:
  void cancel() override {}
};

class Host final : public move::StagingHost {
 public:
  Host(Peers& peers, Traffic& traffic, Stages& stages, PeerImpl& peer)
      : basis_(peers.basis()), peers_(peers), traffic_(traffic), stages_(stages), peer_(peer) {}
  Host(const Host&) = delete;
  Host& operator=(const Host&) = delete;
  ~Host() override {
    for (auto& ring : rings_) stages_.freeRing(std::move(ring), peer_, settling());
  }

  Clock::time_point now() const override { return basis_.now(); }
  const PinInfo* ownPin(std::uint32_t slot) const override {
    const bool live = basis_.pins().generation(slot) != 0;
    return live && basis_.pins()[slot].isShared() ? &basis_.pins()[slot].info : nullptr;
  }
  core::PinRight peersRight(std::uint32_t slot) const override {
    const bool live = basis_.pins().generation(slot) != 0;
    return live ? peer_.rights().to(slot, basis_.pins()[slot].audience) : core::PinRight{};
  }
  std::uint64_t ownGeneration(std::uint32_t slot) const override {
    return basis_.pins().generation(slot);
  }
  std::uint64_t peerGeneration(std::uint32_t slot) const override {
    const auto found = peer_.pins().all().find(slot);
    return found == peer_.pins().all().end() ? 0 : found->second.owners_generation;
  }
  Result<std::optional<move::StagingRing>> ring(bool lent,
                                                std::optional<std::uint32_t> gpu) override {
    const auto audience =
        lent ? core::Audience::only(peer_.sessionNumber()) : core::Audience::nobody();
    VIADUCT_TRY(auto made, stages_.makeRing(audience, gpu));
    if (!made) return std::optional<move::StagingRing>();
    return std::optional(rings_.emplace_back(std::move(made))->ring);
  }
  void giveBack(std::uint32_t pin) override {
    const auto found =
        std::ranges::find_if(rings_, [pin](const auto& ring) { return ring->ring.pin == pin; });
    stages_.freeRing(std::move(*found), peer_, settling());
    rings_.erase(found);
  }
  bool hasRoom() const override { return stages_.hasRoom(); }
  Duration deadline() const override { return basis_.settings().deadline; }
  bool sharesGpus(const core::Requirement& required) const override {
    return anyGpuLink(required, [](const core::Link&) { return true; });
  }
  bool reachesGpus(OpKind kind, std::uint32_t local_pin, std::uint32_t remote_pin,
                   const core::Requirement& required) const override {
    return anyGpuLink(required, [&](const core::Link& link) {
      return link.reaches(kind, local_pin, remote_pin).has_value();
    });
  }
  Result<std::unique_ptr<move::Hop>> start(To to, OpKind kind, core::OpList list,
                                           const core::Requirement& required, move::HopOwner& owner,
                                           std::uint32_t chunk) override {
    if (to == To::kMemory) return copyNow(kind, list, owner, chunk);
    auto over = peer_.shared_from_this();
    if (to == To::kStorage) {
      VIADUCT_TRY(over, peers_.self());
    }
    auto hop =
        std::make_unique<PostedHop>(traffic_, std::move(over), kind, list.priority, owner, chunk);
    VIADUCT_CHECK(hop->start(std::move(list), required));
    return std::unique_ptr<move::Hop>(std::make_unique<HopHandle>(std::move(hop), left_));
  }
  std::uint64_t newWhole() override {
    static std::atomic<std::uint64_t> last{0};
    return ++last;
  }
  void giveUp(std::uint64_t whole) override { basis_.backends().giveUp(whole); }
  // Hops to storage are transfers of the agent with itself, so it has to be settled, too.
  std::function<bool()> settling() const override {
    return [left = left_, &peers = peers_, own = peer_.isOwn()] {
      std::erase_if(*left, [](const auto& hop) { return !hop->running(); });
      return left->empty() && (own || peers.selfSettled());
    };
  }

 private:
  Result<std::unique_ptr<move::Hop>> copyNow(OpKind kind, const core::OpList& list,
                                             move::HopOwner& owner, std::uint32_t chunk) {
    VIADUCT_CHECK(stages_.copy(kind, list.ops));
    owner.hopEnded(chunk, {.shares = {{.backend = std::string(move::StagingBackend::kName),
                                       .way = "packed",
                                       .rail = "staging",
                                       .bytes = list.bytes,
                                       .ops = list.ops.size()}}});
    return std::unique_ptr<move::Hop>(std::make_unique<EndedHop>());
  }
  bool anyGpuLink(const core::Requirement& required,
                  const std::function<bool(const core::Link&)>& fits) const {
    return std::ranges::any_of(peer_.links(), [&](const auto& slot) {
      core::Backend& backend = basis_.backend(slot->backend());
      return slot->link->state().phase == core::LinkState::Phase::kReady &&
             backend.deviceMemory() != nullptr && satisfies(backend.can(), required) &&
             fits(*slot->link);
    });
  }

  Basis& basis_;
  Peers& peers_;
  Traffic& traffic_;
  Stages& stages_;
  PeerImpl& peer_;
  std::vector<std::unique_ptr<Stages::RingMemory>> rings_;
  const std::shared_ptr<Hops> left_ = std::make_shared<Hops>();  // dropped, and still running
};

// At least two rings have to fit: one to lend, and one for the agent itself.
move::StagingRing shapeFor(const Settings& settings) {
  constexpr std::uint64_t kPage = 4096;
  const std::uint64_t most = settings.staging_memory / 2;
  const std::uint64_t chunk = std::min(settings.staging_chunk, most / kPage * kPage);
  const auto chunks = std::min<std::uint64_t>(settings.staging_chunks, most / chunk);
  return {.chunk_bytes = chunk, .chunks = static_cast<std::uint32_t>(chunks)};
}

}  // namespace

Stages::Stages(Peers& peers, Traffic& traffic)
    : basis_(peers.basis()),
      peers_(peers),
      traffic_(traffic),
      shape_(shapeFor(basis_.settings())),
      memory_(basis_.settings().staging_memory) {}

std::unique_ptr<move::StagingHost> Stages::hostFor(core::LinkHost& session) {
  // The agent makes the links of all backends with a LinkSlot as their session.
  return std::make_unique<Host>(peers_, traffic_, *this, static_cast<LinkSlot&>(session).peer());
}

Result<std::unique_ptr<Stages::RingMemory>> Stages::makeRing(const core::Audience& audience,
                                                             std::optional<std::uint32_t> gpu) {
  freeLeft();
  auto made = std::make_unique<RingMemory>();
  if (!hasRoom()) return std::unique_ptr<RingMemory>();
  if (gpu) {
    VIADUCT_TRY(made->gpu, basis_.allocateHeld(*gpu, ringBytes()));
  } else {
    VIADUCT_TRY(made->host, base::SharedMemory::allocate(ringBytes()));
  }
  VIADUCT_TRY(const PinInfo info,
              peers_.pin(gpu ? made->gpu : made->host.segment(), "viaduct: staging", audience));
  memory_.take(ringBytes());
  made->ring = shape_;
  made->ring.address = info.address;
  made->ring.pin = info.slot;
  return made;
}

void Stages::freeRing(std::unique_ptr<RingMemory> ring, PeerImpl& peer,
                      std::function<bool()> hops_ended) {
  const std::uint32_t slot = ring->ring.pin;
  peer.withdraw(basis_.pins()[slot]);
  basis_.pins().retire(slot);
  leaving_.push_back({.memory = std::move(ring),
                      .peer = peer.weak_from_this(),
                      .hops_ended = std::move(hops_ended)});
  basis_.engine().takeOverNow();  // the next round of progress calls freeLeft()
}

// A stopped peer may still finish a copy into a ring. So the ring's addresses stay reserved until
// the peer is settled, but the ring's pages are freed before.
void Stages::freeLeftNow() {
  std::erase_if(leaving_, [this](LeavingRing& leaving) {
    if (!leaving.unpinned && !unpin(leaving)) return false;
    const auto peer = leaving.peer.lock();
    return (!peer || peer->settled()) && (!leaving.stuck || peers_.settled());
  });
}

void Stages::keepLeft() {
  for (LeavingRing& leaving : leaving_) base::keepForever(std::move(leaving.memory));
  leaving_.clear();
}

// Gives the memory back to the budget and, of host memory, the pages to the system, even if the
// peer keeps the memfd.
bool Stages::unpin(LeavingRing& leaving) {
  if (!leaving.hops_ended()) return false;
  const Still still(basis_.rails());
  const Status removed = basis_.pins().remove(leaving.memory->ring.pin);
  if (!removed && removed.error().code == Code::kBusy) return false;
  leaving.unpinned = true;
  leaving.stuck = !removed;
  const std::span<std::byte> pages = leaving.memory->host.bytes();
  if (!pages.empty()) ::madvise(pages.data(), pages.size(), MADV_REMOVE);
  memory_.give(ringBytes());
  return true;
}

// The kernel copies, so memory that its owner has unmapped gives an error, not a signal.
Status Stages::copy(OpKind kind, std::span<const core::Op> ops) {
  if (!copy_) {
    VIADUCT_TRY(copy_, base::CheckedCopy::open());
  }
  std::vector<iovec> parts;
  std::size_t next = 0;
  for (std::uint64_t into = 0; next < ops.size();) {
    // A batch is contiguous in the chunk.
    parts.clear();
    std::byte* const chunk = pointer(ops[next].local + into);
    std::uint64_t bytes = 0;
    while (next < ops.size() && parts.size() < IOV_MAX && bytes < base::CheckedCopy::kMostBytes &&
           pointer(ops[next].local + into) == chunk + bytes) {
      const std::uint64_t part =
          std::min(ops[next].bytes - into, base::CheckedCopy::kMostBytes - bytes);
      parts.push_back({pointer(ops[next].remote + into), part});
      bytes += part;
      into += part;
      if (into < ops[next].bytes) continue;
      into = 0;
      ++next;
    }
    const bool done =
        kind == OpKind::kRead ? copy_->fetch(chunk, parts) : copy_->copy(parts, chunk);
    if (!done)
      return Error{.code = Code::kDenied,
                   .operation = "pack",
                   .detail = "a block of the transfer is not mapped any more"};
  }
  return Ok{};
}

}  // namespace viaduct::agent
