// The queries of torch's TCPStore and their answers, as bytes, in both of its dialects. Threads:
// pure functions.
#pragma once

#include <viaduct/result.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace viaduct::meet::tcpstore {

enum class Dialect : std::uint8_t {
  kFirst,   // torch 1.x: no greeting
  kSecond,  // torch 2.x: each connection begins with a greeting
};
const char* dialectName(Dialect dialect);

// The queries that we use.
enum class Query : std::uint8_t { kSet, kCompareSet, kWait, kCountKeys, kDelete };

// The form of a query's answer.
enum class Form : std::uint8_t { kNone, kBytes, kNumber, kByte };
Form answerForm(Query query);

// The most bytes of a value that torch itself accepts (libuv backend), and so of an answer.
inline constexpr std::uint64_t kMaxAnswer = std::uint64_t{8} << 20U;

// Begins each connection of the second dialect. The store does not answer it.
std::string greeting();
// A greeting and kProbeQueries counts of the keys, which the second dialect answers. The first
// dialect takes these bytes for the length of a text that no memory holds, and closes the
// connection at once.
std::string probe();
inline constexpr int kProbeQueries = 4;

std::string setQuery(Dialect dialect, std::string_view key, std::string_view value);
// Stores `desired` if the key has the value `expected`, or if it does not exist and `expected` is
// empty. The answer is the value afterwards. For a missing key and another `expected` it is
// `expected`, or empty.
std::string compareSetQuery(Dialect dialect, std::string_view key, std::string_view expected,
                            std::string_view desired);
// Answered once the key exists.
std::string waitQuery(Dialect dialect, std::string_view key);
std::string deleteQuery(Dialect dialect, std::string_view key);
std::string countKeysQuery(Dialect dialect);

struct Answer {
  std::string bytes = {};
  std::uint64_t number = 0;
  std::size_t size = 0;  // on the wire
};
// Reads an answer from the front of `in`. Nothing: more bytes have to come. Fails with kProtocol if
// no TCPStore answers so.
Result<std::optional<Answer>> parseAnswer(Form form, std::string_view in);

}  // namespace viaduct::meet::tcpstore
