#include "base/net/listener.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <deque>
#include <fstream>
#include <list>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "base/manual_poller_testing.h"
#include "base/net/address.h"
#include "support/free_port.h"
#include "support/shortage.h"

namespace viaduct::base {
namespace {

class ListenerTest : public ::testing::Test {
 protected:
  Result<std::unique_ptr<Listener>> open(const std::vector<std::string>& listen,
                                         std::string unix_name = {}) {
    return Listener::open(listen, std::move(unix_name), manual_.poller(),
                          [this](Fd socket, Unproven::Place place) {
                            accepted_.push_back(std::move(socket));
                            if (!keeps_places_) return;
                            places_.push_back(std::move(place));
                            places_.back().watch([] { return false; },
                                                 [this, at = std::prev(places_.end())] {
                                                   places_.erase(at);
                                                   accepted_.pop_front();
                                                 });
                          });
  }
  Fd call(const std::string& host_port) {
    const auto address = resolve(*parseHostPort(host_port))->front();
    Fd socket(::socket(address.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(socket.get(), address.get(), address.size), 0) << host_port;
    return socket;
  }
  bool hasV6() { return static_cast<bool>(open({"[::1]:0"})); }

  ManualPoller manual_;
  std::deque<Fd> accepted_;
  bool keeps_places_ = false;  // true: no connection is ever authenticated
  std::list<Unproven::Place> places_;
};

TEST_F(ListenerTest, AcceptsOverIPv4WithTheOptionsOfASession) {
  auto listener = open({"127.0.0.1:0"});
  ASSERT_TRUE(listener) << listener.error().text();
  ASSERT_EQ((*listener)->addresses().size(), 1U);
  EXPECT_NE(parseHostPort((*listener)->addresses()[0])->port, 0);
  const Fd caller = call((*listener)->addresses()[0]);
  ASSERT_TRUE(manual_.run([&] { return accepted_.size() == 1; }));
  const int fd = accepted_[0].get();
  int value = 0;
  socklen_t size = sizeof value;
  ASSERT_EQ(::getsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &value, &size), 0);
  EXPECT_NE(value, 0);
  ASSERT_EQ(::getsockopt(fd, SOL_SOCKET, SO_KEEPALIVE, &value, &size), 0);
  EXPECT_NE(value, 0);
  EXPECT_NE(::fcntl(fd, F_GETFD) & FD_CLOEXEC, 0);
  EXPECT_NE(::fcntl(fd, F_GETFL) & O_NONBLOCK, 0);
}

TEST_F(ListenerTest, AcceptsOverIPv6) {
  if (!hasV6()) GTEST_SKIP() << "skipped: no IPv6 on the loopback interface";
  auto listener = open({"[::1]:0"});
  ASSERT_TRUE(listener) << listener.error().text();
  EXPECT_TRUE((*listener)->addresses()[0].starts_with("[::1]:"));
  const Fd caller = call((*listener)->addresses()[0]);
  EXPECT_TRUE(manual_.run([&] { return accepted_.size() == 1; }));
}

TEST_F(ListenerTest, AcceptsOverAnAbstractUnixSocketAlone) {
  const std::string name = fmt::format("viaduct-listener-test-{}", ::getpid());
  auto listener = open({}, name);
  ASSERT_TRUE(listener) << listener.error().text();
  EXPECT_TRUE((*listener)->addresses().empty());
  EXPECT_EQ((*listener)->unixName(), name);
  const auto address = *unixAddress(name);
  const Fd caller = *streamSocket(AF_UNIX);
  ASSERT_EQ(::connect(caller.get(), address.get(), address.size), 0);
  ASSERT_TRUE(manual_.run([&] { return accepted_.size() == 1; }));
  EXPECT_EQ(localAddress(accepted_[0].get())->family(), AF_UNIX);
}

TEST_F(ListenerTest, AWildcardIsAnnouncedAsReachableAddresses) {
  auto listener = open({"0.0.0.0:0", "*:0"});
  ASSERT_TRUE(listener) << listener.error().text();
  const auto addresses = (*listener)->addresses();
  ASSERT_FALSE(addresses.empty());
  std::vector<Fd> callers;
  for (const std::string& address : addresses) {
    EXPECT_EQ(address.find("0.0.0.0:"), std::string::npos);
    callers.push_back(call(address));
  }
  EXPECT_TRUE(manual_.run([&] { return accepted_.size() == addresses.size(); }));
}

TEST_F(ListenerTest, APortInUseIsNamedWithWhatToDo) {
  const std::string taken = testing::freeAddress();
  auto first = open({taken});
  ASSERT_TRUE(first);
  const auto second = open({taken});
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Code::kBusy);
  EXPECT_EQ(second.error().os_errno, EADDRINUSE);
  EXPECT_NE(second.error().detail.find(taken), std::string::npos);
  EXPECT_NE(second.error().remedy.find("port 0"), std::string::npos);
  first = open({});  // closed: the port is free at once
  EXPECT_TRUE(open({taken}));
}

TEST_F(ListenerTest, ANameInUseAndAnAddressOfAnotherHostAreRefused) {
  auto first = open({}, "viaduct-twice");
  ASSERT_TRUE(first);
  const auto second = open({}, "viaduct-twice");
  ASSERT_FALSE(second);
  EXPECT_NE(second.error().detail.find("unix:@viaduct-twice"), std::string::npos);
  const auto foreign = open({"192.0.2.1:0"});  // TEST-NET: no interface has it
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::kInvalid);
  EXPECT_FALSE(open({"127.0.0.1"}));
}

// Thousands of peers may connect at the same instant. A peer that finds the backlog full tries
// again only after a second.
TEST_F(ListenerTest, TheBacklogIsAsLongAsTheKernelAllows) {
  const auto fd = listenAt(resolve({.host = "127.0.0.1"})->front());
  ASSERT_TRUE(fd) << fd.error().text();
  tcp_info info{};
  socklen_t size = sizeof info;
  ASSERT_EQ(::getsockopt(fd->get(), IPPROTO_TCP, TCP_INFO, &info, &size), 0);
  std::uint32_t most = 0;
  std::ifstream("/proc/sys/net/core/somaxconn") >> most;
  EXPECT_EQ(info.tcpi_sacked, most) << "of a listening socket, how many may wait";
}

// Without free file descriptors, connecting peers wait in the backlog. The listener neither spins
// nor dies, and accepts the connections once descriptors are free.
TEST_F(ListenerTest, SurvivesTheLimitOfOpenFiles) {
  auto listener = open({"127.0.0.1:0"});
  ASSERT_TRUE(listener);
  std::vector<Fd> callers;
  for (int i = 0; i < 3; ++i) callers.push_back(call((*listener)->addresses()[0]));
  ::testing::internal::CaptureStderr();
  std::optional<testing::Shortage> shortage(std::in_place);
  int turns = 0;
  const auto end = Clock::now() + std::chrono::milliseconds(350);
  for (; Clock::now() < end; ++turns) manual_.pollOnce(std::chrono::milliseconds(350));
  shortage.reset();
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(accepted_.empty());
  EXPECT_LT(turns, 50);
  EXPECT_NE(log.find("ulimit"), std::string::npos) << log;
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  EXPECT_TRUE(manual_.run([&] { return accepted_.size() == 3; }));
}

// At the limit of unauthenticated connections, the listener drops one and accepts a waiting one. It
// drops the oldest connection of the source with the most connections, once its time is up. In this
// test all connections have one source. The listener logs the drops once.
TEST_F(ListenerTest, DropsTheOldestStrangerForTheNextCaller) {
  keeps_places_ = true;
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  const rlimit few{.rlim_cur = std::min<rlim_t>(before.rlim_cur, 512), .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &few), 0);
  auto listener = open({"127.0.0.1:0"});
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  ASSERT_TRUE(listener);
  const std::size_t room = (*listener)->unproven().room();
  ASSERT_LE(room, 64U);
  ::testing::internal::CaptureStderr();
  std::vector<Fd> callers;
  for (std::size_t i = 0; i < 2 * room; ++i) callers.push_back(call((*listener)->addresses()[0]));
  const auto isHeld = [](const Fd& caller) {
    char byte = 0;
    return ::recv(caller.get(), &byte, 1, MSG_DONTWAIT) < 0 && errno == EAGAIN;
  };
  EXPECT_TRUE(manual_.run([&] { return !isHeld(callers[room - 1]); }));
  EXPECT_EQ((*listener)->unproven().count(), room);
  for (std::size_t i = 0; i < 2 * room; ++i) EXPECT_EQ(isHeld(callers[i]), i >= room) << i;
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  places_.clear();
}

// Without free file descriptors, the oldest unauthenticated connection is closed once its time is
// up, and the waiting one is accepted.
TEST_F(ListenerTest, WithoutDescriptorsDropsAStrangerForTheNextCaller) {
  keeps_places_ = true;
  auto listener = open({"127.0.0.1:0"});
  ASSERT_TRUE(listener);
  std::vector<Fd> callers;
  for (int i = 0; i < 3; ++i) callers.push_back(call((*listener)->addresses()[0]));
  ASSERT_TRUE(manual_.run([&] { return accepted_.size() == 3; }));
  const Fd late = call((*listener)->addresses()[0]);
  const std::uint16_t port = localAddress(late.get())->port();
  rlimit before{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &before), 0);
  ::testing::internal::CaptureStderr();
  // Sets the limit so that the only usable descriptor is the one that a dropped connection frees.
  const rlimit one{.rlim_cur = static_cast<rlim_t>(accepted_.front().get()) + 1,
                   .rlim_max = before.rlim_max};
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &one), 0);
  const bool came =
      manual_.run([&] { return remoteAddress(accepted_.back().get())->port() == port; });
  ASSERT_EQ(::setrlimit(RLIMIT_NOFILE, &before), 0);
  const std::string log = ::testing::internal::GetCapturedStderr();
  EXPECT_TRUE(came);
  EXPECT_EQ(accepted_.size(), 3U);
  EXPECT_EQ(std::count(log.begin(), log.end(), '\n'), 1) << log;
  places_.clear();
}

TEST(ListenEverywhere, TakesConnectionsOfBothFamiliesAtOnePort) {
  const auto listening = listenEverywhere(0);
  ASSERT_TRUE(listening) << listening.error().text();
  const auto bound = localAddress(listening->get());
  const auto again = listenEverywhere(bound->port());
  ASSERT_FALSE(again);
  EXPECT_EQ(again.error().os_errno, EADDRINUSE);
  const bool has_v6 = bound->family() == AF_INET6;
  for (const char* host : {"127.0.0.1", "::1"}) {
    if (!has_v6 && std::string_view(host) == "::1") continue;
    const auto at = resolve({.host = host})->front().withPort(bound->port());
    const Fd caller(::socket(at.family(), SOCK_STREAM | SOCK_CLOEXEC, 0));
    EXPECT_EQ(::connect(caller.get(), at.get(), at.size), 0) << host;
  }
}

}  // namespace
}  // namespace viaduct::base
