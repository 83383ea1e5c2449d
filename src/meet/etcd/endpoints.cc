#include "meet/etcd/endpoints.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "base/net/address.h"

namespace viaduct::meet::etcd {
namespace {

constexpr std::string_view kHttp = "http://", kHttps = "https://";

Error malformed(std::string detail) {
  return {.operation = "etcd endpoints",
          .detail = std::move(detail),
          .remedy =
              "write http://host:2379, https://host:2379 or host:2379, several joined by commas, "
              "IPv6 in brackets"};
}

// Parses one endpoint within the whole list, so that positions in errors refer to the user's text.
Result<EtcdEndpoint> parseOne(std::string_view all, std::size_t begin, std::size_t end) {
  while (begin < end && all[begin] == ' ') ++begin;
  while (end > begin && all[end - 1] == ' ') --end;
  if (begin == end)
    return malformed(fmt::format("\"{}\": an endpoint is missing at position {}", all, begin + 1));
  const std::string_view text = all.substr(begin, end - begin);
  EtcdEndpoint out{.tls = text.starts_with(kHttps)};
  if (text.starts_with(kHttp) || out.tls)
    begin += (out.tls ? kHttps : kHttp).size();
  else if (text.find("://") != std::string_view::npos)
    return malformed(
        fmt::format("\"{}\": only http:// and https:// are known at position {}", all, begin + 1));
  if (end > begin && all[end - 1] == '/') --end;
  auto where = base::parseHostPort(all, begin, end, kDefaultPort);
  if (!where) return malformed(where.error().detail);
  if (where->port == 0 || where->host == "*")
    return malformed(fmt::format("\"{}\": port 0 and the host * are not an etcd's", all));
  out.host = std::move(where->host);
  out.port = where->port;
  return out;
}

}  // namespace

std::string EtcdEndpoint::url() const {
  return fmt::format("{}{}", tls ? kHttps : kHttp, base::hostPortText(host, port));
}

Result<std::vector<EtcdEndpoint>> parseEndpoints(std::string_view text) {
  // The error omits the text, because a password is likely to precede the '@'.
  if (const std::size_t at = text.find('@'); at != std::string_view::npos)
    return Error{.operation = "etcd endpoints",
                 .detail = fmt::format("'@' at position {}: user and password do not belong in an "
                                       "endpoint",
                                       at + 1),
                 .remedy = "give them as separate settings"};
  std::vector<EtcdEndpoint> out;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    VIADUCT_TRY(EtcdEndpoint one, parseOne(text, begin, end));
    out.push_back(std::move(one));
    begin = end + 1;
  }
  return out;
}

}  // namespace viaduct::meet::etcd
