#include "s3/access.h"

#include <fcntl.h>
#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "base/environment.h"
#include "base/fd.h"
#include "base/file_error.h"
#include "base/read_fd.h"
#include "base/text.h"

namespace viaduct::s3 {
namespace {

constexpr std::size_t kMostFileBytes = std::size_t{1} << 20U;

std::string regionOf(const Settings& settings) {
  const std::string region = kRegion.of(settings);
  return region.empty() ? "us-east-1" : region;
}

Error noCredentials(Code code, std::string detail, std::string file) {
  return {.code = code,
          .operation = "find S3 credentials",
          .detail = std::move(detail),
          .device = "object",
          .file = std::move(file),
          .cause = "neither the environment nor the credentials file has keys",
          .remedy =
              "set AWS_ACCESS_KEY_ID and AWS_SECRET_ACCESS_KEY, or write them to "
              "~/.aws/credentials (docs/objects.md)"};
}

std::string credentialsFile(const Settings& settings) {
  if (std::string named = kCredentialsFile.of(settings); !named.empty()) return named;
  const char* const home = base::variable("HOME");
  return home == nullptr ? "" : fmt::format("{}/.aws/credentials", home);
}

Result<Credentials> fileCredentials(const Settings& settings) {
  const std::string file = credentialsFile(settings);
  if (file.empty()) return noCredentials(Code::kNotFound, "HOME is unset", "");
  const base::Fd fd(::open(file.c_str(), O_RDONLY | O_CLOEXEC));
  std::string text;
  const int failed = fd ? base::readAll(fd.get(), text, kMostFileBytes) : errno;
  if (failed != 0) {
    Error error = base::fileError("read S3 credentials", failed, file);
    error.device = "object";
    error.remedy = noCredentials(Code::kNotFound, "", "").remedy;
    return error;
  }
  const std::string profile = kProfile.of(settings);
  return credentialsIn(text, profile.empty() ? "default" : profile, file);
}

Result<Credentials> findCredentials(const Settings& settings) {
  Credentials out{kAccessKey.of(settings), kSecretKey.of(settings), kSessionToken.of(settings)};
  if (out.access_key.empty() && out.secret_key.empty()) return fileCredentials(settings);
  if (out.access_key.empty() || out.secret_key.empty())
    return noCredentials(
        Code::kInvalid,
        fmt::format("only {} is set",
                    out.access_key.empty() ? kSecretKey.variable : kAccessKey.variable),
        "");
  return out;
}

}  // namespace

Result<Credentials> credentialsIn(std::string_view text, std::string_view profile,
                                  const std::string& file) {
  Credentials out;
  std::string section;
  for (const std::string& line : base::partsOf(text, '\n')) {
    const std::string_view words = base::trimmed(line);
    if (words.starts_with('[') && words.ends_with(']'))
      section = base::trimmed(words.substr(1, words.size() - 2));
    const auto equals = words.find('=');
    if (section != profile || equals == std::string_view::npos) continue;
    const std::string name = base::lower(base::trimmed(words.substr(0, equals)));
    const std::string value(base::trimmed(words.substr(equals + 1)));
    if (name == "aws_access_key_id") out.access_key = value;
    if (name == "aws_secret_access_key") out.secret_key = value;
    if (name == "aws_session_token") out.session_token = value;
  }
  if (out.access_key.empty() || out.secret_key.empty())
    return noCredentials(Code::kNotFound,
                         fmt::format("the section [{}] has no pair of keys", profile), file);
  return out;
}

Result<Endpoint> resolveEndpoint(const Settings& settings) {
  Endpoint out = amazonEndpoint(regionOf(settings));
  if (const std::string url = kEndpoint.of(settings); !url.empty()) {
    VIADUCT_TRY(out, parseEndpoint(url));
  }
  out.style = kStyle.of(settings).value_or(out.style);
  return out;
}

Result<Access> resolveAccess(const Settings& settings) {
  Access out{.region = regionOf(settings), .ca_file = kCa.of(settings)};
  VIADUCT_TRY(out.endpoint, resolveEndpoint(settings));
  VIADUCT_TRY(out.credentials, findCredentials(settings));
  return out;
}

HttpRequest signedRequest(HttpRequest request, const Unsigned& rest, const Access& access) {
  request.url = rest.place.url(access.endpoint, rest.query);
  for (std::string& line : signatureLines({.method = request.method,
                                           .place = rest.place,
                                           .query = rest.query,
                                           .payload_hash = rest.payload_hash,
                                           .region = access.region,
                                           .time = rest.time},
                                          access.credentials))
    request.head.push_back(std::move(line));
  return request;
}

}  // namespace viaduct::s3
