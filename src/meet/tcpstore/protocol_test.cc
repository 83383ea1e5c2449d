#include "meet/tcpstore/protocol.h"

#include <gtest/gtest.h>

namespace viaduct::meet::tcpstore {
namespace {

std::string bytes(std::initializer_list<int> all) {
  std::string out;
  for (const int one : all) out.push_back(static_cast<char>(one));
  return out;
}

// The expected bytes were recorded from torch's own clients.
TEST(TcpStoreProtocol, QueriesHaveTheNumbersOfTheirDialect) {
  const std::string key = bytes({2, 0, 0, 0, 0, 0, 0, 0, '/', 'k'});
  const std::string value = bytes({1, 0, 0, 0, 0, 0, 0, 0, 'v'});
  EXPECT_EQ(setQuery(Dialect::kFirst, "/k", "v"), bytes({0}) + key + value);
  EXPECT_EQ(setQuery(Dialect::kSecond, "/k", "v"), bytes({1}) + key + value);
  const std::string none = bytes({0, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(compareSetQuery(Dialect::kFirst, "/k", "", "v"), bytes({1}) + key + none + value);
  EXPECT_EQ(compareSetQuery(Dialect::kSecond, "/k", "", "v"), bytes({2}) + key + none + value);
  const std::string one = bytes({1, 0, 0, 0, 0, 0, 0, 0});
  EXPECT_EQ(waitQuery(Dialect::kFirst, "/k"), bytes({5}) + one + key);
  EXPECT_EQ(waitQuery(Dialect::kSecond, "/k"), bytes({6}) + one + key);
  EXPECT_EQ(deleteQuery(Dialect::kFirst, "/k"), bytes({8}) + key);
  EXPECT_EQ(greeting(), bytes({0, 0xCE, 0xF7, 0x85, 0x3C}));
}

// torch 1.x reads a query's first nine bytes before it looks at them, and must not wait for more.
TEST(TcpStoreProtocol, TheFirstDialectRefusesAProbeAtOnce) {
  const std::string sent = probe();
  ASSERT_GE(sent.size(), 9U);
  EXPECT_EQ(sent[0], '\0') << "SET";
  EXPECT_GE(static_cast<unsigned char>(sent[8]), 1U) << "a key of 2^56 bytes or more";
}

TEST(TcpStoreProtocol, AnAnswerIsReadOnceItIsComplete) {
  const std::string whole = bytes({2, 0, 0, 0, 0, 0, 0, 0, 'a', 'b'});
  for (std::size_t i = 0; i < whole.size(); ++i) {
    const auto part = parseAnswer(Form::kBytes, whole.substr(0, i));
    ASSERT_TRUE(part) << part.error().text();
    EXPECT_FALSE(*part) << i;
  }
  const auto answer = parseAnswer(Form::kBytes, whole + "next");
  ASSERT_TRUE(answer && *answer);
  EXPECT_EQ((*answer)->bytes, "ab");
  EXPECT_EQ((*answer)->size, whole.size());
}

TEST(TcpStoreProtocol, AForeignAnswerIsRefused) {
  for (const Form form : {Form::kBytes, Form::kNumber, Form::kByte}) {
    const auto answer = parseAnswer(form, "HTTP/1.1 400 Bad Request");
    ASSERT_FALSE(answer);
    EXPECT_EQ(answer.error().code, Code::kProtocol);
  }
}

}  // namespace
}  // namespace viaduct::meet::tcpstore
