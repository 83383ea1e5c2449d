#include "agent/parcels/parcel_taker.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>

namespace viaduct::agent {
namespace {

Error brokenOffer(std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "fetch",
          .detail = std::move(detail),
          .cause = "the owner breaks the rules of parcels, or runs another version"};
}

}  // namespace

ParcelTaker::ParcelTaker(WantMessage want) : want_(std::move(want)) {
  actions_.emplace_back(TellOwner{want_});
}

void ParcelTaker::offered(const OfferMessage& offer) {
  if (state_ != State::kAsking) return;
  version_ = offer.version;
  const std::set<ParcelPart> declared(offer.parts.begin(), offer.parts.end());
  wanted_ =
      want_.parts.empty() ? declared : std::set<ParcelPart>(want_.parts.begin(), want_.parts.end());
  state_ = State::kReading;
  const bool right = want_.exact ? version_ == want_.version : version_ >= want_.version;
  if (!right)
    return fail(
        {.outcome = ParcelOutcome::kFailed,
         .why = brokenOffer(fmt::format("version {} was offered, and {}{} was wanted", version_,
                                        want_.version, want_.exact ? "" : " or a newer one"))});
  if (wanted_.empty() || !std::ranges::includes(declared, wanted_))
    fail({.outcome = ParcelOutcome::kFailed,
          .why = brokenOffer("the offer lacks a part that was wanted")});
}

void ParcelTaker::ready(ReadyMessage ready) {
  if (state_ != State::kReading) return;
  const ParcelPart part = ready.part;
  if (!wanted_.contains(part) || reading_.contains(part) || read_.contains(part))
    return fail({.outcome = ParcelOutcome::kFailed,
                 .part = part,
                 .why = brokenOffer("a part is ready that was not wanted, or is ready twice")});
  reading_.insert(part);
  actions_.emplace_back(ReadPart{std::move(ready)});
}

void ParcelTaker::readEnded(ParcelPart part, std::optional<Error> why) {
  if (reading_.erase(part) == 0) return;
  if (!why) read_.insert(part);
  if (state_ == State::kReading && why)
    fail({.outcome = ParcelOutcome::kFailed, .part = part, .why = std::move(why)});
  else if (state_ == State::kReading && read_.size() == wanted_.size())
    report({.ranks = {want_.rank}});
  endIfIdle();
}

// The owner asks a rank that decides by itself to end, and a rank that does not is told its end.
void ParcelTaker::heardVerdict(ParcelEnd end) {
  if (!isUndecided()) return;
  const bool read_all = !wanted_.empty() && read_.size() == wanted_.size();
  if (end.outcome == ParcelOutcome::kWhole && (want_.decides() || !read_all))
    end = {.outcome = ParcelOutcome::kFailed,
           .why = brokenOffer("the owner says whole before all parts were read")};
  if (want_.decides()) return report(std::move(end));
  finish(std::move(end));
}

void ParcelTaker::ownerLost(const Error& why) {
  if (isUndecided()) finish({.outcome = ParcelOutcome::kLost, .why = why});
}

void ParcelTaker::giveUp(ParcelOutcome outcome, Error why) {
  if (isUndecided()) fail({.outcome = outcome, .why = std::move(why)});
}

void ParcelTaker::fail(ParcelEnd end) {
  end.consumer = want_.rank;
  report(std::move(end));
}

// The first word of a rank that decides by itself is its end. Otherwise the owner answers.
void ParcelTaker::report(ParcelEnd end) {
  end.version = version_;
  actions_.emplace_back(TellOwner{ReportMessage{want_.number, end}});
  if (want_.decides()) return finish(std::move(end));
  state_ = State::kJudged;
  if (end.outcome != ParcelOutcome::kWhole && !reading_.empty())
    actions_.emplace_back(CancelReads{});
}

void ParcelTaker::finish(ParcelEnd end) {
  if (version_ != 0) end.version = version_;
  end_ = std::move(end);
  state_ = State::kEnding;
  if (!reading_.empty()) actions_.emplace_back(CancelReads{});
  endIfIdle();
}

void ParcelTaker::endIfIdle() {
  if (state_ != State::kEnding || !reading_.empty()) return;
  state_ = State::kEnded;
  actions_.emplace_back(FetchOver{*end_});
}

std::vector<ParcelPart> ParcelTaker::missing() const {
  std::vector<ParcelPart> out;
  std::ranges::set_difference(wanted_, read_, std::back_inserter(out));
  return out;
}

}  // namespace viaduct::agent
