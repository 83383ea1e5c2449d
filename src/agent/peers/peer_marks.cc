#include "agent/peers/peer_marks.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>

#include "agent/peers/peer_impl.h"
#include "agent/session/messages.h"
#include "base/log.h"

namespace viaduct::agent {
namespace {

constexpr auto kOpening = "open marks";

Error closedByPeer() {
  return {.code = Code::kCancelled,
          .operation = "marks",
          .detail = "the other end closed the stream before all marks had arrived"};
}

}  // namespace

MarkStreamImpl::MarkStreamImpl(std::shared_ptr<PeerImpl> peer, MarkStreamOptions options)
    : peer_(std::move(peer)),
      options_(std::move(options)),
      bits_((options_.marks + kBits - 1) / kBits) {}

bool MarkStreamImpl::add(std::uint32_t mark) {
  const std::uint64_t bit = std::uint64_t{1} << mark % kBits;
  if ((bits_[mark / kBits].fetch_or(bit, std::memory_order_release) & bit) != 0) return false;
  count_.fetch_add(1, std::memory_order_release);
  return true;
}

std::function<void()> MarkStreamImpl::takeCallback() {
  if (!options_.on_change || owed_.exchange(true)) return {};
  return [self = shared_from_this()] {
    self->owed_ = false;  // first, so that a change from now on has a callback of its own
    self->options_.on_change();
  };
}

// About the memory of an entry in both tables.
std::size_t PeerMarks::Early::cost() const {
  constexpr std::size_t kOfTables = 160;
  std::size_t bytes = kOfTables + bits.size() * sizeof bits[0];
  if (ended)
    bytes += sizeof *ended + ended->operation.size() + ended->detail.size() + ended->cause.size() +
             ended->remedy.size();
  return bytes;
}

void PeerMarks::begin() {
  early_.clear();
  early_by_number_.clear();
  early_bytes_ = 0;
  retired_.clear();
  next_retired_ = 0;
}

std::vector<MarkStreamImpl*> PeerMarks::lose() {
  std::vector<MarkStreamImpl*> out;
  out.reserve(open_.size());
  for (const auto& [number, stream] : open_) out.push_back(stream);
  open_.clear();
  return out;
}

MarkStreamImpl* PeerMarks::find(std::uint64_t number) const {
  const auto found = open_.find(number);
  return found == open_.end() ? nullptr : found->second;
}

Status PeerMarks::open(MarkStreamImpl& stream) {
  const std::uint64_t number = stream.number();
  const Retired* const before = retired(number);
  if (before != nullptr && before->dropped)
    return Error{.code = Code::kExhausted,
                 .operation = kOpening,
                 .detail = fmt::format("marks of stream {} were dropped: streams that nobody had "
                                       "opened took more than {} bytes",
                                       number, kMaxEarlyBytes),
                 .cause = "the peer sent marks of many streams that were opened late or never",
                 .remedy = "open a stream before its number goes to the peer"};
  if (before != nullptr || find(number) != nullptr)
    return Error{.code = Code::kInvalid,
                 .operation = kOpening,
                 .detail = fmt::format(
                     "stream {} {}", number,
                     before != nullptr ? "was open earlier in this session" : "is open already"),
                 .remedy = "give each stream its own number, for both directions"};
  open_.emplace(number, &stream);
  const auto early = early_by_number_.find(number);
  if (early == early_by_number_.end()) return Ok{};
  const Early& found = *early->second;
  for (std::uint32_t mark = 0; mark < stream.size() && mark / 64 < found.bits.size(); ++mark)
    if ((found.bits[mark / 64] >> mark % 64 & 1U) != 0) stream.add(mark);
  stream.peer_ended = found.ended.has_value();
  if (found.ended) stream.end(*found.ended);
  forgetEarly(early->second);
  return Ok{};
}

bool PeerMarks::close(const MarkStreamImpl& stream) {
  if (find(stream.number()) != &stream) return false;
  open_.erase(stream.number());
  retire(stream.number(), false);
  return true;
}

bool PeerMarks::keep(const Mark& mark) {
  return change(mark.stream, [&](Early& early) {
    if (early.bits.size() <= mark.number / 64) early.bits.resize(mark.number / 64 + 1);
    early.bits[mark.number / 64] |= std::uint64_t{1} << mark.number % 64;
  });
}

bool PeerMarks::keepEnd(std::uint64_t number, const Error& why) {
  return change(number, [&](Early& early) {
    if (!early.ended) early.ended = why;
  });
}

template <class Change>
bool PeerMarks::change(std::uint64_t number, Change what) {
  auto found = early_by_number_.find(number);
  if (found == early_by_number_.end()) {
    if (retired(number) != nullptr) return false;
    early_.push_back({.number = number});
    found = early_by_number_.emplace(number, std::prev(early_.end())).first;
    early_bytes_ += early_.back().cost();
  }
  Early& early = *found->second;
  early_bytes_ -= early.cost();
  what(early);
  early_bytes_ += early.cost();
  bool dropped = false;
  for (; early_bytes_ > kMaxEarlyBytes; dropped = true) {
    retire(early_.front().number, true);
    forgetEarly(early_.begin());
  }
  return dropped;
}

bool PeerMarks::endedAfterClose(std::uint64_t number) {
  Retired* const found = retired(number);
  return found != nullptr && !std::exchange(found->answered, true);
}

void PeerMarks::forgetEarly(std::list<Early>::iterator early) {
  early_bytes_ -= early->cost();
  early_by_number_.erase(early->number);
  early_.erase(early);
}

PeerMarks::Retired* PeerMarks::retired(std::uint64_t number) {
  const auto found = std::ranges::find(retired_, number, &Retired::number);
  return found == retired_.end() ? nullptr : &*found;
}

void PeerMarks::retire(std::uint64_t number, bool dropped) {
  const Retired last{.number = number, .dropped = dropped};
  if (retired_.size() < kRemembered)
    retired_.push_back(last);
  else
    retired_[next_retired_++ % kRemembered] = last;
}

// Fails if the peer cannot take the mark, or the stream has ended.
Status PeerImpl::mayMark(const Mark& mark) const {
  if (!isOpen()) return notReady("mark");
  if (mark.number >= kMaxMarks)
    return Error{.code = Code::kInvalid,
                 .operation = "mark",
                 .detail = fmt::format("mark {}; a stream has at most {}", mark.number, kMaxMarks),
                 .peer = name_};
  const MarkStreamImpl* const stream = marks_.find(mark.stream);
  if (stream == nullptr) return Ok{};
  const std::optional<Error>& ended = stream->ended();
  return ended ? Status(*ended) : Ok{};
}

bool PeerImpl::hasMarks(std::uint64_t stream) const {
  const MarkStreamImpl* const open = marks_.find(stream);
  return open != nullptr && !open->ended();
}

Status PeerImpl::mark(const Mark& mark) {
  VIADUCT_CHECK(mayMark(mark));
  const base::Bytes payload = base::encode(MarkMessage{mark});
  if (ring_out_ &&
      ring_out_->put(session_->connection().framesSent(), payload, RingPage::EntryKind::kMark))
    return Ok{};
  return send(FrameType::kMark, payload);
}

Result<std::shared_ptr<MarkStreamImpl>> PeerImpl::openMarks(MarkStreamOptions options) {
  if (options.marks > kMaxMarks)
    return Error{.code = Code::kInvalid,
                 .operation = kOpening,
                 .detail = fmt::format("{} marks; the limit is {}", options.marks, kMaxMarks),
                 .remedy = "let a mark stand for more data"};
  if (phase_.is(PeerPhase::kDraining) && !marks_.hasEarly(options.number))
    return notReady(kOpening);
  const bool live = phase_.is(PeerPhase::kOpening) || isOpen();
  // A peer that is lost may have left marks that came in time.
  if (!live && !marks_.hasEarly(options.number)) return notReady(kOpening);
  auto stream = std::make_shared<MarkStreamImpl>(shared_from_this(), std::move(options));
  if (Status opened = marks_.open(*stream); !opened) {
    Error why = std::move(opened).error();
    why.peer = name_;
    return why;
  }
  if (!live) {
    marks_.close(*stream);
    stream->end(notReady("marks"));
  }
  if (stream->count() != 0 || stream->ended()) marksChanged(*stream);
  return stream;
}

void PeerImpl::endMarks(MarkStreamImpl& stream, Error why) {
  why.peer = name_;
  stream.end(why);
  if (holdsMarks(stream) && !std::exchange(stream.told, true))
    sendMarksEnd(stream.number(), stream.ended().value_or(why));
  marksChanged(stream);
}

void PeerImpl::closeMarks(MarkStreamImpl& stream) {
  if (!marks_.close(stream) || stream.told) return;
  if (stream.peer_ended || stream.count() < stream.size())
    sendMarksEnd(stream.number(), stream.ended().value_or(closedByPeer()));
}

void PeerImpl::sendMarksEnd(std::uint64_t stream, const Error& why) {
  // A child of fork() has the socket too, and must not speak for its parent.
  if (!basis_.ofThisProcess("end marks")) return;
  sendOrLose(FrameType::kMarksEnd, base::encode(MarksEndMessage{stream, why}));
}

void PeerImpl::marksChanged(MarkStreamImpl& stream) {
  basis_.engine().changed();
  basis_.ringBell();
  stream.watchers.tell();
  if (auto callback = stream.takeCallback()) basis_.owe(std::move(callback));
}

void PeerImpl::heardMark(std::span<const std::byte> payload) {
  const auto message = base::decode<MarkMessage>(payload);
  if (!message) return breakOff(message.error());
  const Mark& mark = message->mark;
  MarkStreamImpl* const stream = marks_.find(mark.stream);
  if (stream == nullptr) {
    if (marks_.keep(mark)) marksDropped();
  } else if (mark.number >= stream->size()) {
    endMarks(*stream, {.code = Code::kProtocol,
                       .operation = "marks",
                       .detail = fmt::format("mark {} came in stream {}, which has {} marks",
                                             mark.number, mark.stream, stream->size()),
                       .cause = "the two ends count the marks of the stream differently"});
  } else if (stream->add(mark.number)) {
    marksChanged(*stream);
  }
}

void PeerImpl::heardMarksEnd(std::span<const std::byte> payload) {
  auto message = base::decode<MarksEndMessage>(payload);
  if (!message) return breakOff(message.error());
  Error why = std::move(message->why);
  why.peer = name_;
  if (MarkStreamImpl* const stream = marks_.find(message->stream); stream != nullptr) {
    stream->peer_ended = true;
    stream->end(why);
    marksChanged(*stream);
  } else if (marks_.endedAfterClose(message->stream)) {
    sendMarksEnd(message->stream, closedByPeer());
  } else if (marks_.keepEnd(message->stream, why)) {
    marksDropped();
  }
}

// Logs dropped marks once per life of the session.
void PeerImpl::marksDropped() {
  if (std::exchange(marks_dropped_, true)) return;
  base::log(base::LogLevel::kWarning,
            "peer {}: marks of a stream that is not open here were dropped: such streams exceed {} "
            "bytes",
            name_, PeerMarks::kMaxEarlyBytes);
}

void PeerImpl::loseMarks(const Error& why) {
  for (MarkStreamImpl* const stream : marks_.lose()) {
    stream->end(why);
    marksChanged(*stream);
  }
}

}  // namespace viaduct::agent
