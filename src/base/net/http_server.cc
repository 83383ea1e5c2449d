#include "base/net/http_server.h"

#include <fmt/format.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <utility>

#include "base/lists.h"

namespace viaduct::base {
namespace {

std::string_view phraseOf(int status) {
  using Phrase = std::pair<int, std::string_view>;
  static constexpr std::array kPhrases{Phrase{200, "OK"}, Phrase{400, "Bad Request"},
                                       Phrase{404, "Not Found"}, Phrase{405, "Method Not Allowed"},
                                       Phrase{431, "Request Header Fields Too Large"}};
  const Phrase* const known = firstWith(kPhrases, &Phrase::first, status);
  return known == nullptr ? "Internal Server Error" : known->second;
}

std::string headOf(const HttpReply& reply) {
  return fmt::format(
      "HTTP/1.1 {} {}\r\nContent-Type: {}\r\nContent-Length: {}\r\n{}Connection: close\r\n\r\n",
      reply.status, phraseOf(reply.status), reply.type, reply.body.size(),
      reply.status == 405 ? "Allow: GET, HEAD\r\n" : "");
}

// True if the call may be repeated: a signal interrupted it, or no bytes are there yet.
bool again(int why) { return why == EAGAIN || why == EINTR; }

}  // namespace

struct HttpServer::Connection {
  enum class Stage : std::uint8_t { kReading, kAsking, kWriting, kEnding };
  Fd socket;
  Poller::Id watch = 0, timer = 0;
  Stage stage = Stage::kReading;
  bool without_body = false;
  std::string bytes = {};  // of the head, later of the reply
  std::size_t sent = 0;
};

HttpServer::HttpServer(Poller& poller, const Limits& limits, Asked asked)
    : poller_(poller), limits_(limits), asked_(std::move(asked)) {}

HttpServer::~HttpServer() {
  while (!connections_.empty()) close(connections_.begin()->first);
}

void HttpServer::accept(Fd socket) {
  if (connections_.size() >= limits_.connections) close(connections_.begin()->first);
  const Id id = ++last_;
  auto connection = std::make_unique<Connection>();
  auto watch =
      poller_.watch(socket.get(), EPOLLIN, [this, id](std::uint32_t what) { events(id, what); });
  if (!watch) return;  // the client sees a closed connection
  connection->socket = std::move(socket);
  connection->watch = *watch;
  connection->timer = poller_.at(poller_.now() + limits_.time, [this, id] { close(id); });
  connections_.emplace(id, std::move(connection));
}

void HttpServer::close(Id id) {
  const auto found = connections_.find(id);
  poller_.forget(found->second->watch);
  poller_.forgetTimer(found->second->timer);
  connections_.erase(found);
}

void HttpServer::events(Id id, std::uint32_t events) {
  Connection& connection = *connections_.at(id);
  using Stage = Connection::Stage;
  if (connection.stage == Stage::kWriting && (events & EPOLLOUT) != 0) return write(id, connection);
  // A client that hangs up while the server makes the reply gets no reply.
  if ((events & EPOLLIN) == 0 || connection.stage == Stage::kAsking) return close(id);
  if (connection.stage == Stage::kReading) return read(id, connection);
  std::array<char, 4096> rest;
  const auto got = ::recv(connection.socket.get(), rest.data(), rest.size(), 0);
  if (got == 0 || (got < 0 && !again(errno))) close(id);
}

void HttpServer::read(Id id, Connection& connection) {
  std::array<char, 2048> piece;
  const auto got = ::recv(connection.socket.get(), piece.data(), piece.size(), 0);
  if (got <= 0) {
    if (got < 0 && again(errno)) return;
    return close(id);
  }
  connection.bytes.append(piece.data(), static_cast<std::size_t>(got));
  const std::size_t size = headSize(connection.bytes);
  if (size > limits_.head || (size == 0 && connection.bytes.size() > limits_.head))
    return reply(id, {.status = 431, .body = "the request is too long\n"});
  if (size == 0) return;
  const std::string head = connection.bytes.substr(0, size);
  answer(id, connection, head);
}

void HttpServer::answer(Id id, Connection& connection, std::string_view head) {
  connection.stage = Connection::Stage::kAsking;
  const auto request = parseHead(head);
  if (!request) return reply(id, {.status = 400, .body = "this is no HTTP/1.1 request\n"});
  connection.without_body = request->method == "HEAD";
  if (request->method != "GET" && request->method != "HEAD")
    return reply(id, {.status = 405, .body = "only GET and HEAD are answered\n"});
  static_cast<void>(poller_.change(connection.watch, 0));
  asked_(id, request->path);
}

void HttpServer::reply(Id id, const HttpReply& reply) {
  const auto found = connections_.find(id);
  if (found == connections_.end()) return;
  Connection& connection = *found->second;
  connection.bytes = headOf(reply);
  if (!connection.without_body) connection.bytes += reply.body;
  connection.stage = Connection::Stage::kWriting;
  // Sends the first bytes at once, which are mostly all of them.
  write(id, connection);
}

void HttpServer::write(Id id, Connection& connection) {
  while (connection.sent < connection.bytes.size()) {
    const std::string_view rest = std::string_view(connection.bytes).substr(connection.sent);
    const auto sent = ::send(connection.socket.get(), rest.data(), rest.size(), MSG_NOSIGNAL);
    if (sent < 0 && !again(errno)) return close(id);
    if (sent < 0) return static_cast<void>(poller_.change(connection.watch, EPOLLOUT));
    connection.sent += static_cast<std::size_t>(sent);
  }
  // Reads on before the close: a close with unread bytes resets the connection, and the reply might
  // be lost.
  connection.stage = Connection::Stage::kEnding;
  connection.bytes = {};
  ::shutdown(connection.socket.get(), SHUT_WR);
  static_cast<void>(poller_.change(connection.watch, EPOLLIN));
}

}  // namespace viaduct::base
