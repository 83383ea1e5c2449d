#include "meet/etcd/endpoints.h"

#include <arpa/inet.h>
#include <fmt/format.h>
#include <netinet/in.h>

#include <charconv>

namespace viaduct::meet::etcd {
namespace {

constexpr std::size_t kMaxHost = 253;  // of a DNS name

// Parses one endpoint within the whole list, so that positions in errors refer to the user's text.
class Parser {
 public:
  explicit Parser(std::string_view all) : all_(all) {}

  Result<EtcdEndpoint> parse(std::size_t begin, std::size_t end) {
    at_ = begin;
    end_ = end;
    trim();
    if (at_ == end_) return wrong("an endpoint is missing here", at_);
    EtcdEndpoint out;
    VIADUCT_CHECK(scheme(out));
    VIADUCT_CHECK(all_[at_] == '[' ? bracketed(out) : name(out));
    VIADUCT_CHECK(port(out));
    if (at_ < end_ && all_[at_] == '/') ++at_;
    if (at_ < end_) return wrong("only a slash may follow host and port", at_);
    return out;
  }

 private:
  void trim() {
    while (at_ < end_ && all_[at_] == ' ') ++at_;
    while (end_ > at_ && all_[end_ - 1] == ' ') --end_;
  }

  Error wrong(std::string_view why, std::size_t where) const {
    std::string what = "its end";
    if (where < all_.size()) {
      const auto c = static_cast<unsigned char>(all_[where]);
      what =
          c > ' ' && c <= '~' ? fmt::format("'{}'", all_[where]) : fmt::format("byte 0x{:02x}", c);
    }
    return {.code = Code::kInvalid,
            .operation = "etcd endpoints",
            .detail = fmt::format("\"{}\": {} at position {}: {}", all_, what, where + 1, why),
            .remedy =
                "write http://host:2379, https://host:2379 or host:2379, several joined by "
                "commas, IPv6 in brackets"};
  }

  Status scheme(EtcdEndpoint& out) {
    const std::string_view text = all_.substr(at_, end_ - at_);
    const std::size_t found = text.find("://");
    if (found != std::string_view::npos) {
      const std::string_view what = text.substr(0, found);
      if (what != "http" && what != "https")
        return wrong("only http:// and https:// are known", at_);
      out.tls = what == "https";
      at_ += found + 3;
    }
    if (at_ == end_) return wrong("a host is missing here", at_);
    return Ok{};
  }

  Status bracketed(EtcdEndpoint& out) {
    const std::size_t close = all_.find(']', at_);
    if (close == std::string_view::npos || close >= end_) return wrong("this '[' has no ']'", at_);
    out.host = std::string(all_.substr(at_ + 1, close - at_ - 1));
    const std::string number = out.host.substr(0, out.host.find('%'));
    for (std::size_t i = 0; i < number.size(); ++i)
      if (std::string_view("0123456789abcdefABCDEF:.").find(number[i]) == std::string_view::npos)
        return wrong("this does not belong in an IPv6 address", at_ + 1 + i);
    in6_addr parsed;
    if (::inet_pton(AF_INET6, number.c_str(), &parsed) != 1)
      return wrong("the text in brackets is not an IPv6 address", at_);
    at_ = close + 1;
    if (at_ < end_ && all_[at_] != ':' && all_[at_] != '/')
      return wrong("only ':' and a port may follow ']'", at_);
    return Ok{};
  }

  static bool belongsInName(char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '-' ||
           c == '.' || c == '_';
  }

  Status name(EtcdEndpoint& out) {
    const std::size_t begin = at_;
    while (at_ < end_ && belongsInName(all_[at_])) ++at_;
    if (at_ < end_ && all_[at_] != ':' && all_[at_] != '/')
      return wrong("this does not belong in a host's name", at_);
    if (at_ == begin) return wrong("a host is missing here", at_);
    if (at_ - begin > kMaxHost)
      return wrong("the host's name is longer than 253 characters", begin);
    out.host = std::string(all_.substr(begin, at_ - begin));
    return Ok{};
  }

  Status port(EtcdEndpoint& out) {
    if (at_ == end_ || all_[at_] != ':') return Ok{};
    const std::size_t begin = ++at_;
    while (at_ < end_ && all_[at_] >= '0' && all_[at_] <= '9') ++at_;
    if (at_ < end_ && all_[at_] == ':')
      return wrong("write an IPv6 address in brackets: [fd00::1]:2379", at_);
    if (at_ < end_ && all_[at_] != '/') return wrong("this is not a digit of a port", at_);
    if (at_ == begin) return wrong("the port after ':' is missing", at_);
    const auto parsed = std::from_chars(all_.data() + begin, all_.data() + at_, out.port);
    if (parsed.ec != std::errc() || out.port == 0)
      return wrong("a port is a number from 1 to 65535", begin);
    return Ok{};
  }

  std::string_view all_;
  std::size_t at_ = 0, end_ = 0;
};

}  // namespace

std::string EtcdEndpoint::url() const {
  const bool v6 = host.find(':') != std::string::npos;
  return fmt::format("{}://{}{}{}:{}", tls ? "https" : "http", v6 ? "[" : "", host, v6 ? "]" : "",
                     port);
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
  Parser parser(text);
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t comma = text.find(',', begin);
    const std::size_t end = comma == std::string_view::npos ? text.size() : comma;
    VIADUCT_TRY(EtcdEndpoint one, parser.parse(begin, end));
    out.push_back(std::move(one));
    begin = end + 1;
  }
  return out;
}

}  // namespace viaduct::meet::etcd
