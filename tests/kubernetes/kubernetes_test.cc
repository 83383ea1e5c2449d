// Names at an API server that works, and that fails in many ways.
#include <gtest/gtest.h>

#include <future>
#include <thread>

#include "kubernetes/fake_kube.h"
#include "meet/place.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using namespace meet;

const StopFlag kGoOn{false};
// The limit of a wait for something that has to come, on any machine.
constexpr auto kLong = 20s;
// The lease of tests that wait for its end.
constexpr auto kShortLease = 2s;

class Kubernetes : public ::testing::Test {
 protected:
  std::unique_ptr<MeetingPlace> place(const std::string& where = "kubernetes:g") const {
    return must(openMeetingPlace({.where = where}));
  }
  std::unique_ptr<MeetingPlace> shortPlace() const {
    return must(kubernetes::open({.where = "g", .detect = 1s}, kShortLease));
  }
  static std::unique_ptr<MeetingPlace> must(Result<std::unique_ptr<MeetingPlace>> opened) {
    if (opened) return std::move(*opened);
    ADD_FAILURE() << opened.error().text();
    std::abort();
  }
  static std::unique_ptr<PublishedName> published(MeetingPlace& at, const std::string& name,
                                                  const std::string& value = "card") {
    auto entry = at.publish(name, value, kLong);
    EXPECT_TRUE(entry) << entry.error().text();
    return entry ? std::move(*entry) : nullptr;
  }
  static std::string found(MeetingPlace& at, const std::string& name, Duration time = kLong) {
    const auto value = at.find(name, time, kGoOn);
    return value ? *value : value.error().text();
  }
  std::future<std::string> findLater(MeetingPlace& at, const std::string& name) const {
    return std::async(std::launch::async, [&at, name] { return found(at, name); });
  }
  // Waits until the fake server gives this answer to the command.
  void until(const std::string& command, const std::string& answer) {
    const auto end = Clock::now() + kLong;
    std::string last;
    while ((last = kube_.tell(command)) != answer && Clock::now() < end) std::this_thread::yield();
    EXPECT_EQ(last, answer) << command;
  }
  // Makes the Lease of another process, which was not renewed for long.
  void rival(const std::string& name, int seconds) {
    const std::string set = "set viaduct.g." + name + " ";
    kube_.tell(set + "metadata.labels.viaduct/group g");
    kube_.tell(set + "metadata.labels.viaduct/name " + name);
    kube_.tell(set + "metadata.annotations.viaduct/agent " + name);
    kube_.tell(set + "metadata.annotations.viaduct/value AQEAAAB4");
    kube_.tell(set + "spec.leaseDurationSeconds " + std::to_string(seconds));
    kube_.tell(set + "spec.renewTime 2001-01-01T00:00:00.000000Z");
    kube_.tell(set + "spec.holderIdentity pod-7_1_x");
  }
  static bool has(const Error& error, const std::string& what) {
    return error.text().find(what) != std::string::npos;
  }
  void TearDown() override { kube_.done(); }

  FakeKube kube_;
};

TEST_F(Kubernetes, AnAgentIsALeaseWithItsTrueName) {
  const auto at = place();
  auto entry = published(*at, "Decode Pool/0", std::string("card\0bytes", 10));
  EXPECT_EQ(kube_.tell("leases"), "1");
  EXPECT_EQ(found(*at, "Decode Pool/0"), std::string("card\0bytes", 10));
  entry.reset();
  EXPECT_EQ(kube_.tell("leases"), "0");
  entry = published(*at, "decode-0");
  EXPECT_EQ(kube_.tell("get viaduct.g.decode-0 metadata.annotations.viaduct/agent"), "decode-0");
  EXPECT_EQ(kube_.tell("get viaduct.g.decode-0 metadata.labels.viaduct/group"), "g");
  EXPECT_EQ(kube_.tell("get viaduct.g.decode-0 spec.leaseDurationSeconds"), "15");
  EXPECT_EQ(kube_.tell("get viaduct.g.decode-0 metadata.ownerReferences"), "none");
}

TEST_F(Kubernetes, APodOwnsItsLeasesInItsOwnNamespace) {
  ::setenv("POD_NAME", "decode-0", 1);
  ::setenv("POD_UID", "77-88", 1);
  ::setenv("POD_NAMESPACE", "default", 1);
  const auto at = place("kubernetes:owned");
  ::setenv("POD_NAMESPACE", "elsewhere", 1);
  const auto other = place("kubernetes:foreign");
  for (const char* name : {"POD_NAME", "POD_UID", "POD_NAMESPACE"}) ::unsetenv(name);
  const auto entry = published(*at, "a"), second = published(*other, "a");
  EXPECT_NE(kube_.tell("get viaduct.owned.a metadata.ownerReferences").find("77-88"),
            std::string::npos);
  EXPECT_EQ(kube_.tell("get viaduct.foreign.a metadata.ownerReferences"), "none");
}

TEST_F(Kubernetes, AllFindsOfAProcessShareOneWatch) {
  std::vector<std::unique_ptr<MeetingPlace>> places;
  std::vector<std::future<std::string>> finds;
  for (int i = 0; i < 100; ++i) {
    places.push_back(place());
    finds.push_back(findLater(*places.back(), "a" + std::to_string(i % 50)));
  }
  until("count get", "100");
  std::vector<std::unique_ptr<PublishedName>> entries;
  for (int i = 0; i < 50; ++i) entries.push_back(published(*places[i], "a" + std::to_string(i)));
  for (auto& one : finds) EXPECT_EQ(one.get(), "card");
  EXPECT_EQ(kube_.count("get"), 200) << "one before and one after the change";
  EXPECT_LT(kube_.count("watch"), 10);
  EXPECT_EQ(kube_.tell("watches"), "1");
}

TEST_F(Kubernetes, AFoundNameNeedsOneRequestAndNoWatch) {
  const auto at = place();
  const auto entry = published(*at, "a");
  EXPECT_EQ(found(*at, "a"), "card");
  EXPECT_EQ(kube_.count("get"), 1);
  EXPECT_EQ(kube_.count("list") + kube_.count("watch"), 0);
}

TEST_F(Kubernetes, FewNamesAreSelectedByTheServer) {
  const auto at = place();
  auto first = findLater(*at, "a"), second = findLater(*at, "b");
  until("count get", "2");
  const auto other = published(*at, "c");
  const auto b = published(*at, "b");
  EXPECT_EQ(second.get(), "card");
  const auto a = published(*at, "a");
  EXPECT_EQ(first.get(), "card");
}

// The list comes in pages, one of which is gone when it is asked for.
TEST_F(Kubernetes, ManyNamesAreListedInPages) {
  for (int i = 0; i < 1200; ++i) {
    const std::string lease = "set viaduct.g.other-" + std::to_string(i);
    kube_.tell(lease + " metadata.labels.viaduct/group g");
  }
  kube_.tell("fault page 410 1");
  const auto at = place();
  std::vector<std::future<std::string>> finds;
  for (int i = 0; i < 20; ++i) finds.push_back(findLater(*at, "a" + std::to_string(i)));
  std::vector<std::unique_ptr<MeetingPlace>> places;
  std::vector<std::unique_ptr<PublishedName>> entries;
  for (int i = 0; i < 20; ++i) {
    places.push_back(place());
    entries.push_back(published(*places.back(), "a" + std::to_string(i)));
  }
  for (auto& one : finds) EXPECT_EQ(one.get(), "card");
}

TEST_F(Kubernetes, AWatchOutlivesBookmarksAndForgottenHistory) {
  const auto at = place();
  int watches = 1;
  for (const char* way : {"event", "http"}) {
    auto later = findLater(*at, "late");
    until("watches", "1");
    kube_.tell("bookmark");
    kube_.tell(std::string("forget ") + way);
    until("watches", "1");
    EXPECT_GE(kube_.count("watch"), ++watches);
    const auto entry = published(*at, "late", way);
    EXPECT_EQ(later.get(), way);
  }
}

// After a bookmark a watch continues behind it, though the history before is gone.
TEST_F(Kubernetes, ABookmarkIsWhereTheNextWatchBegins) {
  const auto at = place();
  auto later = findLater(*at, "late");
  until("watches", "1");
  kube_.tell("bookmark");
  const int lists = kube_.count("list");
  kube_.tell("outdate");
  kube_.tell("close");
  until("count watch", "2");
  const auto entry = published(*at, "late");
  EXPECT_EQ(later.get(), "card");
  EXPECT_EQ(kube_.count("list"), lists);
}

TEST_F(Kubernetes, TheNameOfALivingAgentIsTaken) {
  const auto at = shortPlace(), other = shortPlace();
  const auto entry = published(*at, "a");
  const auto twin = other->publish("a", "mine", kLong);
  ASSERT_FALSE(twin);
  EXPECT_EQ(twin.error().code, Code::kBusy);
  EXPECT_TRUE(has(twin.error(), "this process")) << twin.error().text();

  // The same Lease looks like that of another process, which renews it.
  rival("b", 15);
  auto refused = std::async(std::launch::async, [&] { return other->publish("b", "x", kLong); });
  until("watches", "1");
  kube_.tell("set viaduct.g.b spec.renewTime 2001-01-01T00:00:05.000000Z");
  const auto busy = refused.get();
  ASSERT_FALSE(busy);
  EXPECT_EQ(busy.error().code, Code::kBusy);
  EXPECT_TRUE(has(busy.error(), "pod-7_1_x")) << busy.error().text();
}

TEST_F(Kubernetes, ADeadAgentsNameIsTakenOverAfterItsLease) {
  rival("b", 1);
  kube_.tell("set viaduct.g.b spec.leaseTransitions 3");
  const auto at = shortPlace();
  const auto begun = Clock::now();
  const auto early = at->publish("b", "mine", 100ms);
  EXPECT_EQ(early.error().code, Code::kBusy) << early.error().text();
  const auto entry = published(*at, "b", "mine");
  EXPECT_GE(Clock::now() - begun, 1s) << "by our own clock, not by the times in the Lease";
  EXPECT_EQ(found(*at, "b"), "mine");
  EXPECT_EQ(kube_.tell("get viaduct.g.b spec.leaseTransitions"), "4");
}

TEST_F(Kubernetes, ANameThatIsDeletedMeanwhileIsFreeAtOnce) {
  rival("b", 60);
  const auto at = place();
  auto later = std::async(std::launch::async, [&] { return at->publish("b", "mine", kLong); });
  until("watches", "1");
  kube_.tell("remove viaduct.g.b");
  const auto entry = later.get();
  ASSERT_TRUE(entry) << entry.error().text();
}

TEST_F(Kubernetes, AnAgentThatWasNotRenewedIsNotBelieved) {
  const auto at = place();
  rival("b", 15);
  const auto dead = at->find("b", 300ms, kGoOn);
  ASSERT_FALSE(dead);
  EXPECT_EQ(dead.error().code, Code::kTimeout);
  EXPECT_TRUE(has(dead.error(), "has not renewed") && has(dead.error(), "pod-7_1_x"))
      << dead.error().text();
  // An edit does not count as a renewal. A new renewTime does, even one of a wrong clock.
  auto later = findLater(*at, "b");
  until("count watch", "1");
  const int gets = kube_.count("get");
  kube_.tell("set viaduct.g.b metadata.annotations.note edited");
  until("count get", std::to_string(gets + 1));
  EXPECT_EQ(later.wait_for(50ms), std::future_status::timeout);
  kube_.tell("set viaduct.g.b spec.renewTime 2001-01-01T00:00:05.000000Z");
  EXPECT_EQ(later.get(), "x");
}

TEST_F(Kubernetes, ANameIsRenewed) {
  const auto at = shortPlace();
  const auto entry = published(*at, "a");
  const std::string first = kube_.tell("get viaduct.g.a spec.renewTime");
  const std::string acquired = kube_.tell("get viaduct.g.a spec.acquireTime");
  const auto end = Clock::now() + kLong;
  while (kube_.tell("get viaduct.g.a spec.renewTime") == first && Clock::now() < end)
    std::this_thread::yield();
  EXPECT_NE(kube_.tell("get viaduct.g.a spec.renewTime"), first);
  EXPECT_EQ(kube_.tell("get viaduct.g.a spec.acquireTime"), acquired);
}

// Agents write the server's time, so readers need no clock in common with them.
TEST_F(Kubernetes, ClocksOfHostsMayBeWrong) {
  kube_.tell("clock 86400");
  const auto at = place();
  const auto first = published(*at, "first");  // its answer has the server's time
  const auto entry = published(*at, "a");
  EXPECT_EQ(found(*place(), "a", 2s), "card") << "without waiting for a renewal";
}

TEST_F(Kubernetes, AnEditedOrLostLeaseIsWrittenAgain) {
  const auto at = shortPlace();
  const auto entry = published(*at, "a");
  kube_.tell("set viaduct.g.a metadata.annotations.note edited");
  until("get viaduct.g.a metadata.annotations.note", "none");
  kube_.tell("remove viaduct.g.a");
  until("leases", "1");
  EXPECT_EQ(found(*at, "a"), "card");
}

TEST_F(Kubernetes, AnswersThatGotLostDoNoHarm) {
  kube_.tell("fault create lost 1");
  const auto at = shortPlace();
  auto entry = published(*at, "a");
  kube_.tell("fault update lost 1");
  const std::string first = kube_.tell("get viaduct.g.a spec.renewTime");
  const int updates = kube_.count("update");
  const auto end = Clock::now() + kLong;
  while (kube_.count("update") < updates + 2 && Clock::now() < end) std::this_thread::yield();
  EXPECT_EQ(found(*at, "a"), "card");
  kube_.tell("fault delete lost 1");
  entry.reset();
  EXPECT_EQ(kube_.tell("leases"), "0");
}

TEST_F(Kubernetes, AWithdrawalLeavesTheLeaseOfASuccessor) {
  const auto at = place();
  auto entry = published(*at, "a");
  kube_.tell("set viaduct.g.a spec.holderIdentity successor");
  entry.reset();
  EXPECT_EQ(kube_.tell("leases"), "1");
}

TEST_F(Kubernetes, NamesComeBackWithAServerThatHasForgottenAll) {
  const auto at = shortPlace();
  const auto entry = published(*at, "a");
  auto later = findLater(*at, "b");
  until("watches", "1");
  kube_.tell("die");
  kube_.tell("live empty");
  until("leases", "1");
  EXPECT_EQ(found(*at, "a"), "card");
  const auto b = published(*at, "b");
  EXPECT_EQ(later.get(), "card");
}

TEST_F(Kubernetes, ADeadServerIsNamedAtTheDeadline) {
  const auto at = place();
  auto later = std::async(std::launch::async, [&] { return at->find("a", 3s, kGoOn); });
  until("watches", "1");
  kube_.tell("die");
  const auto waited = later.get(), late = at->find("b", 300ms, kGoOn);
  for (const auto* result : {&waited, &late}) {
    ASSERT_FALSE(*result);
    EXPECT_EQ(result->error().code, Code::kTimeout);
    EXPECT_TRUE(has(result->error(), "/readyz")) << result->error().text();
  }
  EXPECT_TRUE(has(late.error(), "connect")) << late.error().text();
  const auto begun = Clock::now();
  EXPECT_FALSE(at->publish("c", "card", 500ms));
  EXPECT_LT(Clock::now() - begun, 3s);
}

TEST_F(Kubernetes, AFrozenServerIsNamedAtTheDeadline) {
  const auto at = place();
  kube_.tell("freeze");
  const auto result = at->publish("a", "card", 1500ms);
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, Code::kTimeout);
  EXPECT_TRUE(has(result.error(), "did not answer in time")) << result.error().text();
  StopFlag stop = false;
  auto later = std::async(std::launch::async, [&] { return at->find("a", kLong, stop); });
  stop = true;
  EXPECT_EQ(later.get().error().code, Code::kCancelled);
  kube_.tell("thaw");
}

TEST_F(Kubernetes, AnOverloadedServerIsAskedAgainWhenItWants) {
  kube_.tell("fault create 429 1");
  kube_.tell("fault create 503 1");
  const auto at = place();
  const auto begun = Clock::now();
  const auto entry = published(*at, "a");
  EXPECT_GE(Clock::now() - begun, 1s) << "the server asked for a second";
  kube_.tell("retry 30");
  kube_.tell("fault get 429 1");
  const auto late = at->find("a", 500ms, kGoOn);
  ASSERT_FALSE(late);
  EXPECT_TRUE(has(late.error(), "HTTP 429") && has(late.error(), "overloaded"))
      << late.error().text();
}

TEST_F(Kubernetes, MissingRightsNameTheRuleToAdd) {
  const auto at = place();
  const struct {
    const char* rights;
    const char* verb;
  } kCases[] = {{"get,list,watch,update,delete", "create"},
                {"list,watch,create", "get"},
                {"get,watch,create", "list"},
                {"get,list,create", "watch"}};
  for (const auto& one : kCases) {
    kube_.tell(std::string("rights ") + one.rights);
    const bool creates = one.verb == std::string("create");
    const auto begun = Clock::now();
    Error error;
    if (creates) {
      error = at->publish("a", "x", kLong).error();
    } else {
      error = at->find("nobody", kLong, kGoOn).error();
    }
    EXPECT_LT(Clock::now() - begun, 10s);
    EXPECT_EQ(error.code, Code::kDenied) << one.verb << error.text();
    EXPECT_TRUE(has(error, std::string("right to ") + one.verb)) << error.text();
    EXPECT_TRUE(has(error, R"(apiGroups: ["coordination.k8s.io"], resources: ["leases"], verbs: )"
                           R"(["get", "list", "watch", "create", "update", "delete"])"))
        << error.text();
  }
}

TEST_F(Kubernetes, AMissingNamespaceIsNamed) {
  const auto at = place("kubernetes:serving/g");
  const auto entry = at->publish("a", "x", kLong);
  ASSERT_FALSE(entry);
  EXPECT_EQ(entry.error().code, Code::kNotFound);
  EXPECT_TRUE(has(entry.error(), "kubectl create namespace serving")) << entry.error().text();
}

TEST_F(Kubernetes, ForeignAndTruncatedRecordsAreRefused) {
  const auto at = place();
  const auto entry = published(*at, "a", "a card of some length");
  kube_.tell("cut viaduct.g.a 8");
  kube_.tell("set viaduct.g.b spec.holderIdentity somebody");
  for (const char* name : {"a", "b"}) {
    const auto value = at->find(name, kLong, kGoOn);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, Code::kProtocol);
    EXPECT_TRUE(
        has(value.error(), "kubectl delete lease -n default viaduct.g." + std::string(name)))
        << value.error().text();
  }
  EXPECT_EQ(at->publish("b", "x", kLong).error().code, Code::kProtocol);
}

TEST_F(Kubernetes, AnotherServiceIsRecognised) {
  kube_.tell("fault get html 1");
  kube_.tell("fault get short 1");
  const auto at = place();
  const auto entry = published(*at, "a");
  for (int i = 0; i < 2; ++i) {
    const auto value = at->find("a", kLong, kGoOn);
    ASSERT_FALSE(value);
    EXPECT_EQ(value.error().code, Code::kProtocol);
    EXPECT_TRUE(has(value.error(), "another service")) << value.error().text();
  }
}

TEST_F(Kubernetes, ValuesUpToTheLimitOfAnnotations) {
  const auto at = place();
  const std::string large(196'000, 'v');
  const auto entry = published(*at, "a", large);
  EXPECT_EQ(found(*at, "a"), large);
  const auto beyond = at->publish("b", std::string(200'000, 'v'), kLong);
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::kInvalid);
  EXPECT_TRUE(has(beyond.error(), "262144")) << beyond.error().text();
}

TEST_F(Kubernetes, MalformedOptionsAreRefusedBeforeAnyRequest) {
  EXPECT_EQ(openMeetingPlace({.where = "kubernetes:a/b/c"}).error().code, Code::kInvalid);
  const auto user = openMeetingPlace({.where = "kubernetes:g", .user = "me"});
  ASSERT_FALSE(user);
  EXPECT_TRUE(has(user.error(), "KUBECONFIG")) << user.error().text();
}

}  // namespace
}  // namespace viaduct::testing
