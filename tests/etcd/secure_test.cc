// Users, passwords and certificates of both sides, and the errors for wrong ones.
#include <gtest/gtest.h>

#include <future>

#include "etcd/etcd_testing.h"
#include "meet/place.h"
#include "support/etcd_access.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

Error joinAlone(const PlaceOptions& options, Duration time = kLong) {
  const auto place = openGroups(options);
  if (!place) return place.error();
  auto group = (*place)->join({.group = "g", .size = 1, .name = "a"}, time, kGoOn);
  if (!group) return group.error();
  const auto values = (*group)->gather("x", time, kGoOn);
  if (!values) return values.error();
  const Status done = (*group)->finish(time);
  return done ? Error{.detail = "it worked"} : done.error();
}

TEST(EtcdAuth, UserAndPassword) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  switchAuthOn(etcd);
  const PlaceOptions good{.where = etcd.url(), .user = "viaduct", .password = "S3cret"};
  EXPECT_EQ(joinAlone(good).text(), Error{.detail = "it worked"}.text());

  const Error nobody = joinAlone({.where = etcd.url()});
  EXPECT_EQ(nobody.code, Code::kDenied);
  expectMentions(nobody, {etcd.url() + ": auth:", "user name is empty", "give user and password"});

  auto wrong = good;
  wrong.password = "guess3d";
  const Error refused = joinAlone(wrong);
  EXPECT_EQ(refused.code, Code::kDenied);
  expectMentions(refused, {etcd.url() + ": auth:", "invalid user ID or password"});
  EXPECT_EQ(refused.text().find("guess3d"), std::string::npos);

  auto elsewhere = good;
  elsewhere.name_space = "/others";
  const Error outside = joinAlone(elsewhere);
  EXPECT_EQ(outside.code, Code::kDenied);
  expectMentions(outside, {etcd.url() + ": auth:", "permission denied", "grant-permission"});
}

// A restarted server does not know the tokens that it issued before.
TEST(EtcdAuth, LogsInAgainWhenTheTokenIsForgotten) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  switchAuthOn(etcd);
  const PlaceOptions options{.where = etcd.url(), .user = "viaduct", .password = "S3cret"};
  const auto place = openMeetingPlace(options);
  const auto groups = openGroups(options);
  ASSERT_TRUE(place && groups);
  auto group = (*groups)->join({.group = "g", .size = 1, .name = "a"}, kLong, kGoOn);
  ASSERT_TRUE(group) << group.error().text();
  auto seeking =
      std::async(std::launch::async, [&] { return (*place)->find("late", kLong, kGoOn); });
  etcd.kill();
  etcd.start();
  for (int round = 0; round < 3; ++round) {
    const auto entry = (*place)->publish(round < 2 ? "early" : "late", "x", kLong);
    ASSERT_TRUE(entry) << entry.error().text();
    if (round == 2) {
      const auto found = seeking.get();
      EXPECT_TRUE(found) << found.error().text();
    }
  }
  EXPECT_FALSE((*group)->trouble());
}

TEST(EtcdAuth, AUserWhereAuthenticationIsOffIsNoHindrance) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  const Error why = joinAlone({.where = etcd.url(), .user = "viaduct", .password = "S3cret"});
  EXPECT_EQ(why.detail, "it worked") << why.text();
}

TEST(EtcdTls, ClientCertificates) {
  VIADUCT_NEEDS_ETCD();
  const Certificates certificates;
  EtcdServer etcd(certificates.server());
  const PlaceOptions good{.where = etcd.url(),
                          .ca_file = certificates.file("ca.pem"),
                          .certificate_file = certificates.file("client.pem"),
                          .key_file = certificates.file("client.key")};
  const Error worked = joinAlone(good);
  EXPECT_EQ(worked.detail, "it worked") << worked.text();

  auto bare = good;
  bare.certificate_file = bare.key_file = "";
  const Error unknown = joinAlone(bare);
  expectMentions(unknown, {etcd.url() + ": TLS:", "alert"});

  auto distrustful = good;
  distrustful.ca_file = certificates.file("other.pem");
  const auto begun = Clock::now();
  const Error untrusted = joinAlone(distrustful);
  expectMentions(untrusted, {etcd.url() + ": TLS:", "certificate"});
  EXPECT_LT(Clock::now() - begun, kLong) << "it does not get better: said at once";

  auto mixed = good;
  mixed.key_file = certificates.file("named.key");
  expectMentions(joinAlone(mixed), {": TLS:"});

  const std::string plain = "http" + etcd.url().substr(5);
  const Error http = joinAlone({.where = plain}, 300ms);
  expectMentions(http, {plain + ": request:"});
}

TEST(EtcdTls, WithAuthenticationACommonNameIsATrapThatIsExplained) {
  VIADUCT_NEEDS_ETCD();
  const Certificates certificates;
  EtcdServer etcd(certificates.server());
  switchAuthOn(etcd);
  PlaceOptions options{.where = etcd.url(),
                       .user = "viaduct",
                       .password = "S3cret",
                       .ca_file = certificates.file("ca.pem"),
                       .certificate_file = certificates.file("client.pem"),
                       .key_file = certificates.file("client.key")};
  const Error worked = joinAlone(options);
  EXPECT_EQ(worked.detail, "it worked") << worked.text();
  options.certificate_file = certificates.file("named.pem");
  options.key_file = certificates.file("named.key");
  expectMentions(joinAlone(options), {"CommonName", "without CN"});
}

}  // namespace
}  // namespace viaduct::testing
