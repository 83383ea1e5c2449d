// PeerImpl: notes, through the session or through a ring in shared memory beside it.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "agent/peers/peer_impl.h"
#include "base/log.h"

namespace viaduct::agent {

using base::log;
using base::LogLevel;

namespace {

// Limits one round, so that a peer that writes without a pause does not delay other peers.
constexpr int kNotesPerTurn = 128;
// The most bytes of notes that are kept for a peer that is not ready yet. Each note counts for some
// more, because of its place in memory.
constexpr std::size_t kMaxKeptNotes = 2 * kMaxNoteBytes, kPlaceOfNote = 64;

}  // namespace

Status PeerImpl::note(std::span<const std::byte> bytes) {
  if (bytes.size() > kMaxNoteBytes)
    return Error{.code = Code::kInvalid,
                 .operation = "note",
                 .detail = fmt::format("{} bytes; the limit is {}", bytes.size(), kMaxNoteBytes),
                 .peer = name_,
                 .remedy = "move the bytes with a transfer, and send a note that names them"};
  if (!isOpen()) return notReady("note");
  const bool in_ring = ring_out_ && ring_out_->put(session_->connection().framesSent(), bytes);
  auto sent = in_ring ? Status(Ok{}) : send(FrameType::kNote, bytes);
  if (sent) ++basis_.counts().notes_sent;
  if (sent || sent.error().code != Code::kBusy) return sent;
  Error why = std::move(sent).error();
  why.operation = "note";
  why.peer = name_;
  why.cause = "the peer takes its notes more slowly than they arrive";
  why.remedy = "try again later";
  return why;
}

Status PeerImpl::noteOnceReady(std::span<const std::byte> bytes, Clock::time_point until) {
  const auto now = basis_.now();
  if (isOpen() || hopeless() || until <= now || bytes.size() > kMaxNoteBytes) return note(bytes);
  dropKeptNotes(now);
  if (kept_bytes_ + kPlaceOfNote + bytes.size() > kMaxKeptNotes)
    return Error{.code = Code::kBusy,
                 .operation = "note",
                 .detail = fmt::format("{} notes wait for the peer already", kept_notes_.size()),
                 .peer = name_,
                 .cause = "the peer is still connecting",
                 .remedy = "wait with Peer::ready(deadline)"};
  kept_bytes_ += kPlaceOfNote + bytes.size();
  kept_notes_.push_back({{bytes.begin(), bytes.end()}, until});
  return Ok{};
}

// Drops the notes whose time has passed.
void PeerImpl::dropKeptNotes(Clock::time_point now) {
  const auto dropped = std::erase_if(kept_notes_, [&](const KeptNote& kept) {
    if (kept.until > now) return false;
    kept_bytes_ -= kPlaceOfNote + kept.bytes.size();
    return true;
  });
  if (dropped != 0)
    log(LogLevel::kWarning, "peer {}: {} notes to it were dropped: it was not ready in time", name_,
        dropped);
}

void PeerImpl::takeKeptNotes(PeerImpl& other) {
  std::ranges::move(other.kept_notes_, std::back_inserter(kept_notes_));
  kept_bytes_ += std::exchange(other.kept_bytes_, 0);
  other.kept_notes_.clear();
  if (isOpen()) sendKeptNotes();
}

void PeerImpl::sendKeptNotes() {
  dropKeptNotes(basis_.now());
  for (const KeptNote& kept : std::exchange(kept_notes_, {}))
    if (auto sent = note(kept.bytes); !sent)
      log(LogLevel::kWarning, "peer {}: a note to it was dropped: {}", name_, sent.error().text());
  kept_bytes_ = 0;
}

// Makes the ring for notes from the peer. If that fails (descriptors are short), the peer sends its
// notes over the session, as between hosts.
void PeerImpl::openRing() {
  const auto opened = [this]() -> Status {
    VIADUCT_TRY(auto ring, RingReceiver::make());
    VIADUCT_CHECK(session_->connection().send(FrameType::kNoteRing, {}, std::array(ring.fds())));
    ring.wasSent();
    VIADUCT_TRY(ring_bell_, basis_.engine().poller().watch(ring.bell(), EPOLLIN | EPOLLET,
                                                           [this](std::uint32_t) {
                                                             peers_.noteRings().add(*this);
                                                             takeNotes();
                                                           }));
    ring_in_ = std::move(ring);
    return Ok{};
  }();
  if (!opened)
    log(opened.error().code == Code::kUnsupported ? LogLevel::kInfo : LogLevel::kWarning,
        "peer {}: its notes arrive over the session, not through shared memory: {}", name_,
        opened.error().text());
}

void PeerImpl::heardOfRing(std::vector<base::Fd> fds) {
  if (fds.size() != 2) return breakOff(brokenRule("a malformed offer of a note ring"));
  auto ring = RingSender::map(fds[0], std::move(fds[1]));
  if (ring)
    ring_out_ = *std::move(ring);
  else if (ring.error().code == Code::kProtocol)
    breakOff(std::move(ring).error());
  else
    log(LogLevel::kWarning,
        "peer {}: notes to it go over the session, not through shared memory: {}", name_,
        ring.error().text());
}

bool PeerImpl::takeNotes() {
  if (!ring_in_) return false;
  int taken = 0;
  while (taken < kNotesPerTurn && !paused_ &&
         takeNote(*ring_in_, session_->connection().framesHeard()))
    ++taken;
  return taken > 0;
}

// Takes notes that were sent before frame number `frames` of the session, which is handled next.
// They come first even if reading is paused. A ring bounds their number.
void PeerImpl::takeNotesBefore(std::uint64_t frames) {
  if (!ring_in_) return;
  for (std::size_t i = 0; i < RingPage::kBytes / RingPage::kStep && takeNote(*ring_in_, frames);
       ++i) {
  }
}

bool PeerImpl::takeNote(RingReceiver& ring, std::uint64_t frames) {
  FrameType type{};
  switch (ring.take(frames, ring_entry_)) {
    case RingReceiver::Next::kNote:
      type = FrameType::kNote;
      break;
    case RingReceiver::Next::kMark:
      type = FrameType::kMark;
      break;
    case RingReceiver::Next::kLeaseReturned:
      type = FrameType::kLeaseReturned;
      break;
    case RingReceiver::Next::kParcel:
      type = FrameType::kParcel;
      break;
    case RingReceiver::Next::kBroken:
      breakOff(brokenRule("the peer wrote a malformed note into the ring"));
      return false;
    case RingReceiver::Next::kEmpty:
    case RingReceiver::Next::kLater:
      return false;
  }
  if (auto may = mayTake(type, ring_entry_.size()); !may) {
    breakOff(std::move(may).error());
    return false;
  }
  session_->connection().spend(ruleOf(type)->cost_us);
  if (type == FrameType::kNote)
    peers_.arrived(*this, std::move(ring_entry_));
  else
    handle(type, ring_entry_, {});
  return true;
}

RingReceiver::Next PeerImpl::armNoteRing() {
  // A paused ring is not read. Once there is room, a thread that makes progress reads the ring
  // again, and arms it before it sleeps.
  if (!ring_in_ || paused_) return RingReceiver::Next::kLater;
  if (!ring_in_->armed()) ring_in_->arm();
  return ring_in_->look(session_->connection().framesHeard());
}

// Logged once per life, so that a flood of notes does not flood the log.
void PeerImpl::noteDropped() {
  if (std::exchange(note_dropped_, true)) return;
  log(LogLevel::kWarning,
      "peer {}: a note from it was dropped: its waiting notes exceed twice its share of "
      "VIADUCT_NOTE_BACKLOG",
      name_);
}

void PeerImpl::disarmNoteRing() {
  if (ring_in_) ring_in_->disarm();
}

void PeerImpl::closeRing() {
  peers_.noteRings().remove(*this);
  basis_.engine().poller().forget(std::exchange(ring_bell_, 0));
  ring_in_.reset();
  beaten_at_ = {};
}

}  // namespace viaduct::agent
