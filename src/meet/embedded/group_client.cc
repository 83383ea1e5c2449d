#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "meet/embedded/client.h"
#include "meet/embedded/server_state.h"

namespace viaduct::meet::embedded {
namespace {

using namespace std::chrono_literals;

// Before a wait times out, the client asks the server for the missing members, at most this long
// before. On a busy machine the answer may be late, so the wait is extended by the same time.
constexpr auto kAskBefore = 250ms;

Duration askBefore(Clock::time_point until) {
  const auto now = Clock::now();
  if (until == Clock::time_point::max() || until <= now) return Duration::zero();
  return std::min<Duration>(kAskBefore, (until - now) / 4);
}

}  // namespace

GroupClient::GroupClient(SitePtr site)
    : site_(std::move(site)), connection_(*site_->loop, targetOf(*site_), *this) {}

GroupClient::~GroupClient() {
  // Takes the lock, because the loop's thread may be in a handler of this object.
  const auto held = site_->loop->hold();
  connection_.close();
}

// The answer will be in status_.
void GroupClient::askWhom() {
  status_.clear();
  connection_.send(makePacket(Type::kAsk));
}

template <class Done>
Wait GroupClient::await(Loop::Held& held, Deadline until, const StopFlag& stop,
                        const std::string& operation, Done done) {
  const Duration before = askBefore(until.at());
  const auto ask_at = until.at() - before;
  base::Waiting waiting(site_->waiting, until.at());
  while (waiting.due() < ask_at) {
    const Wait quiet = waitFor(changed_, held, waiting.due(), stop, done);
    if (quiet != Wait::kTimeout) return quiet;
    askWhom();
    waitFor(changed_, held, std::min(ask_at, Clock::now() + kAskBefore), stop,
            [&] { return done() || !status_.empty() || !connection_.ready(); });
    if (done()) return Wait::kDone;
    const Error so_far = gaveUp(Wait::kTimeout, operation);
    held.unlock();
    waiting.tell(so_far);
    held.lock();
  }
  const Wait first = waitFor(changed_, held, ask_at, stop, done);
  if (first != Wait::kTimeout) return first;
  askWhom();
  const Wait second = waitFor(changed_, held, until.at(), stop, done);
  if (second != Wait::kTimeout || !connection_.ready()) return second;
  waitFor(changed_, held, until.at() + before, stop, [&] { return done() || !status_.empty(); });
  return done() ? Wait::kDone : second;
}

Error GroupClient::gaveUp(Wait how, const std::string& operation) const {
  if (!connection_.ready() && how == Wait::kTimeout) {
    Error why = connection_.unreachable();
    why.operation = operation;
    return why;
  }
  Error why{.code = how == Wait::kStopped ? Code::kCancelled : Code::kTimeout,
            .operation = operation,
            .detail = fmt::format("meeting place {}: {}", site_->where,
                                  status_.empty() ? "no answer from it" : status_)};
  if (how == Wait::kStopped) why.detail = "stopped by the caller";
  return why;
}

Status GroupClient::join(const JoinRequest& request, Deadline until, const StopFlag& stop) {
  VIADUCT_CHECK(checkJoin(request));
  auto held = site_->loop->hold();
  request_ = request;
  if (site_->cipher && !request.about.empty()) {
    VIADUCT_TRY(request_.about, site_->cipher->seal(request.about));
  }
  join_until_ = until.at();
  connection_.open(join_until_);
  const std::string operation = "join " + label();
  const Wait waited = await(held, until, stop, operation, [&] { return whole_ || refused_; });
  if (refused_) {
    refused_->operation = operation;
    return *refused_;
  }
  if (!whole_) return gaveUp(waited, operation);
  return Ok{};
}

void GroupClient::ready() {
  connection_.send(makePacket(Type::kJoin, JoinMessage{site_->name_space, request_}.encode()));
}

// An empty text has no content, and is not encrypted.
Status GroupClient::unseal(std::string& text) const {
  if (!site_->cipher || text.empty()) return Ok{};
  auto plain = site_->cipher->unseal(text);
  if (!plain)
    return Error{.code = Code::kProtocol,
                 .operation = label(),
                 .detail = "a member's text was not encrypted with the key of the group"};
  text = *std::move(plain);
  return Ok{};
}

bool GroupClient::displaced() const {
  const auto held = site_->loop->hold();
  return displaced_;
}

bool GroupClient::finished() const {
  const auto held = site_->loop->hold();
  return finished_;
}

Status GroupClient::message(Type type, ByteSpan payload) {
  if (type == Type::kRefused) {
    VIADUCT_TRY(auto why, ErrorMessage::decode(payload));
    refused_ = std::move(why.error);
    displaced_ = site_->elected && refused_->code == Code::kPeerLost;
  } else if (type == Type::kRank) {
    VIADUCT_TRY(const auto seat, NumberMessage::decode(payload));
    roster_.rank = static_cast<std::uint32_t>(seat.number);
  } else if (type == Type::kFormed) {
    VIADUCT_TRY(auto formed, FormedMessage::decode(payload));
    if (formed.members.size() <= roster_.rank)
      return Error{
          .code = Code::kProtocol, .operation = "join", .detail = "a roster without this member"};
    for (Member& member : formed.members) VIADUCT_CHECK(unseal(member.about));
    roster_.group = request_.group;
    roster_.epoch = formed.epoch;
    roster_.members = std::move(formed.members);
    whole_ = true;
  } else if (type == Type::kValues) {
    VIADUCT_TRY(auto all, ValuesMessage::decode(payload));
    if (all.round != round_ || all.values.size() != roster_.members.size())
      return Error{
          .code = Code::kProtocol, .operation = "gather", .detail = "an answer to another round"};
    for (std::string& value : all.values) VIADUCT_CHECK(unseal(value));
    values_ = std::move(all.values);
  } else if (type == Type::kTrouble) {
    VIADUCT_TRY(auto why, ErrorMessage::decode(payload));
    if (!trouble_) trouble_ = std::move(why.error);
  } else if (type == Type::kStop) {
    VIADUCT_TRY(const auto by, NumberMessage::decode(payload));
    stop_requested_by_ = static_cast<std::uint32_t>(by.number);
  } else if (type == Type::kFinished) {
    finished_ = true;
  } else if (type == Type::kStatus) {
    VIADUCT_TRY(auto status, TextMessage::decode(payload));
    status_ = std::move(status.text);
  }
  changed_.notify_all();
  return Ok{};
}

// Until the group is complete, a lost meeting place may come back, and this member joins again.
void GroupClient::lost(const Error& why, bool again) {
  if (!whole_ && again && !refused_ && Clock::now() < join_until_ && !site_->elected)
    return connection_.open(join_until_, kReopenAfter);
  if (!whole_ && !refused_) {
    refused_ = why;
    displaced_ = site_->elected && again;
  } else if (whole_ && !finished_ && !trouble_) {
    trouble_ = lostServer(why);
  }
  changed_.notify_all();
}

// If a member runs the server, the loss of the server is the loss of that member.
Error GroupClient::lostServer(const Error& why) const {
  Error out = why;
  out.operation = label();
  const auto has_server = [this](const Member& member) {
    return member.name == site_->server_name;
  };
  const auto& members = roster_.members;
  const auto member = std::find_if(members.begin(), members.end(), has_server);
  if (site_->server_name.empty() || member == members.end()) {
    out.cause += out.cause.empty() ? "" : "; ";
    out.cause +=
        fmt::format("the group has ended with its meeting place (in {} or in its own process)",
                    members.front().name);
  } else if (std::count_if(members.begin(), members.end(), has_server) == 1) {
    out.detail = fmt::format("rank {} ({}) died: {}", member->rank, member->name, why.detail);
    out.peer = member->name;
  } else {
    out.detail = fmt::format("{} died: {}", member->name, why.detail);
  }
  return out;
}

Result<std::vector<std::string>> GroupClient::gather(std::string value, Deadline until,
                                                     const StopFlag& stop) {
  auto held = site_->loop->hold();
  const std::string operation = "gather in " + label();
  if (value.size() > kMaxValueBytes)
    return Error{.operation = operation,
                 .detail = fmt::format("a value of {} bytes exceeds the limit of {}", value.size(),
                                       kMaxValueBytes)};
  if (finished_) return Error{.operation = operation, .detail = "after finish()"};
  if (trouble_) return *trouble_;
  if (!waiting_) {
    if (site_->cipher && !value.empty()) {
      VIADUCT_TRY(value, site_->cipher->seal(value));
    }
    waiting_ = true;
    values_.reset();
    connection_.send(makePacket(Type::kGather, GatherMessage{round_, std::move(value)}.encode()));
  }
  const Wait waited = await(held, until, stop, operation, [&] { return values_ || trouble_; });
  if (values_) {
    waiting_ = false;
    ++round_;
    auto all = std::move(*values_);
    values_.reset();
    return all;
  }
  if (trouble_) return *trouble_;
  return gaveUp(waited, operation);
}

std::optional<Error> GroupClient::trouble() const {
  const auto held = site_->loop->hold();
  return trouble_;
}

void GroupClient::requestStop() {
  const auto held = site_->loop->hold();
  if (!trouble_ && !finished_) connection_.send(makePacket(Type::kStop));
}

std::optional<std::uint32_t> GroupClient::stopRequestedBy() {
  const auto held = site_->loop->hold();
  return stop_requested_by_;
}

void GroupClient::abandon(const std::string& reason) {
  const auto held = site_->loop->hold();
  if (trouble_ || finished_) return;
  connection_.send(makePacket(Type::kAbandon, TextMessage{reason}.encode()));
  // The server's message will come too. Until then, trouble() must not report a sound group.
  trouble_ = Error{.code = Code::kCancelled,
                   .operation = label(),
                   .detail = fmt::format("rank {} ({}) ended it: {}", roster_.rank,
                                         roster_.members[roster_.rank].name, reason),
                   .peer = roster_.members[roster_.rank].name};
  changed_.notify_all();
}

Status GroupClient::finish(Deadline until) {
  auto held = site_->loop->hold();
  if (finished_) return Ok{};
  if (trouble_) return *trouble_;
  connection_.send(makePacket(Type::kFinish));
  const StopFlag never{false};
  const Wait waited =
      waitFor(changed_, held, until.at(), never, [&] { return finished_ || trouble_.has_value(); });
  if (finished_) return Ok{};
  if (trouble_) return *trouble_;
  return gaveUp(waited, "leave " + label());
}

}  // namespace viaduct::meet::embedded
