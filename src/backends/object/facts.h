// Facts about the backend object, and the rows of its settings. Threads: constants and pure
// functions.
#pragma once

#include <viaduct/backend.h>

#include <array>
#include <cstdint>
#include <string_view>

#include "base/sizes.h"
#include "core/setting_row.h"
#include "s3/access.h"

namespace viaduct::object {

inline constexpr core::OtherSetting<std::uint64_t> kPartSize{
    "VIADUCT_OBJECT_PART", "8MiB", [](std::string_view text, std::uint64_t& into) {
      return core::parseSize(text, 5 * base::kMiB, 64 * base::kMiB, into);
    }};
inline constexpr core::OtherSetting<std::uint32_t> kConnections{
    "VIADUCT_OBJECT_CONNECTIONS", "16", [](std::string_view text, std::uint32_t& into) {
      return core::parseCount(text, 1, 256, into);
    }};
inline constexpr core::OtherSetting<std::uint32_t> kRetries{
    "VIADUCT_OBJECT_RETRIES", "8", [](std::string_view text, std::uint32_t& into) {
      return core::parseCount(text, 0, 100, into);
    }};
inline constexpr core::OtherSetting<Toggle> kSignBodies{"VIADUCT_OBJECT_SIGN_BODIES", "auto",
                                                        core::parseToggle};

// Refuses a value that is no endpoint. Aliases are left to s3::resolveEndpoint().
constexpr SettingRow endpointRow(SettingRow row) {
  row.parse = [](std::string_view text, Settings& into) -> Status {
    if (!text.empty() && !s3::parseEndpoint(text))
      return core::expectedForm("https://host[:port][/prefix], without a user name");
    return s3::kEndpoint.keep(text, into);
  };
  return row;
}

inline constexpr std::array kSettings{
    endpointRow(core::unrecorded(core::otherRow<s3::kEndpoint>(
        "For the backend object: where the object store answers, https://host[:port]. By default "
        "Amazon S3 in the region."))),
    core::otherRow<s3::kRegion>(
        "For the backend object: the region in signatures. By default us-east-1."),
    core::otherRow<s3::kStyle>(
        "For the backend object: where requests name the bucket. path: before the key; virtual: in "
        "the host name; auto: path if an endpoint is set."),
    core::otherRow<kPartSize>(
        "For the backend object: largest range or part of one request, from 5MiB to 64MiB. Parts "
        "of an object above 10,000 parts are larger."),
    core::otherRow<kConnections>(
        "For the backend object: requests in flight at once, from 1 to 256."),
    core::otherRow<kRetries>(
        "For the backend object: how often a request is repeated after an error of the server or "
        "the connection, from 0 to 100."),
    core::otherRow<kSignBodies>(
        "For the backend object: whether signatures cover the written bytes. auto: with http; on: "
        "always; off: never."),
    core::unrecorded(core::otherRow<s3::kCa>(
        "For the backend object: file with the CA certificates that verify the server.")),
    core::unrecorded(core::otherRow<s3::kCredentialsFile>(
        "For the backend object: file with access keys. By default ~/.aws/credentials.")),
    core::unrecorded(core::otherRow<s3::kProfile>(
        "For the backend object: section of the credentials file. By default default.")),
    core::aliasRow<s3::kEndpoint>("AWS_ENDPOINT_URL",
                                  "Alias of VIADUCT_OBJECT_ENDPOINT, read if that is unset."),
    core::aliasRow<s3::kEndpoint>("AWS_ENDPOINT_URL_S3",
                                  "The same; stronger than AWS_ENDPOINT_URL."),
    core::aliasRow<s3::kRegion>("AWS_DEFAULT_REGION",
                                "Alias of VIADUCT_OBJECT_REGION, read if that is unset."),
    core::aliasRow<s3::kRegion>("AWS_REGION", "The same; stronger than AWS_DEFAULT_REGION."),
    core::aliasRow<s3::kCa>("AWS_CA_BUNDLE", "Alias of VIADUCT_OBJECT_CA, read if that is unset."),
    core::aliasRow<s3::kCredentialsFile>(
        "AWS_SHARED_CREDENTIALS_FILE",
        "Alias of VIADUCT_OBJECT_CREDENTIALS, read if that is unset."),
    core::aliasRow<s3::kProfile>("AWS_PROFILE",
                                 "Alias of VIADUCT_OBJECT_PROFILE, read if that is unset."),
    core::unrecorded(core::otherRow<s3::kAccessKey>(
        "For the backend object: access key; stronger than the credentials file.")),
    core::unrecorded(
        core::otherRow<s3::kSecretKey>("For the backend object: secret of AWS_ACCESS_KEY_ID.")),
    core::unrecorded(core::otherRow<s3::kSessionToken>(
        "For the backend object: token of a temporary AWS_ACCESS_KEY_ID.")),
};

inline constexpr std::array<std::string_view, 1> kAliases{"OBJ"};

inline constexpr BackendFacts kFacts{
    .name = "object",
    .aliases = kAliases,
    .realm = [](std::string_view) { return Realm::kSockets; },
    .storage = MemoryKind::kObject,
    .settings = kSettings,
};

}  // namespace viaduct::object
