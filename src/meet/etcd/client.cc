#include "meet/etcd/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

namespace viaduct::meet::etcd {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds kShortestTry{50};
constexpr milliseconds kFirstPause{20}, kLongestPause{500};
// A try that ended without an answer after less says nothing of the endpoint.
constexpr milliseconds kTellingTry{1000};

// gRPC's codes, as the gateway passes them on.
enum GrpcCode {
  kInvalidArgument = 3,
  kDeadlineExceeded = 4,
  kNotFoundCode = 5,
  kPermissionDenied = 7,
  kResourceExhausted = 8,
  kFailedPrecondition = 9,
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

// As 401 from a cluster that no longer knows the token: it restarted, or the token has expired.
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
    return {"the user's role does not reach these keys",
            "etcdctl role grant-permission ROLE --prefix=true readwrite NAMESPACE/"};
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

struct Client::Call {
  std::string path, body;
  Clock::time_point until;
  Done done;
  std::list<CallPtr>::iterator where;
  std::size_t tried = 0;  // endpoints, in this round over all of them
  std::size_t for_good = 0;
  std::size_t at = 0;  // the endpoint being tried
  std::size_t first = 0;
  Clock::time_point begun = {};  // of the try
  int logins = 0;
  Duration longest_try = kLongestTry;
  milliseconds pause = kFirstPause;
  std::vector<std::optional<CurlFailure>>
      failures;  // the last that tells something, of each endpoint
  CurlLoop::Id exchange = 0, timer = 0;
};

Client::Client(CurlLoop& loop, Config config) : loop_(loop), config_(std::move(config)) {}

Client::~Client() {
  for (const CallPtr& call : calls_) {
    loop_.drop(call->exchange);
    loop_.forget(call->timer);
  }
}

void Client::call(std::string_view path, std::string body, Clock::time_point until, Done done,
                  Duration longest_try) {
  auto call = std::make_shared<Call>();
  call->path = path;
  call->body = std::move(body);
  call->until = until;
  call->done = std::move(done);
  call->failures.resize(config_.endpoints.size());
  if (config_.endpoints.size() > 1) call->longest_try = longest_try;
  call->first = current_;
  call->where = calls_.insert(calls_.end(), call);
  attempt(call);
}

bool Client::needsLogin(std::string_view path) const {
  return !config_.user.empty() && token_.empty() && !login_off_ && path != kAuthPath;
}

void Client::attempt(const CallPtr& call) {
  const auto now = Clock::now();
  if (needsLogin(call->path))
    return login(call->until, [this, call](Status status) {
      if (!status) return finish(call, std::move(status).error());
      attempt(call);
    });
  const std::size_t count = config_.endpoints.size();
  call->at = (call->first + call->tried) % count;
  // A fair share of what is left for each endpoint that this round has still to try.
  const auto share = (call->until - now) / static_cast<int>(count - call->tried);
  const auto most = std::clamp<Duration>(share, kShortestTry, call->longest_try);
  call->begun = now;
  call->exchange = loop_.start({
      .url = config_.endpoints[call->at].url() + call->path,
      .body = call->body,
      .token = token_,
      .until = std::max(now, std::min(now + most, call->until)),
      .done = [this, call](CurlAnswer answer) { answered(call, std::move(answer)); },
  });
}

void Client::login(Clock::time_point until, std::function<void(Status)> done) {
  if (!needsLogin("")) return done(Ok{});
  waiting_for_login_.push_back(std::move(done));
  if (waiting_for_login_.size() > 1) return;
  call(kAuthPath, authJson(config_.user, config_.password), until,
       [this](Result<std::string> body) { loggedIn(std::move(body)); });
}

void Client::loggedIn(Result<std::string> body) {
  Status status = Ok{};
  if (body) {
    auto token = parseToken(*body);
    if (token)
      token_ = *std::move(token);
    else
      status = std::move(token).error();
  } else if (!login_off_) {
    status = std::move(body).error();
  }
  const auto waiting = std::exchange(waiting_for_login_, {});
  for (const auto& done : waiting) done(status);
}

void Client::answered(const CallPtr& call, CurlAnswer answer) {
  call->exchange = 0;
  if (answer.failure) return failed(call, *std::move(answer.failure));
  if (answer.status < 200 || answer.status > 299) return refused(call, answer);
  current_ = call->at;
  finish(call, std::move(answer.body));
}

void Client::refused(const CallPtr& call, const CurlAnswer& answer) {
  auto refusal = parseRefusal(answer.body);
  // The one refusal that etcd's gateway makes in plain text.
  if (!refusal && answer.body.starts_with("CommonName of client"))
    refusal = Refusal{kPermissionDenied, answer.body.substr(0, answer.body.find('\n'))};
  if (!refusal) {
    // Not what was answered to a login: a mirror would show the password.
    const std::string said = call->path == kAuthPath ? "" : " " + excerpt(answer.body);
    return failed(call, {.text = fmt::format("HTTP {} without etcd's error{}", answer.status, said),
                         .for_good = true});
  }
  if (refusal->code == kUnavailable || refusal->code == kDeadlineExceeded ||
      mentions(*refusal, "too many requests"))
    return failed(call, {.text = refusal->message});
  current_ = call->at;
  if (call->path == kAuthPath && mentions(*refusal, "authentication is not enabled")) {
    login_off_ = true;
    return finish(call, Error{.code = Code::kUnsupported, .detail = refusal->message});
  }
  if (tokenIsStale(*refusal) && !config_.user.empty() && call->path != kAuthPath &&
      call->logins++ < 2) {
    token_.clear();
    login_off_ = false;
    return attempt(call);
  }
  const bool auth = call->path == kAuthPath || codeOf(refusal->code) == Code::kDenied ||
                    mentions(*refusal, "user name is empty");
  finish(call, errorOf(*refusal, config_.endpoints[call->at].url(), auth));
}

void Client::failed(const CallPtr& call, CurlFailure failure) {
  if (failure.for_good) ++call->for_good;
  const auto now = Clock::now();
  const bool cut_short = failure.timed_out && now - call->begun < kTellingTry;
  auto& known = call->failures[call->at];
  if (!known || !cut_short) known = std::move(failure);
  moveOn(call->at);
  const std::size_t count = config_.endpoints.size();
  if (++call->tried < count && now < call->until) return attempt(call);
  if (now >= call->until || call->for_good == count) return finish(call, failureOf(*call));
  call->tried = call->for_good = 0;
  call->first = current_;
  const auto next = std::min(now + call->pause, call->until);
  call->pause = std::min(call->pause * 2, kLongestPause);
  call->timer = loop_.at(next, [this, call] {
    call->timer = 0;
    if (Clock::now() >= call->until) return finish(call, failureOf(*call));
    attempt(call);
  });
}

void Client::moveOn(std::size_t from) {
  if (from != current_) return;
  current_ = (current_ + 1) % config_.endpoints.size();
  const auto subscribers = on_move_;
  for (const auto& [id, moved] : subscribers) {
    const bool there = std::ranges::any_of(
        on_move_, [wanted = id](const auto& one) { return one.first == wanted; });
    if (there) moved();
  }
}

CurlLoop::Id Client::onMove(std::function<void()> moved) {
  on_move_.emplace_back(++last_id_, std::move(moved));
  return last_id_;
}

void Client::forgetMove(CurlLoop::Id id) {
  std::erase_if(on_move_, [id](const auto& one) { return one.first == id; });
}

void Client::finish(const CallPtr& call, Result<std::string> result) {
  calls_.erase(call->where);
  call->done(std::move(result));
  if (calls_.empty() && when_idle_) std::exchange(when_idle_, nullptr)();
}

void Client::whenIdle(std::function<void()> run) {
  if (calls_.empty()) return run();
  when_idle_ = std::move(run);
}

std::optional<Error> Client::trouble() const {
  for (const CallPtr& call : calls_)
    if (std::ranges::any_of(call->failures, [](const auto& one) { return one.has_value(); }))
      return failureOf(*call);
  return std::nullopt;
}

Error Client::failureOf(const Call& call) const {
  Error out{.code = call.for_good == config_.endpoints.size() ? Code::kDevice : Code::kTimeout,
            .operation = "etcd"};
  std::optional<ConnectStep> step;
  std::set<std::string> remedies;
  for (std::size_t i = 0; i < call.failures.size(); ++i) {
    const auto& failure = call.failures[i];
    if (!failure) continue;
    if (!out.detail.empty()) out.detail += "; ";
    out.detail += fmt::format("{}: {}: {}", config_.endpoints[i].url(), stepName(failure->step),
                              failure->text);
    step = failure->step;
  }
  if (!step) out.detail = "the deadline passed before the request";
  if (step) {
    out.cause = adviceFor(*step).cause;
    out.remedy = adviceFor(*step).remedy;
  }
  return out;
}

std::unique_ptr<Client::OpenStream> Client::openStream(StreamRequest stream) {
  const std::string url = config_.endpoints[current_].url();
  auto end = [this, at = current_, url, done = std::move(stream.end)](const CurlAnswer& answer) {
    Error why{.code = Code::kPeerLost, .operation = "etcd watch"};
    if (answer.failure) {
      why.detail =
          fmt::format("{}: {}: {}", url, stepName(answer.failure->step), answer.failure->text);
      moveOn(at);
    } else if (const auto refusal = parseRefusal(answer.body)) {
      if (tokenIsStale(*refusal)) forgetToken();
      why.detail = fmt::format("{}: {}", url, refusal->message);
    } else {
      why.detail = fmt::format("{}: the stream ended", url);
    }
    done(std::move(why));
  };
  const CurlLoop::Id id = loop_.start({.url = url + std::string(kWatchPath),
                                       .body = std::move(stream.body),
                                       .token = token_,
                                       .until = stream.first_line,
                                       .line = std::move(stream.line),
                                       .done = std::move(end)});
  return std::make_unique<OpenStream>(loop_, id);
}

}  // namespace viaduct::meet::etcd
