#include "move/staging/staging_link.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "move/staging/staging_backend.h"

namespace viaduct::move {
namespace {

core::OpList listOf(std::vector<core::Op> ops) {
  core::OpList list;
  list.ops = std::move(ops);
  for (const core::Op& op : list.ops) {
    list.bytes += op.bytes;
    if (list.spans.empty() || list.spans.back().local_pin != op.local_pin ||
        list.spans.back().remote_pin != op.remote_pin)
      list.spans.push_back({.local_pin = op.local_pin, .remote_pin = op.remote_pin});
    ++list.spans.back().ops;
  }
  return list;
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
      settling_(host_->settling()) {
  rail_.add(*this);
}

StagingLink::~StagingLink() { rail_.remove(*this); }

void StagingLink::wake() {
  news_ = true;
  rail_.activate(*this);
}

core::LinkState StagingLink::state() const {
  return {.phase = core::LinkState::Phase::kReady, .text = "storage, in stages"};
}

// Ops with equal answers are in one job, so all ops of a job have storage at the same ends.
std::optional<std::string_view> StagingLink::reaches(OpKind /*kind*/, std::uint32_t local_pin,
                                                     std::uint32_t remote_pin) const {
  const PinInfo* const own = host_->ownPin(local_pin);
  const bool local = own != nullptr && isStorage(own->kind);
  const bool remote = storage_pins_.contains(remote_pin);
  constexpr std::array<std::string_view, 4> kWays{"", "local storage", "remote storage",
                                                  "storage at both ends"};
  if (!local && !remote) return std::nullopt;
  return kWays[(local ? 1U : 0U) + (remote ? 2U : 0U)];
}

bool StagingLink::servedBy(const core::Rail& rail) const { return &rail == &rail_; }

void StagingLink::take(const core::Work& work) {
  Job job{.tag = work.tag, .kind = work.kind, .ops = work.ops};
  const PinInfo* const own = host_->ownPin(work.ops.front().local_pin);
  job.local_storage = own != nullptr && isStorage(own->kind);
  job.remote_storage = storage_pins_.contains(work.ops.front().remote_pin);
  const bool write = work.kind == OpKind::kWrite;
  job.from_storage = write ? job.local_storage : job.remote_storage;
  job.to_storage = write ? job.remote_storage : job.local_storage;
  jobs_.push_back(std::move(job));
  wake();
}

void StagingLink::cancel(core::Tag tag) {
  for (Job& job : jobs_)
    if (job.tag == tag)
      failJob(job, {.code = Code::kCancelled, .operation = "staging", .peer = peer_});
}

// No further chunk of the job begins a stage, and the current stages end soon.
void StagingLink::failJob(Job& job, Error why) {
  if (!job.error) job.error = std::move(why);
  for (std::uint32_t i = 0; i < chunks_.size(); ++i) {
    Chunk& chunk = chunks_[i];
    if (chunk.job != &job || chunk.ended) continue;
    if (chunk.hop)
      chunk.hop->cancel();
    else if (chunk.step != Step::kFree)
      static_cast<void>(send(StorageCancel{i}));  // a session that cannot send ends, and the job
  }
  wake();
}

bool StagingLink::busy() const { return news_ || (waits() && host_->reachesStorage()); }

bool StagingLink::waits() const {
  return waits_for_storage_ || std::any_of(served_.begin(), served_.end(), [](const Served& one) {
           return one.request && !one.hop && !one.ended;
         });
}

void StagingLink::progress(core::Completions& out) {
  news_ = waits_for_storage_ = false;
  for (std::uint32_t i = 0; i < chunks_.size(); ++i)
    if (chunks_[i].ended) advance(i, out);
  fillFreeChunks();
  endJobs(out);
  for (std::uint32_t i = 0; i < served_.size(); ++i) {
    Served& one = served_[i];
    if (one.request && !one.hop && !one.ended) serve(i);
    if (one.ended) answer(i);
  }
}

void StagingLink::endJobs(core::Completions& out) {
  for (auto job = jobs_.begin(); job != jobs_.end();) {
    if (!isOver(*job)) {
      ++job;
      continue;
    }
    if (job->error) {
      out.emplace_back(
          core::Failed{.tag = job->tag, .ops = job->ops.size(), .why = *std::move(job->error)});
    } else {
      std::uint64_t bytes = 0;
      for (const core::Op& op : job->ops) bytes += op.bytes;
      out.emplace_back(core::Moved{.tag = job->tag, .ops = job->ops.size(), .bytes = bytes});
    }
    job = jobs_.erase(job);
  }
}

// Gets the rings that the job needs. `wait`: the peer has not lent its ring yet.
Status StagingLink::prepareRings(const Job& job, bool& wait) {
  if ((job.local_storage || self_) && !own_) {
    VIADUCT_TRY(own_, host_->ring());
  }
  if (job.remote_storage && !self_ && !peers_) {
    if (no_ring_) return *no_ring_;
    wait = true;
    if (!std::exchange(ring_requested_, true)) return send(RingRequest{});
  }
  // Reaching the own storage may take a dial. The host tells the agent when that has ended.
  if ((job.local_storage || self_) && !host_->reachesStorage()) wait = waits_for_storage_ = true;
  return Ok{};
}

void StagingLink::fillFreeChunks() {
  for (Job& job : jobs_) {
    if (job.error || job.next.op == job.ops.size()) continue;
    bool wait = false;
    if (Status ready = prepareRings(job, wait); !ready) failJob(job, std::move(ready).error());
    if (wait || job.error) continue;
    if (chunks_.size() < sizes().chunks) chunks_.resize(sizes().chunks);
    while (!job.error && fillFreeChunk(job)) {
    }
  }
}

Ring StagingLink::sizes() const {
  Ring out = own_ ? *own_ : *peers_;
  if (peers_) {
    out.chunks = std::min(out.chunks, peers_->chunks);
    out.chunk_bytes = std::min(out.chunk_bytes, peers_->chunk_bytes);
  }
  return out;
}

bool StagingLink::fillFreeChunk(Job& job) {
  if (job.next.op == job.ops.size()) return false;
  const auto chunk = std::find_if(chunks_.begin(), chunks_.end(),
                                  [](const Chunk& one) { return one.step == Step::kFree; });
  if (chunk == chunks_.end()) return false;
  const auto number = static_cast<std::uint32_t>(chunk - chunks_.begin());
  if (number >= sizes().chunks) return false;
  // The storage that is read decides, because a chunk is read in one piece.
  const bool local = job.local_storage && (job.kind == OpKind::kWrite || !job.remote_storage);
  chunk->job = &job;
  chunk->plan = fillChunk(job.ops, job.next, sizes().chunk_bytes,
                          local ? ChunkAlign::kLocal : ChunkAlign::kRemote);
  ++job.chunks;
  chunk->step = after(*chunk);
  if (Status begun = begin(number); !begun) {
    chunk->step = Step::kFree;
    --job.chunks;
    failJob(job, std::move(begun).error());
  }
  return true;
}

StagingLink::Step StagingLink::after(const Chunk& chunk) const {
  const Job& job = *chunk.job;
  switch (chunk.step) {
    case Step::kFree:
      if (job.from_storage) return Step::kLoad;
      [[fallthrough]];
    case Step::kLoad:
      if (!self_) return Step::kMove;
      [[fallthrough]];
    case Step::kMove:
      if (job.to_storage) return Step::kStore;
      [[fallthrough]];
    case Step::kStore:
      return Step::kFree;
  }
  return Step::kFree;
}

// The step of this chunk has ended. Begins its next one.
void StagingLink::advance(std::uint32_t number, core::Completions& out) {
  Chunk& chunk = chunks_[number];
  Job& job = *chunk.job;
  HopEnd ended = *std::exchange(chunk.ended, std::nullopt);
  chunk.hop.reset();
  for (PathShare& share : ended.shares) {
    share.stage = static_cast<std::uint32_t>(chunk.step);
    out.emplace_back(core::Staged{.tag = job.tag, .share = std::move(share)});
  }
  if (ended.error) failJob(job, *std::move(ended.error));
  chunk.step = job.error ? Step::kFree : after(chunk);
  if (chunk.step != Step::kFree) {
    Status begun = begin(number);
    if (begun) return;
    failJob(job, std::move(begun).error());
    chunk.step = Step::kFree;
  }
  --job.chunks;
  chunk.job = nullptr;
}

Status StagingLink::begin(std::uint32_t number) {
  const Chunk& chunk = chunks_[number];
  const bool write = chunk.job->kind == OpKind::kWrite;
  if (chunk.step == Step::kMove) return startMove(number);
  const bool load = chunk.step == Step::kLoad;
  const bool here = self_ || load == write;
  if (here) return startStorage(number, load ? OpKind::kRead : OpKind::kWrite);
  return ask(number, !load);
}

Status StagingLink::ask(std::uint32_t number, bool store) {
  StorageRequest request{.chunk = number, .store = store};
  for (const ChunkPiece& piece : chunks_[number].plan.pieces)
    request.pieces.push_back({.pin = piece.op.remote_pin,
                              .place = static_cast<std::uint32_t>(piece.place),
                              .address = piece.op.remote,
                              .bytes = piece.op.bytes});
  return send(request);
}

// Copies between the chunk and storage of this agent.
Status StagingLink::startStorage(std::uint32_t number, OpKind kind) {
  const Chunk& chunk = chunks_[number];
  const Job& job = *chunk.job;
  // With itself as peer, an agent has the pins of both ends.
  const bool remote_end = (job.kind == OpKind::kWrite) == (kind == OpKind::kWrite) && self_;
  std::vector<core::Op> ops;
  for (const ChunkPiece& piece : chunk.plan.pieces)
    ops.push_back({.local = ownAddress(number) + piece.place,
                   .remote = remote_end ? piece.op.remote : piece.op.local,
                   .bytes = piece.op.bytes,
                   .local_pin = own_->pin,
                   .remote_pin = remote_end ? piece.op.remote_pin : piece.op.local_pin});
  return startHop(number, StagingHost::To::kStorage, kind, std::move(ops));
}

// Copies between this end's memory, or the chunk of its ring, and the peer's.
Status StagingLink::startMove(std::uint32_t number) {
  const Chunk& chunk = chunks_[number];
  const Job& job = *chunk.job;
  std::vector<core::Op> ops;
  const auto peers_address = [&] { return peers_->address + number * peers_->chunk_bytes; };
  if (job.local_storage && job.remote_storage) {
    ops.push_back({.local = ownAddress(number),
                   .remote = peers_address(),
                   .bytes = chunk.plan.used,
                   .local_pin = own_->pin,
                   .remote_pin = peers_->pin});
  } else {
    for (const ChunkPiece& piece : chunk.plan.pieces) {
      core::Op op = piece.op;
      if (job.local_storage) {
        op.local = ownAddress(number) + piece.place;
        op.local_pin = own_->pin;
      } else {
        op.remote = peers_address() + piece.place;
        op.remote_pin = peers_->pin;
      }
      ops.push_back(op);
    }
  }
  return startHop(number, StagingHost::To::kPeer, job.kind, std::move(ops));
}

Status StagingLink::startHop(std::uint32_t number, StagingHost::To to, OpKind kind,
                             std::vector<core::Op> ops) {
  VIADUCT_TRY(chunks_[number].hop,
              host_->start(to, kind, listOf(std::move(ops)), [this, number](HopEnd end) {
                chunks_[number].ended = std::move(end);
                wake();
              }));
  return Ok{};
}

void StagingLink::close(core::Completions& out) {
  closed_ = true;
  chunks_.clear();
  served_.clear();
  for (const Job& job : jobs_)
    out.emplace_back(core::Failed{.tag = job.tag,
                                  .ops = job.ops.size(),
                                  .why = {.code = Code::kPeerLost, .operation = "staging"}});
  jobs_.clear();
  news_ = waits_for_storage_ = false;
}

void StagingLink::receive(std::span<const std::byte> bytes, std::vector<core::Fd> /*fds*/) {
  if (closed_) return;
  auto message = decodeStaging(bytes);
  if (!message) {
    no_ring_ = std::move(message).error();
    for (Job& job : jobs_) failJob(job, *no_ring_);
    return;
  }
  std::visit([this](auto&& one) { receive(std::forward<decltype(one)>(one)); },
             *std::move(message));
  wake();
}

void StagingLink::receive(const RingRequest&) {
  RingAnswer answer;
  auto ring = lent_ ? Result<Ring>(*lent_) : host_->ring();
  if (ring) {
    lent_ = *ring;
    served_.resize(lent_->chunks);
    answer = {.address = lent_->address,
              .chunk_bytes = lent_->chunk_bytes,
              .chunks = lent_->chunks,
              .pin = lent_->pin};
  } else {
    answer.error = std::move(ring).error();
  }
  static_cast<void>(send(answer));  // a session that cannot send ends
}

void StagingLink::receive(RingAnswer&& answer) {
  constexpr std::uint32_t kMostChunks = 1024;
  if (answer.error) {
    no_ring_ = *std::move(answer.error);
    no_ring_->peer = peer_;
    ring_requested_ = false;
  } else if (answer.chunks == 0 || answer.chunks > kMostChunks ||
             answer.chunk_bytes < (64U << 10U)) {
    no_ring_ = protocolError("the peer lends a ring of an impossible size");
  } else {
    peers_ = Ring{.address = answer.address,
                  .chunk_bytes = answer.chunk_bytes,
                  .chunks = answer.chunks,
                  .pin = answer.pin};
  }
}

void StagingLink::receive(StorageAnswer&& answer) {
  if (answer.chunk >= chunks_.size()) return;
  Chunk& chunk = chunks_[answer.chunk];
  const bool asked = chunk.step == Step::kLoad || chunk.step == Step::kStore;
  if (!asked || chunk.hop || chunk.ended) return;
  if (answer.error) answer.error->peer = peer_;
  chunk.ended = HopEnd{.error = std::move(answer.error), .shares = std::move(answer.shares)};
}

void StagingLink::receive(StorageRequest&& request) {
  if (request.chunk >= served_.size() || served_[request.chunk].request) return;
  Served& one = served_[request.chunk];
  one = {};
  const Status allowed = check(request);
  one.request = std::move(request);
  if (!allowed) one.ended = HopEnd{.error = allowed.error()};
}

void StagingLink::receive(const StorageCancel& cancel) {
  if (cancel.chunk >= served_.size()) return;
  Served& one = served_[cancel.chunk];
  if (!one.request || one.ended) return;
  one.cancelled = true;
  if (one.hop)
    one.hop->cancel();
  else
    one.ended = HopEnd{.error = Error{.code = Code::kCancelled, .operation = "staging"}};
}

// A peer reaches only pinned storage, with the access of its pin, and only its own chunks.
Status StagingLink::check(const StorageRequest& request) const {
  for (const StoragePiece& piece : request.pieces) {
    const PinInfo* const pin = host_->ownPin(piece.pin);
    if (pin == nullptr || !isStorage(pin->kind) || piece.address < pin->address ||
        piece.bytes > pin->bytes || piece.address - pin->address > pin->bytes - piece.bytes)
      return Error{.code = Code::kDenied,
                   .operation = "staging",
                   .detail = fmt::format("{} bytes at {:#x} are in no pinned file or object",
                                         piece.bytes, piece.address),
                   .cause = "the pin was released, or its owner never had it"};
    if (request.store && pin->access == MemoryAccess::kReadOnly)
      return Error{.code = Code::kDenied,
                   .operation = "staging",
                   .detail = fmt::format("the pin at {:#x} is read-only", pin->address)};
    if (piece.bytes > lent_->chunk_bytes || piece.place > lent_->chunk_bytes - piece.bytes)
      return protocolError("a piece lies outside of its chunk");
  }
  return Ok{};
}

void StagingLink::serve(std::uint32_t number) {
  if (!host_->reachesStorage()) return;
  Served& one = served_[number];
  std::vector<core::Op> ops;
  for (const StoragePiece& piece : one.request->pieces)
    ops.push_back({.local = lent_->address + number * lent_->chunk_bytes + piece.place,
                   .remote = piece.address,
                   .bytes = piece.bytes,
                   .local_pin = lent_->pin,
                   .remote_pin = piece.pin});
  auto hop =
      host_->start(StagingHost::To::kStorage, one.request->store ? OpKind::kWrite : OpKind::kRead,
                   listOf(std::move(ops)), [this, number](HopEnd end) {
                     served_[number].ended = std::move(end);
                     wake();
                   });
  if (hop)
    one.hop = *std::move(hop);
  else
    one.ended = HopEnd{.error = std::move(hop).error()};
}

void StagingLink::answer(std::uint32_t number) {
  Served done = std::exchange(served_[number], {});
  static_cast<void>(send(StorageAnswer{.chunk = number,
                                       .error = std::move(done.ended->error),
                                       .shares = std::move(done.ended->shares)}));
}

}  // namespace viaduct::move
