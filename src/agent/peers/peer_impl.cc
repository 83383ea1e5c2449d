#include "agent/peers/peer_impl.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

// The most bytes kept for a repeat because the peer has not confirmed them. A peer confirms each
// 256 KiB.
constexpr std::size_t kMaxKeptBytes = std::size_t{8} << 20U;

}  // namespace

PeerImpl::PeerImpl(Peers& peers, std::string name, bool own)
    : owner_(peers.basis().shared_from_this()),
      basis_(peers.basis()),
      peers_(peers),
      name_(std::move(name)),
      own_(own),
      redialer_(peers_, *this),
      sent_(kMaxKeptBytes),
      pins_(own ? nullptr : &peers_.pinsBytes()),
      leases_(peers_, *this) {}
PeerImpl::~PeerImpl() = default;

Status LinkSlot::send(std::span<const std::byte> message, std::span<const int> fds) {
  return peer_.sendBackend(backend_, message, fds);
}

void LinkSlot::changed() { peer_.linkChanged(); }

void PeerImpl::linkChanged() {
  recheck_ = true;
  peers_.recheckSoon();
}

void PeerImpl::changed() {
  basis_.engine().changed();
  watchers_.tell();
}

Status PeerImpl::has(Feature feature, const char* operation) const {
  if ((features_ & bitOf(feature)) != 0) return Ok{};
  const bool ours = (kOurFeatures & bitOf(feature)) != 0;
  return Error{.code = Code::kUnsupported,
               .operation = operation,
               .detail = fmt::format("{} has no {}", ours ? "the peer" : "this agent",
                                     kFeatureNames[static_cast<std::size_t>(feature)]),
               .peer = name_,
               .cause = "it runs an older version of Viaduct",
               .remedy = "install this version at both ends"};
}

Error PeerImpl::notReady(const char* operation) const {
  if (phase_.is(PeerPhase::kDraining)) return drainError(operation);
  Error why = last_error_.value_or(
      redialer_.shakesHands()
          ? Error{.operation = "handshake", .detail = "connected, but no data arrived yet"}
          : Error{.operation = "connect", .detail = "not connected yet"});
  if (why.code != Code::kDenied && why.code != Code::kDraining) why.code = Code::kPeerLost;
  why.detail = fmt::format("{}: {}", why.operation, why.detail);
  if (why.code != Code::kPeerLost || state() != PeerState::kLost)  // else the code says so
    why.detail = fmt::format("the peer is {}: {}", peerStateName(state()), why.detail);
  why.operation = operation;
  why.peer = name_;
  if (why.remedy.empty()) why.remedy = "wait with Peer::ready(deadline)";
  return why;
}

const std::array<std::uint8_t, 16>& PeerImpl::theirId() const {
  return own_ ? basis_.id() : session_->connection().theirs().agent;
}

bool PeerImpl::settled() {
  std::erase_if(unsettled_, [](const auto& settled) { return settled(); });
  return unsettled_.empty() && (!own_ || peers_.closedSettled()) &&
         std::ranges::all_of(links_, [](const auto& slot) { return slot->link->settled(); });
}

void PeerImpl::takeUnsettled(PeerImpl& other) {
  std::ranges::move(other.unsettled_, std::back_inserter(unsettled_));
  other.unsettled_.clear();
}

bool PeerImpl::departed() {
  return !redialer_.isAimed() && !isAlive() && redialer_.isIdle() && settled();
}

std::vector<PeerWay> PeerImpl::ways() const {
  std::vector<PeerWay> out;
  for (const auto& slot : links_) {
    auto state = slot->link->state();
    out.push_back({.backend = std::string(basis_.backend(slot->backend()).can().name),
                   .usable = state.phase == core::LinkState::Phase::kReady,
                   .text = std::move(state.text)});
  }
  return out;
}

void PeerImpl::withdraw(const PinEntry& pin) {
  if (!isAlive() || !rights_->to(pin.info.slot, pin.audience).any()) return;
  sendOrLose(FrameType::kUnpin, base::encode(UnpinMessage{pin.info.slot}));
}

// While the connection is cut and another is tried, frames are kept and not sent.
Status PeerImpl::send(FrameType type, std::span<const std::byte> head,
                      std::span<const std::byte> body, std::span<const int> fds) {
  if (own_) return hearOwn(type, head);
  Connection& connection = session_->connection();
  if (!ending_.is(Ending::kCut)) {
    auto sent = connection.sendParts(type, head, body, fds);
    if (!sent && (sent.error().code != Code::kPeerLost || redialer_.isIdle())) return sent;
  }
  if (connection.canResume()) sent_.add(type, head, body);
  return Ok{};
}

// The agent is both ends, so a frame has arrived once it is sent. Another thread may sleep until
// the frame arrives.
Status PeerImpl::hearOwn(FrameType type, std::span<const std::byte> payload) {
  if (type == FrameType::kNote && paused_)
    return Error{.code = Code::kBusy, .detail = "the notes that wait fill VIADUCT_NOTE_BACKLOG"};
  handle(type, payload, {});
  basis_.engine().takeOverNow();
  return Ok{};
}

// These frames keep the two ends consistent. A peer that cannot take one is lost.
void PeerImpl::sendOrLose(FrameType type, std::span<const std::byte> payload) {
  if (auto sent = send(type, payload); !sent) notSent(std::move(sent).error());
}

// A connection that has ended reports the loss later, after the peer's last frames have been read.
void PeerImpl::notSent(Error why) {
  if (why.code != Code::kPeerLost) breakOff(std::move(why));
}

Status PeerImpl::sendBackend(std::size_t backend, std::span<const std::byte> message,
                             std::span<const int> fds) {
  if (!session_) return notReady("send");
  scratch_.clear();
  base::append(scratch_, BackendMessage{.backend = basis_.backend(backend).can().name});
  auto sent = send(FrameType::kBackend, scratch_, message, fds);
  // A link does not repeat a message, so a message that cannot be sent ends the session. kExhausted
  // is different: no descriptor could be duplicated, and nothing was sent. The link gets that
  // error.
  if (!sent && sent.error().code != Code::kExhausted) notSent(sent.error());
  return sent;
}

void PeerImpl::pauseReading(bool paused) {
  paused_ = paused;
  if (session_) session_->connection().pauseReading(paused);
}

void PeerImpl::frame(FrameType type, std::span<const std::byte> payload,
                     std::vector<base::Fd> fds) {
  takeNotesBefore(session_->connection().framesHeard() - 1);
  if (ending_.is(Ending::kBroken)) return;  // the session ends in this round of progress
  if (isNumbered(type) && isRepeated(payload.size())) return;
  if (auto may = mayTake(type, payload.size()); !may) {
    Error why = std::move(may).error();
    why.peer = name_;
    return lose(why);
  }
  handle(type, payload, std::move(fds));
}

// Also checks entries of the note ring, which no connection has checked.
Status PeerImpl::mayTake(FrameType type, std::size_t bytes) {
  const FrameRule& rule = *ruleOf(type);
  VIADUCT_CHECK(checkSize(rule, bytes, 0));
  if ((features_ & bitOf(rule.feature)) == 0)
    return brokenRule(fmt::format("a frame '{}' in a session without that feature", rule.name));
  return order_.take(rule);
}

void PeerImpl::handle(FrameType type, std::span<const std::byte> payload,
                      std::vector<base::Fd> fds) {
  switch (type) {
    case FrameType::kHeartbeat:
      return takeHeartbeat(payload);
    case FrameType::kNote:
      return peers_.arrived(*this, {payload.begin(), payload.end()});
    case FrameType::kPin:
      return addPin(payload);
    case FrameType::kUnpin:
      return dropPin(payload);
    case FrameType::kSynced:
      phase_.step(PeerPhase::kSynced);
      return linkChanged();
    case FrameType::kBackend:
      return backendFrame(payload, std::move(fds));
    case FrameType::kBye:
      return heardBye(payload);
    case FrameType::kNoteRing:
      return heardOfRing(std::move(fds));
    case FrameType::kLeaseEnded:
    case FrameType::kLeaseSettled:
    case FrameType::kLeaseReturned:
      return heardLease(type, payload);
    case FrameType::kDraining:
      return heardDraining(payload);
    case FrameType::kDrainLeft:
      return heardDrainLeft(payload);
    case FrameType::kParcel:
      return heardParcel(payload);
    case FrameType::kMark:
      return heardMark(payload);
    case FrameType::kMarksEnd:
      return heardMarksEnd(payload);
    case FrameType::kOpen:
    case FrameType::kChallenge:
    case FrameType::kProof:
    case FrameType::kConfirm:
    case FrameType::kDeny:
    case FrameType::kHello:
    case FrameType::kAccept:
    case FrameType::kRefuse:
    case FrameType::kResume:
      return;  // the connection takes them
  }
}

void PeerImpl::heardLease(FrameType type, std::span<const std::byte> payload) {
  if (auto heard = leases_.heard(type, payload); !heard) breakOff(std::move(heard).error());
}

void PeerImpl::tellReturned(std::span<const std::byte> payload) {
  tellThroughRing(FrameType::kLeaseReturned, RingPage::EntryKind::kLeaseReturned, payload);
}

void PeerImpl::tellParcel(std::span<const std::byte> payload) {
  tellThroughRing(FrameType::kParcel, RingPage::EntryKind::kParcel, payload);
}

void PeerImpl::tellThroughRing(FrameType type, RingPage::EntryKind kind,
                               std::span<const std::byte> payload) {
  if (session_ && ring_out_ && ring_out_->put(session_->connection().framesSent(), payload, kind))
    return;
  tell(type, payload);
}

void PeerImpl::heardParcel(std::span<const std::byte> payload) {
  if (auto heard = peers_.parcels().heard(*this, payload); !heard)
    breakOff(std::move(heard).error());
}

void PeerImpl::readNow() {
  if (session_) session_->connection().readNow();
}

void PeerImpl::addPin(std::span<const std::byte> payload) {
  auto message = base::decode<PinMessage>(payload);
  if (!message) return breakOff(std::move(message).error());
  if (auto added = pins_.add(*message); !added) return breakOff(std::move(added).error());
  const Still still(basis_.rails());
  for (const auto& link : links_) {
    const auto name = basis_.backend(link->backend()).can().name;
    for (auto& [backend, key] : message->keys)
      if (backend == name) link->link->addPin({message->info, std::move(key)});
  }
  peers_.transfers().goOnReaching();
  changed();
}

void PeerImpl::dropPin(std::span<const std::byte> payload) {
  const auto message = base::decode<UnpinMessage>(payload);
  if (!message) return breakOff(message.error());
  const Still still(basis_.rails());
  for (const auto& link : links_) link->link->dropPin(message->slot);
  pins_.drop(message->slot);
  peers_.transfers().failUsing(*this, message->slot);
  changed();
}

void PeerImpl::backendFrame(std::span<const std::byte> payload, std::vector<base::Fd> fds) {
  const auto message = base::decode<BackendMessage>(payload);
  if (!message) return breakOff(message.error());
  const Still still(basis_.rails());
  for (const auto& link : links_)
    if (basis_.backend(link->backend()).can().name == message->backend)
      return link->link->receive(message->bytes, std::move(fds));
}

void PeerImpl::breakOff(Error why) {
  ending_why_ = std::move(why);
  ending_why_.peer = name_;
  ending_.step(Ending::kBreak);
  linkChanged();
}

// Runs in a round of progress, outside every callback of a link or a connection.
void PeerImpl::recheck() {
  if (!std::exchange(recheck_, false)) return;
  if (ending_.is(Ending::kBroken)) return lose(Error(ending_why_));
  for (const auto& slot : links_)
    if (const auto state = slot->link->state(); state.broken_rule) {
      Error why = brokenRule(state.text);
      why.operation = basis_.backend(slot->backend()).can().name;
      why.peer = name_;
      return lose(why);
    }
  if (isOpen()) {
    if (their_drain_ % 2 != 0) tellLeft();
    return loseIfLinkBroke();
  }
  if (!phase_.is(PeerPhase::kOpening)) return;
  if (const auto why = exhausted()) return lose(*why);
  using Phase = core::LinkState::Phase;
  for (const auto& slot : links_)
    if (slot->link->state().phase == Phase::kOpening) return;
  warnOfUnusableLinks();
  for (const auto& slot : links_) slot->was_ready = slot->link->state().phase == Phase::kReady;
  phase_.step(PeerPhase::kOpened);
  followDrain();
  last_error_.reset();
  exhausted_wait_ = {};
  redialer_.resetBackoff();
  log(LogLevel::kInfo, "peer {} is ready, epoch {}", name_, epoch());
  if (!kept_notes_.empty()) sendKeptNotes();
  peers_.transfers().goOnReaching();
  changed();
}

// Returns an error if a link lacked descriptors or memory, and this life is to end so that the next
// one tries again. After some such lives, a life with another usable link is kept.
std::optional<Error> PeerImpl::exhausted() const {
  std::optional<Error> why;
  bool usable = false;
  for (const auto& slot : links_) {
    auto state = slot->link->state();
    usable = usable || state.phase != core::LinkState::Phase::kUnusable;
    if (!state.exhausted || why) continue;
    why = Error{.code = Code::kExhausted,
                .operation = std::string(basis_.backend(slot->backend()).can().name),
                .detail = std::move(state.text),
                .peer = name_,
                .cause = "too few file descriptors, or too little memory, to open the backend",
                .remedy = "raise the limit (ulimit -n); the agent retries"};
  }
  if (usable && exhausted_wait_ == Redialer::kLastBackoff) why.reset();
  return why;
}

// A broken link is only opened again in the next life, so this life ends.
void PeerImpl::loseIfLinkBroke() {
  for (const auto& slot : links_) {
    const auto state = slot->link->state();
    if (!slot->was_ready || state.phase != core::LinkState::Phase::kUnusable) continue;
    Error why{.code = Code::kPeerLost,
              .operation = std::string(basis_.backend(slot->backend()).can().name),
              .detail = state.text,
              .peer = name_};
    // A peer that closes also closes its links. Its earlier goodbye may still be unread.
    readNow();
    return lose(why);
  }
}

// False if a backend of one host cannot reach another host, or the card keeps the backend out.
bool PeerImpl::shouldReach(const core::Capabilities& can) const {
  const bool here = own_ || basis_.isThisHost(session_->connection().theirs().boot);
  const bool limited = rights_->isLimited() || !redialer_.theirs().empty();
  return (!can.same_host || here) && (!limited || can.checks_rights);
}

// Logs once per life each unusable link, as the path may be slower for it.
void PeerImpl::warnOfUnusableLinks() {
  for (const auto& slot : links_) {
    const auto state = slot->link->state();
    if (state.phase != core::LinkState::Phase::kUnusable) continue;
    const core::Capabilities& can = basis_.backend(slot->backend()).can();
    log(shouldReach(can) ? LogLevel::kWarning : LogLevel::kInfo,
        "peer {}: backend {} cannot be used: {}", name_, can.name, state.text);
  }
}

void PeerImpl::addTo(std::span<LinkStatistics> backends) const {
  if (own_ || !phase_.is(PeerPhase::kReady)) return;
  for (const auto& slot : links_) {
    LinkStatistics& into = backends[slot->backend()];
    if (slot->link->state().phase == core::LinkState::Phase::kReady) {
      ++into.usable;
      if (const auto level = slot->link->protection())
        ++into.protections[static_cast<std::size_t>(*level)];
    } else if (shouldReach(basis_.backend(slot->backend()).can())) {
      ++into.unusable;
    }
  }
}

// When the peer was last heard: by a frame, or by a heartbeat that this or an earlier call found in
// the ring.
Clock::time_point PeerImpl::lastHeard(Clock::time_point now) {
  if (ring_in_ && ring_in_->hasBeaten()) beaten_at_ = now;
  return std::max(beaten_at_, session_->connection().lastHeard());
}

void PeerImpl::beat(Clock::time_point now, bool judge_silence) {
  // Frees what a lost life has left, such as a descriptor of the peer's process, once that process
  // has ended.
  static_cast<void>(settled());
  if (!session_) return;
  const auto heard = lastHeard(now);
  const auto silent = now - heard;
  if (judge_silence && silent >= basis_.settings().detect * 3 / 4) {
    silent_ = {.agent = theirId(), .until = heard + basis_.settings().detect};
    return lose({.code = Code::kPeerLost,
                 .operation = "heartbeat",
                 .detail = fmt::format(
                     "no frame arrived for {} ms",
                     std::chrono::duration_cast<std::chrono::milliseconds>(silent).count()),
                 .peer = name_,
                 .device = session_->connection().remoteText(),
                 .cause = "the peer is stopped, its host is down, or the path is cut",
                 .remedy = "check the peer's process and the path; the agent retries"});
  }
  if (seemsCut() && judge_silence) reachAnotherWay();
  sayHeard();
}

Duration PeerImpl::beatEvery() const {
  Duration every = basis_.settings().detect;
  if (session_)
    every = std::min<Duration>(
        every, std::chrono::milliseconds(session_->connection().theirs().detect_ms));
  return std::max<Duration>(every / 4, std::chrono::milliseconds(5));
}

}  // namespace viaduct::agent
