#include "base/net/dialer.h"

#include <gtest/gtest.h>
#include <sys/socket.h>

#include <cerrno>
#include <optional>
#include <string>
#include <vector>

#include "base/manual_poller_testing.h"
#include "base/net/listener.h"

namespace viaduct::base {
namespace {

using namespace std::chrono_literals;

class DialerTest : public ::testing::Test {
 protected:
  void dial(std::vector<std::string> targets, std::chrono::milliseconds within = 5s) {
    dialer_ = Dialer::start(std::move(targets), manual_.poller().now() + within, manual_.poller(),
                            [this](Result<Fd> socket, std::string target) {
                              EXPECT_FALSE(result_.has_value()) << "done twice";
                              result_.emplace(std::move(socket));
                              target_ = std::move(target);
                            });
  }
  // Dials and waits for the result.
  Result<Fd>& reach(std::vector<std::string> targets, std::chrono::milliseconds within = 5s) {
    result_.reset();
    dial(std::move(targets), within);
    EXPECT_FALSE(result_.has_value()) << "done inside start()";
    EXPECT_TRUE(manual_.run([&] { return result_.has_value(); }));
    return *result_;
  }
  std::unique_ptr<Listener> listen(const std::vector<std::string>& at, std::string name = {}) {
    auto listener =
        Listener::open(at, std::move(name), manual_.poller(),
                       [this](Fd fd, Unproven::Place) { accepted_.push_back(std::move(fd)); });
    EXPECT_TRUE(listener) << listener.error().text();
    return std::move(*listener);
  }
  // A loopback port without a listener. The port stays bound, so that nobody else listens there.
  std::string deadAddress() {
    dead_ = *streamSocket(AF_INET);
    const auto at = resolve({.host = "127.0.0.1"})->front();
    EXPECT_EQ(::bind(dead_.get(), at.get(), at.size), 0);
    return localAddress(dead_.get())->text();
  }

  MovableClock clock_;
  ManualPoller manual_{&clock_};
  std::unique_ptr<Dialer> dialer_;
  std::optional<Result<Fd>> result_;
  std::string target_;
  std::vector<Fd> accepted_;
  Fd dead_;
};

TEST_F(DialerTest, ReachesATcpListener) {
  const auto listener = listen({"127.0.0.1:0"});
  const std::string address = listener->addresses()[0];
  ASSERT_TRUE(reach({address})) << result_->error().text();
  EXPECT_EQ(target_, address);
  EXPECT_EQ(remoteAddress((*result_)->get())->text(), address);
  EXPECT_TRUE(manual_.run([&] { return accepted_.size() == 1; }));
}

TEST_F(DialerTest, ReachesAUnixListener) {
  const auto listener = listen({}, "viaduct-dialer-test");
  ASSERT_TRUE(reach({"unix:@viaduct-dialer-test"})) << result_->error().text();
  EXPECT_EQ(target_, "unix:@viaduct-dialer-test");
}

TEST_F(DialerTest, LooksUpNames) {
  const auto listener = listen({"127.0.0.1:0"});
  const auto port = parseHostPort(listener->addresses()[0])->port;
  ASSERT_TRUE(reach({"localhost:" + std::to_string(port)})) << result_->error().text();
}

TEST_F(DialerTest, GoesOnToTheNextTarget) {
  const auto listener = listen({"127.0.0.1:0"});
  const std::string address = listener->addresses()[0];
  ASSERT_TRUE(reach({"unix:@viaduct-nobody", "bad address", deadAddress(), address}));
  EXPECT_EQ(target_, address);
}

TEST_F(DialerTest, TheErrorSaysThatNobodyListens) {
  const std::string dead = deadAddress();
  ASSERT_FALSE(reach({dead}));
  const Error& why = result_->error();
  EXPECT_EQ(why.code, Code::kPeerLost);
  EXPECT_EQ(why.os_errno, ECONNREFUSED);
  EXPECT_EQ(why.peer, dead);
  EXPECT_NE(why.cause.find("no process listens"), std::string::npos);
  EXPECT_FALSE(why.remedy.empty());
}

TEST_F(DialerTest, TheErrorTellsOfEachTargetWhichStepFailed) {
  const std::string dead = deadAddress();
  // No resolver sends a query for this name, because its label is longer than DNS allows.
  const std::string name = std::string(70, 'n') + ":1";
  ASSERT_FALSE(reach({"unix:@viaduct-nobody", "10.0.0.1:80x", name, dead}));
  const std::string text = result_->error().text();
  EXPECT_NE(text.find("unix:@viaduct-nobody: connect"), std::string::npos) << text;
  EXPECT_NE(text.find("'x' at position 12"), std::string::npos) << text;
  EXPECT_NE(text.find(name + ": resolve"), std::string::npos) << text;
  EXPECT_NE(text.find(dead + ": connect"), std::string::npos) << text;
}

TEST_F(DialerTest, AMalformedAddressIsRefusedAtOnce) {
  ASSERT_FALSE(reach({"10.0.0.1:80x"}));
  EXPECT_EQ(result_->error().code, Code::kInvalid);
  ASSERT_FALSE(reach({"10.0.0.1:0"}));
  EXPECT_EQ(result_->error().code, Code::kInvalid);
  ASSERT_FALSE(reach({}));
}

// A TCP listener with a full backlog does not answer, as if a firewall dropped the packets.
TEST_F(DialerTest, SilenceIsATimeoutAtTheDeadline) {
  const Fd silent = *streamSocket(AF_INET);
  const auto at = resolve({.host = "127.0.0.1"})->front();
  ASSERT_EQ(::bind(silent.get(), at.get(), at.size), 0);
  ASSERT_EQ(::listen(silent.get(), 0), 0);
  const std::string address = localAddress(silent.get())->text();
  const auto there = *localAddress(silent.get());
  const Fd first = *streamSocket(AF_INET), second = *streamSocket(AF_INET);
  ::connect(first.get(), there.get(), there.size);
  ::connect(second.get(), there.get(), there.size);
  dial({address}, 1h);
  for (int minutes = 0; minutes < 59; ++minutes) {
    ASSERT_FALSE(result_) << result_->error().text();
    clock_.advance(1min);
    manual_.pollOnce();
  }
  clock_.advance(1min);
  ASSERT_TRUE(manual_.run([&] { return result_.has_value(); }));
  ASSERT_FALSE(*result_);
  EXPECT_EQ(result_->error().code, Code::kTimeout);
  EXPECT_NE(result_->error().cause.find("firewall"), std::string::npos);
  // If there is a second target, the silent target gets only its share of the time.
  const auto listener = listen({"127.0.0.1:0"});
  result_.reset();
  dial({address, listener->addresses()[0]}, 2h);
  clock_.advance(61min);
  ASSERT_TRUE(manual_.run([&] { return result_.has_value(); }));
  EXPECT_TRUE(*result_) << result_->error().text();
}

TEST_F(DialerTest, CanBeDestroyedAtAnyTimeAndInsideDone) {
  const auto listener = listen({"127.0.0.1:0"});
  dial({listener->addresses()[0]});
  dialer_.reset();
  dial({"localhost:1"});  // destroyed while the thread looks the name up
  dialer_.reset();
  dial({});
  dialer_.reset();
  manual_.settle();
  EXPECT_FALSE(result_.has_value());
  bool called = false;
  for (const std::string& target : {listener->addresses()[0], deadAddress()}) {
    called = false;
    dialer_ = Dialer::start({target}, Clock::now() + 5s, manual_.poller(),
                            [&](Result<Fd>, const std::string&) {
                              called = true;
                              dialer_.reset();
                            });
    EXPECT_TRUE(manual_.run([&] { return called; }));
  }
}

TEST(ParseHostPort, ReadsNamesAndNumericAddresses) {
  EXPECT_EQ(parseHostPort("a-b_c.example:80")->host, "a-b_c.example");
  EXPECT_EQ(parseHostPort("127.0.0.1:65535")->port, 65535);
  EXPECT_EQ(parseHostPort("[::1]:7")->host, "::1");
  EXPECT_TRUE(parseHostPort("[::1]:7")->v6);
  EXPECT_EQ(parseHostPort("[fe80::1%eth0]:7")->host, "fe80::1%eth0");
  EXPECT_EQ(parseHostPort("*:0")->host, "*");
}

TEST(HostPortText, HasBracketsWhereTheHostHasColons) {
  EXPECT_EQ(hostPortText("a.example", 80), "a.example:80");
  EXPECT_EQ(hostPortText("10.0.0.1", 0), "10.0.0.1:0");
  EXPECT_EQ(hostPortText("fe80::1%eth0", 7), "[fe80::1%eth0]:7");
  EXPECT_EQ(hostPortText("[::1]", 65535), "[::1]:65535");
}

TEST(ParseHostPort, NamesTheCharacterThatIsWrong) {
  const std::vector<std::pair<std::string, std::string>> bad{
      {"", "empty"},
      {"host", "':' and a port are missing"},
      {":80", "the host before ':'"},
      {"host:", "the port after"},
      {"host:8o", "'o' at position 7"},
      {"host:-1", "'-' at position 6"},
      {"host:65536", "above 65535"},
      {"host:99999999999999999999", "above 65535"},
      {"ho st:80", "' ' at position 3"},
      {"ho\nst:80", "byte 0x0a at position 3"},
      {std::string("h\0t:80", 6), "byte 0x00 at position 2"},
      {"h*:80", "'*' at position 2"},
      {"fe80::1:80", "':' at position 5 is one too many"},
      {"[::1", "']' is missing"},
      {"[::1]", "have to follow ']'"},
      {"[::1]80", "have to follow ']'"},
      {"[::g]:80", "'g' at position 4"},
      {"[1::2::3]:80", "not an IPv6 address"},
      {"[127.0.0.1]:80", "not an IPv6 address"},
      {std::string(300, 'a') + ":80", "too long"}};
  for (const auto& [text, what] : bad) {
    const auto parsed = parseHostPort(text);
    ASSERT_FALSE(parsed) << text;
    EXPECT_EQ(parsed.error().code, Code::kInvalid);
    EXPECT_NE(parsed.error().detail.find(what), std::string::npos) << parsed.error().text();
  }
}

TEST(DialInThisThread, ReachesAListener) {
  const Fd listening = *listenEverywhere(0);
  const auto port = localAddress(listening.get())->port();
  const auto socket = dial(hostPortText("localhost", port), Clock::now() + 5s);
  ASSERT_TRUE(socket) << socket.error().text();
  EXPECT_EQ(remoteAddress(socket->get())->port(), port);
}

TEST(DialInThisThread, SaysWhyItDoesNot) {
  const Fd bound = *streamSocket(AF_INET);  // no listener, and nobody else takes its port
  const auto loopback = resolve({.host = "127.0.0.1"})->front();
  ASSERT_EQ(::bind(bound.get(), loopback.get(), loopback.size), 0);
  const auto socket = dial(localAddress(bound.get())->text(), Clock::now() + 5s);
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().os_errno, ECONNREFUSED);
}

TEST(DialInThisThread, EndsIfItIsAskedTo) {
  const Fd listening = *listenEverywhere(0);
  const auto address = hostPortText("127.0.0.1", localAddress(listening.get())->port());
  const auto socket = dial(address, Clock::now() + 5s, [] { return false; });
  ASSERT_FALSE(socket);
  EXPECT_EQ(socket.error().code, Code::kCancelled);
}

}  // namespace
}  // namespace viaduct::base
