#include "measure/run/spot_checks.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <utility>

#include "base/fields.h"
#include "base/random.h"
#include "measure/proof/share.h"

namespace viaduct::measure {

// base::Fields finds this function by argument-dependent lookup, so it stays outside of the unnamed
// namespace.
auto fields(base::Is<SpotCheck> auto& c) { return std::tie(c.stream, c.set, c.epoch); }

namespace {

using namespace std::chrono_literals;

constexpr auto kEndLook = 50ms;  // how often the wait checks for the end of the run
// Most transfers, and most bytes, that go before a check. They are like the timed transfers.
constexpr std::uint64_t kOthers = 4, kOtherBytes = std::uint64_t{16} << 20U;

Error notACheck() {
  return {.code = Code::kProtocol,
          .operation = "bench",
          .detail = "a member sent a malformed spot check"};
}

}  // namespace

Status SpotChecks::lead(Lane& lane, const StreamEnd& own, const Peer& far, std::uint64_t count,
                        std::uint64_t first_epoch) {
  auto checked = checkEach(lane, own.stream, count, first_epoch,
                           [&](const SpotCheck& check) { return checkOne(lane, own, far, check); });
  // Sent even after a failure, because the other end waits for it.
  auto told = send(far, {.verb = CheckVerb::kOver, .check = {.stream = own.stream}});
  return checked ? told : checked;
}

Status SpotChecks::leadStored(Lane& lane, const StreamEnd& own, const StreamEnd& stored,
                              std::uint64_t count, std::uint64_t first_epoch,
                              const std::function<Status(std::uint64_t set)>& load) {
  const auto write = [&](const SpotCheck& check) -> Result<std::string> {
    VIADUCT_CHECK(contents_.freshen(own, check));
    VIADUCT_CHECK(lane.once(check.set, ended_));
    agent_.poll();
    VIADUCT_CHECK(load(check.set));
    VIADUCT_TRY(auto wrong, contents_.verify(stored, check, check.epoch));
    VIADUCT_CHECK(contents_.restore(own, check, epoch_));
    VIADUCT_CHECK(lane.once(check.set, ended_));  // restores the words of the storage
    agent_.poll();
    return std::move(wrong).value_or("");
  };
  const auto read = [&](const SpotCheck& check) -> Result<std::string> {
    VIADUCT_CHECK(contents_.spoil(own, check));
    VIADUCT_CHECK(lane.once(check.set, ended_));
    agent_.poll();
    VIADUCT_TRY(auto wrong, contents_.verify(own, check, epoch_));
    return std::move(wrong).value_or("");
  };
  return checkEach(lane, own.stream, count, first_epoch,
                   [&](const SpotCheck& check) -> Result<std::string> {
                     VIADUCT_CHECK(passOthers(lane, check.set, check.epoch));
                     agent_.poll();  // as in checkOne()
                     return isSource(own) ? write(check) : read(check);
                   });
}

Status SpotChecks::checkEach(Lane& lane, std::uint32_t stream, std::uint64_t count,
                             std::uint64_t first_epoch, const OneCheck& one) {
  base::Random random(first_epoch);
  for (std::uint64_t i = 0; i < count && (i == 0 || !hurried_()); ++i) {
    const SpotCheck check{stream, random.below(lane.sets()), first_epoch + i};
    auto wrong = one(check);
    ++led_;
    if (!wrong) return std::move(wrong).error();
    if (wrong->empty()) continue;
    if (missed_++ == 0) wrong_ = *std::move(wrong);
  }
  return Ok{};
}

Result<std::string> SpotChecks::checkOne(Lane& lane, const StreamEnd& own, const Peer& far,
                                         const SpotCheck& check) {
  if (!isSource(own)) VIADUCT_CHECK(ask(far, CheckVerb::kFreshen, check));
  VIADUCT_CHECK(passOthers(lane, check.set, check.epoch));
  agent_.poll();  // orders the agent's writes to this memory before the writes here
  VIADUCT_CHECK(isSource(own) ? contents_.freshen(own, check) : contents_.spoil(own, check));
  VIADUCT_CHECK(lane.once(check.set, ended_));
  agent_.poll();
  std::string wrong;
  if (isSource(own)) {
    VIADUCT_TRY(wrong, ask(far, CheckVerb::kVerify, check));
  } else {
    VIADUCT_TRY(auto found, contents_.verify(own, check, check.epoch));
    wrong = std::move(found).value_or("");
  }
  VIADUCT_CHECK(contents_.restore(own, check, epoch_));
  return wrong;
}

// Makes transfers before a check, so that only its contents tell the checked transfer from others.
Status SpotChecks::passOthers(Lane& lane, std::uint64_t set, std::uint64_t seed) {
  base::Random random(seed);
  const std::uint64_t most = std::min(kOthers, kOtherBytes / lane.bytes());
  for (std::uint64_t left = random.below(most + 1); left > 0; --left)
    VIADUCT_CHECK(lane.once(set, ended_));
  return Ok{};
}

Status SpotChecks::follow(const StreamEnd& own) {
  std::optional<SpotCheck> fresh;
  for (;;) {
    VIADUCT_TRY(const CheckMessage asked, receive(own.stream, false));
    agent_.poll();  // orders the agent's writes to this memory before the writes here
    if (fresh) VIADUCT_CHECK(contents_.restore(own, *std::exchange(fresh, std::nullopt), epoch_));
    if (asked.verb == CheckVerb::kOver) return Ok{};
    CheckMessage reply{.answer = true, .verb = asked.verb, .check = asked.check};
    if (asked.verb == CheckVerb::kFreshen) {
      VIADUCT_CHECK(contents_.freshen(own, asked.check));
      fresh = asked.check;
    } else {
      VIADUCT_TRY(auto wrong, contents_.verify(own, asked.check, asked.check.epoch));
      reply.wrong = std::move(wrong).value_or("");
      VIADUCT_CHECK(contents_.restore(own, asked.check, epoch_));
    }
    VIADUCT_TRY(const Peer leader, agent_.peer(asked.from));
    VIADUCT_CHECK(send(leader, reply));
  }
}

Result<std::string> SpotChecks::ask(const Peer& far, CheckVerb verb, const SpotCheck& check) {
  VIADUCT_CHECK(send(far, {.verb = verb, .check = check}));
  VIADUCT_TRY(CheckMessage reply, receive(check.stream, true));
  if (reply.check.epoch != check.epoch) return notACheck();
  return std::move(reply.wrong);
}

Status SpotChecks::send(const Peer& to, const CheckMessage& message) {
  base::Writer out;
  base::Fields::put(out, message.answer, message.verb, message.check, message.wrong);
  return to.note(out.bytes());
}

Result<SpotChecks::CheckMessage> SpotChecks::decode(const Note& note) const {
  base::Reader in(note.bytes);
  CheckMessage message{.from = note.from};
  base::Fields::get(in, message.answer, message.verb, message.check, message.wrong);
  if (!in.finished() || message.verb > CheckVerb::kOver) return notACheck();
  if (!contents_.has(message.check)) return notACheck();
  return message;
}

Result<SpotChecks::CheckMessage> SpotChecks::receive(std::uint32_t stream, bool answer) {
  const auto wanted = [&](const CheckMessage& m) {
    return m.check.stream == stream && m.answer == answer;
  };
  if (const auto at = std::find_if(early_.begin(), early_.end(), wanted); at != early_.end()) {
    CheckMessage found = std::move(*at);
    early_.erase(at);
    return found;
  }
  for (;;) {
    auto note = notes_(kEndLook);
    if (!note && note.error().code != Code::kTimeout) return std::move(note).error();
    if (!note && ended_()) return Error{.code = Code::kCancelled, .operation = "bench"};
    if (!note) continue;
    VIADUCT_TRY(CheckMessage message, decode(*note));
    if (wanted(message)) return message;
    early_.push_back(std::move(message));
  }
}

}  // namespace viaduct::measure
