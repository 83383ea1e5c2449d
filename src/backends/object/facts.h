// Facts about the backend object, and the rows of its settings. Threads: constants and pure
// functions.
#pragma once

#include <viaduct/backend.h>

#include <array>
#include <cstdint>

#include "core/setting_row.h"
#include "core/words.h"
#include "s3/access.h"

namespace viaduct::object {

inline constexpr std::string_view kPartSize = "VIADUCT_OBJECT_PART";
inline constexpr std::string_view kConnections = "VIADUCT_OBJECT_CONNECTIONS";
inline constexpr std::string_view kRetries = "VIADUCT_OBJECT_RETRIES";
inline constexpr std::string_view kSignBodies = "VIADUCT_OBJECT_SIGN_BODIES";

inline constexpr std::string_view kDefaultPart = "8MiB", kDefaultConnections = "16",
                                  kDefaultRetries = "8";

using core::keepOther;
using core::otherText;

template <const std::string_view& Variable>
Status parseAny(std::string_view text, Settings& into) {
  keepOther(into, Variable, text, "");
  return Ok{};
}

inline Status parseStyle(std::string_view text, Settings& into) {
  if (!core::isOneOf(text, {"auto", "path", "virtual"}))
    return core::expectedForm("auto, path or virtual");
  keepOther(into, s3::kStyle, text, "auto");
  return Ok{};
}

inline Status parsePart(std::string_view text, Settings& into) {
  std::uint64_t bytes = 0;
  VIADUCT_CHECK(core::parseSize(text, 5 * base::kMiB, 64 * base::kMiB, bytes));
  keepOther(into, kPartSize, base::formatSize(bytes), kDefaultPart);
  return Ok{};
}

template <const std::string_view& Variable, const std::string_view& Fallback, std::uint64_t Least,
          std::uint64_t Most>
Status parseNumber(std::string_view text, Settings& into) {
  std::uint32_t number = 0;
  VIADUCT_CHECK(core::parseCount(text, Least, Most, number));
  keepOther(into, Variable, std::to_string(number), Fallback);
  return Ok{};
}

inline Status parseSignBodies(std::string_view text, Settings& into) {
  Toggle toggle = Toggle::kAuto;
  VIADUCT_CHECK(core::parseToggle(text, toggle));
  keepOther(into, kSignBodies, core::showToggle(toggle), "auto");
  return Ok{};
}

template <const std::string_view& Variable, const std::string_view& Fallback>
std::string showOther(const Settings& settings) {
  return otherText(settings, Variable, Fallback);
}
inline constexpr std::string_view kNothing, kAuto = "auto";

template <const std::string_view& Variable>
constexpr SettingRow textRow(std::string_view help) {
  return {.variable = Variable, .fallback = "", .help = help, .parse = parseAny<Variable>};
}
// Another system's variable for the same setting.
template <const std::string_view& Variable>
constexpr SettingRow aliasRow(std::string_view alias, std::string_view help) {
  return {.variable = alias,
          .fallback = "",
          .help = help,
          .parse = parseAny<Variable>,
          .instead_of = Variable};
}

inline constexpr std::array kSettings{
    textRow<s3::kEndpoint>(
        "For the backend object: where the object store answers, https://host[:port]. By default "
        "Amazon S3 in the region."),
    SettingRow{.variable = s3::kRegion,
               .fallback = "",
               .help = "For the backend object: the region in signatures. By default us-east-1.",
               .parse = parseAny<s3::kRegion>,
               .show = showOther<s3::kRegion, kNothing>},
    SettingRow{.variable = s3::kStyle,
               .fallback = kAuto,
               .help = "For the backend object: where requests name the bucket. path: before the "
                       "key; virtual: in the host name; auto: path if an endpoint is set.",
               .parse = parseStyle,
               .show = showOther<s3::kStyle, kAuto>},
    SettingRow{.variable = kPartSize,
               .fallback = kDefaultPart,
               .help = "For the backend object: largest range or part of one request, from 5MiB to "
                       "64MiB. Parts of an object above 10,000 parts are larger.",
               .parse = parsePart,
               .show = showOther<kPartSize, kDefaultPart>},
    SettingRow{.variable = kConnections,
               .fallback = kDefaultConnections,
               .help = "For the backend object: requests in flight at once, from 1 to 256.",
               .parse = parseNumber<kConnections, kDefaultConnections, 1, 256>,
               .show = showOther<kConnections, kDefaultConnections>},
    SettingRow{.variable = kRetries,
               .fallback = kDefaultRetries,
               .help = "For the backend object: how often a request is repeated after an error of "
                       "the server or the connection, from 0 to 100.",
               .parse = parseNumber<kRetries, kDefaultRetries, 0, 100>,
               .show = showOther<kRetries, kDefaultRetries>},
    SettingRow{.variable = kSignBodies,
               .fallback = kAuto,
               .help = "For the backend object: whether signatures cover the written bytes. auto: "
                       "with http; on: always; off: never.",
               .parse = parseSignBodies,
               .show = showOther<kSignBodies, kAuto>},
    textRow<s3::kCa>(
        "For the backend object: file with the CA certificates that verify the server."),
    textRow<s3::kCredentialsFile>(
        "For the backend object: file with access keys. By default ~/.aws/credentials."),
    textRow<s3::kProfile>(
        "For the backend object: section of the credentials file. By default default."),
    aliasRow<s3::kEndpoint>("AWS_ENDPOINT_URL",
                            "Alias of VIADUCT_OBJECT_ENDPOINT, read if that is unset."),
    aliasRow<s3::kEndpoint>("AWS_ENDPOINT_URL_S3", "The same; stronger than AWS_ENDPOINT_URL."),
    aliasRow<s3::kRegion>("AWS_DEFAULT_REGION",
                          "Alias of VIADUCT_OBJECT_REGION, read if that is unset."),
    aliasRow<s3::kRegion>("AWS_REGION", "The same; stronger than AWS_DEFAULT_REGION."),
    aliasRow<s3::kCa>("AWS_CA_BUNDLE", "Alias of VIADUCT_OBJECT_CA, read if that is unset."),
    aliasRow<s3::kCredentialsFile>("AWS_SHARED_CREDENTIALS_FILE",
                                   "Alias of VIADUCT_OBJECT_CREDENTIALS, read if that is unset."),
    aliasRow<s3::kProfile>("AWS_PROFILE",
                           "Alias of VIADUCT_OBJECT_PROFILE, read if that is unset."),
    textRow<s3::kAccessKey>(
        "For the backend object: access key; stronger than the credentials file."),
    textRow<s3::kSecretKey>("For the backend object: secret of AWS_ACCESS_KEY_ID."),
    textRow<s3::kSessionToken>("For the backend object: token of a temporary AWS_ACCESS_KEY_ID."),
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
