#include "meet/etcd/watch.h"

#include <algorithm>
#include <chrono>
#include <utility>

namespace viaduct::meet::etcd {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kFirstRetry{5}, kLongestRetry{500};
constexpr milliseconds kFirstLine{3000};   // etcd says at once that a watch is there
constexpr milliseconds kSnapshot{10'000};  // for one attempt to read it all again
constexpr int kDenials = 3;                // until we believe them

}  // namespace

Watch::Watch(CurlLoop& loop, Client& client, std::vector<KeyRange> ranges, Revision from,
             Handlers handlers)
    : loop_(loop),
      client_(client),
      handlers_(std::move(handlers)),
      ranges_(std::move(ranges)),
      next_(ranges_.size(), from),
      moved_(client.onMove([this] { again(kFirstRetry); })),
      pause_(kFirstRetry) {
  open();
}

Watch::~Watch() {
  client_.forgetMove(moved_);
  loop_.forget(timer_);
}

void Watch::add(KeyRange range, Revision from) {
  ranges_.push_back(std::move(range));
  next_.push_back(from);
  again(Duration::zero());
}

void Watch::open() {
  const auto until = Clock::now() + kFirstLine;
  client_.login(until, [this, until, weak = std::weak_ptr(alive_)](const Status& status) {
    if (weak.expired()) return;
    if (!status && status.error().code == Code::kDenied) return fail(status.error());
    if (!status) return backOff();
    for (std::size_t i = 0; i < ranges_.size(); ++i)
      streams_.push_back(
          client_.openStream({.body = watchJson({ranges_[i]}, {next_[i]}),
                              .first_line = until,
                              .line = [this, i](std::string_view text) { line(i, text); },
                              .end = [this](const Error&) { backOff(); }}));
  });
}

// Opens a new stream after a while. Not at once: this may run inside a handler of the old one.
void Watch::again(Duration pause) {
  streams_.clear();
  loop_.forget(timer_);
  timer_ = loop_.at(Clock::now() + pause, [this] {
    timer_ = 0;
    open();
  });
}

void Watch::backOff() {
  again(std::exchange(pause_, std::min<Duration>(pause_ * 2, kLongestRetry)));
}

void Watch::line(std::size_t range, std::string_view text) {
  auto message = parseWatch(text);
  if (message) return take(range, *std::move(message));
  if (const auto refusal = parseRefusal(text)) {
    client_.forgetToken();
    return backOff();
  }
  fail(std::move(message).error());
}

void Watch::take(std::size_t range, WatchMessage message) {
  if (message.cancelled) return cancelled(message);
  if (message.range != 0)
    return fail({.code = Code::kProtocol,
                 .operation = "etcd watch",
                 .detail = "etcd answers for an unknown watch"});
  pause_ = kFirstRetry;
  denied_ = 0;
  const auto alive = alive_;
  const auto handler = handlers_.event;
  // All of one transaction's events share a revision, so it counts as seen after the last of them.
  const Revision next = next_[range];
  for (const WatchEvent& event : message.events) {
    if (event.kv.modified < next) continue;
    handler(event);
    if (alive.use_count() == 1) return;
    if (&event == &message.events.back()) next_[range] = event.kv.modified + 1;
  }
}

void Watch::cancelled(const WatchMessage& message) {
  if (message.compacted != 0) {
    streams_.clear();
    return readAll();
  }
  // With a token that it has forgotten, etcd says that permission is denied.
  client_.forgetToken();
  if (message.reason.find("permission denied") != std::string::npos && ++denied_ == kDenials)
    return fail(
        {.code = Code::kDenied,
         .operation = "etcd watch",
         .detail = message.reason,
         .cause = "the user's role does not reach these keys",
         .remedy = "etcdctl role grant-permission ROLE --prefix=true readwrite NAMESPACE/"});
  backOff();
}

void Watch::readAll() {
  Txn txn;
  for (const KeyRange& range : ranges_) txn.then.push_back(TxnOp::get(range));
  client_.call(kTxnPath, toJson(txn), Clock::now() + kSnapshot,
               [this, weak = std::weak_ptr(alive_)](Result<std::string> body) {
                 if (weak.expired()) return;
                 if (!body && body.error().code == Code::kTimeout) return readAll();
                 if (!body) return fail(std::move(body).error());
                 auto reply = parseTxn(*body);
                 if (!reply) return fail(std::move(reply).error());
                 std::ranges::fill(next_, reply->revision + 1);
                 again(Duration::zero());
                 const auto handler = handlers_.snapshot;
                 handler(reply->found);
               });
}

void Watch::fail(Error why) {
  streams_.clear();
  loop_.forget(std::exchange(timer_, 0));
  client_.forgetMove(std::exchange(moved_, 0));
  const auto failed = handlers_.failed;
  failed(std::move(why));
}

}  // namespace viaduct::meet::etcd
