#include "move/poster.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

namespace viaduct::move {
namespace {

constexpr Duration kPatience = std::chrono::milliseconds(400);
constexpr Duration kMostPatience = std::chrono::seconds(10);
constexpr double kSlowest = 1e6;  // bytes/s, assumed until a batch has been measured

Error denied(const Job& job, std::string_view device, std::string detail) {
  return {.code = Code::kDenied,
          .operation = opKindName(job.work.kind),
          .detail = std::move(detail),
          .device = std::string(device)};
}

}  // namespace

bool Poster::room() const {
  return pieces_ < kWindowPieces && bytes_ < kWindowBytes && !batches_.full() && !entries_.full();
}

Duration Poster::patience() const {
  const double speed = bytes_per_s_ > 0 ? bytes_per_s_ / 4 : kSlowest;
  const auto allowance = std::chrono::duration<double>(static_cast<double>(bytes_) / speed);
  return std::min(kMostPatience, kPatience + std::chrono::duration_cast<Duration>(allowance));
}

Poster::Found Poster::find(Endpoint& endpoint, Job& job, std::uint32_t slot, PinTarget& out) {
  const PeerPin* const pin = seed_.remote.find(slot);
  if (pin == nullptr || pin->state == PeerPin::KeyState::kRefused) {
    job.why =
        denied(job, seed_.device, fmt::format("the peer's registration {} is withdrawn", slot));
    return Found::kNever;
  }
  if (pin->state == PeerPin::KeyState::kUnasked) wanted_keys_.push_back(slot);
  if (pin->state != PeerPin::KeyState::kHere) return Found::kLater;
  out = {.address = pin->address, .bytes = pin->bytes};
  if (seed_.key < pin->keys.size()) out.key = endpoint.keyOf(pin->generation, pin->keys[seed_.key]);
  if (out.key != nullptr) return Found::kYes;
  job.why = denied(job, seed_.device, "the peer's key to its memory cannot be read");
  return Found::kNever;
}

// Cuts the job's next pieces, all at one pin of the peer, as far as the batch has room.
std::span<const Piece> Poster::cut(Job& job, std::uint32_t slot, const PinTarget& to,
                                   std::uint64_t room) const {
  const auto out = seed_.scratch.first(kBatchPieces - open_.pieces);
  std::size_t count = 0;
  std::uint64_t offset = job.offset;
  for (std::size_t at = job.next_op; at < job.work.ops.size() && count < out.size() && room > 0;
       ++at, offset = 0) {
    const core::Op& op = job.work.ops[at];
    if (op.remote_pin != slot) break;
    Piece piece{.here = seed_.own.local(op.local_pin, op.local, op.bytes)};
    if (piece.here == nullptr || !inside(to.address, to.bytes, op.remote, op.bytes)) {
      const bool here = piece.here == nullptr;
      job.why = denied(job, seed_.device,
                       fmt::format("{} bytes at {:#x} are not registered {}", op.bytes,
                                   here ? op.local : op.remote, here ? "here any more" : "there"));
      break;
    }
    piece.local = seed_.own.find(op.local_pin)->registered[seed_.rail].get();
    piece.here += offset;
    piece.there = op.remote + offset;
    piece.bytes = std::min(op.bytes - offset, room);
    room -= piece.bytes;
    out[count++] = piece;
  }
  return out.first(count);
}

// Posts one run of pieces in one call. False: the endpoint did not accept all of them.
bool Poster::postRun(Endpoint& endpoint, Job& job, std::uint32_t slot, const PinTarget& to,
                     PostedPart& entry) {
  std::uint64_t room = kBatchBytes - open_.bytes;
  if (isBackground(job)) room = std::min(room, kBackgroundTurn - entry.bytes);
  const auto run = cut(job, slot, to, room);
  if (run.empty()) return false;
  const Posted posted = endpoint.post(job.work.kind, run, to.key);
  if (posted.pieces == 0) return false;
  for (const Piece& piece : run.first(posted.pieces)) {
    entry.bytes += piece.bytes;
    job.offset += piece.bytes;
    if (job.offset != job.work.ops[job.next_op].bytes) break;  // the batch is full
    ++entry.ops;
    ++job.next_op;
    job.offset = 0;
  }
  entry.pieces += posted.pieces;
  entry.injected += posted.injected;
  ++entry.batches;
  return posted.pieces == run.size();
}

Poster::PostedPart Poster::post(Endpoint& endpoint, Job& job) {
  PostedPart entry{.job = &job, .first_op = job.next_op, .offset = job.offset};
  PinTarget to;
  while (!job.why && !job.allPosted() && open_.pieces < kBatchPieces && open_.bytes < kBatchBytes) {
    const std::uint32_t slot = job.work.ops[job.next_op].remote_pin;
    const Found found = find(endpoint, job, slot, to);
    entry.waits = found == Found::kLater;
    if (found != Found::kYes) break;
    const PostedPart before = entry;
    const bool all = postRun(endpoint, job, slot, to, entry);
    open_.pieces += entry.pieces - before.pieces;
    open_.bytes += entry.bytes - before.bytes;
    if (!all || (isBackground(job) && entry.bytes >= kBackgroundTurn)) break;
  }
  return entry;
}

void Poster::push(Endpoint& endpoint) {
  if (idle()) endpoint.sweep();
  while (ready_.mayServe(background_ + open_.background) && room() && !endpoint.broken())
    if (!pushOne(endpoint, ready_.pop(background_ + open_.background))) break;
  if (open_.entries > 0) seal(endpoint);
}

// Posts up to one batch of the job. If ops remain, the job waits behind the others, or for its key.
// False: the endpoint accepts no more pieces now.
bool Poster::pushOne(Endpoint& endpoint, Job& job) {
  const PostedPart entry = post(endpoint, job);
  if (entry.pieces > 0) {
    entries_.push(entry);
    ++open_.entries;
    if (isBackground(job)) open_.background += entry.bytes;
    ready_.served(job, entry.bytes);
    ++job.outstanding;
  }
  if (open_.pieces >= kBatchPieces || open_.bytes >= kBatchBytes) seal(endpoint);
  if (job.why)
    job.table->settle(job);
  else if (!job.allPosted())
    (entry.waits ? parked_ : ready_).push(job);
  return entry.pieces > 0 || entry.waits || job.why;
}

// Ends the open batch with a flush.
void Poster::seal(Endpoint& endpoint) {
  if (idle()) last_moved_ = seed_.poller.now();
  open_.flush = endpoint.flush();
  pieces_ += open_.pieces;
  bytes_ += open_.bytes;
  background_ += open_.background;
  batches_.push(std::exchange(open_, {}));
}

bool Poster::reap(Endpoint& endpoint) {
  bool any = false;
  while (!batches_.empty()) {
    Batch& first = batches_.front();
    if (!endpoint.ended(first.flush)) break;
    confirm(first, seed_.poller.now());
    batches_.pop();
    any = true;
  }
  return any;
}

void Poster::confirm(const Batch& batch, Clock::time_point now) {
  const std::chrono::duration<double> took = now - std::exchange(last_moved_, now);
  if (batch.bytes >= kBatchBytes / 2 && took.count() > 0) {
    const double speed = static_cast<double>(batch.bytes) / took.count();
    bytes_per_s_ = bytes_per_s_ == 0 ? speed : bytes_per_s_ * 0.75 + speed * 0.25;
  }
  pieces_ -= batch.pieces;
  bytes_ -= batch.bytes;
  background_ -= batch.background;
  for (std::uint32_t i = 0; i < batch.entries; ++i) {
    const PostedPart entry = entries_.front();
    entries_.pop();
    Job& job = *entry.job;
    --job.outstanding;
    job.moved.ops += entry.ops;
    job.moved.bytes += entry.bytes;
    job.moved.injected += entry.injected;
    job.moved.batches += entry.batches;
    job.table->settle(job);
  }
}

void Poster::stop(Job& job) {
  ready_.remove(job);
  parked_.remove(job);
  if (job.unsettled) held_.push(job);
}

void Poster::rewind(Endpoint& endpoint) {
  for (; !batches_.empty(); batches_.pop()) endpoint.letGo(batches_.front().flush);
  ClassQueue again;
  for (; !entries_.empty(); entries_.pop()) {
    const PostedPart& entry = entries_.front();
    Job& job = *entry.job;
    --job.outstanding;
    if (std::exchange(job.unsettled, true)) continue;  // an earlier entry has set the restart point
    job.next_op = entry.first_op;
    job.offset = entry.offset;
    ready_.remove(job);
    parked_.remove(job);
    (job.why ? held_ : again).push(job);
  }
  again.append(ready_);
  ready_ = again;
  open_ = {};
  pieces_ = 0;
  bytes_ = background_ = 0;
  wanted_keys_.clear();
}

void Poster::settle() {
  keysHaveCome();
  ClassQueue all = std::exchange(ready_, {});
  while (!all.empty()) {
    Job& job = all.pop(0);
    job.unsettled = false;
    ready_.push(job);
  }
  while (!held_.empty()) {
    Job& job = held_.pop(0);
    job.unsettled = false;
    job.table->settle(job);
  }
}

}  // namespace viaduct::move
