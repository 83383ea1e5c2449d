#include "agent/peers/peers.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "base/log.h"
#include "base/net/address.h"
#include "base/net/weak_secret.h"
#include "base/process_id.h"
#include "base/random.h"
#include "core/setting_name.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

// The most peers that are kept after they have departed and no handle refers to them, and the most
// bytes of their marks. Beyond that, the oldest are forgotten.
constexpr std::size_t kMostDeparted = 256;
constexpr std::size_t kMostDepartedBytes = std::size_t{4} << 20U;

Error revokedCard() {
  return {.code = Code::kDenied,
          .operation = "connect",
          .detail = "the Card has been revoked",
          .cause = "its owner has revoked it, or a Card from which it was narrowed",
          .remedy = "ask the owner for another Card"};
}

}  // namespace

Peers::Peers(Basis& basis, Transfers& transfers, ParcelFrames& parcels)
    : basis_(basis),
      transfers_(transfers),
      parcels_(parcels),
      notes_(basis.settings().note_backlog) {}
Peers::~Peers() = default;

Status Peers::listen(Deadline until) {
  if (!basis_.settings().secret.empty())
    secret_ = base::secretFromText(basis_.settings().secret);
  else if (!basis_.settings().insecure)
    VIADUCT_CHECK(base::fillSecret(secret_));
  VIADUCT_CHECK(base::fillSecret(card_root_));
  if (basis_.settings().insecure && basis_.settings().secret.empty())
    log(LogLevel::kWarning, "agent {} accepts every peer that reaches its socket",
        basis_.settings().name);
  const std::string unix_name =
      fmt::format("viaduct-{:02x}", fmt::join(std::span(basis_.id()).first(8), ""));
  auto accepted = [this](base::Fd socket, base::Unproven::Place place) {
    accept(std::move(socket), std::move(place));
  };
  VIADUCT_TRY(listener_,
              base::Listener::open(basis_.settings().listen, unix_name, basis_.engine().poller(),
                                   std::move(accepted), until.at()));
  if (!listener_->isLocal()) base::warnIfGuessable(basis_.settings().secret);
  return Ok{};
}

Status Peers::checkHello() const {
  const base::Bytes bytes = base::encode(hello(0));
  if (bytes.size() <= kMaxHelloPayload && base::decode<Hello>(bytes)) return Ok{};
  return Error{.code = Code::kInvalid,
               .operation = "settings: listen",
               .detail = fmt::format(
                   "a hello with {} addresses; peers accept at most {} addresses and {} bytes",
                   listener_->addresses().size(), kMaxAddresses, kMaxHelloPayload),
               .remedy = "listen on fewer addresses"};
}

// Threads that still wait for a note find that the agent is closed.
void Peers::close() {
  for (const auto& peer : peers_) {
    peer->forget();
    for (const auto& settled : peer->unsettled())
      unsettled_.push_back({peer->name(), peer == self_, settled});
  }
  peers_.clear();
  self_.reset();
  newcomers_.clear();
  graveyard_.clear();
  listener_.reset();
  note_watchers_.tell();
}

void Peers::awaitOwn(std::function<bool()> settled) {
  unsettled_.push_back({basis_.settings().name, /*own=*/true, std::move(settled)});
}

// Frees what the function keeps as soon as it is true.
bool Peers::isOver(Unsettled& one) {
  if (one.settled && one.settled()) one.settled = nullptr;
  return !one.settled;
}

Status Peers::left() {
  const auto left = std::ranges::find_if_not(unsettled_, isOver);
  if (left == unsettled_.end()) return Ok{};
  return Error{
      .code = Code::kPeerLost,
      .operation = "release",
      .detail = "the agent was closed while a stopped peer or a device still used its memory",
      .peer = left->peer,
      .remedy = "keep the memory until the peer has died or its settled() is true"};
}

void Peers::leak() {
  static_cast<void>(new auto(std::move(peers_)));
  static_cast<void>(new auto(std::move(self_)));
  static_cast<void>(new auto(std::move(newcomers_)));
  static_cast<void>(new auto(std::move(listener_)));
}

bool Peers::readNotes() {
  if (notes_.forgetMadeRoom()) letSendersGoOn();
  return rings_.look();
}

// Also destroys the sessions that bury() took in this round of progress.
bool Peers::recheck() {
  const bool wanted = std::exchange(recheck_, false);
  if (wanted) {
    const auto peers = peers_;  // a peer may come or go meanwhile
    for (const auto& peer : peers) peer->recheck();
  }
  if (!graveyard_.empty()) std::exchange(graveyard_, {}).clear();
  return wanted;
}

std::shared_ptr<PeerImpl> Peers::add(std::string name, bool own) {
  return peers_.emplace_back(std::make_shared<PeerImpl>(*this, std::move(name), own));
}

std::shared_ptr<PeerImpl> Peers::find(std::string_view name) const {
  return self_ && name == basis_.settings().name ? self_ : findOther(name);
}

// Finds another agent by name, never the agent itself, which may have the same name.
std::shared_ptr<PeerImpl> Peers::findOther(std::string_view name) const {
  const auto found = std::find_if(peers_.begin(), peers_.end(), [&](const auto& peer) {
    return peer->hasName(name) && !peer->isOwn();
  });
  return found == peers_.end() ? nullptr : *found;
}

Result<std::shared_ptr<PeerImpl>> Peers::connect(const Card& card, std::vector<Grant> mine) {
  if (card.name.empty())
    return Error{.code = Code::kInvalid, .operation = "connect", .detail = "the Card has no name"};
  if (drains()) return drainError("connect");
  if (card.agent == basis_.id()) return self();
  auto peer = heirTo(findOther(card.name), card.agent);
  if (!peer) peer = add(card.name);
  peer->forgetDrained();
  peer->redialer().aim(card, std::move(mine));
  return peer;
}

bool Peers::selfSettled() { return self_ ? self_->settled() : closedSettled(); }

bool Peers::closedSettled() {
  return std::ranges::all_of(unsettled_, [](Unsettled& one) { return !one.own || isOver(one); });
}

bool Peers::settled() {
  if (listener_ && !self()) return false;  // of an open agent, its own peer knows the devices
  return left() && std::ranges::all_of(peers_, [](const auto& peer) { return peer->settled(); });
}

Result<std::shared_ptr<PeerImpl>> Peers::self() {
  if (!self_) self_ = add(basis_.settings().name, /*own=*/true);
  VIADUCT_CHECK(self_->beginOwn());
  return self_;
}

Result<std::shared_ptr<PeerImpl>> Peers::connectTo(std::string_view host_port) {
  if (auto parsed = base::parseHostPort(host_port); !parsed) return std::move(parsed).error();
  if (drains()) return drainError("connect");
  auto peer = add("");
  peer->redialer().aim({.addresses = {std::string(host_port)}, .secret = secret_});
  return peer;
}

void Peers::accept(base::Fd socket, base::Unproven::Place place) {
  auto& session = newcomers_.emplace_back(std::make_unique<Session>(*this, nullptr));
  if (auto opened = session->accept(std::move(socket)); !opened) {
    base::log(base::LogLevel::kWarning, "a connection was dropped: {}", opened.error().text());
    newcomers_.pop_back();
    return;
  }
  session->unproven(std::move(place));
}

// The grants under which the dialer has proved its card. An error says why the card is no longer
// good.
Result<std::vector<Grant>> Peers::grantsOf(Session& session, const Hello& theirs) const {
  auto decoded = decodeClaim(session.connection().claim());
  if (!decoded) {
    Error why = std::move(decoded).error();
    why.code = Code::kDenied;  // the holder has proved the claim, and need not dial again
    return why;
  }
  auto grants = *std::move(decoded);
  VIADUCT_CHECK(mayUse(grants, theirs.name, basis_.wallNow()));
  if (revoked_.has(grants)) return revokedCard();
  return grants;
}

std::optional<Key> Peers::secretOf(base::ByteSpan claim) const {
  return keyOfClaim(card_root_, claim);
}

Status Peers::revoke(const CardId& id, std::optional<WallTime> until) {
  VIADUCT_CHECK(revoked_.add(id, until, basis_.wallNow()));
  const auto peers = peers_;  // a peer may go meanwhile
  for (const auto& peer : peers)
    if (hasId(peer->grants(), id)) peer->endUnderCard(revokedCard());
  return Ok{};
}

Status Peers::revokeAll() {
  VIADUCT_CHECK(base::fillSecret(card_root_));
  revoked_.clear();
  const auto peers = peers_;
  for (const auto& peer : peers)
    if (!peer->grants().empty()) peer->endUnderCard(revokedCard());
  return Ok{};
}

std::unique_ptr<Session> Peers::takeNewcomer(Session& session) {
  const auto found = std::find_if(newcomers_.begin(), newcomers_.end(),
                                  [&](const auto& owned) { return owned.get() == &session; });
  if (found == newcomers_.end()) return nullptr;
  auto taken = std::move(*found);
  newcomers_.erase(found);
  taken->leavePlace();
  return taken;
}

void Peers::bury(std::unique_ptr<Session> session) {
  if (!session) return;
  session->orphan();
  graveyard_.push_back(std::move(session));
}

Result<Life> Peers::admit(Session& session, const Hello& theirs) {
  const bool resumes = session.connection().resume().has_value();
  if (!resumes && drains()) return drainError("connect");
  VIADUCT_TRY(auto grants, grantsOf(session, theirs));
  auto peer = resumes ? findAlive(theirs) : nullptr;
  if (!peer) peer = heirTo(findOther(theirs.name), theirs.agent);
  if (!peer) peer = add(theirs.name);
  return resumes ? peer->judgeResume(session, theirs, grants)
                 : peer->judgeAccepted(session, theirs, std::move(grants));
}

// Finds the living peer of that name and agent, whose session may move to another connection. A
// draining peer that gave its name to a successor counts too.
std::shared_ptr<PeerImpl> Peers::findAlive(const Hello& theirs) const {
  const auto found = std::ranges::find_if(peers_, [&](const auto& peer) {
    return peer->name() == theirs.name && !peer->isOwn() && peer->isAlive() &&
           peer->theirId() == theirs.agent;
  });
  return found == peers_.end() ? nullptr : *found;
}

// A draining peer gives its name to another agent of that name. Returns null if it did.
std::shared_ptr<PeerImpl> Peers::heirTo(std::shared_ptr<PeerImpl> known, const AgentId& id) {
  if (!known || !known->isAlive() || !known->drains() || known->theirId() == id) return known;
  known->giveUpName();
  return nullptr;
}

void Peers::beginDrain(Clock::time_point until) {
  drain_until_ = until;
  const auto peers = peers_;  // a peer may come or go meanwhile
  for (const auto& peer : peers) peer->announceDrain();
}

void Peers::endDrain() {
  drain_until_.reset();
  const auto peers = peers_;
  for (const auto& peer : peers) peer->announceDrain();
}

Error Peers::drainError(const char* operation) const {
  return {.code = Code::kDraining,
          .operation = operation,
          .detail = fmt::format("agent {} drains: it is about to leave and begins nothing new",
                                basis_.settings().name),
          .remedy = "use another agent; a successor may have the same name at the meeting place"};
}

bool Peers::hasDrainLeft() const {
  return std::ranges::any_of(peers_,
                             [](const auto& peer) { return PeerImpl::isLeft(peer->drainLeft()); });
}

std::vector<DrainLeft> Peers::drainLeft() const {
  std::vector<DrainLeft> out;
  for (const auto& peer : peers_)
    if (auto left = peer->drainLeft(); PeerImpl::isLeft(left)) out.push_back(std::move(left));
  return out;
}

void Peers::joinByName(const std::shared_ptr<PeerImpl>& peer, const AgentId& id) {
  for (const auto& known : peers_)
    if (known != peer && known->hasName(peer->name()) && !known->isOwn()) heirTo(known, id);
  for (const auto& known : peers_)
    if (known != peer && !known->isOwn() && known->hasName(peer->name()) && known->isOpen())
      return replace(peer, known);
  std::erase_if(peers_, [&](const auto& known) {
    if (known == peer || known->isOwn() || !known->hasName(peer->name())) return false;
    peer->takeKeptNotes(*known);
    known->forget();
    peer->takeUnsettled(*known);
    known->same_as = peer;
    return true;
  });
}

void Peers::replace(const std::shared_ptr<PeerImpl>& peer, std::shared_ptr<PeerImpl> known) {
  known->takeKeptNotes(*peer);
  std::erase(peers_, peer);
  peer->same_as = std::move(known);
  transfers_.goOnReaching();
}

void Peers::forgetDeparted() {
  const auto departed = [](const auto& peer) { return peer.use_count() == 1 && peer->departed(); };
  std::size_t count = 0, bytes = 0;
  for (const auto& peer : peers_) {
    if (!departed(peer)) continue;
    ++count;
    bytes += peer->earlyMarkBytes();
  }
  std::erase_if(peers_, [&](const auto& peer) {
    if ((count <= kMostDeparted && bytes <= kMostDepartedBytes) || !departed(peer)) return false;
    --count;
    bytes -= peer->earlyMarkBytes();
    return true;
  });
}

void Peers::beatSooner(Duration every) {
  every = std::max<Duration>(every, std::chrono::milliseconds(5));
  if (beat_timer_ != 0 && beat_every_ <= every) return;
  beat_every_ = every;
  const auto now = basis_.now();
  if (beat_timer_ == 0) last_beat_ = now;
  scheduleBeat(now);
}

void Peers::scheduleBeat(Clock::time_point now) {
  basis_.engine().poller().forgetTimer(beat_timer_);
  beat_timer_ = basis_.engine().poller().at(now + beat_every_, [this] { beat(); });
}

void Peers::beat() {
  const auto now = basis_.now();
  // If the last round of heartbeats is too long ago, this process itself was stopped. Frames that
  // peers sent meanwhile have to be read before peers are judged.
  const bool gap = now - last_beat_ > 2 * beat_every_;
  last_beat_ = now;
  forgetDeparted();
  Duration every = basis_.settings().detect / 4;
  const auto peers = peers_;
  for (const auto& peer : peers) {
    peer->beat(now, !gap && !peer->readingPaused());
    every = std::min(every, peer->beatEvery());
  }
  beat_every_ = std::max<Duration>(every, std::chrono::milliseconds(5));
  scheduleBeat(now);
}

Result<PinInfo> Peers::pin(const Segment& memory, std::string label,
                           const core::Audience& audience) {
  const Still still(basis_.rails());
  VIADUCT_TRY(const std::uint32_t slot, basis_.pins().add(memory, std::move(label), audience));
  const PinEntry& entry = basis_.pins()[slot];
  for (const auto& peer : peers_) peer->announce(entry);
  return entry.info;
}

Hello Peers::hello(std::uint64_t last_epoch) const {
  Hello hello{.name = basis_.settings().name,
              .agent = basis_.id(),
              .process = base::processId(),
              .boot = basis_.boot(),
              .unix_name = listener_ ? listener_->unixName() : "",
              .addresses = listener_ ? listener_->addresses() : std::vector<std::string>{},
              .last_epoch = last_epoch,
              .detect_ms = static_cast<std::uint32_t>(basis_.settings().detect.count())};
  for (const auto& backend : basis_.backends().all())
    hello.backends.push_back({std::string(backend->can().name), backend->address()});
  return hello;
}

Card Peers::card() const {
  return {.name = basis_.settings().name,
          .agent = basis_.id(),
          .boot = basis_.boot(),
          .unix_name = listener_ ? listener_->unixName() : "",  // a closed agent has none
          .addresses = listener_ ? listener_->addresses() : std::vector<std::string>(),
          .secret = secret_,
          .pins = basis_.pins().infos()};
}

Result<Card> Peers::card(Grant grant) const {
  if (basis_.settings().insecure && basis_.settings().secret.empty())
    return Error{
        .code = Code::kInvalid,
        .operation = "export a Card",
        .detail = "a Card with a grant limits nobody while the agent admits everybody",
        .cause = "Settings::insecure is set, and Settings::secret is empty",
        .remedy = fmt::format("unset {}", core::settingName("insecure", "VIADUCT_INSECURE"))};
  VIADUCT_CHECK(prepare(grant, basis_.wallNow()));
  Card out = card();
  out.grants.push_back(std::move(grant));
  const auto key = keyOfClaim(card_root_, claimOf(out.grants));
  if (!key)
    return Error{.code = Code::kInvalid,
                 .operation = "export a Card",
                 .detail = "the grant is too long for a hello",
                 .remedy = "shorten the pattern of labels or the name of the holder"};
  out.secret = *key;
  std::erase_if(out.pins, [&out](PinInfo& pin) { return !limit(pin, out.grants); });
  return out;
}

bool Peers::isThisProcess(const Hello& theirs) const { return theirs.process == base::processId(); }

void Peers::arrived(PeerImpl& from, base::Bytes note) {
  const auto& sender = from.noteSender();
  const bool kept = notes_.add(sender, std::move(note));
  ++basis_.counts().notes_received;
  basis_.ringBell();
  basis_.engine().changed();
  note_watchers_.tell();
  if (!notes_.hasRoom(*sender)) holdUp(from);
  if (!kept) from.noteDropped();
}

// Stops reading from this sender, and from all peers once all notes together reach the limit.
void Peers::holdUp(PeerImpl& from) {
  from.pauseReading(true);
  if (!notes_.full()) return;
  for (const auto& peer : peers_) peer->pauseReading(true);
}

void Peers::letSendersGoOn() {
  for (const auto& peer : peers_)
    if (notes_.hasRoom(*peer->noteSender())) peer->pauseReading(false);
}

std::optional<Note> Peers::takeNote() {
  auto note = notes_.take();
  if (notes_.madeRoom()) basis_.engine().takeOverNow();
  return note;
}

}  // namespace viaduct::agent
