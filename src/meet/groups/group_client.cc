#include "meet/groups/group_client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "meet/groups/server_state.h"

namespace viaduct::meet::groups {
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

GroupClient::GroupClient(SitePtr site, std::optional<Elected> elected)
    : site_(std::move(site)),
      elected_(std::move(elected)),
      connection_(site_, *this, elected_.has_value()) {}

GroupClient::~GroupClient() { leave(); }

void GroupClient::leave() {
  // Takes the lock, because the loop's thread may be in a handler of this object.
  const auto held = site_->loop->hold();
  connection_.close();
}

// Asks the server for the missing members. Its answer goes to status_.
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
  const Wait first = waitAloud(changed_, held, ask_at, stop, waiting, done, [&] {
    askWhom();
    waitFor(changed_, held, std::min(ask_at, Clock::now() + kAskBefore), stop,
            [&] { return done() || !status_.empty() || !connection_.ready(); });
    return gaveUp(Wait::kTimeout, operation);
  });
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
  VIADUCT_CHECK(seal(request_.about));
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
  connection_.send(makePacket(Type::kJoin, JoinMessage{site_->name_space, request_}));
}

// Encrypts a text if there is a cipher. An empty text has nothing to hide.
Status GroupClient::seal(std::string& text) const {
  if (cipher() == nullptr || text.empty()) return Ok{};
  VIADUCT_TRY(text, cipher()->seal(text));
  return Ok{};
}

Status GroupClient::unseal(std::string& text) const {
  if (cipher() == nullptr || text.empty()) return Ok{};
  auto plain = cipher()->unseal(text);
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

bool GroupClient::unproven() const {
  const auto held = site_->loop->hold();
  return unproven_;
}

bool GroupClient::finished() const {
  const auto held = site_->loop->hold();
  return finished_;
}

Status GroupClient::message(Type type, ByteSpan payload) {
  if (type == Type::kRefused) {
    VIADUCT_TRY(auto why, base::decode<ErrorMessage>(payload));
    refused_ = std::move(why.error);
    displaced_ = elected_ && refused_->code == Code::kPeerLost;
  } else if (type == Type::kRank) {
    VIADUCT_TRY(const auto seat, base::decode<NumberMessage>(payload));
    roster_.rank = static_cast<std::uint32_t>(seat.number);
  } else if (type == Type::kFormed) {
    VIADUCT_CHECK(takeRoster(payload));
  } else if (type == Type::kValues) {
    VIADUCT_CHECK(takeValues(payload));
  } else if (type == Type::kTrouble) {
    VIADUCT_TRY(auto why, base::decode<ErrorMessage>(payload));
    if (!trouble_) trouble_ = std::move(why.error);
  } else if (type == Type::kStop) {
    VIADUCT_TRY(const auto by, base::decode<NumberMessage>(payload));
    stop_requested_by_ = static_cast<std::uint32_t>(by.number);
  } else if (type == Type::kFinished) {
    finished_ = true;
  } else if (type == Type::kStatus) {
    VIADUCT_TRY(auto status, base::decode<TextMessage>(payload));
    status_ = std::move(status.text);
  }
  changed_.notify_all();
  return Ok{};
}

Status GroupClient::takeRoster(ByteSpan payload) {
  VIADUCT_TRY(auto formed, base::decode<FormedMessage>(payload));
  if (formed.members.size() <= roster_.rank)
    return Error{
        .code = Code::kProtocol, .operation = "join", .detail = "a roster without this member"};
  for (Member& member : formed.members) VIADUCT_CHECK(unseal(member.about));
  roster_.group = request_.group;
  roster_.epoch = formed.epoch;
  roster_.members = std::move(formed.members);
  whole_ = true;
  return Ok{};
}

Status GroupClient::takeValues(ByteSpan payload) {
  VIADUCT_TRY(auto all, base::decode<ValuesMessage>(payload));
  if (all.round != round_ || all.values.size() != roster_.members.size())
    return Error{
        .code = Code::kProtocol, .operation = "gather", .detail = "an answer to another round"};
  for (std::string& value : all.values) VIADUCT_CHECK(unseal(value));
  values_ = std::move(all.values);
  return Ok{};
}

// Until the group is complete, a lost server may come back, and this member joins again. A lost
// elected server makes the join fail, and the caller looks for another one.
void GroupClient::lost(const Error& why, bool again) {
  if (!whole_ && again && !refused_ && Clock::now() < join_until_ && !elected_)
    return connection_.open(join_until_, embedded::kReopenAfter);
  if (!whole_ && !refused_) {
    refused_ = why;
    displaced_ = elected_ && again;
    unproven_ = elected_ && !again;
  } else if (whole_ && !finished_ && !trouble_) {
    trouble_ = lostServer(why);
  }
  changed_.notify_all();
}

// If a member runs the server, the loss of the server is the loss of that member.
Error GroupClient::lostServer(const Error& why) const {
  Error out = why;
  out.operation = label();
  const std::string server = elected_ ? elected_->server_name : std::string();
  const auto has_server = [&](const Member& member) { return member.name == server; };
  const auto& members = roster_.members;
  const auto member = std::find_if(members.begin(), members.end(), has_server);
  if (server.empty() || member == members.end()) {
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
    VIADUCT_CHECK(seal(value));
    waiting_ = true;
    values_.reset();
    connection_.send(makePacket(Type::kGather, GatherMessage{round_, std::move(value)}));
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
  connection_.send(makePacket(Type::kAbandon, TextMessage{reason}));
  // The server sends a message later. trouble() must report the end before that message arrives.
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

}  // namespace viaduct::meet::groups
