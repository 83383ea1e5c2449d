#include "meet/kubernetes/client.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "base/printable.h"

namespace viaduct::meet::kubernetes {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kFirstPause{100}, kLongestPause{5000};
// A server that has not answered after this time is asked again, over another connection.
constexpr milliseconds kLongestTry{5000};
// A try that timed out sooner than this says nothing about the server.
constexpr milliseconds kTellingTry{1000};
constexpr seconds kLongestRetryAfter{60};
// Room for a page of 500 Leases with values at their limit.
constexpr std::size_t kMostAnswer = std::size_t{192} << 20U;

struct Verb {
  std::string_view verb;
  const char* method;
};
constexpr std::array kVerbs{Verb{"get", "GET"},    Verb{"list", "GET"},
                            Verb{"watch", "GET"},  Verb{"create", "POST"},
                            Verb{"update", "PUT"}, Verb{"delete", "DELETE"}};

const char* methodOf(std::string_view verb) {
  return std::ranges::find(kVerbs, verb, &Verb::verb)->method;
}

enum HttpStatus {
  kUnauthorized = 401,
  kForbidden = 403,
  kNotFound = 404,
  kConflict = 409,
  kGone = 410,
  kTooManyRequests = 429,
  kServerErrors = 500,
};

struct Advice {
  const char* cause;
  const char* remedy;
};
Advice adviceFor(ConnectStep step) {
  switch (step) {
    case ConnectStep::kResolve:
      return {"the name of the API server is not known here",
              "check it with kubectl cluster-info, and the pod's dnsPolicy"};
    case ConnectStep::kConnect:
      return {"the API server is down, or a NetworkPolicy blocks the way",
              "check it with kubectl get --raw /readyz, and allow egress to the API server"};
    case ConnectStep::kTls:
      return {
          "the CA that is known here did not sign the server's certificate, or there is a proxy",
          "check the CA: ca.crt of the service account, certificate-authority of the "
          "kubeconfig, or VIADUCT_MEET_CA"};
    case ConnectStep::kAuth:
    case ConnectStep::kRequest:
      return {"the API server hangs or is overloaded, or another service has this port",
              "check it with kubectl get --raw /readyz"};
  }
  return {"", ""};
}

std::string ruleFor(const std::string& kube_namespace) {
  return fmt::format(
      "add this rule to a Role in namespace {} that is bound to it: apiGroups: "
      "[\"coordination.k8s.io\"], resources: [\"leases\"], verbs: [\"get\", \"list\", \"watch\", "
      "\"create\", \"update\", \"delete\"]",
      kube_namespace);
}

// Explains HTTP 403: admission control refuses with the same status as a missing right.
void explainForbidden(const LeaseRequest& request, const std::string& kube_namespace,
                      const Refusal& refusal, Error& error) {
  error.code = Code::kDenied;
  if (refusal.message.find("being terminated") != std::string::npos) {
    error.cause = "the namespace is being deleted";
    error.remedy = "use another namespace: kubernetes:NAMESPACE/GROUP";
  } else if (refusal.message.find("quota") != std::string::npos) {
    error.cause = "a ResourceQuota limits the Leases of the namespace";
    error.remedy = "raise count/leases.coordination.k8s.io: kubectl describe resourcequota";
  } else {
    error.cause = fmt::format("no Role gives the right to {} leases in namespace {}", request.verb,
                              kube_namespace);
    error.remedy = ruleFor(kube_namespace);
  }
}

}  // namespace

// The meaning of one answer.
struct Client::Verdict {
  enum class Kind { kAnswered, kUnauthorized, kAgain, kRefused };
  Kind kind = Kind::kAnswered;
  Error why = {};                           // unless answered
  std::optional<seconds> retry_after = {};  // kAgain: the server's wish
};

// One call with its repetitions.
class Client::Call {
 public:
  Call(Client& client, const LeaseRequest& request, const Wait& wait, Pace& pace)
      : client_(client), request_(request), wait_(wait), pace_(pace) {
    last_ = {.code = Code::kTimeout,
             .detail = fmt::format("{} has not answered yet", client.text())};
  }
  Result<Answer> run();

 private:
  // Makes one try. Nothing: another try may succeed.
  std::optional<Result<Answer>> attempt();
  bool goesOn() const;
  Status pause(BackOff& pauses);               // sleeps until the next try
  bool sleeps(Clock::time_point until) const;  // false: asked to stop
  Error failure() const;

  Client& client_;
  const LeaseRequest& request_;
  const Wait& wait_;
  Pace& pace_;
  Error last_;
  bool told_ = false;  // the last error says something about the server
  bool token_read_again_ = false;
  std::optional<seconds> retry_after_;
};

Result<Answer> Client::Call::run() {
  BackOff pauses(kFirstPause, kLongestPause);
  for (;;) {
    const auto allowed = pace_.next(Clock::now());
    if (!sleeps(std::min(allowed, wait_.until))) return wait_.cancelled();
    if (allowed > wait_.until) {
      if (!told_) last_.cause = "this client sends at most 5 requests a second";
      return failure();
    }
    retry_after_.reset();
    if (auto result = attempt()) return *std::move(result);
    VIADUCT_CHECK(pause(pauses));
  }
}

Status Client::Call::pause(BackOff& pauses) {
  const Duration asked = retry_after_ ? Duration(*retry_after_) : Duration::zero();
  // Adds about a quarter at random, so that clients that were told the same pause do not return at
  // once.
  const Duration time = retry_after_ ? asked + jittered(asked / 4) : pauses.next();
  const auto now = Clock::now();
  if (now >= wait_.until) return failure();
  if (!sleeps(time < wait_.until - now ? now + time : wait_.until)) return wait_.cancelled();
  if (Clock::now() >= wait_.until) return failure();
  return Ok{};
}

std::optional<Result<Answer>> Client::Call::attempt() {
  VIADUCT_TRY(CurlRequest curl, client_.curlRequest(request_));
  const auto begun = Clock::now();
  curl.until = std::max(begun, std::min<Clock::time_point>(begun + kLongestTry, wait_.until));
  curl.goes_on = [this] { return goesOn(); };
  CurlAnswer answer = client_.channels_.run(curl, client_.access_.tls);
  if (answer.left) return wait_.cancelled();
  const bool cut_short =
      answer.failure && answer.failure->timed_out && Clock::now() - begun < kTellingTry;
  Verdict verdict = client_.judge(request_, answer);
  switch (verdict.kind) {
    case Verdict::Kind::kAnswered:
      return Answer{answer.status, std::move(answer.body), parseHttpDate(answer.date)};
    case Verdict::Kind::kUnauthorized:
      // The token may have been replaced after this try read it.
      if (!std::exchange(token_read_again_, true)) return attempt();
      [[fallthrough]];
    case Verdict::Kind::kRefused:
      last_ = std::move(verdict.why);
      return failure();
    case Verdict::Kind::kAgain:
      if (!cut_short || !told_) last_ = std::move(verdict.why);
      told_ = told_ || !cut_short;
      retry_after_ = verdict.retry_after;
  }
  return std::nullopt;
}

bool Client::Call::goesOn() const {
  if (wait_.stopped()) return false;
  if (wait_.aloud != nullptr && wait_.aloud->isDue()) wait_.aloud->tell(failure());
  return true;
}

bool Client::Call::sleeps(Clock::time_point until) const {
  return sleepUntil(until, [this] { return goesOn(); });
}

Error Client::Call::failure() const {
  Error out = last_;
  out.operation = wait_.operation.empty() ? "kubernetes" : wait_.operation + ": kubernetes";
  return out;
}

Client::Client(Access access)
    : access_(std::move(access)),
      text_("kubernetes " + access_.server),
      path_(fmt::format("/apis/coordination.k8s.io/v1/namespaces/{}/leases",
                        access_.kube_namespace)) {}

Result<std::shared_ptr<Client>> Client::open(Access access) {
  VIADUCT_CHECK(base::curlLibrary());
  return std::shared_ptr<Client>(new Client(std::move(access)));
}

Result<Answer> Client::call(const LeaseRequest& request, const Wait& wait, Pace& pace) {
  return Call(*this, request, wait, pace).run();
}

Result<CurlRequest> Client::curlRequest(const LeaseRequest& request) const {
  CurlRequest out{.method = methodOf(request.verb),
                  .url = access_.server + path_,
                  .body = request.body,
                  .most = kMostAnswer};
  if (!request.name.empty()) out.url += "/" + request.name;
  if (!request.query.empty()) out.url += "?" + request.query;
  VIADUCT_TRY(out.token, authorizationOf(access_));
  return out;
}

Client::Verdict Client::judge(const LeaseRequest& request, CurlAnswer& answer) {
  if (answer.failure) {
    const CurlFailure& failure = *answer.failure;
    const Advice advice = adviceFor(failure.step);
    return {.kind = failure.for_good ? Verdict::Kind::kRefused : Verdict::Kind::kAgain,
            .why = {.code = failure.for_good ? Code::kDevice : Code::kTimeout,
                    .detail = fmt::format("{}: {}: {}", access_.server, stepName(failure.step),
                                          failure.text),
                    .cause = advice.cause,
                    .remedy = advice.remedy}};
  }
  if (const auto date = parseHttpDate(answer.date)) compareClocks(*date);
  if (answer.status >= 200 && answer.status <= 299) return {};
  auto refusal = parseRefusal(answer.body);
  if (!refusal) {
    // A load balancer in front of a server that is down answers by itself.
    refusal = Refusal{.message = fmt::format("HTTP {} without a Status of Kubernetes: \"{}\"",
                                             answer.status, base::printable(answer.body)),
                      .kind = "foreign"};
  }
  refusal->code = answer.status;
  Verdict out = judge(request, *refusal);
  out.retry_after = answer.retry_after ? answer.retry_after : out.retry_after;
  if (out.retry_after) out.retry_after = std::min(*out.retry_after, kLongestRetryAfter);
  return out;
}

Client::Verdict Client::judge(const LeaseRequest& request, const Refusal& refusal) const {
  Verdict out{.kind = Verdict::Kind::kRefused};
  if (refusal.retry_after > 0) out.retry_after = seconds(refusal.retry_after);
  Error& why = out.why;
  why.code = Code::kProtocol;
  why.detail = fmt::format("{}: {} leases: HTTP {}: {}", access_.server, request.verb, refusal.code,
                           refusal.message);
  if (refusal.code == kTooManyRequests || refusal.code >= kServerErrors) {
    out.kind = Verdict::Kind::kAgain;
    why.code = Code::kTimeout;
    why.cause = "the API server is overloaded, starts or has no etcd";
    why.remedy = "check it with kubectl get --raw /readyz?verbose";
  } else if (refusal.code == kUnauthorized) {
    out.kind = Verdict::Kind::kUnauthorized;
    why.code = Code::kDenied;
    why.cause = fmt::format("the server does not accept the credentials of {}", access_.origin);
    why.remedy = "check the token or certificate: kubectl auth whoami, kubectl create token";
  } else if (refusal.code == kForbidden) {
    explainForbidden(request, access_.kube_namespace, refusal, why);
  } else if (refusal.kind == "foreign") {
    why.cause = "another service answers there, or a proxy is in between";
    why.remedy = "check it with kubectl get --raw /version";
  } else if (refusal.kind == "namespaces") {
    why.code = Code::kNotFound;
    why.cause = fmt::format("there is no namespace {}", access_.kube_namespace);
    why.remedy = fmt::format(
        "kubectl create namespace {}, or name another one: "
        "kubernetes:NAMESPACE/GROUP",
        access_.kube_namespace);
  } else if (refusal.code == kNotFound || refusal.code == kConflict || refusal.code == kGone) {
    out.kind = Verdict::Kind::kAnswered;
  } else {
    why.cause = "this API server expects another form of the request";
    why.remedy = "report it with the version: kubectl version";
  }
  return out;
}

Client::StreamEnd Client::stream(const LeaseRequest& request, Channel& channel,
                                 Clock::time_point until,
                                 std::function<bool(std::string_view)> line,
                                 std::function<bool()> goes_on) {
  auto curl = curlRequest(request);
  if (!curl) return {.error = std::move(curl).error(), .again = true};
  curl->until = until;
  curl->line = std::move(line);
  curl->goes_on = std::move(goes_on);
  CurlAnswer answer = channel.run(*curl, access_.tls);
  if (answer.left) return {};
  Verdict verdict = judge(request, answer);
  if (verdict.kind == Verdict::Kind::kAnswered)
    return {.answer = Answer{answer.status, std::move(answer.body), {}}};
  return {.error = std::move(verdict.why), .again = verdict.kind != Verdict::Kind::kRefused};
}

Client::StreamEnd Client::streamEnd(const LeaseRequest& request, const Refusal& refusal) const {
  Verdict verdict = judge(request, refusal);
  if (verdict.kind == Verdict::Kind::kAnswered) return {.answer = Answer{.status = refusal.code}};
  return {.error = std::move(verdict.why), .again = verdict.kind != Verdict::Kind::kRefused};
}

void Client::compareClocks(WallTime server) {
  // The server's date has whole seconds, and travels for a while. So a small difference counts as
  // none.
  constexpr std::chrono::microseconds kHalf{500'000}, kClose{2'000'000};
  const auto now =
      std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now());
  const auto offset = server + kHalf - now;
  clock_offset_us_ = std::chrono::abs(offset) <= kClose ? 0 : offset.count();
}

WallTime Client::serverTime() const {
  return std::chrono::time_point_cast<std::chrono::microseconds>(std::chrono::system_clock::now()) +
         std::chrono::microseconds(clock_offset_us_.load());
}

}  // namespace viaduct::meet::kubernetes
