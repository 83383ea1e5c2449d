#include "s3/signature.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "s3/answer.h"

namespace viaduct::s3 {
namespace {

// The vectors are those of botocore 1.29.27 (Debian's python3-boto3 1.26.27): the Authorization of
// botocore.auth.S3SigV4Auth.add_auth() for these requests, with datetime.utcnow() replaced by this
// time and payload() by the given hash.
class Signature : public ::testing::Test {
 protected:
  static std::string authorization(std::string_view method, std::string_view endpoint,
                                   AddressStyle style, const ObjectName& name, const Query& query,
                                   std::string_view hash, std::string_view region,
                                   const std::string& token = "") {
    auto where = *parseEndpoint(endpoint);
    where.style = style;
    const Place place = placeOf(name, where);
    lines_ = signatureLines({.method = method,
                             .place = place,
                             .query = query,
                             .payload_hash = hash,
                             .region = region,
                             .time = *parseTime("2026-11-25T22:20:18Z")},
                            {"AKIDEXAMPLE", "wJalrXUtnFEMI/K7MDENG+bPxRfiCYEXAMPLEKEY", token});
    return lines_.front();
  }
  static std::string signatureIn(const std::string& line) {
    return line.substr(line.rfind("Signature=") + 10);
  }
  static inline std::vector<std::string> lines_;
};

TEST_F(Signature, OfAGetWithTheBucketInTheHost) {
  EXPECT_EQ(
      authorization("GET", "https://s3.eu-west-1.amazonaws.com", AddressStyle::kVirtual,
                    {"kv", "block"}, {}, kEmptyPayload, "eu-west-1"),
      "Authorization: AWS4-HMAC-SHA256 Credential=AKIDEXAMPLE/20261125/eu-west-1/s3/aws4_request, "
      "SignedHeaders=host;x-amz-content-sha256;x-amz-date, "
      "Signature=82a9b1ad3887c7ab6bd930fdf8242e73ac2d1b07fbe3e283a7560f64d203f97f");
  EXPECT_EQ(lines_.back(), "x-amz-date: 20261125T222018Z");
}

TEST_F(Signature, OfAKeyWithReservedCharactersAndAPort) {
  EXPECT_EQ(signatureIn(authorization("GET", "http://127.0.0.1:9000", AddressStyle::kPath,
                                      {"kv", "a b/+=*/\xc3\xa9~-._:@$&'(),;!"}, {}, kEmptyPayload,
                                      "us-east-1")),
            "01e36f9cea70d536f7f610239d65fd894425d78b3f47e94911e2c37dde2b71b2");
}

TEST_F(Signature, OfAPartWithASessionTokenAndASortedQuery) {
  EXPECT_EQ(signatureIn(authorization("PUT", "https://host:8443", AddressStyle::kPath,
                                      {"kv", "big"}, {{"uploadId", "a+b/c=="}, {"partNumber", "7"}},
                                      kUnsignedPayload, "us-west-2", "TOKEN/with+signs==")),
            "5c066048ab6c0a0859f103f786a5bc4254b02e3d562848414db99a84c8e6bbc0");
  EXPECT_EQ(lines_.back(), "x-amz-security-token: TOKEN/with+signs==");
}

TEST_F(Signature, OfAQueryWithoutAValue) {
  EXPECT_EQ(signatureIn(authorization("POST", "https://host", AddressStyle::kPath, {"kv", "big"},
                                      {{"uploads", ""}}, kUnsignedPayload, "us-west-2")),
            "f4b620c673f4320817c0df7edfeb4feb542da58145abaffd1ce985e8e7f73136");
}

TEST_F(Signature, EmptyPayloadIsTheHashOfNothing) {
  EXPECT_EQ(base::hexText(base::Sha256().digest()), kEmptyPayload);
}

}  // namespace
}  // namespace viaduct::s3
