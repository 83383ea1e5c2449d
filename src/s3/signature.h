// Signatures of requests to S3: AWS Signature Version 4, in headers. Threads: pure functions.
#pragma once

#include <chrono>
#include <string>
#include <string_view>
#include <vector>

#include "base/net/crypto.h"
#include "s3/object_name.h"

namespace viaduct::s3 {

// Credentials never become part of an error, a log line or a report.
struct Credentials {
  std::string access_key = {}, secret_key = {};
  std::string session_token = {};  // empty: the keys are permanent
  friend bool operator==(const Credentials&, const Credentials&) = default;
};

// The hash of a body that is not signed; only TLS protects it.
inline constexpr std::string_view kUnsignedPayload = "UNSIGNED-PAYLOAD";
// The hash of no bytes.
inline constexpr std::string_view kEmptyPayload =
    "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855";

// The signed parts of one request.
struct Signed {
  std::string_view method;
  const Place& place;
  const Query& query;
  std::string_view payload_hash;
  std::string_view region;
  std::chrono::system_clock::time_point time;
};
// The lines of the request's head that carry the signature, and no line for Host.
std::vector<std::string> signatureLines(const Signed& request, const Credentials& credentials);

}  // namespace viaduct::s3
