#include "s3/answer.h"

#include <fmt/format.h>
#include <time.h>

#include <algorithm>
#include <array>

#include "base/printable.h"
#include "base/text.h"

namespace viaduct::s3 {
namespace {

// A code of S3, with its cause and remedy.
struct KnownCode {
  std::string_view code, cause, remedy;
};
constexpr std::array kKnown{
    KnownCode{"SignatureDoesNotMatch",
              "the secret key is wrong, or a proxy changed the request or its host name",
              "check AWS_SECRET_ACCESS_KEY, the endpoint and VIADUCT_OBJECT_STYLE"},
    KnownCode{"InvalidAccessKeyId", "the store does not know this access key",
              "check AWS_ACCESS_KEY_ID, and that the endpoint is the store of this key"},
    KnownCode{"ExpiredToken", "the temporary keys have expired",
              "get new keys, and open the agent again"},
    KnownCode{"InvalidToken", "the session token does not belong to the access key",
              "set AWS_SESSION_TOKEN to the token that came with the keys, or unset it"},
    KnownCode{"AccessDenied", "a policy of the bucket or of the key forbids the request",
              "allow s3:GetObject, s3:PutObject and s3:AbortMultipartUpload for this key"},
    KnownCode{"NoSuchBucket", "the store has no such bucket, or another region has it",
              "create the bucket, or check its name, the endpoint and the region"},
    KnownCode{"NoSuchKey", "the store has no such object, or a write of it is not complete",
              "check the key, or write the object first"},
    KnownCode{"NoSuchUpload", "another process aborted or completed the upload",
              "check whether the object is complete, else write it again"},
    KnownCode{"PreconditionFailed", "the object was replaced after it was pinned",
              "pin the object again"},
    KnownCode{"InvalidRange", "the object is shorter than the pinned size",
              "pin no more bytes than the object has"},
    KnownCode{"PermanentRedirect", "another region has the bucket",
              "set VIADUCT_OBJECT_REGION to the bucket's region"},
    KnownCode{"AuthorizationHeaderMalformed", "the signature names another region",
              "set VIADUCT_OBJECT_REGION to the bucket's region"},
    KnownCode{"SlowDown", "the store limits the rate of requests",
              "lower VIADUCT_OBJECT_CONNECTIONS, or spread the keys over more prefixes"},
    KnownCode{"XAmzContentSHA256Mismatch", "the memory changed while it was written",
              "leave the memory unchanged until the transfer has ended"},
    KnownCode{"EntityTooLarge", "the store takes no object of this size", "write less"},
};

KnownCode known(std::string_view code) {
  const auto* const at =
      std::ranges::find_if(kKnown, [&](const KnownCode& one) { return one.code == code; });
  return at == kKnown.end() ? KnownCode{} : *at;
}

Code codeOf(long status, std::string_view s3) {
  if (status == 403 || status == 401 || s3 == "ExpiredToken" || s3 == "InvalidToken")
    return Code::kDenied;
  if (status == 404) return Code::kNotFound;
  if (status == 503 || status == 429 || s3 == "SlowDown") return Code::kBusy;
  if (status >= 500) return Code::kDevice;
  return Code::kInvalid;
}

bool mayRepeat(long status, std::string_view s3) {
  return status >= 500 || status == 429 || status == 408 || s3 == "RequestTimeout" ||
         s3 == "InternalError" || s3 == "SlowDown";
}

// The S3 code that a status means, for an answer whose body has no code, such as one to HEAD.
std::string_view codeWithoutBody(long status) {
  if (status == 301) return "PermanentRedirect";
  if (status == 403) return "AccessDenied";
  if (status == 404) return "NoSuchKey";
  if (status == 412) return "PreconditionFailed";
  if (status == 503) return "SlowDown";
  return {};
}

// Explains that this host's clock is wrong, with S3's time and its difference to ours.
void explainSkew(const Answer& answer, const Asked& asked, Error& error) {
  error.cause = "the clock of this host is wrong";
  error.remedy = "set the clock, for example with chrony";
  std::string text = xmlText(answer.body, "ServerTime");
  if (text.empty()) text = answer.date;
  const auto server = parseTime(text);
  if (!server) return;
  const auto off = std::chrono::duration_cast<std::chrono::seconds>(asked.time - *server).count();
  error.cause = fmt::format("the clock of this host is {} s {} that of the store",
                            off < 0 ? -off : off, off < 0 ? "behind" : "ahead of");
}

// Whether a text is fit for a command that the user is told to type.
bool isRegion(std::string_view text, const Credentials& credentials) {
  constexpr std::string_view kLetters = "abcdefghijklmnopqrstuvwxyz0123456789-";
  return !text.empty() && text.find_first_not_of(kLetters) == std::string_view::npos &&
         shown(text, credentials) == text;
}

Failure refused(const Answer& answer, const Asked& asked) {
  std::string code = xmlText(answer.body, "Code");
  if (code.empty()) code = codeWithoutBody(answer.status);
  const std::string message = shown(xmlText(answer.body, "Message"), asked.credentials);
  Error error{
      .code = codeOf(answer.status, code),
      .operation = asked.operation,
      .detail = fmt::format("HTTP {}{}{}{}{}", answer.status, code.empty() ? "" : " ",
                            shown(code, asked.credentials), message.empty() ? "" : ": ", message),
      .device = "object",
      .cause = std::string(known(code).cause),
      .remedy = std::string(known(code).remedy)};
  if (code == "RequestTimeTooSkewed") explainSkew(answer, asked, error);
  if (answer.status / 100 == 3 && isRegion(answer.region, asked.credentials))
    error.remedy = fmt::format("set VIADUCT_OBJECT_REGION={}", answer.region);
  if (error.cause.empty() && answer.status >= 500) error.cause = "the store has a fault of its own";
  if (error.remedy.empty()) error.remedy = "see the store's documentation of this code";
  return {std::move(error), mayRepeat(answer.status, code)};
}

Failure broken(const Answer& answer, const Asked& asked) {
  Error error{.code = Code::kProtocol,
              .operation = asked.operation,
              .detail = shown(answer.fault_text, asked.credentials),
              .device = "object"};
  bool again = false;
  switch (answer.fault) {
    case Fault::kName:
      error.code = Code::kPeerLost;
      error.cause = "the name is wrong, or its name server does not answer";
      error.remedy = "check the endpoint, and the name server in /etc/resolv.conf";
      again = true;
      break;
    case Fault::kHandshake:
      error.code = Code::kPeerLost;
      error.cause = fmt::format("{} speaks no TLS that this host accepts", asked.place.host);
      error.remedy = "check the port, and whether the endpoint is https or http";
      again = true;
      break;
    case Fault::kConnection:
      error.code = Code::kPeerLost;
      error.cause = fmt::format("{} is down, or the network to it is", asked.place.host);
      error.remedy = "check the endpoint, and that the store runs";
      again = true;
      break;
    case Fault::kCertificate:
      error.code = Code::kDenied;
      error.cause = "no trusted authority signed the server's certificate for this host name";
      error.remedy =
          "set VIADUCT_OBJECT_CA to the authority's file; for a bucket with dots, set "
          "VIADUCT_OBJECT_STYLE=path";
      break;
    case Fault::kNotARange:
      error.detail = fmt::format("HTTP {} in answer to a range", answer.status);
      error.cause = "the server or a proxy ignores the header Range";
      error.remedy = "use a store that serves ranges, or remove the proxy";
      break;
    case Fault::kWrongRange:
      error.detail = fmt::format(
          "the answer has Content-Range: {}",
          answer.content_range.empty() ? "none" : shown(answer.content_range, asked.credentials));
      error.cause = "the object is shorter than the pinned size, or the server is faulty";
      error.remedy = "pin no more bytes than the object has";
      break;
    case Fault::kWrongLength:
      error.detail = "the answer has another length than its range";
      error.cause = "the server or a proxy is faulty";
      error.remedy = "check the server";
      break;
    case Fault::kMemory:
      error.code = Code::kDevice;
      error.detail = "the memory is not mapped, or is protected";
      error.cause = "the program unmapped or protected memory during its transfer";
      error.remedy = "release the Pin before the memory";
      break;
    default:
      error.code = Code::kDevice;
  }
  return {std::move(error), again};
}

}  // namespace

std::optional<ByteRange> parseContentRange(std::string_view text,
                                           std::optional<std::uint64_t>& total) {
  constexpr std::string_view kUnit = "bytes ";
  total.reset();
  if (!base::lower(text).starts_with(kUnit)) return std::nullopt;
  text = base::trimmed(text.substr(kUnit.size()));
  const auto dash = text.find('-'), slash = text.find('/');
  if (dash == std::string_view::npos || slash == std::string_view::npos || dash > slash)
    return std::nullopt;
  const auto first = base::numberIn<std::uint64_t>(text.substr(0, dash));
  const auto last = base::numberIn<std::uint64_t>(text.substr(dash + 1, slash - dash - 1));
  total = base::numberIn<std::uint64_t>(text.substr(slash + 1));
  if (!first || !last || *last < *first || (!total && text.substr(slash + 1) != "*"))
    return std::nullopt;
  return ByteRange{*first, *last};
}

std::string xmlText(std::string_view xml, std::string_view name) {
  const std::string open = fmt::format("<{}>", name), close = fmt::format("</{}>", name);
  const auto from = xml.find(open);
  if (from == std::string_view::npos) return {};
  const auto begin = from + open.size(), end = xml.find(close, begin);
  if (end == std::string_view::npos) return {};
  std::string out(base::trimmed(xml.substr(begin, end - begin)));
  constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kEntities{{
      {"&quot;", "\""},
      {"&#34;", "\""},
      {"&apos;", "'"},
      {"&lt;", "<"},
      {"&gt;", ">"},
      {"&amp;", "&"},
  }};
  for (const auto& [entity, plain] : kEntities)
    for (auto at = out.find(entity); at != std::string::npos; at = out.find(entity, at + 1))
      out.replace(at, entity.size(), plain);
  return out;
}

std::string escapeXml(std::string_view text) {
  std::string out;
  for (const char c : text)
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else if (c == '"')
      out += "&quot;";
    else
      out += c;
  return out;
}

std::optional<std::chrono::system_clock::time_point> parseTime(const std::string& text) {
  for (const char* form : {"%a, %d %b %Y %H:%M:%S GMT", "%Y-%m-%dT%H:%M:%S"}) {
    tm parts{};
    if (::strptime(text.c_str(), form, &parts) != nullptr)
      return std::chrono::system_clock::from_time_t(::timegm(&parts));
  }
  return std::nullopt;
}

std::string withoutKeys(std::string text, const Credentials& credentials) {
  constexpr std::string_view kHidden = "***";
  for (const std::string* key :
       {&credentials.secret_key, &credentials.session_token, &credentials.access_key})
    for (std::size_t at = 0; !key->empty() && (at = text.find(*key, at)) != std::string::npos;
         at += kHidden.size())
      text.replace(at, key->size(), kHidden);
  return text;
}

std::string shown(std::string_view text, const Credentials& credentials) {
  constexpr std::size_t kMost = 300;
  return base::printable(withoutKeys(std::string(text), credentials), kMost);
}

std::optional<Failure> failureOf(const Answer& answer, const Asked& asked) {
  if (answer.fault != Fault::kNone) return broken(answer, asked);
  const bool hides_error = answer.body.find("<Error>") != std::string::npos;
  if (answer.status / 100 == 2 && !hides_error) return std::nullopt;
  return refused(answer, asked);
}

}  // namespace viaduct::s3
