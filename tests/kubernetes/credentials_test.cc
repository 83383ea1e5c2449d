// Credentials of an API server, over plain and encrypted connections.
#include <gtest/gtest.h>

#include <fstream>

#include "kubernetes/fake_kube.h"
#include "meet/place.h"
#include "support/etcd_access.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kNoStop{false};

std::string quoted(const std::string& key, const std::string& value) {
  return "\"" + key + "\":\"" + value + "\"";
}

Result<std::unique_ptr<PublishedName>> publishAt(const std::string& where) {
  VIADUCT_TRY(const auto place, openMeetingPlace({.where = where}));
  return place->publish("a", "card", 5s);
}

TEST(KubernetesCredentials, ARefusedTokenIsSaidAtOnce) {
  FakeKube kube({"--token", "right"}, quoted("token", "wrong"));
  const auto begun = Clock::now();
  const auto entry = publishAt("kubernetes:g");
  ASSERT_FALSE(entry);
  EXPECT_LT(Clock::now() - begun, 3s);
  EXPECT_EQ(entry.error().code, Code::kDenied);
  EXPECT_NE(entry.error().text().find("kubectl auth whoami"), std::string::npos)
      << entry.error().text();
  EXPECT_EQ(entry.error().text().find("wrong"), std::string::npos) << "a secret";
  EXPECT_EQ(kube.count("create"), 2) << "the token was read again once";
}

TEST(KubernetesCredentials, ATokenThatRotatesIsReadAgain) {
  FakeKube kube({"--token", "first"}, quoted("tokenFile", "token"));
  std::ofstream(kube.file("token")) << "first\n";
  const auto place = openMeetingPlace({.where = "kubernetes:g"});
  ASSERT_TRUE(place) << place.error().text();
  const auto entry = (*place)->publish("a", "card", 5s);
  ASSERT_TRUE(entry) << entry.error().text();
  kube.tell("token second");
  EXPECT_EQ((*place)->find("a", 1s, kNoStop).error().code, Code::kDenied);
  std::ofstream(kube.file("token")) << "second\n";
  const auto found = (*place)->find("a", 5s, kNoStop);
  EXPECT_TRUE(found) << found.error().text();
  kube.done();
}

TEST(KubernetesCredentials, TheServersCertificateIsVerified) {
  const Certificates certificates;
  FakeKube kube({"--tls", certificates.file("server.pem"), certificates.file("server.key")}, "",
                "," + quoted("certificate-authority", certificates.file("other.pem")), "https");
  const auto begun = Clock::now();
  const auto unknown = publishAt("kubernetes:g");
  ASSERT_FALSE(unknown);
  EXPECT_LT(Clock::now() - begun, 3s) << "said at once";
  EXPECT_NE(unknown.error().text().find("TLS"), std::string::npos) << unknown.error().text();
  EXPECT_NE(unknown.error().text().find("VIADUCT_MEET_CA"), std::string::npos);
  const auto overridden =
      openMeetingPlace({.where = "kubernetes:g", .ca_file = certificates.file("ca.pem")});
  ASSERT_TRUE(overridden) << overridden.error().text();
  EXPECT_TRUE((*overridden)->publish("b", "card", 5s));
  kube.configure("", "," + quoted("certificate-authority", certificates.file("ca.pem")));
  const auto entry = publishAt("kubernetes:known");
  EXPECT_TRUE(entry) << entry.error().text();
  kube.done();
}

}  // namespace
}  // namespace viaduct::testing
