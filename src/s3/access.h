// The way to an object store: its endpoint, its region and the keys, from settings. Threads: pure,
// except that the keys may come from a file.
#pragma once

#include <viaduct/result.h>
#include <viaduct/settings.h>

#include <chrono>
#include <optional>
#include <string>
#include <string_view>

#include "core/setting_row.h"
#include "s3/answer.h"
#include "s3/object_name.h"
#include "s3/signature.h"

namespace viaduct::s3 {

// The settings. A wrong endpoint in AWS_ENDPOINT_URL is an error only for the first object, because
// other programs use that variable too.
inline constexpr core::OtherText kEndpoint{"VIADUCT_OBJECT_ENDPOINT", "", core::parseText};
inline constexpr core::OtherText kRegion{"VIADUCT_OBJECT_REGION", "", core::parseText};
// The address style. Nothing: the endpoint decides.
inline constexpr core::OtherSetting<std::optional<AddressStyle>> kStyle{"VIADUCT_OBJECT_STYLE",
                                                                        "auto", parseStyle};
inline constexpr core::OtherText kCa{"VIADUCT_OBJECT_CA", "", core::parseText};
inline constexpr core::OtherText kCredentialsFile{"VIADUCT_OBJECT_CREDENTIALS", "",
                                                  core::parseText};
inline constexpr core::OtherText kProfile{"VIADUCT_OBJECT_PROFILE", "", core::parseText};
inline constexpr core::OtherText kAccessKey{"AWS_ACCESS_KEY_ID", "", core::parseText};
inline constexpr core::OtherText kSecretKey{"AWS_SECRET_ACCESS_KEY", "", core::parseText};
inline constexpr core::OtherText kSessionToken{"AWS_SESSION_TOKEN", "", core::parseText};

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

// Completes a request by its URL and its signature. `payload_hash` is the hash of its body.
struct Unsigned {
  const Place& place;
  const Query& query;
  std::string_view payload_hash;
  std::chrono::system_clock::time_point time;
};
HttpRequest signedRequest(HttpRequest request, const Unsigned& rest, const Access& access);

}  // namespace viaduct::s3
