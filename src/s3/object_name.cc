#include "s3/object_name.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdint>
#include <optional>

#include "base/text.h"
#include "core/setting_row.h"

namespace viaduct::s3 {
namespace {

constexpr std::string_view kScheme = "s3://";
constexpr std::size_t kMostKeyBytes = 1024;  // the limit of S3

Error malformed(std::string operation, std::string_view text, std::string detail,
                std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = std::move(operation),
          .detail = fmt::format("{}: {}", text, detail),
          .device = "object",
          .remedy = std::move(remedy)};
}

bool isUnreserved(char c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9') || c == '-' ||
         c == '.' || c == '_' || c == '~';
}

std::string encode(std::string_view text, bool keep_slash) {
  std::string out;
  out.reserve(text.size());
  for (const char c : text)
    if (isUnreserved(c) || (keep_slash && c == '/'))
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  return out;
}

bool isPort(std::string_view text) {
  const auto port = base::numberIn<std::uint16_t>(text);
  return port && *port != 0;
}

// The text for the header Host.
std::string hostAndPort(const Endpoint& endpoint) {
  return endpoint.host + (endpoint.port.empty() ? "" : ":" + endpoint.port);
}

bool isHost(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) {
    return isUnreserved(c) || c == ':' || c == '[' || c == ']';
  });
}

}  // namespace

Result<ObjectName> parseObjectName(std::string_view text) {
  const auto wrong = [&](const char* detail) {
    return malformed("name an object", text, detail, "give s3://bucket/key");
  };
  if (!text.starts_with(kScheme)) return wrong("it does not begin with s3://");
  const std::string_view rest = text.substr(kScheme.size());
  const auto slash = rest.find('/');
  if (slash == std::string_view::npos || slash + 1 == rest.size()) return wrong("it has no key");
  ObjectName out{std::string(rest.substr(0, slash)), std::string(rest.substr(slash + 1))};
  if (out.bucket.empty()) return wrong("it has no bucket");
  if (!std::ranges::all_of(out.bucket, isUnreserved))
    return wrong("the bucket has a character that is not a letter, a digit or one of -._");
  if (out.key.size() > kMostKeyBytes) return wrong("the key has more than 1,024 bytes");
  if (out.key.find('\0') != std::string::npos) return wrong("the key has a NUL byte");
  return out;
}

std::string encodeUri(std::string_view text) { return encode(text, false); }
std::string encodePath(std::string_view path) { return encode(path, true); }

std::string encodeQuery(const Query& query) {
  Query encoded;
  for (const auto& [name, value] : query) encoded.emplace_back(encodeUri(name), encodeUri(value));
  std::ranges::sort(encoded);
  std::string out;
  for (const auto& [name, value] : encoded)
    out += fmt::format("{}{}={}", out.empty() ? "" : "&", name, value);
  return out;
}

Status parseStyle(std::string_view text, std::optional<AddressStyle>& into) {
  into.reset();
  if (text == "path") into = AddressStyle::kPath;
  if (text == "virtual") into = AddressStyle::kVirtual;
  if (into || text == "auto") return Ok{};
  return core::expectedForm("auto, path or virtual");
}

Result<Endpoint> parseEndpoint(std::string_view url) {
  const auto wrong = [&](const char* detail) {
    return malformed("parse an S3 endpoint", base::withoutUser(url), detail,
                     "give https://host[:port][/prefix]");
  };
  Endpoint out;
  out.tls = url.starts_with("https://");
  if (!out.tls && !url.starts_with("http://"))
    return wrong("it begins neither with https:// nor with http://");
  std::string_view rest = url.substr(url.find("//") + 2);
  const auto slash = std::min(rest.find('/'), rest.size());
  out.prefix = rest.substr(slash);
  while (out.prefix.ends_with('/')) out.prefix.pop_back();
  if (out.prefix.find_first_of("?#") != std::string::npos) return wrong("it has a query");
  rest = rest.substr(0, slash);
  if (rest.find('@') != std::string_view::npos) return wrong("it has a user name");
  const auto colon = rest.rfind(':');
  const bool has_port = colon != std::string_view::npos && !rest.ends_with(']');
  out.host = rest.substr(0, has_port ? colon : rest.size());
  if (!isHost(out.host)) return wrong("it has no valid host");
  if (!has_port) return out;
  const std::string_view port = rest.substr(colon + 1);
  if (!isPort(port)) return wrong("the port is not a number from 1 to 65535");
  if (port != (out.tls ? "443" : "80")) out.port = port;
  return out;
}

Endpoint amazonEndpoint(std::string_view region) {
  return {.host = fmt::format("s3.{}.amazonaws.com", region), .style = AddressStyle::kVirtual};
}

std::string endpointText(const Endpoint& endpoint) {
  return fmt::format("{}://{}{}", endpoint.tls ? "https" : "http", hostAndPort(endpoint),
                     endpoint.prefix);
}

Place placeOfList(const std::string& bucket, const Endpoint& endpoint) {
  if (bucket.empty()) return {hostAndPort(endpoint), endpoint.prefix + "/"};
  return placeOf({.bucket = bucket}, endpoint);
}

Place placeOf(const ObjectName& name, const Endpoint& endpoint) {
  const std::string key = "/" + encodePath(name.key);
  if (endpoint.style == AddressStyle::kVirtual)
    return {name.bucket + "." + hostAndPort(endpoint), endpoint.prefix + key};
  return {hostAndPort(endpoint), endpoint.prefix + "/" + name.bucket + key};
}

std::string Place::url(const Endpoint& endpoint, const Query& query) const {
  std::string out = fmt::format("{}://{}{}", endpoint.tls ? "https" : "http", host, path);
  if (!query.empty()) out += "?" + encodeQuery(query);
  return out;
}

}  // namespace viaduct::s3
