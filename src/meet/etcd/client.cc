#include "meet/etcd/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/printable.h"

namespace viaduct::meet::etcd {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestTry{50};
constexpr milliseconds kFirstPause{20}, kLongestPause{1000};
// A try that timed out sooner than this says nothing about the endpoint.
constexpr milliseconds kTellingTry{1000};
// A watch cannot tell a frozen endpoint from a key without changes. So the key is read again after
// this time.
constexpr milliseconds kWatchTime{5000}, kFirstLine{3000};
// This many denials in a row become an error. A single one may only mean that etcd has forgotten
// our token.
constexpr int kDenials = 3;
constexpr auto kGrant = "etcdctl role grant-permission ROLE --prefix=true readwrite NAMESPACE/";

// The gRPC codes that the gateway passes on.
enum GrpcCode {
  kDeadlineExceeded = 4,
  kNotFoundCode = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kUnavailable = 14,
  kUnauthenticated = 16,
};

Code codeOf(int grpc) {
  switch (grpc) {
    case kNotFoundCode:
      return Code::kNotFound;
    case kPermissionDenied:
    case kUnauthenticated:
      return Code::kDenied;
    case kResourceExhausted:
      return Code::kExhausted;
    default:
      return Code::kInvalid;
  }
}

bool mentions(const Refusal& refusal, std::string_view what) {
  return refusal.message.find(what) != std::string::npos;
}

// True if the cluster no longer knows the token, because it restarted or the token has expired.
bool tokenIsStale(const Refusal& refusal) {
  return refusal.code == kUnauthenticated || mentions(refusal, "invalid auth token") ||
         mentions(refusal, "old revision");
}

struct Advice {
  const char* cause;
  const char* remedy;
};
Advice adviceFor(ConnectStep step) {
  switch (step) {
    case ConnectStep::kResolve:
      return {"the name is misspelt, or not known here yet", "check it with getent hosts NAME"};
    case ConnectStep::kConnect:
      return {"no etcd listens there, or the network blocks it",
              "check host and port, and that etcd runs: curl URL/version"};
    case ConnectStep::kTls:
      return {"the certificates do not match, or one side does not use TLS",
              "check http or https, the CA file, and the client's certificate and key"};
    case ConnectStep::kAuth:
      return {"the user, the password or the user's role is wrong",
              "check them with etcdctl --user NAME get KEY"};
    case ConnectStep::kRequest:
      return {"the port is not etcd's client port, or this etcd hangs or has no leader",
              "check it with etcdctl --endpoints=URL endpoint status"};
  }
  return {"", ""};
}

Advice adviceFor(const Refusal& refusal) {
  if (mentions(refusal, "CommonName"))
    return {
        "the client's certificate has a CommonName, which etcd's gateway refuses while "
        "authentication is on",
        "make the certificate without CN: -subj /O=..., and give user and password"};
  if (mentions(refusal, "user name is empty"))
    return {"etcd has authentication on, and no user was given", "give user and password"};
  if (refusal.code == kPermissionDenied)
    return {"the user's role does not reach these keys", kGrant};
  if (mentions(refusal, "database space exceeded"))
    return {"etcd's disk quota is used up", "etcdctl compact, defrag, alarm disarm"};
  return {"", ""};
}

Error errorOf(const Refusal& refusal, const std::string& url, bool auth) {
  Advice advice = adviceFor(refusal);
  if (advice.cause[0] == '\0' && auth) advice = adviceFor(ConnectStep::kAuth);
  const char* const step = stepName(auth ? ConnectStep::kAuth : ConnectStep::kRequest);
  return {.code = auth ? Code::kDenied : codeOf(refusal.code),
          .operation = "etcd",
          .detail = fmt::format("{}: {}: {}", url, step, refusal.message),
          .cause = advice.cause,
          .remedy = advice.remedy};
}

}  // namespace

// One call, which tries the endpoints in turn.
class Client::Call {
 public:
  Call(Client& client, std::string_view path, const std::string& body, const Wait& wait,
       Duration longest_try)
      : client_(client),
        path_(path),
        body_(body),
        wait_(wait),
        longest_try_(endpoints().size() > 1 ? longest_try : Duration::max()),
        failures_(endpoints().size()) {}

  Result<std::string> run();

 private:
  // Tries each endpoint once. Returns nothing if a later round may succeed.
  std::optional<Result<std::string>> round();
  const std::vector<EtcdEndpoint>& endpoints() const { return client_.config_.endpoints; }
  // Returns nothing if the endpoint has failed, and another endpoint or a later try may succeed.
  std::optional<Result<std::string>> attempt(std::size_t at, std::size_t still_to_try);
  std::optional<Result<std::string>> refused(std::size_t at, const CurlAnswer& answer);
  void failed(std::size_t at, CurlFailure failure);
  bool goesOn() const;
  Error failure() const;

  Client& client_;
  const std::string_view path_;
  const std::string& body_;
  const Wait& wait_;
  const Duration longest_try_;
  std::size_t for_good_ = 0;  // permanent failures in this round over all endpoints
  int logins_ = 0;
  Clock::time_point begun_ = {};                      // the start of the current try
  std::vector<std::optional<CurlFailure>> failures_;  // the last telling failure of each endpoint
};

Result<std::string> Client::Call::run() {
  BackOff pauses(kFirstPause, kLongestPause);
  for (;;) {
    if (auto result = round()) return *std::move(result);
    const auto now = Clock::now();
    if (now >= wait_.until || for_good_ == endpoints().size()) return failure();
    if (!sleepUntil(std::min<Clock::time_point>(now + pauses.next(), wait_.until),
                    [this] { return goesOn(); }))
      return wait_.cancelled();
    if (Clock::now() >= wait_.until) return failure();
  }
}

std::optional<Result<std::string>> Client::Call::round() {
  const std::size_t count = endpoints().size();
  const std::size_t first = client_.current();
  for_good_ = 0;
  for (std::size_t tried = 0; tried < count; ++tried) {
    if (tried > 0 && Clock::now() >= wait_.until) break;
    if (auto result = attempt((first + tried) % count, count - tried)) return result;
  }
  return std::nullopt;
}

std::optional<Result<std::string>> Client::Call::attempt(std::size_t at, std::size_t still_to_try) {
  if (client_.needsLogin(path_))
    if (Status status = client_.login(wait_); !status) return std::move(status).error();
  begun_ = Clock::now();
  // Each endpoint that this round has still to try gets a fair share of the remaining time.
  const auto share = (wait_.until - begun_) / static_cast<int>(still_to_try);
  const auto most = std::min(std::max<Duration>(share, kShortestTry), longest_try_);
  const auto until = most < wait_.until - begun_ ? begun_ + most : std::max(begun_, wait_.until);
  CurlAnswer answer = client_.exchange({.url = endpoints()[at].url() + std::string(path_),
                                        .body = body_,
                                        .token = client_.tokenFor(path_),
                                        .until = until,
                                        .goes_on = [this] { return goesOn(); }});
  if (answer.left) return wait_.cancelled();
  if (answer.failure) {
    failed(at, *std::move(answer.failure));
    return std::nullopt;
  }
  if (answer.status < 200 || answer.status > 299) return refused(at, answer);
  client_.answers(at);
  return std::move(answer.body);
}

std::optional<Result<std::string>> Client::Call::refused(std::size_t at, const CurlAnswer& answer) {
  auto refusal = parseRefusal(answer.body);
  const bool login = path_ == kAuthPath;
  // This is the only refusal that etcd's gateway sends as plain text.
  if (!refusal && answer.body.starts_with("CommonName of client"))
    refusal =
        Refusal{kPermissionDenied, base::printable(answer.body.substr(0, answer.body.find('\n')))};
  if (!refusal) {
    // An answer to a login may repeat the password, so its body is left out.
    const std::string said = login ? "" : " " + excerpt(answer.body);
    failed(at, {.text = fmt::format("HTTP {} without etcd's error{}", answer.status, said),
                .for_good = true});
    return std::nullopt;
  }
  if (refusal->code == kUnavailable || refusal->code == kDeadlineExceeded ||
      mentions(*refusal, "too many requests")) {
    failed(at, {.text = refusal->message});
    return std::nullopt;
  }
  client_.answers(at);
  if (login && mentions(*refusal, "authentication is not enabled"))
    return Error{.code = Code::kUnsupported, .detail = refusal->message};
  if (tokenIsStale(*refusal) && !client_.config_.user.empty() && !login && logins_++ < 2) {
    client_.forgetToken();
    return attempt(at, 1);
  }
  const bool auth =
      login || codeOf(refusal->code) == Code::kDenied || mentions(*refusal, "user name is empty");
  return errorOf(*refusal, endpoints()[at].url(), auth);
}

void Client::Call::failed(std::size_t at, CurlFailure failure) {
  if (failure.for_good) ++for_good_;
  const bool cut_short = failure.timed_out && Clock::now() - begun_ < kTellingTry;
  auto& known = failures_[at];
  if (!known || !cut_short) known = std::move(failure);
  client_.fails(at);
}

bool Client::Call::goesOn() const {
  if (wait_.stopped()) return false;
  if (wait_.aloud != nullptr && wait_.aloud->isDue()) wait_.aloud->tell(failure());
  return true;
}

// The error lists all failed endpoints, and advises about the last one in the list.
Error Client::Call::failure() const {
  Error out{.code = for_good_ == endpoints().size() ? Code::kDevice : Code::kTimeout,
            .operation = wait_.operation.empty() ? "etcd" : wait_.operation + ": etcd"};
  for (std::size_t i = 0; i < failures_.size(); ++i) {
    const auto& failure = failures_[i];
    if (!failure) continue;
    if (!out.detail.empty()) out.detail += "; ";
    out.detail +=
        fmt::format("{}: {}: {}", endpoints()[i].url(), stepName(failure->step), failure->text);
    const Advice advice = adviceFor(failure->step);
    out.cause = advice.cause;
    out.remedy = advice.remedy;
  }
  if (out.detail.empty()) out.detail = client_.text() + " has not answered yet";
  return out;
}

Client::Client(Config config) : config_(std::move(config)), text_("etcd") {
  for (const EtcdEndpoint& one : config_.endpoints)
    text_ += (&one == config_.endpoints.data() ? " " : ",") + one.url();
}

Result<std::shared_ptr<Client>> Client::open(Config config) {
  VIADUCT_CHECK(base::curlLibrary());
  return std::shared_ptr<Client>(new Client(std::move(config)));
}

Result<std::string> Client::call(std::string_view path, const std::string& body, const Wait& wait,
                                 Duration longest_try) {
  auto result = Call(*this, path, body, wait, longest_try).run();
  if (result || wait.operation.empty() || result.error().operation != "etcd") return result;
  Error why = std::move(result).error();
  why.operation = wait.operation + ": etcd";
  return why;
}

std::string Client::tokenFor(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return path == kAuthPath ? "" : token_;
}

bool Client::needsLogin(std::string_view path) const {
  const std::lock_guard lock(mutex_);
  return !config_.user.empty() && token_.empty() && !login_off_ && path != kAuthPath;
}

Status Client::login(const Wait& wait) {
  const auto body = call(kAuthPath, authJson(config_.user, config_.password), wait);
  if (!body && body.error().code != Code::kUnsupported) return body.error();
  auto token = body ? parseToken(*body) : std::string();
  if (!token) return token.error();
  const std::lock_guard lock(mutex_);
  login_off_ = !body;
  token_ = *std::move(token);
  return Ok{};
}

void Client::forgetToken() {
  const std::lock_guard lock(mutex_);
  token_.clear();
  login_off_ = false;
}

std::size_t Client::current() const {
  const std::lock_guard lock(mutex_);
  return current_;
}

void Client::answers(std::size_t endpoint) {
  const std::lock_guard lock(mutex_);
  current_ = endpoint;
}

void Client::fails(std::size_t endpoint) {
  const std::lock_guard lock(mutex_);
  if (endpoint == current_) current_ = (current_ + 1) % config_.endpoints.size();
}

// One watch of a key, until `enough` accepts the value or the key has to be read again.
class Client::Following {
 public:
  Following(Client& client, const Wait& wait, const Enough& enough)
      : client_(client), wait_(wait), enough_(enough) {}

  // Returns nothing if the key has to be read again.
  std::optional<Result<Held>> run(const std::string& key, Revision from);

 private:
  bool line(std::string_view text);
  bool cancelled(const WatchMessage& message);

  Client& client_;
  const Wait& wait_;
  const Enough& enough_;
  std::optional<Result<Held>> result_;
  bool heard_ = false;
  int denied_ = 0;  // denials in a row
  BackOff pauses_{kFirstPause, kLongestPause};
};

std::optional<Result<Client::Held>> Client::Following::run(const std::string& key, Revision from) {
  const std::size_t at = client_.current();
  const auto begun = Clock::now(), end = std::min(begun + kWatchTime, wait_.until);
  heard_ = false;
  const CurlAnswer answer =
      client_.exchange({.url = client_.config_.endpoints[at].url() + std::string(kWatchPath),
                        .body = watchJson(key, from),
                        .token = client_.tokenFor(kWatchPath),
                        .until = std::min(begun + kFirstLine, wait_.until),
                        .line = [this](std::string_view text) { return line(text); },
                        .goes_on =
                            [&] {
                              if (wait_.aloud != nullptr && wait_.aloud->isDue())
                                wait_.aloud->tell(wait_.timedOut());
                              return !wait_.stopped() && Clock::now() < end;
                            }});
  if (result_ || heard_ || wait_.stopped() || Clock::now() >= end) return result_;
  if (answer.failure) client_.fails(at);
  sleepUntil(Clock::now() + pauses_.next(), [&] { return !wait_.stopped() && Clock::now() < end; });
  return std::nullopt;
}

// Returns false to end the stream.
bool Client::Following::line(std::string_view text) {
  auto message = parseWatch(text);
  if (!message && parseRefusal(text)) {
    client_.forgetToken();
    return false;
  }
  if (!message) {
    result_ = answerOf(client_.text(), wait_, std::move(message)).error();
    return false;
  }
  if (message->cancelled) return cancelled(*message);
  heard_ = true;
  denied_ = 0;
  pauses_.reset();
  for (WatchEvent& event : message->events) {
    Held held;
    if (!event.deleted) held = std::move(event.kv);
    if (enough_(held)) result_ = std::move(held);
    if (result_) return false;
  }
  return true;
}

// The server has ended the watch. After a compaction, and after most refusals, the key has to be
// read again.
bool Client::Following::cancelled(const WatchMessage& message) {
  if (message.compacted != 0) return false;
  // For a token that it has forgotten, etcd reports that permission is denied.
  client_.forgetToken();
  if (mentions({.message = message.reason}, "permission denied") && ++denied_ == kDenials)
    result_ = Error{.code = Code::kDenied,
                    .operation = "etcd watch",
                    .detail = message.reason,
                    .cause = "the user's role does not reach these keys",
                    .remedy = kGrant};
  return false;
}

Result<Client::Held> Client::await(const std::string& key, const Wait& wait, const Enough& enough) {
  Following following(*this, wait, enough);
  for (;;) {
    VIADUCT_TRY(const std::string body, call(kRangePath, rangeJson(key), wait));
    VIADUCT_TRY(KeyReply reply, answerOf(text_, wait, parseRange(body)));
    if (enough(reply.found)) return std::move(reply.found);
    if (auto result = following.run(key, reply.revision + 1)) return *std::move(result);
    if (wait.stopped()) return wait.cancelled();
    if (Clock::now() >= wait.until) return wait.timedOut();
  }
}

}  // namespace viaduct::meet::etcd
