#include "s3/signature.h"

#include <fmt/chrono.h>
#include <fmt/format.h>

#include "base/bytes.h"

namespace viaduct::s3 {
namespace {

using base::bytesOf;
using base::Hmac;
using base::Sha256Digest;

Sha256Digest signWith(const Sha256Digest& key, std::string_view text) {
  return Hmac(key).of({bytesOf(text)});
}

std::string hashOf(std::string_view text) {
  base::Sha256 hash;
  hash.add(bytesOf(text));
  return base::hexText(hash.digest());
}

}  // namespace

std::vector<std::string> signatureLines(const Signed& request, const Credentials& credentials) {
  const std::string time = fmt::format(
      "{:%Y%m%dT%H%M%SZ}", fmt::gmtime(std::chrono::system_clock::to_time_t(request.time)));
  const std::string_view day = std::string_view(time).substr(0, 8);
  const bool temporary = !credentials.session_token.empty();
  const std::string_view names = temporary
                                     ? "host;x-amz-content-sha256;x-amz-date;x-amz-security-token"
                                     : "host;x-amz-content-sha256;x-amz-date";
  std::string headers = fmt::format("host:{}\nx-amz-content-sha256:{}\nx-amz-date:{}\n",
                                    request.place.host, request.payload_hash, time);
  if (temporary) headers += fmt::format("x-amz-security-token:{}\n", credentials.session_token);
  const std::string canonical =
      fmt::format("{}\n{}\n{}\n{}\n{}\n{}", request.method, request.place.path,
                  encodeQuery(request.query), headers, names, request.payload_hash);
  const std::string scope = fmt::format("{}/{}/s3/aws4_request", day, request.region);
  const std::string text =
      fmt::format("AWS4-HMAC-SHA256\n{}\n{}\n{}", time, scope, hashOf(canonical));

  Sha256Digest key = Hmac(bytesOf("AWS4" + credentials.secret_key)).of({bytesOf(day)});
  for (const std::string_view part :
       {request.region, std::string_view("s3"), std::string_view("aws4_request")})
    key = signWith(key, part);
  const std::string signature = base::hexText(signWith(key, text));

  std::vector<std::string> lines{
      fmt::format("Authorization: AWS4-HMAC-SHA256 Credential={}/{}, SignedHeaders={}, "
                  "Signature={}",
                  credentials.access_key, scope, names, signature),
      fmt::format("x-amz-content-sha256: {}", request.payload_hash),
      fmt::format("x-amz-date: {}", time)};
  if (temporary)
    lines.push_back(fmt::format("x-amz-security-token: {}", credentials.session_token));
  return lines;
}

}  // namespace viaduct::s3
