#include "agent/parcels/parcel_taker.h"

#include <fmt/format.h>

#include <algorithm>

namespace viaduct::agent {
namespace {

Error brokenOffer(std::string detail) {
  return {.code = Code::kProtocol,
          .operation = "fetch",
          .detail = std::move(detail),
          .cause = "the owner breaks the rules of parcels, or runs another version"};
}

}  // namespace

ParcelTaker::ParcelTaker(WantMessage want)
    : want_(std::move(want)), decides_(want_.size == 1 && want_.parts.empty()) {
  actions_.emplace_back(TellOwner{want_});
}

void ParcelTaker::offered(const OfferMessage& offer) {
  if (state_ != State::kAsking) return;
  version_ = offer.version;
  std::vector<ParcelPart> declared = offer.parts;
  std::ranges::sort(declared);
  declared.erase(std::unique(declared.begin(), declared.end()), declared.end());
  bool has_all = !declared.empty();
  for (const ParcelPart part : want_.parts.empty() ? declared : want_.parts) {
    parts_.emplace(part, ReadState::kWanted);
    has_all = has_all && std::ranges::binary_search(declared, part);
  }
  decides_ = want_.size == 1 && parts_.size() == declared.size();
  state_ = State::kReading;
  const bool right = want_.exact ? version_ == want_.version : version_ >= want_.version;
  if (!right)
    return fail(
        {.outcome = ParcelOutcome::kFailed,
         .why = brokenOffer(fmt::format("version {} was offered, and {}{} was wanted", version_,
                                        want_.version, want_.exact ? "" : " or a newer one"))});
  if (!has_all)
    fail({.outcome = ParcelOutcome::kFailed,
          .why = brokenOffer("the offer lacks a part that was wanted")});
}

void ParcelTaker::ready(ReadyMessage ready) {
  if (state_ != State::kReading) return;
  const ParcelPart part = ready.part;
  if (!is(part, ReadState::kWanted))
    return fail({.outcome = ParcelOutcome::kFailed,
                 .part = part,
                 .why = brokenOffer("a part is ready that was not wanted, or is ready twice")});
  parts_[part] = ReadState::kReading;
  ++reading_;
  actions_.emplace_back(ReadPart{std::move(ready)});
}

void ParcelTaker::readEnded(ParcelPart part, std::optional<Error> why) {
  if (!is(part, ReadState::kReading)) return;
  parts_[part] = why ? ReadState::kWanted : ReadState::kRead;
  --reading_;
  if (!why) ++read_;
  if (state_ == State::kReading && why)
    fail({.outcome = ParcelOutcome::kFailed, .part = part, .why = std::move(why)});
  else if (state_ == State::kReading && hasAll())
    report({.ranks = {want_.rank}});
  endIfIdle();
}

// To a rank that decides by itself, the verdict is a request to end. To any other rank it is the
// end.
void ParcelTaker::heardVerdict(ParcelEnd end) {
  if (!isUndecided()) return;
  if (end.outcome == ParcelOutcome::kWhole && (decides_ || !hasAll()))
    end = {.outcome = ParcelOutcome::kFailed,
           .why = brokenOffer("the owner says whole before all parts were read")};
  if (decides_) return report(std::move(end));
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

// A rank that decides by itself ends with its first report. Otherwise the owner answers.
void ParcelTaker::report(ParcelEnd end) {
  end.version = version_;
  actions_.emplace_back(TellOwner{ReportMessage{want_.number, end, decides_}});
  if (decides_) return finish(std::move(end));
  state_ = State::kJudged;
  if (end.outcome != ParcelOutcome::kWhole && reading_ != 0) actions_.emplace_back(CancelReads{});
}

void ParcelTaker::finish(ParcelEnd end) {
  if (version_ != 0) end.version = version_;
  end_ = std::move(end);
  state_ = State::kEnding;
  if (reading_ != 0) actions_.emplace_back(CancelReads{});
  endIfIdle();
}

void ParcelTaker::endIfIdle() {
  if (state_ != State::kEnding || reading_ != 0) return;
  state_ = State::kEnded;
  // Only finish() sets kEnding, with an end.
  actions_.emplace_back(FetchOver{*end_});
}

std::vector<ParcelPart> ParcelTaker::missing() const {
  std::vector<ParcelPart> out;
  for (const auto& [part, state] : parts_)
    if (state != ReadState::kRead) out.push_back(part);
  return out;
}

}  // namespace viaduct::agent
