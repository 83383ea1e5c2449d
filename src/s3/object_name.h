// The names of objects, and their URLs. Threads: plain values, pure functions.
#pragma once

#include <viaduct/result.h>

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::s3 {

struct ObjectName {
  std::string bucket = {}, key = {};
  std::string text() const { return "s3://" + bucket + "/" + key; }
  friend bool operator==(const ObjectName&, const ObjectName&) = default;
};
// Parses "s3://bucket/key". The error names the wrong part.
Result<ObjectName> parseObjectName(std::string_view text);

// RFC 3986: all bytes but letters, digits and "-._~" become "%41".
std::string encodeUri(std::string_view text);
// Like encodeUri(), for each segment of a path. The slashes stay.
std::string encodePath(std::string_view path);

// Unencoded names and values.
using Query = std::vector<std::pair<std::string, std::string>>;
// "name=value&...", encoded, and sorted by encoded name as signatures need it.
std::string encodeQuery(const Query& query);

enum class AddressStyle : std::uint8_t { kPath, kVirtual };
// Parses "path" and "virtual". "auto": nothing.
Status parseStyle(std::string_view text, std::optional<AddressStyle>& into);

// The server of an object store.
struct Endpoint {
  bool tls = true;
  std::string host = {};    // "s3.eu-west-1.amazonaws.com"
  std::string port = {};    // empty: that of the scheme
  std::string prefix = {};  // a path before all others; empty, or "/s3" without a slash at its end
  AddressStyle style = AddressStyle::kPath;
  friend bool operator==(const Endpoint&, const Endpoint&) = default;
};
// Parses "https://host[:port][/prefix]". The error names the wrong part.
Result<Endpoint> parseEndpoint(std::string_view url);
// "https://host[:port][/prefix]".
std::string endpointText(const Endpoint& endpoint);
// Amazon's own endpoint of a region.
Endpoint amazonEndpoint(std::string_view region);

// The place of an object at an endpoint.
struct Place {
  std::string host = {};  // as the header Host has it: with the port, unless it is the scheme's
  std::string path = {};  // encoded
  std::string url(const Endpoint& endpoint, const Query& query) const;
};
Place placeOf(const ObjectName& name, const Endpoint& endpoint);
// The place of the list of a bucket's objects; without a bucket, of the list of all buckets.
Place placeOfList(const std::string& bucket, const Endpoint& endpoint);

}  // namespace viaduct::s3
