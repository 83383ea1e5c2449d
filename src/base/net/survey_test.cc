#include "base/net/survey.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <optional>
#include <string>
#include <vector>

#include "base/loop.h"
#include "base/net/address.h"
#include "base/net/http_server.h"
#include "base/net/listener.h"

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;

std::string front() { return fmt::format("viaduct-test-survey-{}-", ::getpid()); }

// A server with its own thread, which answers with its own name.
class Server {
 public:
  explicit Server(std::string name, bool answers = true)
      : name_(std::move(name)), loop_(*Loop::start("test")) {
    const auto held = loop_->hold();
    server_.emplace(loop_->poller(), HttpServer::Limits{},
                    [this, answers](HttpServer::Id id, std::string_view path) {
                      if (answers) server_->reply(id, {.body = name_ + std::string(path)});
                    });
    listener_ = *Listener::open({}, name_, loop_->poller(), [this](Fd socket, const auto&) {
      server_->accept(std::move(socket));
    });
  }
  ~Server() { loop_->stop(); }
  Server(const Server&) = delete;
  Server& operator=(const Server&) = delete;

 private:
  const std::string name_;
  std::unique_ptr<Loop> loop_;
  std::optional<HttpServer> server_;
  std::unique_ptr<Listener> listener_;
};

TEST(Survey, FindsTheServersThatListenByTheFrontOfTheirNames) {
  EXPECT_TRUE(unixServers(front()).empty());
  const Server b(front() + "b"), a(front() + "a"), other("other-" + front());
  EXPECT_EQ(unixServers(front()), (std::vector{front() + "a", front() + "b"}));
}

// A user could take many names that sort first, so servers that cannot be asked must not use up the
// limit.
TEST(Survey, CountsOnlyServersThatItCanAsk) {
  const Server real(front() + "z");
  EXPECT_EQ(surveyNow({front() + "a", front() + "b", front() + "z"}, {.most_servers = 1}).size(),
            1U);
}

TEST(Survey, GivesTheAnswersInTheOrderOfTheNames) {
  const Server a(front() + "a"), b(front() + "b");
  EXPECT_EQ(surveyNow({front() + "a", front() + "b"}, {.path = "/x"}),
            (std::vector{front() + "a/x", front() + "b/x"}));
}

TEST(Survey, DoesWithoutServersThatAreGoneOrSilent) {
  const Server a(front() + "a"), silent(front() + "silent", false);
  EXPECT_EQ(surveyNow({front() + "gone", front() + "silent", front() + "a"}, {.time = 50ms}),
            std::vector{front() + "a/"});
  EXPECT_TRUE(surveyNow({}, {}).empty());
}

TEST(Survey, TakesNoAnswerThatIsTooLong) {
  const Server a(front() + "a"), b(front() + std::string(60, 'b'));
  EXPECT_EQ(surveyNow({front() + "a", front() + std::string(60, 'b')}, {.most_bytes = 170}).size(),
            1U);
}

TEST(Survey, AsksNoMoreServersThanItsLimit) {
  const Server a(front() + "a"), b(front() + "b");
  EXPECT_EQ(surveyNow({front() + "a", front() + "b"}, {.most_servers = 1}).size(), 1U);
}

}  // namespace
}  // namespace viaduct::base
