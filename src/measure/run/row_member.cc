#include "measure/run/row_member.h"

#include <utility>

#include "base/fields.h"

namespace viaduct::measure {

void RowMember::keep(const Status& done) {
  if (!done && !failure_) failure_ = done.error();
}

void RowMember::keepFailureOfOthers() {
  keep(Error{.code = Code::kCancelled, .operation = "bench", .detail = "another failed"});
}

void RowMember::requestStop() {
  if (!std::exchange(asked_to_stop_, true)) worker_.group.requestStop();
}

bool RowMember::lookForStop() {
  if (worker_.stop.load()) requestStop();
  if (!asked_to_stop_ && !worker_.group.stopRequestedBy()) return false;
  stopSeen();
  return stopping_ = true;
}

Clock::time_point RowMember::stopSeen() {
  if (!stop_seen_) stop_seen_ = Clock::now();
  return *stop_seen_;
}

Result<std::vector<std::string>> RowMember::gather(std::string value) {
  return gather(std::move(value), false);
}

Result<std::vector<std::string>> RowMember::gather(std::string value, bool ends_round) {
  const auto start = Clock::now();
  auto all = worker_.gather(value);
  exchange_s_ = std::chrono::duration<double>(Clock::now() - start).count();
  if (all || !worker_.stop.load()) return all;
  // At the end of a round, transfers of other members may still run. So asks all members to stop.
  if (ends_round) requestStop();
  const StopFlag never{false};
  return worker_.group.gather(std::move(value), stopSeen() + kLastWords, never);
}

Result<bool> RowMember::allWell() {
  VIADUCT_TRY(const auto told, exchange({}));
  return told.has_value();
}

Result<std::optional<std::vector<std::string>>> RowMember::exchange(const std::string& told) {
  VIADUCT_TRY(auto all, gather(base::packed(encode(failure_), told)));
  std::vector<std::string> failures;
  for (std::string& one : all) {
    std::string failure, theirs;
    if (!base::unpack(one, failure, theirs))
      return Error{.code = Code::kProtocol,
                   .operation = "bench",
                   .detail = "a member sent a malformed answer"};
    failures.push_back(std::move(failure));
    one = std::move(theirs);
  }
  VIADUCT_TRY(const bool well, areWell(failures));
  if (!well) return std::optional<std::vector<std::string>>();
  return std::optional(std::move(all));
}

Result<Rounds::Round> RowMember::report(RoundShare share) {
  share.failure = failure_;
  share.exchange_s = exchange_s_;
  if (asked_to_stop_)
    share.stop_by = worker_.rank;
  else if (stopping_ && !failure_)
    share.stop_by = worker_.group.stopRequestedBy();
  VIADUCT_TRY(const auto all, gather(encode(share), true));
  Rounds::Round round;
  for (const std::string& one : all) {
    VIADUCT_TRY(RoundShare theirs, decodeRound(one));
    if (theirs.stop_by) stop_by_ = theirs.stop_by;
    round.push_back(std::move(theirs));
  }
  return round;
}

Result<Composed> RowMember::finish(RowShare share, const Workload& row, const Rounds& rounds) {
  share.failure = failure_;
  VIADUCT_TRY(const auto all, gather(encode(share)));
  if (worker_.rank != 0) return Composed{.stop_by = stop_by_};
  std::vector<RowShare> shares;
  for (const std::string& one : all) {
    VIADUCT_TRY(RowShare decoded, decodeShare(one));
    shares.push_back(std::move(decoded));
  }
  VIADUCT_TRY(Composed made, compose(worker_.spec, row, shares, rounds));
  made.stop_by = stop_by_;
  return made;
}

}  // namespace viaduct::measure
