// Tests which process serves a meeting place when all members are given the same address.
#include "meet/groups/serve.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <string>

#include "base/net/address.h"
#include "base/net/listener.h"
#include "support/free_port.h"

namespace viaduct::meet {
namespace {

std::string anyFreePort() { return ":" + std::to_string(testing::freePort()); }

TEST(ServeIfHere, AtAnAddressOfThisHost) {
  const auto server = serveIfHere({.where = testing::freeAddress()});
  ASSERT_TRUE(server) << server.error().text();
  EXPECT_NE(*server, nullptr);
}

TEST(ServeIfHere, NotAtAnotherHostsAddress) {
  // An address for documentation, which no host has.
  const auto server = serveIfHere({.where = "203.0.113.1:7000"});
  ASSERT_TRUE(server) << server.error().text();
  EXPECT_EQ(*server, nullptr);
}

TEST(ServeIfHere, NotWhereAnotherProcessListens) {
  const std::string where = testing::freeAddress();
  const auto first = serveIfHere({.where = where});
  ASSERT_TRUE(first && *first);
  const auto second = serveIfHere({.where = where});
  ASSERT_TRUE(second) << second.error().text();
  EXPECT_EQ(*second, nullptr);
}

TEST(ServeIfHere, AServerThatCannotStartIsAnError) {
  const auto open = serveIfHere({.where = "0.0.0.0" + anyFreePort()});
  ASSERT_FALSE(open);
  EXPECT_EQ(open.error().code, Code::kDenied);
  EXPECT_NE(open.error().text().find("--secret"), std::string::npos) << open.error().text();
}

// Other hosts may resolve the name to another address than this host: Debian maps it to 127.0.1.1
// here.
TEST(ServeIfHere, ByTheHostsOwnNameOnAllInterfaces) {
  std::array<char, 256> name{};
  ::gethostname(name.data(), name.size() - 1);
  const std::string where = name.data() + anyFreePort();
  const auto known = base::resolve(*base::parseHostPort(where));
  if (!known) GTEST_SKIP() << "skipped: this host's name does not resolve";
  const auto server = serveIfHere({.where = where, .token = "swordfish"});
  ASSERT_TRUE(server && *server);
  const auto numeric = base::parseHostPort("127.0.0.1" + where.substr(where.rfind(':')));
  const auto loopback = base::listenAt(base::resolve(*numeric)->front());
  ASSERT_FALSE(loopback) << "the wildcard has that port";
}

// The name does not resolve yet and may be another host's. serveIfHere() then returns null instead
// of asking for a token.
TEST(ServeIfHere, NotByAnUnresolvedNameWithoutAToken) {
  const auto server = serveIfHere({.where = "nobody.invalid" + anyFreePort()});
  ASSERT_TRUE(server) << server.error().text();
  EXPECT_EQ(*server, nullptr);
}

}  // namespace
}  // namespace viaduct::meet
