#include "base/net/survey.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <charconv>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#include "base/fd.h"
#include "base/net/address.h"
#include "base/net/http_request.h"

namespace viaduct::base {
namespace {

// Parses a line of /proc/net/unix: address, references, protocol, flags, type, state, inode, name.
std::optional<std::string> listenerIn(const std::string& line) {
  constexpr unsigned kListens = 1U << 16U;  // __SO_ACCEPTCON
  std::istringstream in(line);
  std::string skipped, flags, name;
  in >> skipped >> skipped >> skipped >> flags >> skipped >> skipped >> skipped;
  in.ignore(1);
  std::getline(in, name);
  unsigned bits = 0;
  const auto read = std::from_chars(flags.data(), flags.data() + flags.size(), bits, 16);
  if (read.ec != std::errc{} || (bits & kListens) == 0 || !name.starts_with('@'))
    return std::nullopt;
  return name.substr(1);
}

bool mayAsk(int socket, bool root_asks_all) {
  ucred other{};
  socklen_t size = sizeof other;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &other, &size) != 0) return false;
  return other.uid == ::geteuid() || (root_asks_all && ::geteuid() == 0);
}

// The body of a complete response with status 200.
std::optional<std::string> bodyOf(std::string_view answer) {
  const std::size_t head = headSize(answer);
  if (head == 0 || !answer.starts_with("HTTP/1.1 200 ")) return std::nullopt;
  return std::string(answer.substr(head));
}

}  // namespace

struct Survey::Question {
  Fd socket;
  Poller::Id watch = 0;
  std::string answer = {};
};

std::vector<std::string> unixServers(std::string_view front) {
  std::vector<std::string> out;
  std::ifstream sockets("/proc/thread-self/net/unix");
  for (std::string line; std::getline(sockets, line);)
    if (auto name = listenerIn(line); name && name->starts_with(front))
      out.push_back(*std::move(name));
  std::sort(out.begin(), out.end());
  return out;
}

Survey::Survey(Poller& poller, const std::vector<std::string>& names, const SurveyOptions& options,
               Done done)
    : poller_(poller), done_(std::move(done)), most_bytes_(options.most_bytes) {
  // Servers of other users do not count towards the limit, because they could use it up.
  for (const std::string& name : names)
    if (questions_.size() < options.most_servers) ask(name, options);
  const auto until = open_ == 0 ? Clock::time_point::min() : poller_.now() + options.time;
  timer_ = poller_.at(until, [this] { finish(); });
}

Survey::~Survey() {
  poller_.forgetTimer(timer_);
  for (const auto& question : questions_) poller_.forget(question->watch);
}

// A server that cannot be asked is skipped.
void Survey::ask(const std::string& name, const SurveyOptions& options) {
  const auto address = unixAddress(name);
  if (!address) return;
  Fd socket(::socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0));
  if (!socket || ::connect(socket.get(), address->get(), address->size) != 0 ||
      !mayAsk(socket.get(), options.root_asks_all))
    return;
  const std::string request =
      fmt::format("GET {} HTTP/1.1\r\nHost: localhost\r\n\r\n", options.path);
  // The send buffer of a new socket has room for the request.
  if (::send(socket.get(), request.data(), request.size(), MSG_NOSIGNAL) !=
      static_cast<ssize_t>(request.size()))
    return;
  auto question = std::make_unique<Question>();
  auto watch = poller_.watch(socket.get(), EPOLLIN,
                             [this, at = question.get()](std::uint32_t) { events(*at); });
  if (!watch) return;
  question->socket = std::move(socket);
  question->watch = *watch;
  questions_.push_back(std::move(question));
  ++open_;
}

void Survey::events(Question& question) {
  std::array<char, 65536> piece;
  const auto got = ::recv(question.socket.get(), piece.data(), piece.size(), 0);
  if (got < 0 && (errno == EAGAIN || errno == EINTR)) return;
  if (got <= 0) return end(question);
  question.answer.append(piece.data(), static_cast<std::size_t>(got));
  if (question.answer.size() <= most_bytes_) return;
  question.answer.clear();
  end(question);
}

void Survey::end(Question& question) {
  poller_.forget(std::exchange(question.watch, 0));
  question.socket.reset();
  if (--open_ > 0) return;
  poller_.forgetTimer(timer_);
  finish();
}

void Survey::finish() {
  timer_ = 0;
  std::vector<std::string> bodies;
  for (const auto& question : questions_) {
    // The response is incomplete while the connection is open.
    const Poller::Id watch = std::exchange(question->watch, 0);
    poller_.forget(watch);
    if (auto body = watch == 0 ? bodyOf(question->answer) : std::nullopt)
      bodies.push_back(*std::move(body));
  }
  done_(std::move(bodies));
}

std::vector<std::string> surveyNow(const std::vector<std::string>& names,
                                   const SurveyOptions& options) {
  auto poller = Poller::open();
  if (!poller) return {};
  std::optional<std::vector<std::string>> out;
  const Survey survey(**poller, names, options,
                      [&](std::vector<std::string> bodies) { out = std::move(bodies); });
  while (!out) {
    Poller::Events events;
    const int count = (*poller)->block(events, (*poller)->nextTimer());
    (*poller)->handle(events, count, (*poller)->now());
  }
  return *std::move(out);
}

}  // namespace viaduct::base
