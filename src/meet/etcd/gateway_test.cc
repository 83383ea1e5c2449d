#include "meet/etcd/gateway.h"

#include <gtest/gtest.h>

namespace viaduct::meet::etcd {
namespace {

TEST(EtcdGateway, ATransactionAsJson) {
  EXPECT_EQ(
      createJson("k", "v", 5, "t"),
      R"({"compare":[{"create_revision":"0","key":"aw==","result":"EQUAL","target":"CREATE"},)"
      R"({"create_revision":"0","key":"dA==","result":"EQUAL","target":"CREATE"}],)"
      R"("failure":[{"request_range":{"key":"aw=="}}],)"
      R"("success":[{"request_put":{"key":"aw==","lease":"5","value":"dg=="}}]})");
}

TEST(EtcdGateway, ARemovalAsJson) {
  EXPECT_EQ(undoJson("k", 5, ""),
            R"({"compare":[{"key":"aw==","lease":"5","result":"EQUAL","target":"LEASE"}],)"
            R"("failure":[],"success":[{"request_delete_range":{"key":"aw=="}}]})");
  EXPECT_NE(undoJson("k", 5, "t")
                .find(R"("failure":[{"request_put":{"key":"dA==","lease":"5","value":""}}])"),
            std::string::npos);
}

TEST(EtcdGateway, DefaultsAreLeftOutOfAnswers) {
  const auto failed = parseCreate(R"({"header":{"revision":"7"},"responses":[{"response_range":{
      "kvs":[{"key":"aw==","value":"dg==","create_revision":"3","mod_revision":"4","lease":"9"}]}}]})");
  ASSERT_TRUE(failed) << failed.error().text();
  EXPECT_FALSE(failed->created);
  ASSERT_TRUE(failed->found);
  EXPECT_EQ(failed->found->value, "v");
  EXPECT_EQ(failed->found->lease, 9);

  const auto absent = parseRange(R"({"header":{"revision":"7"}})");
  ASSERT_TRUE(absent) << absent.error().text();
  EXPECT_EQ(absent->revision, 7);
  EXPECT_FALSE(absent->found);

  const auto dead = parseKeepAlive(R"({"result":{"ID":"78"}})");
  ASSERT_TRUE(dead);
  EXPECT_EQ(*dead, 0);
}

TEST(EtcdGateway, ALineOfAWatch) {
  const auto message = parseWatch(R"({"result":{"header":{"revision":"9"},"events":[
      {"kv":{"key":"aw==","mod_revision":"8"}},
      {"type":"DELETE","kv":{"key":"aw==","mod_revision":"9"}}]}})");
  ASSERT_TRUE(message) << message.error().text();
  ASSERT_EQ(message->events.size(), 2U);
  EXPECT_FALSE(message->events[0].deleted);
  EXPECT_TRUE(message->events[1].deleted);
  EXPECT_EQ(message->events[1].kv.modified, 9);

  const auto gone = parseWatch(R"({"result":{"canceled":true,"compact_revision":"12"}})");
  ASSERT_TRUE(gone);
  EXPECT_TRUE(gone->cancelled);
  EXPECT_EQ(gone->compacted, 12);
}

TEST(EtcdGateway, GarbageIsAnError) {
  for (const char* body :
       {"", "null", "7", "[]", "<html>", "{", R"({"succeeded":"yes"})", R"({"succeeded":1})",
        R"({"responses":7})", R"({"responses":[{"response_range":{"kvs":[7]}}]})",
        R"({"responses":[{"response_range":{"kvs":[{"key":"?"}]}}]})"}) {
    const auto reply = parseCreate(body);
    ASSERT_FALSE(reply) << body;
    EXPECT_EQ(reply.error().code, Code::kProtocol);
  }
  for (const char* body : {"", "null", R"({"header":{"revision":"x"}})", R"({"kvs":[7]})",
                           R"({"kvs":7})", R"({"header":{"revision":"99999999999999999999"}})"})
    EXPECT_FALSE(parseRange(body)) << body;
  EXPECT_FALSE(parseWatch("{}"));
  EXPECT_FALSE(parseGrant("{}"));
  EXPECT_FALSE(parseKeepAlive("{}"));
  EXPECT_FALSE(parseToken(R"({"token":"a\nb"})"));
}

TEST(EtcdGateway, NoErrorShowsAToken) {
  EXPECT_EQ(parseToken(R"({"token":7,"other":"SECRET"})").error().text().find("SECRET"),
            std::string::npos);
}

TEST(EtcdGateway, BothFormsOfARefusal) {
  const auto flat = parseRefusal(R"({"error":"no","message":"no","code":5})");
  ASSERT_TRUE(flat);
  EXPECT_EQ(flat->code, 5);
  const auto nested = parseRefusal(R"({"error":{"grpc_code":14,"message":"gone"}})");
  ASSERT_TRUE(nested);
  EXPECT_EQ(nested->code, 14);
  EXPECT_EQ(nested->message, "gone");
  for (const char* body : {"", "{}", "[]", R"({"code":"x"})", R"({"code":-1})"})
    EXPECT_FALSE(parseRefusal(body)) << body;
}

TEST(EtcdGateway, TextsOfAServerFitALine) {
  const auto refusal = parseRefusal(R"({"message":"no\nviaduct[1]: \u001b[2J","code":5})");
  ASSERT_TRUE(refusal);
  EXPECT_EQ(refusal->message, "no\\x0aviaduct[1]: \\x1b[2J");
  const auto long_one = parseRefusal(R"({"code":5,"message":")" + std::string(9999, 'x') + "\"}");
  ASSERT_TRUE(long_one);
  EXPECT_LT(long_one->message.size(), 400U);
  const auto watch = parseWatch(R"({"result":{"canceled":true,"cancel_reason":"gone\u001b[1m"}})");
  ASSERT_TRUE(watch);
  EXPECT_EQ(watch->reason, "gone\\x1b[1m");
  EXPECT_EQ(excerpt("a\nb"), "\"a\\x0ab\"");
}

}  // namespace
}  // namespace viaduct::meet::etcd
