#include "meet/tcpstore/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <utility>

namespace viaduct::meet::tcpstore {
namespace {

using std::chrono::milliseconds;

// A store answers each query but WAIT at once.
constexpr milliseconds kAnswerTime{3000};
// A try that timed out sooner than this says nothing about the store.
constexpr milliseconds kTellingTry{1000};
// A store that restarts may close a greeting. An end that closes this many in a row is no TCPStore.
constexpr int kRefusals = 3;
// No key has this value, so COMPARE_SET with this value for both arguments reads a key and changes
// none. GET would close a connection of torch 1.x if the key is missing.
constexpr const char* kNoValue = "?";

// True: another try would fail in the same way.
bool isFinal(const Error& why, int refusals) {
  return why.code == Code::kProtocol || why.code == Code::kInvalid ||
         (why.code == Code::kUnsupported && refusals >= kRefusals);
}

}  // namespace

Error explained(Error why, const std::string& operation, const std::string& store) {
  why.detail = why.operation == "TCPStore"
                   ? fmt::format("{}: {}", store, why.detail)
                   : fmt::format("{}: {}: {}", store, why.operation, why.detail);
  why.operation = operation + ": TCPStore";
  why.peer.clear();  // the detail names the store
  if (why.code == Code::kPeerLost && why.remedy == "start it, and check its port") {
    why.cause =
        "no TCPStore listens there: torch.distributed's master is not running, or has "
        "another port";
    why.remedy = "start the master (rank 0), and check host and port";
  }
  return why;
}

Client::Client(std::string where)
    : where_(std::move(where)), text_(fmt::format("tcpstore {}", where_)) {}

Result<std::unique_ptr<Connection>> Client::connect(const Limits& limits) {
  std::optional<Dialect> known;
  {
    const std::lock_guard lock(mutex_);
    known = dialect_;
  }
  auto out = Connection::open(where_, known, limits);
  if (!out) return out;
  const std::lock_guard lock(mutex_);
  dialect_ = (*out)->dialect();
  return out;
}

std::unique_ptr<Connection> Client::takeIdle() {
  const std::lock_guard lock(mutex_);
  if (idle_.empty()) return nullptr;
  auto out = std::move(idle_.back());
  idle_.pop_back();
  return out;
}

void Client::keepIdle(std::unique_ptr<Connection> connection) {
  constexpr std::size_t kMostIdle = 64;
  if (!connection->usable()) return;
  const std::lock_guard lock(mutex_);
  if (idle_.size() < kMostIdle) idle_.push_back(std::move(connection));
}

void Client::closeIdle() {
  const std::lock_guard lock(mutex_);
  idle_.clear();
}

Limits Client::limitsOf(const Wait& wait, std::function<bool()> goes_on) const {
  return {.until = std::min(wait.until, Clock::now() + kAnswerTime), .goes_on = std::move(goes_on)};
}

// One call, which tries until its deadline.
class Client::Call {
 public:
  Call(Client& client, const Wait& wait, const Use& use)
      : client_(client), wait_(wait), use_(use) {}

  Result<Answer> run();

 private:
  // Makes one try over `connection`, or over a new one if that is null. Returns nothing if it
  // failed.
  std::optional<Answer> attempt(std::unique_ptr<Connection> connection);
  Limits limits() const {
    return client_.limitsOf(wait_, [this] { return goesOn(); });
  }
  bool goesOn() const;
  void failed(Error why);

  Client& client_;
  const Wait& wait_;
  const Use& use_;
  Clock::time_point begun_ = {};  // of the current try
  std::optional<Error> last_;     // the last telling failure
};

Result<Answer> Client::Call::run() {
  BackOff pauses = Client::pauses();
  int refusals = 0;
  // The first try may use an idle connection, which may have ended.
  auto idle = client_.takeIdle();
  for (;;) {
    const bool fresh = !idle;
    if (auto answer = attempt(std::exchange(idle, nullptr))) return *std::move(answer);
    if (wait_.stopped()) return wait_.cancelled();
    refusals = last_->code == Code::kUnsupported ? refusals + 1 : 0;
    const auto now = Clock::now();
    if (isFinal(*last_, refusals) || now >= wait_.until)
      return explained(*std::move(last_), wait_.operation, client_.text_);
    if (!fresh) continue;
    const auto next = std::min<Clock::time_point>(wait_.until, now + pauses.next());
    if (!sleepUntil(next, [this] { return goesOn(); })) return wait_.cancelled();
  }
}

std::optional<Answer> Client::Call::attempt(std::unique_ptr<Connection> connection) {
  const bool fresh = !connection;
  begun_ = Clock::now();
  if (fresh) {
    auto opened = client_.connect(limits());
    if (!opened) {
      failed(std::move(opened).error());
      return std::nullopt;
    }
    connection = *std::move(opened);
  }
  auto answer = use_(*connection, limits());
  client_.keepIdle(std::move(connection));
  if (answer) return *std::move(answer);
  failed(std::move(answer).error());
  // Another process may have taken the port, with a store of the other dialect.
  const std::lock_guard lock(client_.mutex_);
  if (fresh && last_->code == Code::kPeerLost) client_.dialect_.reset();
  return std::nullopt;
}

bool Client::Call::goesOn() const {
  if (wait_.aloud != nullptr && wait_.aloud->isDue())
    wait_.aloud->tell(last_ ? explained(*last_, wait_.operation, client_.text_) : wait_.timedOut());
  return !wait_.stopped();
}

void Client::Call::failed(Error why) {
  const bool cut_short = why.code == Code::kTimeout && Clock::now() - begun_ < kTellingTry;
  if (!last_ || !cut_short) last_ = std::move(why);
}

Result<Answer> Client::call(const Wait& wait, const Use& use) {
  return Call(*this, wait, use).run();
}

Result<std::optional<std::string>> Client::read(const std::string& key, const Wait& wait) {
  VIADUCT_TRY(const std::string value, compareSet(key, kNoValue, kNoValue, wait));
  if (value.empty() || value == kNoValue) return std::optional<std::string>();
  return std::optional(value);
}

Result<std::string> Client::compareSet(const std::string& key, const std::string& expected,
                                       const std::string& desired, const Wait& wait) {
  VIADUCT_TRY(Answer answer, call(wait, [&](Connection& connection, const Limits& limits) {
                return connection.ask(compareSetQuery(connection.dialect(), key, expected, desired),
                                      Form::kBytes, limits);
              }));
  return std::move(answer.bytes);
}

// The store does not answer SET, so a query that it answers follows. Unlike SET, COMPARE_SET does
// not wake the clients that wait for the key.
Status Client::set(const std::string& key, const std::string& value, const Wait& wait) {
  VIADUCT_CHECK(call(wait, [&](Connection& connection, const Limits& limits) {
    const Dialect dialect = connection.dialect();
    return connection.ask(setQuery(dialect, key, value) + countKeysQuery(dialect), Form::kNumber,
                          limits);
  }));
  return Ok{};
}

Result<bool> Client::awaitKey(const std::string& key, Clock::time_point until, const Wait& wait,
                              const std::string& before) {
  bool there = true;
  VIADUCT_CHECK(call(wait, [&](Connection& connection, Limits limits) -> Result<Answer> {
    const Dialect dialect = connection.dialect();
    limits.until = std::min(until, wait.until);
    auto got = connection.ask(
        (before.empty() ? "" : setQuery(dialect, before, "1")) + waitQuery(dialect, key),
        Form::kByte, limits);
    const bool later =
        !got && (got.error().code == Code::kTimeout || got.error().code == Code::kPeerLost);
    there = got && got->number == 0;
    return later ? Answer{} : got;
  }));
  return there;
}

}  // namespace viaduct::meet::tcpstore
