#include "meet/kubernetes/objects.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

namespace viaduct::meet::kubernetes {
namespace {

using namespace std::chrono_literals;

Lease example() {
  return {.name = "viaduct.g.a",
          .kube_namespace = "serving",
          .group_label = "g",
          .name_label = "a",
          .pod_name = "decode-0",
          .pod_uid = "77-88",
          .agent = "a",
          .value = std::string("card\0bytes", 10),
          .holder = "decode-0_7_abc",
          .seconds = 15,
          .takeovers = 2,
          .acquired = WallTime{1s},
          .renewed = WallTime{2s}};
}

TEST(KubernetesObjects, ALeaseRoundTrips) {
  Lease lease = example();
  lease.uid = "1-2-3";
  lease.version = "77";
  const auto body = leaseJson(lease);
  ASSERT_TRUE(body) << body.error().text();
  const auto read = parseLease(*body);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->name, lease.name);
  EXPECT_EQ(read->uid, lease.uid);
  EXPECT_EQ(read->version, lease.version);
  EXPECT_EQ(read->agent, lease.agent);
  EXPECT_EQ(read->value, lease.value);
  EXPECT_EQ(read->holder, lease.holder);
  EXPECT_EQ(read->seconds, 15U);
  EXPECT_EQ(read->takeovers, 2U);
  EXPECT_EQ(read->acquired, lease.acquired);
  EXPECT_EQ(read->renewed, lease.renewed);
}

TEST(KubernetesObjects, ALeaseInTheWordsOfTheApi) {
  const auto body = leaseJson(example());
  ASSERT_TRUE(body);
  EXPECT_EQ(
      *body,
      R"({"apiVersion":"coordination.k8s.io/v1","kind":"Lease","metadata":{"name":"viaduct.g.a",)"
      R"("namespace":"serving","labels":{"viaduct/group":"g","viaduct/name":"a"},)"
      R"("annotations":{"viaduct/agent":"a","viaduct/value":"AQoAAABjYXJkAGJ5dGVz"},)"
      R"("ownerReferences":[{"apiVersion":"v1","kind":"Pod","name":"decode-0","uid":"77-88"}]},)"
      R"("spec":{"holderIdentity":"decode-0_7_abc","leaseDurationSeconds":15,)"
      R"("acquireTime":"1970-01-01T00:00:01.000000Z","renewTime":"1970-01-01T00:00:02.000000Z",)"
      R"("leaseTransitions":2}})");
}

TEST(KubernetesObjects, AValueBeyondTheAnnotationsIsRefused) {
  Lease lease = example();
  lease.value = std::string(196'000, 'v');
  EXPECT_TRUE(leaseJson(lease));
  lease.value = std::string(197'000, 'v');
  const auto body = leaseJson(lease);
  ASSERT_FALSE(body);
  EXPECT_EQ(body.error().code, Code::kInvalid);
  EXPECT_NE(body.error().detail.find("262144"), std::string::npos) << body.error().text();
}

TEST(KubernetesObjects, ATruncatedValueIsNothing) {
  const std::string body = *leaseJson(example());
  // The objects have no resourceVersion yet, so they are no answers of a server.
  EXPECT_FALSE(parseLease(body));
  const auto complete = [&](const std::string& value) {
    std::string text = body;
    text.replace(text.find("AQoAAABjYXJkAGJ5dGVz"), 20, value);
    text.replace(text.find("\"namespace\""), 0, R"("resourceVersion":"1",)");
    return parseLease(text);
  };
  ASSERT_TRUE(complete("AQoAAABjYXJkAGJ5dGVz"));
  EXPECT_TRUE(complete("AQoAAABjYXJkAGJ5dGVz")->value);
  for (const char* value : {"", "AQoAAABjYXJkAGJ5", "AQoAAABjYXJkAGJ5dGV", "AgoAAABjYXJkAGJ5dGVz",
                            "AQoAAABjYXJkAGJ5dGVzeA==", "?"}) {
    const auto read = complete(value);
    ASSERT_TRUE(read) << value;
    EXPECT_FALSE(read->value) << value;
  }
}

TEST(KubernetesObjects, APageOfAList) {
  const auto page = parsePage(R"({"kind":"LeaseList","apiVersion":"coordination.k8s.io/v1",
    "metadata":{"resourceVersion":"9","continue":"more","remainingItemCount":3},
    "items":[{"metadata":{"name":"a","resourceVersion":"7"},"spec":{}}]})");
  ASSERT_TRUE(page) << page.error().text();
  EXPECT_EQ(page->version, "9");
  EXPECT_EQ(page->next, "more");
  ASSERT_EQ(page->leases.size(), 1U);
  EXPECT_EQ(page->leases[0].name, "a");
  EXPECT_EQ(page->leases[0].version, "7");
  const auto empty =
      parsePage(R"({"kind":"LeaseList","metadata":{"resourceVersion":"9"},"items":null})");
  ASSERT_TRUE(empty) << empty.error().text();
  EXPECT_TRUE(empty->leases.empty());
}

TEST(KubernetesObjects, TheLinesOfAWatch) {
  const auto object = R"("object":{"kind":"Lease","metadata":{"name":"a","resourceVersion":"7"}})";
  for (const char* type : {"ADDED", "MODIFIED", "DELETED"}) {
    const auto event = parseEvent(fmt::format(R"({{"type":"{}",{}}})", type, object));
    ASSERT_TRUE(event) << event.error().text();
    EXPECT_EQ(event->deleted, type == std::string("DELETED"));
    EXPECT_FALSE(event->bookmark);
    EXPECT_EQ(event->lease.name, "a");
    EXPECT_EQ(event->lease.version, "7");
  }
  const auto mark =
      parseEvent(R"({"type":"BOOKMARK","object":{"metadata":{"resourceVersion":"12"}}})");
  ASSERT_TRUE(mark) << mark.error().text();
  EXPECT_TRUE(mark->bookmark);
  EXPECT_EQ(mark->lease.version, "12");
  const auto gone = parseEvent(
      R"({"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired","message":"old"}})");
  ASSERT_TRUE(gone && gone->refusal);
  EXPECT_EQ(gone->refusal->code, 410);
  const auto refused = parseEvent(R"({"kind":"Status","code":403,"message":"no"})");
  ASSERT_TRUE(refused && refused->refusal);
  EXPECT_EQ(refused->refusal->code, 403);
}

TEST(KubernetesObjects, GarbageIsAnErrorAndShownInOneLine) {
  for (const char* body :
       {"", "null", "7", "[]", "<html>", "{", R"({"kind":"Pod","apiVersion":"v1","metadata":{}})",
        R"({"kind":"Lease","apiVersion":"v1","metadata":7})",
        R"({"kind":"Lease","apiVersion":"v1","metadata":{"name":7,"resourceVersion":"1"}})",
        R"({"kind":"Lease","apiVersion":"v1","metadata":{"name":"a","resourceVersion":"1",
            "annotations":[]}})"}) {
    const auto lease = parseLease(body);
    ASSERT_FALSE(lease) << body;
    EXPECT_EQ(lease.error().code, Code::kProtocol);
    EXPECT_FALSE(parsePage(body)) << body;
    EXPECT_FALSE(parseEvent(body)) << body;
    EXPECT_FALSE(parseRefusal(body)) << body;
  }
  EXPECT_FALSE(parseEvent(R"({"type":"ADDED","object":{"metadata":{"resourceVersion":"7"}}})"));
  EXPECT_FALSE(
      parseEvent(R"({"type":"NEW","object":{"metadata":{"name":"a","resourceVersion":"7"}}})"));
  EXPECT_EQ(parseLease("a\nb").error().text().find('\n'), std::string::npos);
}

TEST(KubernetesObjects, TextsOfAServerFitALine) {
  const auto refusal = parseRefusal(
      R"({"kind":"Status","code":404,"message":"no\n\u001b[2J","details":{"kind":"namespaces"}})");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->message, "no\\x0a\\x1b[2J");
  EXPECT_EQ(refusal->kind, "namespaces");
}

TEST(KubernetesObjects, ADeletionNamesTheStateThatItDeletes) {
  EXPECT_EQ(deleteJson({.uid = "u", .version = "7"}),
            R"({"apiVersion":"v1","kind":"DeleteOptions","preconditions":{"uid":"u",)"
            R"("resourceVersion":"7"}})");
}

}  // namespace
}  // namespace viaduct::meet::kubernetes
