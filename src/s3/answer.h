// A request to an object store and its answer: headers, XML, and the errors that they mean.
// Threads: plain values, pure functions.
#pragma once

#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "s3/signature.h"

namespace viaduct::s3 {

// The first and the last byte, both included.
struct ByteRange {
  std::uint64_t first = 0, last = 0;
  std::uint64_t bytes() const { return last - first + 1; }
  friend bool operator==(const ByteRange&, const ByteRange&) = default;
};

struct HttpRequest {
  std::string_view method = "GET";
  std::string url = {};
  std::vector<std::string> head = {};   // lines without their ends
  std::string body = {};                // of a POST
  std::optional<ByteRange> range = {};  // of a GET
};

// The reason why there is no usable answer.
enum class Fault : std::uint8_t {
  kNone,
  kName,        // the host's name does not resolve
  kConnection,  // no whole answer came: refused, reset, cut off, silent
  kHandshake,   // no TLS session began
  kCertificate,
  kNotARange,  // 200 to a request for a range
  kWrongRange,
  kWrongLength,
  kMemory,  // the user's memory is gone or protected
  kOther,   // libcurl's, such as a malformed head
};

struct Answer {
  Fault fault = Fault::kNone;
  std::string fault_text = {};  // libcurl's and the system's
  long status = 0;              // 0: none came
  std::string body = {};        // not of a range
  std::string etag = {}, content_length = {}, content_range = {}, date = {},
              region = {};  // headers
};

// Parses "bytes 0-9/100": returns {0, 9}, and sets `total` to 100, or to nothing for "*".
std::optional<ByteRange> parseContentRange(std::string_view text,
                                           std::optional<std::uint64_t>& total);
// The unescaped text of the first element of that name; empty: there is none.
std::string xmlText(std::string_view xml, std::string_view name);
std::string escapeXml(std::string_view text);
// "Wed, 25 Nov 2026 22:20:18 GMT" or "2026-11-25T22:20:18Z".
std::optional<std::chrono::system_clock::time_point> parseTime(const std::string& text);

// The text without the keys.
std::string withoutKeys(std::string text, const Credentials& credentials);
// A server's text, fit for errors and logs: printable, bounded, and without the keys, because a
// server may repeat the request's head.
std::string shown(std::string_view text, const Credentials& credentials);

// The request that an answer belongs to, for texts.
struct Asked {
  std::string operation;  // "GET s3://bucket/key bytes 0-9"
  const Place& place;     // where it was sent
  const Credentials& credentials;
  std::chrono::system_clock::time_point time;
};
struct Failure {
  Error error;
  bool again = false;  // another try may succeed
};
// The failure that an answer means. Nothing: the answer is a success. An answer of 200 may contain
// an error.
std::optional<Failure> failureOf(const Answer& answer, const Asked& asked);

}  // namespace viaduct::s3
