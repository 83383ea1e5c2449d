// The errors for an unreachable or wrong etcd: the endpoint, the failed step, and the system's
// text; and the time of the error.
#include <gtest/gtest.h>
#include <pthread.h>
#include <signal.h>

#include <future>
#include <thread>

#include "etcd/etcd_testing.h"
#include "etcd/odd_servers.h"
#include "meet/place.h"
#include "support/etcd_server.h"
#include "support/free_port.h"
#include "support/own_names.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

Error joinError(const std::string& where, Duration time) {
  const auto place = openGroups({.where = where});
  if (!place) return place.error();
  const auto group = (*place)->join({.group = "g", .size = 1, .name = "a"}, time, kGoOn);
  if (group) return {.detail = "it worked"};
  return group.error();
}

TEST(EtcdErrors, AnEndpointWithoutAListener) {
  const std::string where = "http://127.0.0.1:" + std::to_string(freePort());
  const auto begun = Clock::now();
  const Error why = joinError(where, 300ms);
  EXPECT_EQ(why.code, Code::kTimeout);
  expectMentions(why, {where, "connect:", "Connection refused"});
  EXPECT_GE(Clock::now() - begun, 200ms) << "it may yet come up: tried to the deadline";
}

TEST(EtcdErrors, AnEndpointThatAcceptsAndNeverAnswers) {
  const SilentServer silent;
  const Error why = joinError(silent.url(), 300ms);
  EXPECT_EQ(why.code, Code::kTimeout);
  expectMentions(why, {silent.url(), "request:", "did not answer in time"});
}

// Calls run in the caller's thread, which takes the program's signals while it waits.
TEST(EtcdErrors, AHandlerOfASignalMayEndAWait) {
  static StopFlag stop{false};
  stop = false;
  struct sigaction handler = {}, before = {};
  handler.sa_handler = [](int) { stop = true; };
  ::sigaction(SIGUSR1, &handler, &before);
  const SilentServer silent;
  std::promise<pthread_t> begun;
  auto waiting = std::async(std::launch::async, [&] {
    const auto place = openMeetingPlace({.where = silent.url()});
    begun.set_value(::pthread_self());
    return (*place)->find("nobody", kLong, stop);
  });
  ::pthread_kill(begun.get_future().get(), SIGUSR1);
  const auto found = waiting.get();
  ASSERT_FALSE(found);
  EXPECT_EQ(found.error().code, Code::kCancelled) << found.error().text();
  ::sigaction(SIGUSR1, &before, nullptr);
}

TEST(EtcdErrors, ASilentEndpointIsLeftForAnother) {
  VIADUCT_NEEDS_ETCD();
  const SilentServer silent;
  EtcdServer etcd;
  const auto place = openGroups({.where = silent.url() + "," + etcd.url()});
  ASSERT_TRUE(place);
  const auto group = (*place)->join({.group = "g", .size = 1, .name = "a"}, 20s, kGoOn);
  EXPECT_TRUE(group) << group.error().text();
}

TEST(EtcdErrors, EveryEndpointIsNamedWithItsOwnFailure) {
  const SilentServer silent;
  const std::string dead = "http://127.0.0.1:" + std::to_string(freePort());
  const Error why = joinError(dead + "," + silent.url(), 400ms);
  expectMentions(why, {dead + ": connect:", silent.url() + ": request:"});
}

// The last attempt has only the rest of the time, which may be almost nothing.
TEST(EtcdErrors, AnErrorIsNotReplacedByAnAttemptThatTheDeadlineCutShort) {
  const ParrotServer parrot("", 1);
  const Error why = joinError(parrot.url(), 800ms);
  EXPECT_EQ(why.code, Code::kTimeout);
  expectMentions(why, {parrot.url(), "request: Empty reply"});
}

TEST(EtcdErrors, PlainHttpWhereTlsIsExpected) {
  const ParrotServer plain("HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
  const Error why = joinError("https" + plain.url().substr(4), 300ms);
  expectMentions(why, {"TLS:"});
}

TEST(EtcdErrors, MalformedInputIsRefusedAtOnce) {
  const auto place = openMeetingPlace({.where = "http://et!cd:2379"});
  ASSERT_FALSE(place);
  EXPECT_EQ(place.error().code, Code::kInvalid);
  expectMentions(place.error(), {"'!' at position 10"});
}

// etcd's alarm stays on until somebody removes it, so the error comes at once and says so.
TEST(EtcdErrors, AFullQuotaIsReportedWithItsRemedy) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer::Settings tiny;
  tiny.arguments = {"--quota-backend-bytes=200000"};
  EtcdServer etcd(tiny);
  const auto place = openMeetingPlace({.where = etcd.url()});
  ASSERT_TRUE(place);
  const std::string much(50'000, 'x');
  Result<std::unique_ptr<PublishedName>> entry = std::unique_ptr<PublishedName>();
  for (int i = 0; i < 100 && entry; ++i)
    entry = (*place)->publish("n" + std::to_string(i), much, 20s);
  ASSERT_FALSE(entry);
  expectMentions(entry.error(), {etcd.url(), "database space exceeded", "alarm disarm"});
  EXPECT_NE(etcd.ctl("alarm list").find("NOSPACE"), std::string::npos);

  const auto begun = Clock::now();
  const Error next = joinError(etcd.url(), 20s);
  EXPECT_EQ(next.code, Code::kExhausted) << next.text();
  expectMentions(next, {etcd.url(), "database space exceeded", "alarm disarm"});
  EXPECT_LT(Clock::now() - begun, 20s) << "it does not get better by itself";
}

TEST(EtcdErrors, FilesThatCannotBeReadAreNamedAtOnce) {
  const auto place = openMeetingPlace({.where = "https://etcd", .ca_file = "/nowhere/ca.pem"});
  ASSERT_FALSE(place);
  expectMentions(place.error(), {"/nowhere/ca.pem", "No such file"});
  const auto half = openMeetingPlace({.where = "https://etcd", .certificate_file = "/dev/null"});
  ASSERT_FALSE(half);
  expectMentions(half.error(), {"without its key"});
  const auto plain = openMeetingPlace({.where = "http://etcd", .ca_file = "/dev/null"});
  ASSERT_FALSE(plain);
  expectMentions(plain.error(), {"https://"});
}

// Whatever the server answers, the call ends with an error by its deadline, without a crash.
TEST(EtcdErrors, GarbageIsAnError) {
  const auto http = [](const std::string& body, const std::string& status = "200 OK") {
    return "HTTP/1.1 " + status + "\r\nContent-Length: " + std::to_string(body.size()) +
           "\r\n\r\n" + body;
  };
  const std::vector<std::string> answers{
      "",
      "\r\n\r\n",
      "SSH-2.0-OpenSSH_9.2\r\n",
      http(""),
      http("null"),
      http("[]"),
      http("{}"),
      http("{\"TTL\":\"x\"}"),
      http("{\"TTL\":\"2\"}"),
      http(std::string(100'000, '[')),
      http("<html>", "404 Not Found"),
      http("{\"code\":5}", "404 Not Found"),
      http("{\"error\":\"x\",\"message\":\"y\",\"code\":-7}", "500 Oops"),
      http("", "302 Found"),
      "HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n{\"TTL\"",
      "HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
      "HTTP/9.9 200 OK\r\n\r\n",
      std::string(10'000, '\0'),
  };
  for (const std::string& answer : answers) {
    const ParrotServer parrot(answer);
    const Error why = joinError(parrot.url(), 250ms);
    EXPECT_NE(why.detail, "it worked") << answer.substr(0, 60);
    EXPECT_FALSE(why.detail.empty()) << answer.substr(0, 60);
  }
}

TEST(EtcdErrors, ANameThatDoesNotResolveIsTriedToTheDeadline) {
  std::thread([] {
    OwnNames names;
    if (!names.enter()) GTEST_SKIP() << "skipped: no mount namespaces";
    const Error why = joinError("etcd.default", 2s);
    EXPECT_EQ(why.code, Code::kTimeout);
    expectMentions(why, {"http://etcd.default:2379: resolve: Could not resolve host"});
  }).join();
}

TEST(EtcdErrors, ANameThatResolvesLaterIsFoundThen) {
  VIADUCT_NEEDS_ETCD();
  EtcdServer etcd;
  std::thread([&] {
    OwnNames names;
    if (!names.enter()) GTEST_SKIP() << "skipped: no mount namespaces";
    const PlaceOptions options{.where = etcd.url("etcd.default")};
    const auto place = openMeetingPlace(options);
    const auto groups = openGroups(options);
    ASSERT_TRUE(place && groups);
    const auto early = (*place)->find("x", 2s, kGoOn);
    ASSERT_FALSE(early);
    expectMentions(early.error(), {"resolve: Could not resolve host"});
    std::thread later([&] { names.writeHosts("127.0.0.1 localhost etcd.default\n"); });
    const auto group = (*groups)->join({.group = "g", .size = 1, .name = "a"}, 20s, kGoOn);
    EXPECT_TRUE(group) << group.error().text();
    later.join();
  }).join();
}

}  // namespace
}  // namespace viaduct::testing
