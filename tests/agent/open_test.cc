// Agent::open() ends within its deadline, and reports what the system refuses.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <viaduct/viaduct.h>

#include <cerrno>
#include <thread>

#include "base/fd.h"
#include "support/own_names.h"
#include "support/shortage.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

// A name server that receives every question and answers none.
base::Fd silentNameServer(const char* address) {
  base::Fd socket(::socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  sockaddr_in at{};
  at.sin_family = AF_INET;
  at.sin_port = htons(53);
  ::inet_pton(AF_INET, address, &at.sin_addr);
  if (::bind(socket.get(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0) socket.reset();
  return socket;
}

TEST(Open, DoesNotWaitForANameServerBeyondItsDeadline) {
  const char* const server = "127.0.0.77";
  const base::Fd silent = silentNameServer(server);
  if (!silent) GTEST_SKIP() << "skipped: port 53 cannot be had";
  std::thread([&] {
    testing::OwnNames names;
    // The resolver alone would wait longer than the test may take.
    if (!names.enter(server, 30)) GTEST_SKIP() << "skipped: no mount namespaces";
    for (const char* backend : {"local", "tcp"}) {
      const auto agent =
          Agent::open({.listen = {"nobody.example:0"}, .backends = {backend}, .deadline = 200ms});
      ASSERT_FALSE(agent);
      EXPECT_EQ(agent.error().code, Code::kTimeout) << agent.error().text();
      EXPECT_NE(agent.error().text().find("nobody.example"), std::string::npos);
      EXPECT_NE(agent.error().text().find("/etc/resolv.conf"), std::string::npos);
    }
    EXPECT_TRUE(Agent::open({.listen = {"localhost:0"}, .deadline = 20s}));
  }).join();
}

TEST(Open, ReportsThatTheProgressThreadDoesNotStart) {
  const Settings settings{.listen = {}, .backends = {"tcp"}};
  {
    const testing::ThreadShortage shortage(0);
    const auto agent = Agent::open(settings);
    ASSERT_FALSE(agent);
    EXPECT_EQ(agent.error().code, Code::kExhausted) << agent.error().text();
    EXPECT_EQ(agent.error().os_errno, EAGAIN);
  }
  EXPECT_TRUE(Agent::open(settings));
}

}  // namespace
}  // namespace viaduct
