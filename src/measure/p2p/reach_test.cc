#include "measure/p2p/reach.h"

#include <gtest/gtest.h>

#include <cerrno>

#include "support/text.h"

namespace viaduct::measure::p2p {
namespace {

const Where there{"10.0.0.1", 5555};

std::string reached(Code code, int os_errno, const std::string& detail = "", bool secret = false) {
  return unreachable({.code = code, .detail = detail, .os_errno = os_errno}, there, secret).text();
}

using testing::has;

TEST(Unreachable, NamesTheCause) {
  EXPECT_TRUE(has(reached(Code::kPeerLost, ECONNREFUSED), "no process listens"));
  EXPECT_TRUE(has(reached(Code::kTimeout, ETIMEDOUT), "firewall drops"));
  EXPECT_TRUE(has(reached(Code::kPeerLost, EHOSTUNREACH), "no route"));
  EXPECT_TRUE(has(reached(Code::kPeerLost, ENETUNREACH), "no route"));
  EXPECT_TRUE(has(reached(Code::kDenied, EPERM), "this host forbids the connection"));
  EXPECT_TRUE(
      has(reached(Code::kPeerLost, 0, "the peer is connecting: resolve: x"), "does not resolve"));
  EXPECT_TRUE(has(reached(Code::kPeerLost, 0, "the peer is connecting: not connected yet"),
                  "firewall drops"));
  EXPECT_TRUE(has(reached(Code::kPeerLost, 0, "handshake: connected, but no data arrived yet"),
                  "the listener is not a"));
  EXPECT_TRUE(has(reached(Code::kProtocol, 0), "which process listens"));
  for (const int os_errno : {ECONNREFUSED, ETIMEDOUT, EHOSTUNREACH, 0}) {
    EXPECT_TRUE(has(reached(Code::kPeerLost, os_errno), "10.0.0.1:5555"));
    EXPECT_TRUE(has(reached(Code::kPeerLost, os_errno), "what to do"));
  }
}

TEST(Unreachable, TheRemedyForARefusedSecretDependsOnTheSecretGivenHere) {
  EXPECT_TRUE(has(reached(Code::kDenied, 0), "give the --secret of the target here"));
  EXPECT_TRUE(has(reached(Code::kDenied, 0, "", true), "both ends the same"));
}

TEST(SeenByOthers, ReplacesAWildcardByAnAddressOfThisHost) {
  for (const char* any : {"0.0.0.0", "*"}) {
    const Where seen = seenByOthers({any, 5555});
    EXPECT_EQ(seen.text().find(any), std::string::npos) << seen.text();
    EXPECT_EQ(seen.port, 5555);
  }
  for (const char* own : {"10.0.0.1", "node0", "::1"})
    EXPECT_EQ(seenByOthers({own, 80}).text(), (Where{own, 80}.text()));
}

TEST(CannotListen, SaysWhy) {
  const auto text = [](int os_errno) {
    return cannotListen({.code = Code::kInvalid, .os_errno = os_errno}, {"fd00::1", 80}).text();
  };
  EXPECT_TRUE(has(text(EADDRINUSE), "in use"));
  EXPECT_TRUE(has(text(EADDRNOTAVAIL), "this host does not have"));
  EXPECT_TRUE(has(text(EACCES), "1024"));
  EXPECT_TRUE(has(text(EACCES), "[fd00::1]:80"));
}

}  // namespace
}  // namespace viaduct::measure::p2p
