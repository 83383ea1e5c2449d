#include "agent/traffic/transfer_impl.h"

#include <fmt/format.h>

#include <algorithm>

#include "agent/peers/peer_impl.h"
#include "agent/traffic/traffic.h"
#include "base/log.h"
#include "base/sizes.h"
#include "host/facts.h"

namespace viaduct::agent {
namespace {

// From this size on, a post wakes the progress thread at once, which costs little beside the copy.
constexpr std::uint64_t kLargeBytes = std::uint64_t{256} << 10U;

// Time limit for the announcement of a pin that the peer made while its session began.
constexpr Duration kAnnouncedWithin = std::chrono::milliseconds(200);

// The pins of one side, each once, with their current generations.
template <class F>
auto usedPins(std::span<const core::PinSpan> spans, std::uint32_t core::PinSpan::* slot,
              F generation) {
  std::vector<std::pair<std::uint32_t, std::uint64_t>> used;
  for (const core::PinSpan& span : spans)
    if (used.empty() || used.back().first != span.*slot) used.emplace_back(span.*slot, 0);
  std::sort(used.begin(), used.end());
  used.erase(std::unique(used.begin(), used.end()), used.end());
  for (auto& [number, value] : used) value = generation(number);
  return used;
}

bool has(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& used, std::uint32_t slot) {
  return std::ranges::any_of(used, [&](const auto& pin) { return pin.first == slot; });
}

template <class F>
bool allLive(const std::vector<std::pair<std::uint32_t, std::uint64_t>>& used, F generation) {
  return std::all_of(used.begin(), used.end(),
                     [&](const auto& pin) { return generation(pin.first) == pin.second; });
}

Error stillRunning() {
  return {.code = Code::kInvalid,
          .operation = "post",
          .detail = "the transfer is still running",
          .remedy = "wait for its end, or plan a second one for the same blocks"};
}

}  // namespace

// Copies the pins and releases the lock for a long plan. A short one takes less time than that.
Result<core::OpList> TransferImpl::coalesce(AgentLock::Held& held) {
  constexpr std::uint64_t kShort = 64;  // blocks
  const auto taken = [](const Selection& side) {
    return side.indices.empty() ? side.blocks.count() : side.indices.size();
  };
  if (std::max(taken(local_), taken(remote_)) <= kShort)
    return core::coalesce(kind_, local_, remote_, basis_->pins().map(), peer_->pinMap());
  const core::PinMap local_pins = basis_->pins().map(), remote_pins = peer_->pinMap();
  held.unlock();
  auto list = core::coalesce(kind_, local_, remote_, local_pins, remote_pins);
  held.lock();
  return list;
}

Status TransferImpl::plan(AgentLock::Held& held) {
  VIADUCT_TRY(const auto required, core::parseRequirement(options_.require));
  while (true) {
    if (!peer_->isOpen()) return peer_->notReady("plan");
    if (!isAnnounced()) return notReached();
    const auto epoch = peer_->epoch();
    const auto local_version = basis_->pins().version(), remote_version = peer_->pinsVersion();
    auto list = coalesce(held);
    if (!list) {
      Error why = std::move(list).error();
      why.peer = peer_->name();
      return why;
    }
    if (epoch != peer_->epoch() || local_version != basis_->pins().version() ||
        remote_version != peer_->pinsVersion())
      continue;  // a pin or a session came or went meanwhile
    auto local_used = usedPins(list->spans, &core::PinSpan::local_pin,
                               [&](std::uint32_t slot) { return basis_->pins().generation(slot); });
    auto remote_used = usedPins(list->spans, &core::PinSpan::remote_pin,
                                [&](std::uint32_t slot) { return peer_->pinGeneration(slot); });
    const std::uint64_t bytes = list->bytes;
    VIADUCT_TRY(auto bundles, route(*basis_, *peer_, kind_, *std::move(list), required));
    remember(std::move(bundles), bytes);
    local_used_ = std::move(local_used);
    remote_used_ = std::move(remote_used);
    return Ok{};
  }
}

void TransferImpl::remember(Bundles bundles, std::uint64_t bytes) {
  carried_before_ = carried();
  take(std::move(bundles));
  bytes_ = bytes;
  direct_ = bundles_.size() == 1 && bundles_.front().isDirect() && !options_.on_end;
  planned_epoch_ = peer_->epoch();
  local_version_ = basis_->pins().version();
  remote_version_ = peer_->pinsVersion();
}

// A plan holds while the session goes on, the same number of rails serves it, and its pins exist.
// Otherwise the transfer is planned again.
bool TransferImpl::stillPlanned() {
  if (planned_epoch_ != peer_->epoch()) return false;
  for (const Bundle& bundle : bundles_)
    if (!bundle.stillServed()) return false;
  if (isPlannedForNow()) return true;
  if (!allLive(local_used_, [&](auto slot) { return basis_->pins().generation(slot); }) ||
      !allLive(remote_used_, [&](auto slot) { return peer_->pinGeneration(slot); }))
    return false;
  local_version_ = basis_->pins().version();
  remote_version_ = peer_->pinsVersion();
  return true;
}

bool TransferImpl::isPlannedForNow() const {
  return peer_->state() == PeerState::kReady && planned_epoch_ == peer_->epoch() &&
         local_version_ == basis_->pins().version() && remote_version_ == peer_->pinsVersion();
}

Status TransferImpl::post(const PostOptions& options) {
  Halfway halfway;
  Claim claim(claimed_);
  const AtOnce moved =
      mayPostAtOnce(options) ? postAtOnce(options, claim, halfway) : AtOnce::kNothing;
  if (moved == AtOnce::kAll && !options.mark) return Ok{};
  return goOn(options, claim, moved);
}

// The part of a post that needs the lock. Once bytes have moved, an error is the end of
// the post and no refusal.
Status TransferImpl::goOn(const PostOptions& options, Claim& claim, AtOnce moved) {
  // A callback on another thread may drop the last handle before this call returns.
  const auto self = options_.on_end ? shared_from_this() : nullptr;
  auto held = basis_->hold();
  if (running() || !claim.take()) return stillRunning();
  Status posted =
      // post() handles kAll without a mark.
      moved == AtOnce::kAll ? peer_->mark(*options.mark) : postByRails(held, options, moved);
  if (!posted && moved != AtOnce::kAll && !mayAccess()) ++basis_->counts().stale;
  if (moved == AtOnce::kAll || (moved == AtOnce::kPart && !posted)) {
    endAtOnce(moved, std::move(posted));
    posted = Ok{};
  }
  claim.release();  // before `held` unlocks, so that a callback may post again
  return posted;
}

// The only place that decides whether a post is refused. No byte moves before this check, and each
// pause of a copy asks again.
bool TransferImpl::mayPost(const PostOptions& options, AtOnce moved) const {
  const bool plain = options.note.empty() && options.digests.empty() && !options.mark;
  return mayAccess() && mayReach(options.mark, moved) && (plain || mayCarry(options));
}

// A draining peer takes only posts that have begun, or that belong to an open lease or stream.
bool TransferImpl::mayReach(const std::optional<Mark>& mark, AtOnce moved) const {
  const PeerState state = peer_->state();
  if (state == PeerState::kReady) [[likely]]
    return true;
  if (state != PeerState::kDraining) return false;
  return lease_ || moved != AtOnce::kNothing || (mark && peer_->hasMarks(mark->stream));
}

bool TransferImpl::mayCarry(const PostOptions& options) const {
  return options.note.size() <= kMaxNoteBytes && (options.digests.empty() || mayCheck(options)) &&
         (!options.mark || peer_->mayMark(*options.mark));
}

// The reason, if mayPost() is false.
Error TransferImpl::refusal(const PostOptions& options) const {
  if (options.note.size() > kMaxNoteBytes)
    return {.code = Code::kInvalid,
            .operation = "post",
            .detail = fmt::format("a note of {} bytes; the limit is {}", options.note.size(),
                                  kMaxNoteBytes)};
  if (!options.digests.empty())
    if (Status may = mayCheck(options); !may) return std::move(may).error();
  if (!mayAccess()) return lease_->stale("post");
  if (!mayReach(options.mark, AtOnce::kNothing)) return notReached();
  // mayPost() refuses nothing else.
  return peer_->mayMark(*options.mark).error();
}

bool TransferImpl::mayMark(const Mark& mark) const {
  const auto held = basis_->hold();
  return peer_->mayMark(mark).has_value();
}

// Copies in a section (move/sections.h), so that several threads copy at once. The state stays that
// of the previous post until all is copied: to other threads, the post happens at that moment. A
// post with a mark keeps its claim until the mark is sent.
TransferImpl::AtOnce TransferImpl::postAtOnce(const PostOptions& options, Claim& claim,
                                              Halfway& halfway) {
  move::Section section(basis_->rails().sections());
  if (running() || !claim.take()) return AtOnce::kNothing;
  const AtOnce moved = moveAtOnce(section, halfway);
  if (moved != AtOnce::kAll || options.mark) {
    if (moved != AtOnce::kNothing) halfway.begin(peer_);
    return moved;
  }
  ++basis_->rails().cellCounts(section.cell()).done;
  state_.store(TransferState::kDone, std::memory_order_release);
  basis_->ringBell();
  claim.release();  // before the section ends
  return moved;
}

TransferImpl::AtOnce TransferImpl::moveAtOnce(move::Section& section, Halfway& halfway) {
  using Outcome = core::DirectMover::Outcome;
  if (!mayMoveAtOnce()) return AtOnce::kNothing;
  Timing::Timed timed;
  if (Timing& timing = basis_->rails().cellCounts(section.cell()).timing; timing.isDue())
      [[unlikely]]
    timed = timing.begin(Clock::now());
  core::DirectMover::Progress so_far;
  const std::atomic<bool>& pause = basis_->rails().sections().shutWanted();
  while (true) {
    CellCounts& counts = basis_->rails().cellCounts(section.cell());
    const Outcome outcome = bundles_.front().moveNow(kind_, so_far, pause, counts);
    if (outcome == Outcome::kMoved) break;
    if (outcome == Outcome::kFailed) return AtOnce::kPart;
    if (so_far.bytes != 0) halfway.begin(peer_);
    section.giveWay();
    if (!mayMoveAtOnce()) return so_far.bytes != 0 ? AtOnce::kPart : AtOnce::kNothing;
  }
  if (timed.times != 0) [[unlikely]]
    basis_->rails().cellCounts(section.cell()).timing.end(timed, Clock::now());
  sayWhatMoved();
  return AtOnce::kAll;
}

void TransferImpl::Halfway::begin(const std::shared_ptr<PeerImpl>& peer) {
  if (peer_) return;
  peer_ = peer;
  peer_->beginHalfway();
}

void TransferImpl::Halfway::end() {
  const auto held = peer_->basis().hold();
  peer_->endHalfway();
}

// Ends a post whose thread has moved bytes by itself, while no rail has ops of it.
void TransferImpl::endAtOnce(AtOnce moved, Status ended) {
  Counts& counts = basis_->counts();
  ++counts.started;
  if (ended) {
    ++counts.done;
  } else {
    ++counts.failed;
    error_ = std::move(ended).error();
    countErrorWithoutRail(error_->code);
    corrupt_.clear();
    landed_.clear();
  }
  if (moved == AtOnce::kPart)
    for (Bundle& bundle : bundles_) bundle.start();  // the path of the previous post is over
  state_.store(error_ ? TransferState::kFailed : TransferState::kDone, std::memory_order_release);
  basis_->ringBell();
}

Status TransferImpl::postByRails(AgentLock::Held& held, const PostOptions& options, AtOnce moved) {
  basis_->engine().progressNowAndThen();
  if (awaitsPeer() && mayAwaitPeer(options)) {
    reach(options);
    return Ok{};
  }
  while (mayPost(options, moved)) {
    if (stillPlanned()) {
      run(options);
      return Ok{};
    }
    VIADUCT_CHECK(plan(held));
  }
  return refusal(options);
}

void TransferImpl::run(const PostOptions& options) {
  start(options);
  offer();
  basis_->rails().deliverEnded();  // a small copy on this host has ended in the post
  if (!running()) return;
  const auto now = begun_ = basis_->now();
  expect(options.deadline ? basis_->engine().poller().fromSteady(options.deadline->at())
                          : now + basis_->settings().deadline);
  if (bytes_ >= kLargeBytes)
    basis_->engine().takeOverNow();
  else
    basis_->engine().takeOverSoon(now);
}

// Whether the awaited pin is announced. A transfer that has been planned once waits no more.
bool TransferImpl::isAnnounced() const {
  return planned_epoch_ != 0 || !options_.awaits || peer_->pins().hasAnnounced(options_.awaits);
}

bool TransferImpl::awaitsPeer() const {
  if (!options_.reach || planned_epoch_ != 0 || peer_->hopeless() ||
      basis_->engine().poller().fromSteady(options_.reach->at()) <= basis_->now())
    return false;
  return !peer_->refusesNew() && (!peer_->isOpen() || !isAnnounced());
}

// Checks as much of a post as is known before the peer is ready.
bool TransferImpl::mayAwaitPeer(const PostOptions& options) const {
  return mayAccess() && options.digests.empty() && options.note.size() <= kMaxNoteBytes;
}

Error TransferImpl::notReached() const {
  if (peer_->refusesNew()) return peer_->drainError("post");
  if (!peer_->isOpen()) return peer_->notReady("post");
  return {.code = Code::kDenied,
          .operation = "post",
          .detail = "the peer has announced no pin of the expected label",
          .peer = peer_->name(),
          .cause = "it has withdrawn the memory, or has been restarted",
          .remedy = "get the peer's present registrations"};
}

void TransferImpl::reach(const PostOptions& options) {
  reaching_ = true;
  begun_ = basis_->now();
  was_early_ = peer_->state() != PeerState::kReady;
  traffic_.addReaching(*this);
  start(options);
  const base::Poller& clock = basis_->engine().poller();
  deadline_ = options.deadline ? clock.fromSteady(options.deadline->at())
                               : basis_->now() + basis_->settings().deadline;
  // awaitsPeer() is false without it.
  expect(std::min(clock.fromSteady(options_.reach->at()), deadline_));
  basis_->engine().takeOverNow();
}

void TransferImpl::endReach() {
  if (std::exchange(reaching_, false)) traffic_.removeReaching(*this);
}

// If the session began during the wait, the peer has announced the pins that it had then. An
// awaited pin that is missing was withdrawn, or its announcement is still on its way.
void TransferImpl::hurryReach() {
  if (peer_->state() != PeerState::kReady || !std::exchange(was_early_, false)) return;
  expect(std::min(due_, basis_->now() + kAnnouncedWithin));
}

void TransferImpl::goOnReaching() {
  auto held = basis_->hold();
  while (peer_->same_as) peer_ = peer_->same_as;  // it was dialed by address and known already
  if (!reaching_) return;
  if (awaitsPeer()) return hurryReach();
  const auto may = [this] { return mayReach(mark_, AtOnce::kNothing); };
  auto planned = may() ? plan(held) : notReached();
  if (planned && !may()) planned = notReached();
  if (planned && !mayAccess()) planned = lease_->stale("post");
  if (planned && mark_) planned = peer_->mayMark(*mark_);
  // The post may have ended or begun while plan() had released the lock.
  if (!reaching_) return;
  if (!planned) return abort(std::move(planned).error());
  endReach();
  for (Bundle& bundle : bundles_) bundle.start();
  expect(deadline_);
  offer();
  basis_->rails().deliverEnded();
  endIfOver();
  basis_->engine().takeOverNow();
}

void TransferImpl::start(const PostOptions& options) {
  begin();
  prepareCheck(options.digests);
  has_note_ = options.with_note || !options.note.empty();
  note_.assign(options.note.begin(), options.note.end());
  mark_ = options.mark;
  Timing& timing = basis_->counts().timing;
  if (timing.isDue()) [[unlikely]]
    timed_ = timing.begin(Clock::now());
  ++basis_->counts().started;
  if (lease_) lease_->enter();
  if (total_ops_ == 0) endIfOver();
}

void TransferImpl::cancel() {
  abort({.code = Code::kCancelled, .operation = "transfer", .peer = peer_->name()});
}

void TransferImpl::overdue() {
  if (!reaching_) return Posting::overdue();
  due_ = Clock::time_point::max();
  abort(notReached());
}

void TransferImpl::over() {
  if (reaching_ && !error_) return;
  if (!error_ && check_) return goOnChecking();
  finish(outcome());
}

bool TransferImpl::uses(std::uint32_t local_slot) const { return has(local_used_, local_slot); }

bool TransferImpl::usesRemote(std::uint32_t remote_slot) const {
  return has(remote_used_, remote_slot);
}

Status TransferImpl::mayCheck(const PostOptions& options) const {
  if (kind_ == OpKind::kWrite)
    return Error{.code = Code::kInvalid,
                 .operation = "post",
                 .detail = "digests were passed to a write, which cannot read the peer's blocks",
                 .remedy = "send them to the peer in the note; it calls checkBlocks()"};
  for (const auto& [slot, generation] : local_used_)
    if (isStorage(basis_->pins()[slot].info.kind))
      return Error{.code = Code::kUnsupported,
                   .operation = "post",
                   .detail = "digests were passed to a read into a file or object",
                   .remedy = "read into memory to check blocks"};
  return checkNumberOfDigests("post", options.digests.size(),
                              BlockDigester(local_, nullptr).count());
}

void TransferImpl::prepareCheck(std::span<const Digest> digests) {
  corrupt_.clear();
  landed_.clear();
  check_.reset();
  if (digests.empty()) return;
  const bool host_only = std::ranges::all_of(local_used_, [&](const auto& used) {
    return basis_->pins()[used.first].info.kind == MemoryKind::kHost;
  });
  check_.emplace(BlockDigester(local_, host_only ? nullptr : basis_->blockMemory()),
                 std::vector(digests.begin(), digests.end()));
}

// Threads that poll or wait check one part after another, without the lock.
void TransferImpl::goOnChecking() {
  out_ = 1;
  basis_->owe([self = shared_from_this()] { self->checkPart(); });
}

// Called without the lock. While the agent closes, no part is checked, and the loss of the peer
// will end the transfer.
void TransferImpl::checkPart() {
  Status checked = Ok{};
  auto held = basis_->hold();
  // Set until the last part ends.
  BlockCheck& check = *check_;
  if (!stopping_ && !basis_->closed()) {
    held.unlock();
    checked = check.advance();
    held.lock();
  }
  if (!stopping_ && checked && !check.done()) return goOnChecking();
  if (!stopping_) {
    if (!checked) error_ = std::move(checked).error();
    endCheck(check);
  }
  std::optional<BlockCheck> over = std::move(check_);
  check_.reset();
  held.unlock();
  over.reset();  // waits for a GPU that still reads blocks
  held.lock();
  out_ = 0;
  endIfOver();
  basis_->engine().takeOverNow();  // wakes a thread that waits while another one has checked
}

void TransferImpl::endCheck(const BlockCheck& check) {
  corrupt_ = check.corrupt();
  if (!error_ && !corrupt_.empty()) {
    Error why = check.error(basis_->blockMemory()->find(check.firstCorrupt()));
    why.peer = peer_->name();
    error_ = std::move(why);
  }
  if (error_) countErrorWithoutRail(error_->code);
  stopping_ = error_.has_value();
}

// Logs the path, so that rails, doorbells and injected ops are visible without a change of the
// program.
void TransferImpl::sayWhatMoved() const {
  if (base::logLevel() > base::LogLevel::kDebug) return;
  base::log(base::LogLevel::kDebug, "peer {}: {}: {}", peer_->name(), opKindName(kind_),
            path().text());
}

void TransferImpl::stopTiming(TransferState state) {
  if (state == TransferState::kDone) basis_->counts().timing.end(timed_, Clock::now());
  timed_ = {};
}

// The data is there: sends the note and the mark that announce it.
Status TransferImpl::tellPeer() {
  if (has_note_) VIADUCT_CHECK(peer_->note(note_));
  if (mark_) VIADUCT_CHECK(peer_->mark(*mark_));
  return Ok{};
}

void TransferImpl::countEnd(TransferState state) {
  Counts& counts = basis_->counts();
  ++(state == TransferState::kDone     ? counts.done
     : state == TransferState::kFailed ? counts.failed
                                       : counts.cancelled);
}

void TransferImpl::finish(TransferState state) {
  endReach();
  sayWhatMoved();
  if (state == TransferState::kDone)
    if (auto sent = tellPeer(); !sent) {
      error_ = std::move(sent).error();
      countErrorWithoutRail(error_->code);
      state = TransferState::kFailed;
    }
  countEnd(state);
  if (state != TransferState::kDone) landed_ = core::landedBlocks(local_, landed());
  if (timed_.times != 0) [[unlikely]]
    stopTiming(state);
  end(state);
  if (lease_) lease_->leave();
  basis_->engine().changed();
  basis_->ringBell();
  watchers_.tell();
  if (options_.on_end)
    basis_->owe([self = shared_from_this(), end = result()] { self->options_.on_end(end); });
}

Path TransferImpl::path() const {
  Path path;
  addTo(path);
  return path;
}

Path TransferImpl::carried() const {
  Path path = carried_before_;
  for (const Bundle& bundle : bundles_) bundle.addCarriedTo(path);
  return path;
}

}  // namespace viaduct::agent
