#include "base/net/dialer.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <cerrno>
#include <chrono>
#include <cstddef>
#include <cstring>
#include <optional>
#include <string_view>
#include <utility>

#include "base/net/lookup.h"

namespace viaduct::base {
namespace {

constexpr std::string_view kUnixPrefix = "unix:@";
// The pause between attempts at a Unix socket whose backlog is full.
constexpr std::chrono::milliseconds kBacklogPause{5};
// The longest time between two calls of `goes_on` by dial().
constexpr std::chrono::milliseconds kLook{50};

struct Reason {
  Code code;
  const char* cause;
  const char* remedy;
};

Reason reasonOf(int why) {
  switch (why) {
    case ECONNREFUSED:
      return {Code::kPeerLost,
              "no process listens there: the agent is not running, or has another port",
              "start it, and check its port"};
    case ETIMEDOUT:
      return {Code::kTimeout,
              "packets are dropped: a firewall or security group, or the host is down",
              "allow the port between the two hosts; try nc -vz HOST PORT"};
    case EHOSTUNREACH:
    case ENETUNREACH:
      return {Code::kPeerLost,
              "there is no route: a wrong address, or the host or its link is down",
              "check the address, and ip route get ADDRESS"};
    case EADDRNOTAVAIL:
    case EINVAL:
      return {Code::kInvalid, "the address is not reachable from here",
              "check the address; a link-local one needs %INTERFACE"};
    case EACCES:
    case EPERM:
      return {Code::kDenied, "a rule of this host's own firewall or sandbox forbids it",
              "allow outgoing connections"};
    case EAFNOSUPPORT:
      return {Code::kUnsupported, "this system has no IPv6", "use an IPv4 address"};
    case EAGAIN:
      return {Code::kBusy, "its queue of connections is full", "try again"};
    default:
      return {Code::kPeerLost, "", ""};
  }
}

Error connectError(const std::string& where, int why) {
  const Reason reason = reasonOf(why);
  Error error = systemError(reason.code, "connect", why);
  error.detail = fmt::format("{}: {}", where, error.detail);
  error.cause = reason.cause;
  error.remedy = reason.remedy;
  return error;
}

// The system may give a connecting socket the very port that it dials, if nobody listens there. TCP
// then connects the socket to itself.
bool isItself(int socket) {
  const auto local = localAddress(socket);
  const auto remote = remoteAddress(socket);
  return local && remote && local->family() != AF_UNIX && local->size == remote->size &&
         std::memcmp(&local->storage, &remote->storage, local->size) == 0;
}

}  // namespace

class Dialer::Impl {
 public:
  Impl(std::vector<std::string> targets, Clock::time_point until, Poller& poller, Done done)
      : targets_(std::move(targets)), until_(until), poller_(poller), done_(std::move(done)) {}
  ~Impl() {
    stopWaiting();
    poller_.forgetTimer(report_timer_);
  }
  Impl(const Impl&) = delete;
  Impl& operator=(const Impl&) = delete;

  // Runs steps until one has to wait.
  void advance();

 private:
  enum class Step : std::uint8_t { kWaiting, kOver };

  Step beginTarget();
  Step beginLookup(const HostPort& where);
  Step connectNext();
  Step waitForSocket();
  void onConnected();
  void onAnswer();
  void waitUntil(Clock::time_point when, void (Impl::*then)());
  void retry();
  void lookupTimedOut();
  void connectTimedOut();
  void stopWaiting();
  void note(Error why);
  void report();
  const std::string& target() const { return targets_[next_target_ - 1]; }
  Clock::time_point share(std::size_t parts, Clock::time_point of) const;

  std::vector<std::string> targets_;
  Clock::time_point until_;
  Poller& poller_;
  Done done_;

  std::size_t next_target_ = 0;
  Clock::time_point target_until_ = {};
  std::unique_ptr<Lookup> lookup_;
  std::vector<SocketAddress> candidates_;  // of the current target; the next to try is last
  SocketAddress address_;
  Clock::time_point address_until_ = {};
  Fd socket_;
  Poller::Id watch_ = 0, timer_ = 0, report_timer_ = 0;
  std::vector<std::string> failures_;
  std::optional<Error> last_;
};

// Returns the end of the first of `parts` equal parts of the time from now to `of`.
Clock::time_point Dialer::Impl::share(std::size_t parts, Clock::time_point of) const {
  const auto now = poller_.now();
  return of <= now ? now : now + (of - now) / static_cast<Clock::rep>(parts);
}

void Dialer::Impl::advance() {
  stopWaiting();
  while (true) {
    if (!candidates_.empty()) {
      if (connectNext() == Step::kWaiting) return;
    } else if (next_target_ < targets_.size()) {
      if (beginTarget() == Step::kWaiting) return;
    } else {
      // Deferred to the poller, because start() promises that `done` never runs inside it.
      report_timer_ = poller_.at({}, [this] { report(); });
      return;
    }
  }
}

Dialer::Impl::Step Dialer::Impl::beginTarget() {
  const std::string& text = targets_[next_target_];
  target_until_ = share(targets_.size() - next_target_, until_);
  ++next_target_;
  if (text.starts_with(kUnixPrefix)) {
    auto address = unixAddress(std::string_view(text).substr(kUnixPrefix.size()));
    if (address)
      candidates_.push_back(*address);
    else
      note(address.error());
    return Step::kOver;
  }
  auto where = parseHostPort(text);
  if (where && where->port == 0)
    where = Error{.operation = "parse address",
                  .detail = fmt::format("\"{}\": no process can listen at port 0", text)};
  if (where && !isLiteral(*where)) return beginLookup(*where);
  auto found = where ? resolve(*where) : where.error();
  if (found)
    candidates_.assign(found->rbegin(), found->rend());
  else
    note(found.error());
  return Step::kOver;
}

Dialer::Impl::Step Dialer::Impl::beginLookup(const HostPort& where) {
  auto lookup = Lookup::start(where);
  auto watch = lookup
                   ? poller_.watch((*lookup)->fd(), EPOLLIN, [this](std::uint32_t) { onAnswer(); })
                   : lookup.error();
  if (!watch) {
    note(watch.error());
    return Step::kOver;
  }
  lookup_ = std::move(*lookup);
  watch_ = *watch;
  waitUntil(target_until_, &Impl::lookupTimedOut);
  return Step::kWaiting;
}

void Dialer::Impl::onAnswer() {
  auto answer = lookup_->answer();
  if (!answer) return;
  if (*answer)
    candidates_.assign((*answer)->rbegin(), (*answer)->rend());
  else
    note(answer->error());
  advance();
}

void Dialer::Impl::lookupTimedOut() {
  note(lookupTimeout());
  advance();
}

Dialer::Impl::Step Dialer::Impl::connectNext() {
  address_ = candidates_.back();
  address_until_ = share(candidates_.size(), target_until_);
  candidates_.pop_back();
  auto socket = streamSocket(address_.family());
  if (const Status tuned = socket ? tuneSocket(socket->get()) : socket.error(); !tuned) {
    note(tuned.error());
    return Step::kOver;
  }
  socket_ = std::move(*socket);
  return waitForSocket();
}

Dialer::Impl::Step Dialer::Impl::waitForSocket() {
  const int rc = ::connect(socket_.get(), address_.get(), address_.size);
  if (rc == 0) {
    // A connect that succeeds at once takes the same path as a slow one: the poller calls
    // onConnected().
    waitUntil({}, &Impl::onConnected);
    return Step::kWaiting;
  }
  if (errno == EAGAIN && poller_.now() < address_until_) {  // a Unix socket's full backlog
    waitUntil(std::min(address_until_, poller_.now() + kBacklogPause), &Impl::retry);
    return Step::kWaiting;
  }
  if (errno != EINPROGRESS) {
    note(connectError(address_.text(), errno));
    socket_.reset();
    return Step::kOver;
  }
  auto watch = poller_.watch(socket_.get(), EPOLLOUT, [this](std::uint32_t) { onConnected(); });
  if (!watch) {
    note(watch.error());
    socket_.reset();
    return Step::kOver;
  }
  watch_ = *watch;
  waitUntil(address_until_, &Impl::connectTimedOut);
  return Step::kWaiting;
}

void Dialer::Impl::retry() {
  if (waitForSocket() == Step::kOver) advance();
}

void Dialer::Impl::onConnected() {
  int why = 0;
  socklen_t size = sizeof why;
  if (::getsockopt(socket_.get(), SOL_SOCKET, SO_ERROR, &why, &size) != 0) why = errno;
  if (why == 0 && isItself(socket_.get())) why = ECONNREFUSED;
  if (why == 0) {
    Fd connected = std::move(socket_);
    stopWaiting();
    const Done done = std::move(done_);
    done(std::move(connected), target());
    return;
  }
  note(connectError(address_.text(), why));
  advance();
}

void Dialer::Impl::connectTimedOut() {
  note(connectError(address_.text(), ETIMEDOUT));
  advance();
}

void Dialer::Impl::waitUntil(Clock::time_point when, void (Impl::*then)()) {
  poller_.forgetTimer(timer_);
  timer_ = poller_.at(when, [this, then] { (this->*then)(); });
}

void Dialer::Impl::stopWaiting() {
  poller_.forget(std::exchange(watch_, 0));
  poller_.forgetTimer(std::exchange(timer_, 0));
  lookup_.reset();
  socket_.reset();
}

void Dialer::Impl::note(Error why) {
  const std::string named = target() + ": ";  // the detail may begin with this prefix already
  const std::string_view detail = why.detail;
  failures_.push_back(fmt::format("{}{}: {}{}{}{}", named, why.operation,
                                  detail.substr(detail.starts_with(named) ? named.size() : 0),
                                  why.cause.empty() ? "" : " (", why.cause,
                                  why.cause.empty() ? "" : ")"));
  last_ = std::move(why);
}

// Reports a single failure as it is. Several failures become one error with all their texts, and
// with the remedy of the last one.
void Dialer::Impl::report() {
  report_timer_ = 0;
  Error error = last_ ? std::move(*last_)
                      : Error{.operation = "connect", .detail = "there is no address to try"};
  if (failures_.size() > 1) {
    error.operation = "connect";
    error.detail = fmt::format("{}", fmt::join(failures_, "; "));
    error.cause.clear();  // the detail has the cause of each target
  }
  if (targets_.size() == 1) error.peer = targets_[0];
  const Done done = std::move(done_);
  done(std::move(error), {});
}

Dialer::Dialer(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Dialer::~Dialer() = default;

std::unique_ptr<Dialer> Dialer::start(std::vector<std::string> targets, Clock::time_point until,
                                      Poller& poller, Done done) {
  auto impl = std::make_unique<Impl>(std::move(targets), until, poller, std::move(done));
  impl->advance();
  return std::unique_ptr<Dialer>(new Dialer(std::move(impl)));
}

Result<Fd> dial(const std::string& target, Clock::time_point until,
                const std::function<bool()>& goes_on) {
  VIADUCT_TRY(const auto poller, Poller::open());
  std::optional<Result<Fd>> dialed;
  const auto dialer =
      Dialer::start({target}, until, *poller,
                    [&](Result<Fd> socket, const std::string&) { dialed = std::move(socket); });
  while (!dialed) {
    if (goes_on && !goes_on())
      return Error{.code = Code::kCancelled, .operation = "connect", .detail = "asked to stop"};
    Poller::Events events;
    const int count = poller->block(events, Clock::now() + kLook);
    poller->handle(events, count, poller->now());
  }
  return *std::move(dialed);
}

}  // namespace viaduct::base
