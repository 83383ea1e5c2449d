// Tests the server with callers that keep to HTTP, and with callers that do not.
#include "base/net/http_server.h"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <optional>
#include <string>
#include <vector>

#include "base/manual_poller_testing.h"
#include "base/random.h"

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;

class HttpServerTest : public ::testing::Test {
 protected:
  void serve(const HttpServer::Limits& limits = {}) {
    server_.emplace(manual_.poller(), limits, [this](HttpServer::Id id, std::string_view path) {
      asked_.emplace_back(path);
      if (path == "/later") {
        later_ = id;
        return;
      }
      server_->reply(id, {.body = path == "/long" ? std::string(kLong, 'x') : "text\n"});
    });
  }
  // Opens a connection, and returns the caller's end.
  Fd call() {
    std::array<int, 2> ends{};
    EXPECT_EQ(::socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, ends.data()), 0);
    server_->accept(Fd(ends[1]));
    return Fd(ends[0]);
  }
  static void say(const Fd& caller, std::string_view bytes) {
    ASSERT_EQ(::send(caller.get(), bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }
  // Reads until the server closes its side.
  std::string hear(const Fd& caller) {
    std::string out;
    std::array<char, 4096> piece;
    ssize_t got = -1;
    EXPECT_TRUE(manual_.run([&] {
      while ((got = ::recv(caller.get(), piece.data(), piece.size(), 0)) > 0)
        out.append(piece.data(), static_cast<std::size_t>(got));
      return got == 0 || errno != EAGAIN;
    }));
    return out;
  }
  std::string answerTo(std::string_view bytes) {
    const Fd caller = call();
    say(caller, bytes);
    return hear(caller);
  }
  bool isClosed(const Fd& caller) {
    char byte = 0;
    const auto got = ::recv(caller.get(), &byte, 1, 0);
    return got == 0 || (got < 0 && errno != EAGAIN);
  }

  static constexpr std::size_t kLong = std::size_t{4} << 20U;
  ManualPoller manual_;
  std::optional<HttpServer> server_;
  std::vector<std::string> asked_;
  HttpServer::Id later_ = 0;
};

TEST_F(HttpServerTest, AnswersAGetAndEndsTheConnection) {
  serve();
  EXPECT_EQ(answerTo("GET /metrics?x=1 HTTP/1.1\r\nHost: a\r\n\r\n"),
            "HTTP/1.1 200 OK\r\nContent-Type: text/plain; charset=utf-8\r\nContent-Length: 5\r\n"
            "Connection: close\r\n\r\ntext\n");
  EXPECT_EQ(asked_, std::vector<std::string>{"/metrics"});
  EXPECT_TRUE(manual_.run([&] { return server_->connections() == 0; }));
}

TEST_F(HttpServerTest, AnswersAHeadWithoutTheBody) {
  serve();
  const std::string answer = answerTo("HEAD / HTTP/1.0\r\n\r\n");
  EXPECT_NE(answer.find("Content-Length: 5\r\n"), std::string::npos);
  EXPECT_TRUE(answer.ends_with("\r\n\r\n"));
}

TEST_F(HttpServerTest, RefusesOtherMethodsAndSaysWhichItTakes) {
  serve();
  const std::string answer = answerTo("POST / HTTP/1.1\r\nContent-Length: 3\r\n\r\nabc");
  EXPECT_TRUE(answer.starts_with("HTTP/1.1 405 ")) << answer;
  EXPECT_NE(answer.find("\r\nAllow: GET, HEAD\r\n"), std::string::npos);
  EXPECT_TRUE(asked_.empty());
}

TEST_F(HttpServerTest, RefusesInputThatIsNoRequest) {
  serve();
  for (const char* bytes :
       {"\r\n\r\n", "GET\r\n\r\n", "GET /\r\n\r\n", "GET / HTTP/2.0\r\n\r\n",
        "PRI * HTTP/2.0\r\n\r\n", "GET metrics HTTP/1.1\r\n\r\n", "GET / x HTTP/1.1\r\n\r\n",
        "G@T / HTTP/1.1\r\n\r\n", "GET / HTTP/1.1\r\nno header\r\n\r\n",
        "GET / HTTP/1.1\r\n folded: x\r\n\r\n", "GET / HTTP/1.1\r\na: \x01\r\n\r\n",
        "\x16\x03\x01\x02\x01\n\n"})
    EXPECT_TRUE(answerTo(bytes).starts_with("HTTP/1.1 400 ")) << bytes;
  EXPECT_TRUE(asked_.empty());
}

TEST_F(HttpServerTest, RefusesAHeadThatIsTooLong) {
  serve({.head = 1000});
  EXPECT_TRUE(answerTo("GET /" + std::string(2000, 'x')).starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(answerTo("GET / HTTP/1.1\r\na: " + std::string(2000, 'x') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 431 "));
  EXPECT_TRUE(answerTo("GET / HTTP/1.1\r\na: " + std::string(900, 'x') + "\r\n\r\n")
                  .starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, TakesARequestInPiecesAndFromACallerThatHasEndedItsSide) {
  serve();
  const Fd caller = call();
  for (const char c : std::string_view("GET / HTTP/1.1\r\nHost: a\r\n\r\n")) {
    say(caller, std::string_view(&c, 1));
    manual_.pollOnce();
  }
  ::shutdown(caller.get(), SHUT_WR);
  EXPECT_TRUE(hear(caller).starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, ClosesWhereACallerEndsBeforeItsRequestDoes) {
  serve();
  const Fd caller = call();
  say(caller, "GET / HT");
  ::shutdown(caller.get(), SHUT_WR);
  EXPECT_EQ(hear(caller), "");
  EXPECT_EQ(server_->connections(), 0U);
}

TEST_F(HttpServerTest, ClosesAConnectionThatSendsSlowly) {
  serve({.time = 20ms});
  const Fd caller = call();
  EXPECT_TRUE(manual_.run([&] {
    static_cast<void>(::send(caller.get(), "x", 1, MSG_NOSIGNAL));
    return server_->connections() == 0;
  }));
  // The kernel may deliver the end of the connection a little later.
  EXPECT_TRUE(manual_.run([&] { return isClosed(caller); }));
}

TEST_F(HttpServerTest, ClosesAConnectionThatReadsSlowly) {
  serve({.time = 20ms});
  const Fd caller = call();
  say(caller, "GET /long HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(manual_.run([&] { return server_->connections() == 0; }));
}

TEST_F(HttpServerTest, SendsALongTextToACallerThatTakesItsTime) {
  serve();
  EXPECT_EQ(answerTo("GET /long HTTP/1.1\r\n\r\n").size(),
            answerTo("HEAD /long HTTP/1.1\r\n\r\n").size() + kLong);
}

TEST_F(HttpServerTest, KeepsFewConnectionsAndEndsTheOldestForTheNext) {
  serve({.connections = 3});
  std::vector<Fd> callers;
  for (int i = 0; i < 10; ++i) callers.push_back(call());
  EXPECT_EQ(server_->connections(), 3U);
  for (std::size_t i = 0; i < callers.size(); ++i) EXPECT_EQ(isClosed(callers[i]), i < 7) << i;
  say(callers.back(), "GET / HTTP/1.1\r\n\r\n");
  EXPECT_TRUE(hear(callers.back()).starts_with("HTTP/1.1 200 "));
}

TEST_F(HttpServerTest, WaitsForAnAnswerThatIsMadeLater) {
  serve();
  const Fd caller = call();
  say(caller, "GET /later HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(manual_.run([&] { return later_ != 0; }));
  server_->reply(later_, {.body = "late\n"});
  EXPECT_TRUE(hear(caller).ends_with("late\n"));
}

TEST_F(HttpServerTest, ForgetsACallerThatGoesWhileItsAnswerIsMade) {
  serve();
  Fd caller = call();
  say(caller, "GET /later HTTP/1.1\r\n\r\n");
  ASSERT_TRUE(manual_.run([&] { return later_ != 0; }));
  caller.reset();
  EXPECT_TRUE(manual_.run([&] { return server_->connections() == 0; }));
  server_->reply(later_, {.body = "late\n"});
}

TEST_F(HttpServerTest, OutlivesGarbage) {
  serve();
  Random dice(7);
  for (int round = 0; round < 200; ++round) {
    std::string bytes;
    for (std::uint64_t i = dice.below(3000); i > 0; --i)
      bytes += static_cast<char>(dice.chance(0.1) ? '\n' : dice.below(256));
    const Fd caller = call();
    say(caller, bytes);
    manual_.settle();
  }
  EXPECT_TRUE(answerTo("GET / HTTP/1.1\r\n\r\n").starts_with("HTTP/1.1 200 "));
}

}  // namespace
}  // namespace viaduct::base
