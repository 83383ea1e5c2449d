#include "move/staging/staging_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "move/staging/staging_backend.h"

namespace viaduct::move {
namespace {

std::size_t index(auto step) { return static_cast<std::size_t>(step); }

// Appends `next` to `piece` if it follows directly in the storage and in the chunk. False: it does
// not.
bool join(StoragePiece& piece, const StoragePiece& next) {
  const bool goes_on = next.pin == piece.pin && next.address == piece.address + piece.bytes &&
                       next.place == piece.place + piece.bytes;
  if (goes_on) piece.bytes += next.bytes;
  return goes_on;
}

Error noMemory() {
  return {.code = Code::kExhausted,
          .operation = "staging",
          .detail = "no memory for chunks has become free",
          .cause = "transfers with other peers use all of the agent's VIADUCT_STAGING_MEMORY",
          .remedy = "raise it there, or let fewer peers transfer at the same time"};
}

Error protocolError(std::string detail) {
  return {.code = Code::kProtocol, .operation = "staging", .detail = std::move(detail)};
}

}  // namespace

StagingLink::StagingLink(core::LinkSeed seed, StagingRail& rail, core::LinkHost& session,
                         std::unique_ptr<StagingHost> host)
    : peer_(std::move(seed.peer)),
      self_(seed.self),
      rail_(rail),
      session_(session),
      host_(std::move(host)),
      settling_(host_->settling()),
      server_(
          *host_, [this](const StagingMessage& message) { return send(message); },
          [this] { wake(); }, [this](RingPlace place) { return takeRing(true, place); }) {
  rail_.add(*this);
}

StagingLink::~StagingLink() { rail_.remove(*this); }

void StagingLink::wake() {
  news_ = true;
  rail_.activate(*this);
}

core::LinkState StagingLink::state() const {
  if (broken_rule_)
    return {.phase = core::LinkState::Phase::kUnusable,
            .text = broken_rule_->detail,
            .broken_rule = true};
  return {.phase = core::LinkState::Phase::kReady, .text = "storage, in stages"};
}

// Ops for which reaches() gives equal answers are in one job. So all ops of a job have storage at
// the same ends.
std::optional<std::string_view> StagingLink::reaches(OpKind /*kind*/, std::uint32_t local_pin,
                                                     std::uint32_t remote_pin) const {
  const PinInfo* const own = host_->ownPin(local_pin);
  const bool local = own != nullptr && own->kind != MemoryKind::kHost;
  const bool remote = storage_pins_.contains(remote_pin);
  constexpr std::array<std::string_view, 4> kWays{"", "local storage", "remote storage",
                                                  "storage at both ends"};
  if (!local && !remote) return std::nullopt;
  // Between this agent's memory and its own storage there is nothing to stage.
  if (self_ && local != remote) return std::nullopt;
  return kWays[(local ? 1U : 0U) + (remote ? 2U : 0U)];
}

bool StagingLink::servedBy(const core::Rail& rail) const { return &rail == &rail_; }

void StagingLink::take(const core::Work& work) {
  StagedJob& job = rail_.jobs().add<StagedJob>(work, this);
  job.next_op = work.ops.size();
  job.outstanding = 1;
  job.ops = work.ops;
  if (work.required != nullptr) job.required = *work.required;
  job.priority = work.priority;
  const PinInfo* const own = host_->ownPin(work.ops.front().local_pin);
  job.packed = std::exchange(job.required.packed, false);
  job.local_storage = job.packed || (own != nullptr && own->kind != MemoryKind::kHost);
  job.remote_storage = job.packed || storage_pins_.contains(work.ops.front().remote_pin);
  job.place = placeFor(job);
  if (job.place) job.local_storage = false;
  job.from_storage = job.writes() ? job.local_storage : job.remote_storage;
  job.to_storage = job.writes() ? job.remote_storage : job.local_storage;
  jobs_.push_back(&job);
  if (job.to_storage) prepareObjects(job);
  wake();
}

// Between a GPU of this process and memory of a GPU that this process cannot map, the bytes go
// through a ring on the peer's GPU: the peer allocates that ring in a way that this process can
// map.
RingPlace StagingLink::placeFor(const StagedJob& job) const {
  const core::Op& op = job.ops.front();
  const PinInfo* const own = host_->ownPin(op.local_pin);
  const auto remote = storage_pins_.find(op.remote_pin);
  const bool gpus = own != nullptr && own->kind == MemoryKind::kDevice &&
                    remote != storage_pins_.end() && remote->second.kind == MemoryKind::kDevice;
  if (!gpus || self_ || !host_->sharesGpus(job.required)) return {};
  return remote->second.device;
}

bool StagingLink::fitsPlace(const StagedJob& job) const {
  const std::uint32_t ring = peers_.at(job.place).pin;
  const core::Op* checked = nullptr;  // neighbouring ops mostly have the same pins
  return std::ranges::all_of(job.ops, [&](const core::Op& op) {
    if (checked != nullptr && op.local_pin == checked->local_pin &&
        op.remote_pin == checked->remote_pin)
      return true;
    checked = &op;
    const auto remote = storage_pins_.find(op.remote_pin);
    return remote != storage_pins_.end() && remote->second.device == *job.place &&
           host_->reachesGpus(job.work.kind, op.local_pin, ring, job.required);
  });
}

void StagingLink::goThroughHost(StagedJob& job) const {
  job.place.reset();
  job.local_storage = true;
  (job.writes() ? job.from_storage : job.to_storage) = true;
}

// An object is written in the order of its bytes, so that all parts but the last have one size.
void StagingLink::prepareObjects(StagedJob& job) {
  const OpEnd end = job.writtenEnd();
  const auto pin = [&](std::uint32_t slot) -> const PinInfo* {
    if (end == OpEnd::kLocal) return host_->ownPin(slot);
    const auto known = storage_pins_.find(slot);
    return known == storage_pins_.end() ? nullptr : &known->second;
  };
  job.to_objects = std::any_of(job.ops.begin(), job.ops.end(), [&](const core::Op& op) {
    const PinInfo* const target = pin(pinAt(op, end));
    return target != nullptr && target->kind == MemoryKind::kObject;
  });
  if (!job.to_objects) return;
  auto sorted = sortForObjects(job.ops, end, pin);
  if (!sorted) return failJob(job, std::move(sorted).error());
  job.sorted = *std::move(sorted);
  job.ops = job.sorted;
}

void StagingLink::failJob(StagedJob& job, Error why) { rail_.jobs().stop(job, std::move(why)); }

// No further chunk of the job begins a stage, and the current stages end soon.
void StagingLink::stop(Job& job) {
  for (std::uint32_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = chunks_[i];
    if (chunk.job != &job || chunk.ended) continue;
    if (chunk.hop)
      chunk.hop->cancel();
    else if (chunk.step != ChunkStep::kFree)
      static_cast<void>(send(StorageCancel{i}));  // a session that cannot send ends, and the job
  }
  wake();
}

bool StagingLink::busy() const {
  if (news_) return true;
  return ticket_ != 0 && (hasWaitedLong() || (host_->hasRoom() && rail_.isFirst(*this)));
}

void StagingLink::progress(core::Completions& out) {
  news_ = still_waits_ = false;
  for (std::uint32_t i = 0; i < chunks_.size(); ++i)
    if (chunks_[i].ended) advance(i);
  returnRings();
  fillFreeChunks();
  endJobs(out);
  server_.progress();
  if (!still_waits_) ticket_ = 0;
}

// Takes a ring. Links that wait take turns. None: the job has to wait for memory.
Result<std::optional<StagingRing>> StagingLink::takeRing(bool lent, RingPlace place) {
  if (rail_.isFirst(*this)) {
    auto ring = host_->ring(lent, place);
    if (!ring || *ring) {
      ticket_ = 0;
      return ring;
    }
  }
  if (ticket_ == 0) {
    ticket_ = rail_.newTicket();
    waits_since_ = host_->now();
    rail_.recallRings();
  }
  if (hasWaitedLong()) {
    ticket_ = 0;
    return noMemory();
  }
  still_waits_ = true;
  return std::optional<StagingRing>();
}

// The limit is shorter than the deadline of a post, so that the post's error names the cause.
bool StagingLink::hasWaitedLong() const {
  return host_->now() - waits_since_ > host_->deadline() * 3 / 4;
}

void StagingLink::recallRings() {
  if (closed_ || broken_rule_) return;
  if (own_ && !std::exchange(own_recalled_, true)) wake();
  const Duration kept = server_.recall();
  if (kept <= host_->deadline() / 2) return;
  breakOff(protocolError(
      "the peer keeps memory of this agent that others wait for (VIADUCT_STAGING_MEMORY)"));
}

void StagingLink::returnRings() {
  if (!own_recalled_ && peers_recalled_.empty()) return;
  if (std::ranges::any_of(jobs_, [](const StagedJob* job) { return job->chunks != 0; })) return;
  if (own_ && std::exchange(own_recalled_, false)) {
    host_->giveBack(own_->pin);
    own_.reset();
  }
  for (const RingPlace place : std::exchange(peers_recalled_, {})) {
    peers_.erase(place);
    asked_.erase(place);
    static_cast<void>(send(RingReturn{place}));  // a session that cannot send ends
  }
  wake();
}

void StagingLink::endJobs(core::Completions& out) {
  std::erase_if(jobs_, [&](StagedJob* job) {
    reportPath(*job, out);
    if (job->chunks != 0 || !(job->why || job->isCut())) return false;
    for (const core::Op& op : job->ops) job->moved.bytes += op.bytes;
    giveUpWholes(*job);
    job->sorted = {};
    job->outstanding = 0;
    rail_.jobs().settle(*job);
    return true;
  });
}

void StagingLink::reportPath(StagedJob& job, core::Completions& out) {
  for (PathShare& share : job.path.shares)
    out.emplace_back(core::Staged{.slice = job.work.slice, .share = std::move(share)});
  job.path.shares.clear();
}

void StagingLink::giveUpWholes(const StagedJob& job) {
  for (const std::uint64_t whole : job.wholes) {
    if (job.remote_storage && job.writes() && !self_)
      static_cast<void>(send(WholeEnd{whole}));  // a session that cannot send ends
    else
      host_->giveUp(whole);
  }
}

// Gets the rings that the job needs. `wait`: there is no memory for this end's ring now, or the
// peer has not lent its ring yet.
Status StagingLink::prepareRings(StagedJob& job, bool& wait) {
  const auto peers = peers_.find(job.place);
  if (job.place && (refused_.contains(job.place) ||
                    (peers != peers_.end() && job.chunks == 0 && !fitsPlace(job))))
    goThroughHost(job);
  if ((job.local_storage || self_) && !own_) {
    VIADUCT_TRY(own_, takeRing(false, {}));
    if (!own_) wait = true;
  }
  if (job.remote_storage && !self_ && !peers_.contains(job.place)) {
    if (no_ring_) return *no_ring_;
    wait = true;
    if (asked_.insert(job.place).second) return send(RingRequest{job.place});
  }
  return Ok{};
}

// Prepares the rings and chunks of a job. False: the job waits for a ring, has failed, or is all in
// chunks.
bool StagingLink::readyToFill(StagedJob& job) {
  if (job.why || job.isCut()) return false;
  bool wait = false;
  if (Status ready = prepareRings(job, wait); !ready) failJob(job, std::move(ready).error());
  if (wait || job.why) return false;
  if (chunks_.size() < sizes(job).chunks) chunks_.resize(sizes(job).chunks);
  return true;
}

void StagingLink::fillFreeChunks() {
  if (own_recalled_ || !peers_recalled_.empty()) return;
  for (StagedJob* const one : jobs_) {
    StagedJob& job = *one;
    if (!readyToFill(job)) continue;
    while (!job.why && fillFreeChunk(job)) {
      // This thread has copied a chunk. Others get the lock before the next one.
      if (job.packed) return wake();
    }
    // Later jobs must not take the chunks that this job collects for a part of an object.
    if (!job.why && !job.isCut()) return;
  }
}

StagingRing StagingLink::sizes(const StagedJob& job) const {
  const auto peers = peers_.find(job.place);
  if (peers == peers_.end()) return *own_;
  StagingRing out = peers->second;
  if (own_ && !job.place) {
    out.chunks = std::min(out.chunks, own_->chunks);
    out.chunk_bytes = std::min(out.chunk_bytes, own_->chunk_bytes);
  }
  return out;
}

bool StagingLink::fillFreeChunk(StagedJob& job) {
  if (job.isCut()) return false;
  const std::uint32_t width = job.to_objects ? widthFor(job) : 1;
  const auto number = freeChunks(width, sizes(job).chunks);
  if (job.why || !number) return false;
  Chunk& chunk = chunks_[*number];
  chunk.job = &job;
  chunk.width = width;
  for (std::uint32_t i = 1; i < width; ++i) chunks_[*number + i].joined = true;
  if (job.to_objects)
    packForObject(job, chunk);
  else
    chunk.plan = cut(job, sizes(job).chunk_bytes);
  ++job.chunks;
  chunk.step = after(chunk);
  if (Status begun = begin(*number); !begun) {
    failJob(job, std::move(begun).error());
    release(*number);
  }
  return true;
}

ChunkPlan StagingLink::cut(StagedJob& job, std::uint64_t chunk_bytes) {
  if (job.packed) return packPieces(job.ops, job.cut, std::min(chunk_bytes, kMostPacked));
  return fillChunk(job.ops, job.cut, chunk_bytes, job.readEnd());
}

// The number of chunks for the next part of an object. Only the object's last part may be smaller.
std::uint32_t StagingLink::widthFor(StagedJob& job) {
  const OpEnd end = job.writtenEnd();
  std::uint64_t part = 0;
  for (std::size_t i = job.cut.op; i < job.ops.size() && part < core::kLeastOfWhole; ++i) {
    if (pinAt(job.ops[i], end) != pinAt(job.ops[job.cut.op], end)) break;
    part += job.ops[i].bytes - (i == job.cut.op ? job.cut.into : 0);
  }
  const StagingRing ring = sizes(job);
  const std::uint64_t width =
      (std::min(part, core::kLeastOfWhole) + ring.chunk_bytes - 1) / ring.chunk_bytes;
  if (width > ring.chunks)
    failJob(job, {.code = Code::kExhausted,
                  .operation = "staging",
                  .detail = fmt::format("the rings have {} chunks of {} bytes, and a part of an "
                                        "object needs {} bytes",
                                        ring.chunks, ring.chunk_bytes, core::kLeastOfWhole),
                  .remedy = "raise VIADUCT_STAGING_CHUNK or VIADUCT_STAGING_CHUNKS at both ends"});
  return static_cast<std::uint32_t>(width);
}

// The first of `width` neighbouring chunks that are free.
std::optional<std::uint32_t> StagingLink::freeChunks(std::uint32_t width,
                                                     std::uint32_t chunks) const {
  std::uint32_t free = 0;
  for (std::uint32_t i = 0; i < chunks; ++i) {
    free = chunks_[i].step == ChunkStep::kFree && !chunks_[i].joined ? free + 1 : 0;
    if (free == width) return i + 1 - width;
  }
  return std::nullopt;
}

void StagingLink::packForObject(StagedJob& job, Chunk& chunk) {
  const OpEnd end = job.writtenEnd();
  const OpCursor at = job.cut;
  const std::uint64_t room = chunk.width * sizes(job).chunk_bytes;
  chunk.plan = packChunk(job.ops, job.cut, room, end);
  const std::uint32_t pin = pinAt(job.ops[at.op], end);
  const auto is_of_pin = [&](std::size_t op) {
    return op < job.ops.size() && pinAt(job.ops[op], end) == pin;
  };
  const bool first = at.into == 0 && (at.op == 0 || !is_of_pin(at.op - 1));
  const bool last = !is_of_pin(job.cut.op);
  if (first && !last) job.wholes.push_back(host_->newWhole());
  chunk.whole = first && last ? 0 : job.wholes.back();
}

// The bytes of a chunk are not needed any more.
void StagingLink::release(std::uint32_t number) {
  Chunk& chunk = chunks_[number];
  for (std::uint32_t i = 1; i < chunk.width; ++i) chunks_[number + i].joined = false;
  --chunk.job->chunks;
  chunk.job = nullptr;
  chunk.step = ChunkStep::kFree;
}

StagingLink::ChunkStep StagingLink::after(const Chunk& chunk) const {
  const StagedJob& job = *chunk.job;
  switch (chunk.step) {
    case ChunkStep::kFree:
      if (job.from_storage) return ChunkStep::kLoad;
      [[fallthrough]];
    case ChunkStep::kLoad:
      if (!self_) return ChunkStep::kMove;
      [[fallthrough]];
    case ChunkStep::kMove:
      if (job.to_storage) return ChunkStep::kStore;
      [[fallthrough]];
    case ChunkStep::kStore:
      return ChunkStep::kFree;
  }
  return ChunkStep::kFree;
}

// The step of this chunk has ended. Begins its next one.
void StagingLink::advance(std::uint32_t number) {
  Chunk& chunk = chunks_[number];
  StagedJob& job = *chunk.job;
  HopEnd ended = *std::exchange(chunk.ended, std::nullopt);
  chunk.hop.reset();
  if (!ended.shares.empty()) ended.shares.front().busy_ns = countUse(chunk);
  --job.stages[index(chunk.step)].chunks;
  for (PathShare& share : ended.shares) {
    share.stage = static_cast<std::uint32_t>(chunk.step);
    share.gpu_ring = job.place && chunk.step != ChunkStep::kMove;
    job.path.add(std::move(share));
  }
  if (ended.unsettled) own_recalled_ = true;
  if (ended.error) failJob(job, *std::move(ended.error));
  if (!job.why) {
    chunk.step = after(chunk);
    if (chunk.step != ChunkStep::kFree) {
      Status begun = begin(number);
      if (begun) return;
      failJob(job, std::move(begun).error());
    }
  }
  release(number);
}

// The time of the chunk's stage that no chunk has counted yet, in nanoseconds.
std::uint64_t StagingLink::countUse(const Chunk& chunk) {
  StageUse& use = chunk.job->stages[index(chunk.step)];
  const auto since = std::exchange(use.counted, host_->now());
  return static_cast<std::uint64_t>(
      std::chrono::duration_cast<std::chrono::nanoseconds>(use.counted - since).count());
}

Status StagingLink::begin(std::uint32_t number) {
  const Chunk& chunk = chunks_[number];
  StageUse& use = chunk.job->stages[index(chunk.step)];
  if (use.chunks++ == 0) use.counted = host_->now();
  const bool write = chunk.job->writes();
  if (chunk.step == ChunkStep::kMove) return startMove(number);
  const bool load = chunk.step == ChunkStep::kLoad;
  const bool here = self_ || load == write;
  if (here) return startStorage(number, load ? OpKind::kRead : OpKind::kWrite);
  return ask(number, !load);
}

Status StagingLink::ask(std::uint32_t number, bool store) {
  const Chunk& chunk = chunks_[number];
  StorageRequest request{
      .place = chunk.job->place, .chunk = number, .store = store, .whole = store ? chunk.whole : 0};
  for (const ChunkPiece& piece : chunk.plan.pieces) {
    StoragePiece next{.pin = piece.op.remote_pin,
                      .place = static_cast<std::uint32_t>(piece.place),
                      .address = piece.op.remote,
                      .bytes = piece.op.bytes,
                      .generation = host_->peerGeneration(piece.op.remote_pin)};
    if (request.pieces.empty() || !join(request.pieces.back(), next))
      request.pieces.push_back(next);
  }
  if (request.pieces.size() > kMostPieces)
    return Error{.code = Code::kUnsupported,
                 .operation = "staging",
                 .detail = fmt::format("a part of an object has {} blocks of the peer's storage; "
                                       "the most is {}",
                                       request.pieces.size(), kMostPieces),
                 .remedy = "choose larger blocks"};
  return send(request);
}

// Copies between the chunk and storage of this agent.
Status StagingLink::startStorage(std::uint32_t number, OpKind kind) {
  const Chunk& chunk = chunks_[number];
  const StagedJob& job = *chunk.job;
  // If an agent is its own peer, it has the pins of both ends.
  const bool remote_end = (job.writes()) == (kind == OpKind::kWrite) && self_;
  std::vector<core::Op> ops;
  ops.reserve(chunk.plan.pieces.size());
  for (const ChunkPiece& piece : chunk.plan.pieces)
    ops.push_back({.local = ownAddress(number) + piece.place,
                   .remote = remote_end ? piece.op.remote : piece.op.local,
                   .bytes = piece.op.bytes,
                   .local_pin = own_->pin,
                   .remote_pin = remote_end ? piece.op.remote_pin : piece.op.local_pin});
  core::OpList list = listOf(std::move(ops));
  const bool stores = kind == OpKind::kWrite;
  if (stores) list.whole = chunk.whole;
  const auto to = job.packed ? StagingHost::To::kMemory : StagingHost::To::kStorage;
  return startHop(number, to, kind, std::move(list));
}

// Copies between this end's memory or the chunk of its ring, and the peer's memory or the chunk of
// its ring.
Status StagingLink::startMove(std::uint32_t number) {
  const Chunk& chunk = chunks_[number];
  const StagedJob& job = *chunk.job;
  std::vector<core::Op> ops;
  const auto peers = peers_.find(job.place);
  const auto peers_address = [&] {
    return peers->second.address + number * peers->second.chunk_bytes;
  };
  if (job.local_storage && job.remote_storage) {
    ops.push_back({.local = ownAddress(number),
                   .remote = peers_address(),
                   .bytes = chunk.plan.used,
                   .local_pin = own_->pin,
                   .remote_pin = peers->second.pin});
  } else {
    for (const ChunkPiece& piece : chunk.plan.pieces) {
      core::Op op = piece.op;
      if (job.local_storage) {
        op.local = ownAddress(number) + piece.place;
        op.local_pin = own_->pin;
      } else {
        op.remote = peers_address() + piece.place;
        op.remote_pin = peers->second.pin;
      }
      ops.push_back(op);
    }
  }
  return startHop(number, StagingHost::To::kPeer, job.work.kind, listOf(std::move(ops)));
}

Status StagingLink::startHop(std::uint32_t number, StagingHost::To to, OpKind kind,
                             core::OpList list) {
  static const core::Requirement none;
  const core::Requirement& required =
      to == StagingHost::To::kPeer ? chunks_[number].job->required : none;
  list.priority = chunks_[number].job->priority;
  VIADUCT_TRY(chunks_[number].hop,
              host_->start(to, kind, std::move(list), required, *this, number));
  return Ok{};
}

void StagingLink::hopEnded(std::uint32_t chunk, HopEnd end) {
  chunks_[chunk].ended = std::move(end);
  wake();
}

void StagingLink::close(core::Completions& out) {
  closed_ = true;
  chunks_.clear();
  ticket_ = 0;
  server_.close();
  for (const StagedJob* const job : std::exchange(jobs_, {})) giveUpWholes(*job);
  rail_.jobs().take(*this, {.code = Code::kPeerLost, .operation = "staging"}, out);
  news_ = false;
}

void StagingLink::receive(std::span<const std::byte> bytes, std::vector<core::Fd> /*fds*/) {
  if (closed_ || broken_rule_) return;
  auto message = decodeStaging(bytes);
  if (!message && message.error().code == Code::kProtocol)
    return breakOff(std::move(message).error());
  if (!message) {
    no_ring_ = std::move(message).error();
    for (StagedJob* const job : jobs_) failJob(*job, *no_ring_);
    return;
  }
  std::visit([this](auto&& one) { receive(std::forward<decltype(one)>(one)); },
             *std::move(message));
  wake();
}

// Ends the session.
void StagingLink::breakOff(Error why) {
  broken_rule_ = std::move(why);
  session_.changed();
}

void StagingLink::receive(RingAnswer&& answer) {
  constexpr std::uint32_t kMostChunks = 1024;
  // Accepts only answers to requests of this end, so that a peer cannot make it store anything
  // else.
  if (!asked_.contains(answer.place) || peers_.contains(answer.place)) return;
  if (answer.error && answer.place) {
    refused_.insert(answer.place);
  } else if (answer.error) {
    answer.error->peer = peer_;
    for (StagedJob* const job : jobs_)
      if (job->remote_storage && !job->place) failJob(*job, *answer.error);
    asked_.erase(answer.place);
  } else if (answer.chunks == 0 || answer.chunks > kMostChunks ||
             answer.chunk_bytes < (64U << 10U)) {
    no_ring_ = protocolError("the peer lends a ring of an impossible size");
  } else {
    peers_[answer.place] = StagingRing{.address = answer.address,
                                       .chunk_bytes = answer.chunk_bytes,
                                       .chunks = answer.chunks,
                                       .pin = answer.pin};
  }
}

void StagingLink::receive(RingRecall&& recall) {
  if (peers_.contains(recall.place)) peers_recalled_.insert(recall.place);
}

void StagingLink::receive(StorageAnswer&& answer) {
  if (answer.chunk >= chunks_.size()) return;
  Chunk& chunk = chunks_[answer.chunk];
  const bool asked = chunk.step == ChunkStep::kLoad || chunk.step == ChunkStep::kStore;
  if (!asked || chunk.hop || chunk.ended) return;
  for (const PathShare& share : answer.shares) told_.insert({share.backend, share.way, share.rail});
  if (told_.size() > kMostShares)
    return breakOff(protocolError(fmt::format("{}: {} rails of the peer exceed the limit of {}",
                                              StorageAnswer::kName, told_.size(), kMostShares)));
  if (answer.error) answer.error->peer = peer_;
  chunk.ended = HopEnd{.error = std::move(answer.error), .shares = std::move(answer.shares)};
}

}  // namespace viaduct::move
