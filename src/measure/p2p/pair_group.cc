#include "measure/p2p/pair_group.h"

#include <algorithm>
#include <chrono>
#include <utility>

#include "base/bytes.h"

namespace viaduct::measure::p2p {
namespace {

constexpr std::uint64_t kStop = ~std::uint64_t{0};   // sent instead of a round: a stop request
constexpr std::chrono::milliseconds kLookAtEnd{50};  // between checks of `stop`

// Returns the value of the other end's note for this round.
Result<std::string> valueIn(const Note& note, std::uint64_t round) {
  base::Reader in(note.bytes);
  const auto number = in.get<std::uint64_t>();
  std::string value = in.text();
  if (!in.finished() || number != round)
    return Error{.code = Code::kProtocol,
                 .operation = "p2p",
                 .detail = "the other end sent a note out of order"};
  return value;
}

}  // namespace

PairGroup::PairGroup(std::uint32_t rank, Peer other, const NoteSource& notes,
                     std::function<bool()> has_left)
    : other_(std::move(other)),
      life_(other_.epoch()),
      notes_(notes),
      has_left_(std::move(has_left)),
      roster_{.group = "p2p", .rank = rank} {
  for (const std::uint32_t one : {0U, 1U})
    roster_.members.push_back({.rank = one, .name = one == rank ? "this end" : other_.name()});
}

std::optional<Error> PairGroup::trouble() const {
  // A changed epoch means that the session has ended meanwhile, perhaps with notes of the
  // measurement.
  if (!has_left_() && other_.state() == PeerState::kReady && other_.epoch() == life_)
    return std::nullopt;
  return Error{.code = Code::kPeerLost,
               .operation = "p2p",
               .detail = "the other end ended or became unreachable",
               .peer = other_.name()};
}

void PairGroup::requestStop() {
  // If the note cannot be sent, the peer is gone, and trouble() reports that.
  static_cast<void>(other_.note(base::Writer().put(kStop).take()));
}

std::optional<std::uint32_t> PairGroup::stopRequestedBy() {
  if (!stop_requested_)
    if (auto note = notes_(Clock::now()); note && !takeStop(*note))
      early_.push_back(*std::move(note));
  return stop_requested_ ? std::optional(1 - roster_.rank) : std::nullopt;
}

bool PairGroup::takeStop(const Note& note) {
  base::Reader in(note.bytes);
  const bool stop = in.get<std::uint64_t>() == kStop && in.finished();
  stop_requested_ = stop_requested_ || stop;
  return stop;
}

Result<Note> PairGroup::next(Deadline until) {
  if (!early_.empty()) {
    Note note = std::move(early_.front());
    early_.pop_front();
    return note;
  }
  for (;;) {
    VIADUCT_TRY(Note note, notes_(until));
    if (!takeStop(note)) return note;
  }
}

Result<std::vector<std::string>> PairGroup::gather(std::string value, Deadline until,
                                                   const meet::StopFlag& stop) {
  if (told_ == round_) {
    own_ = std::move(value);
    VIADUCT_CHECK(other_.note(base::Writer().put(++told_).text(own_).take()));
  }
  for (;;) {
    const auto note = next(std::min(until.at(), Clock::now() + kLookAtEnd));
    if (note) {
      VIADUCT_TRY(std::string theirs, valueIn(*note, told_));
      round_ = told_;
      std::vector<std::string> all{own_, std::move(theirs)};
      if (roster_.rank == 1) std::swap(all[0], all[1]);
      return all;
    }
    if (stop.load()) return Error{.code = Code::kCancelled, .operation = "p2p"};
    if (auto why = trouble()) return *std::move(why);
    if (until.passed())
      return Error{
          .code = Code::kTimeout, .operation = "p2p", .detail = "the other end stopped answering"};
  }
}

}  // namespace viaduct::measure::p2p
