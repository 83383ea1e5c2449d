// The way to an object store: its endpoint, its region and the keys, from settings. Threads: pure,
// except that the keys may come from a file.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <chrono>
#include <string>
#include <string_view>

#include "s3/answer.h"
#include "s3/object_name.h"
#include "s3/signature.h"

namespace viaduct::s3 {

// Names in Settings::others.
inline constexpr std::string_view kEndpoint = "VIADUCT_OBJECT_ENDPOINT";
inline constexpr std::string_view kRegion = "VIADUCT_OBJECT_REGION";
inline constexpr std::string_view kStyle = "VIADUCT_OBJECT_STYLE";
inline constexpr std::string_view kCa = "VIADUCT_OBJECT_CA";
inline constexpr std::string_view kCredentialsFile = "VIADUCT_OBJECT_CREDENTIALS";
inline constexpr std::string_view kProfile = "VIADUCT_OBJECT_PROFILE";
inline constexpr std::string_view kAccessKey = "AWS_ACCESS_KEY_ID";
inline constexpr std::string_view kSecretKey = "AWS_SECRET_ACCESS_KEY";
inline constexpr std::string_view kSessionToken = "AWS_SESSION_TOKEN";

struct Access {
  Endpoint endpoint = {};
  std::string region = {};
  std::string ca_file = {};  // empty: the system's
  Credentials credentials = {};
};
Result<Access> resolveAccess(const Settings& settings);
// The endpoint alone, which needs no keys.
Result<Endpoint> resolveEndpoint(const Settings& settings);

// The keys of one section of a credentials file. The error names the file and the section, and no
// line of the file.
Result<Credentials> credentialsIn(std::string_view text, std::string_view profile,
                                  const std::string& file);

// Completes a request by its URL and its signature. `payload_hash`: that of its body.
struct Unsigned {
  const Place& place;
  const Query& query;
  std::string_view payload_hash;
  std::chrono::system_clock::time_point time;
};
HttpRequest signedRequest(HttpRequest request, const Unsigned& rest, const Access& access);

}  // namespace viaduct::s3
