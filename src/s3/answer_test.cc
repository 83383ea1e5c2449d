#include "s3/answer.h"

#include <gtest/gtest.h>

namespace viaduct::s3 {
namespace {

const Place kPlace{"store", "/b/k"};
const Credentials kKeys{"AKID", "hidden", "token"};

std::optional<Failure> failure(const Answer& answer) {
  return failureOf(answer, {.operation = "GET s3://b/k",
                            .place = kPlace,
                            .credentials = kKeys,
                            .time = *parseTime("2026-11-25T22:20:18Z")});
}
Answer refusal(long status, const std::string& code, const std::string& more = "") {
  return {.status = status,
          .body = "<?xml version=\"1.0\"?><Error><Code>" + code + "</Code>" + more + "</Error>"};
}

TEST(ContentRange, IsTheUnitARangeAndATotal) {
  std::optional<std::uint64_t> total;
  EXPECT_EQ(parseContentRange("bytes 5-9/100", total), (ByteRange{5, 9}));
  EXPECT_EQ(total, 100U);
  EXPECT_EQ(parseContentRange("Bytes 0-0/*", total), (ByteRange{0, 0}));
  EXPECT_FALSE(total);
  for (const char* wrong : {"", "bytes 9-5/100", "bytes */100", "bytes 0-9", "items 0-9/10",
                            "bytes 0-9/x", "bytes a-9/10", "bytes 0/1-9"})
    EXPECT_FALSE(parseContentRange(wrong, total)) << wrong;
}

TEST(XmlText, IsUnescapedOnce) {
  EXPECT_EQ(xmlText("<A><B> &quot;x&quot;&amp;lt; </B></A>", "B"), "\"x\"&lt;");
  EXPECT_EQ(xmlText("<A><B>x</A>", "B"), "");
  EXPECT_EQ(escapeXml("\"<&>"), "&quot;&lt;&amp;&gt;");
}

TEST(FailureOf, NamesTheCodeTheCauseAndTheRemedy) {
  const struct {
    long status;
    const char* code;
    Code means;
    bool again;
    const char* cause;
  } rows[] = {
      {403, "SignatureDoesNotMatch", Code::kDenied, false, "secret key is wrong"},
      {403, "InvalidAccessKeyId", Code::kDenied, false, "does not know this access key"},
      {404, "NoSuchBucket", Code::kNotFound, false, "no such bucket"},
      {404, "NoSuchKey", Code::kNotFound, false, "no such object"},
      {503, "SlowDown", Code::kBusy, true, "rate of requests"},
      {500, "InternalError", Code::kDevice, true, "fault of its own"},
      {400, "RequestTimeout", Code::kInvalid, true, ""},
      {412, "PreconditionFailed", Code::kInvalid, false, "replaced"},
  };
  for (const auto& row : rows) {
    const auto out = failure(refusal(row.status, row.code, "<Message>its text</Message>"));
    ASSERT_TRUE(out) << row.code;
    const std::string text = out->error.text();
    EXPECT_EQ(out->error.code, row.means) << row.code;
    EXPECT_EQ(out->again, row.again) << row.code;
    EXPECT_FALSE(out->error.remedy.empty()) << row.code;
    for (const std::string& says :
         {std::string("GET s3://b/k"), std::to_string(row.status), std::string(row.code),
          std::string("its text"), std::string(row.cause)})
      EXPECT_NE(text.find(says), std::string::npos) << text;
  }
}

TEST(FailureOf, TellsByHowMuchTheClockIsOff) {
  const auto ahead = failure(
      refusal(403, "RequestTimeTooSkewed", "<ServerTime>2026-11-25T22:00:18Z</ServerTime>"));
  EXPECT_NE(ahead->error.cause.find("1200 s ahead of"), std::string::npos) << ahead->error.text();
  Answer answer = refusal(403, "RequestTimeTooSkewed");
  answer.date = "Wed, 25 Nov 2026 22:20:58 GMT";
  const auto behind = failure(answer);
  EXPECT_NE(behind->error.cause.find("40 s behind"), std::string::npos) << behind->error.text();
}

// A text from the server, wherever an answer can carry one.
std::vector<Answer> answersWith(const std::string& text) {
  return {refusal(400, "Odd", "<Message>" + text + "</Message>"),
          refusal(400, text),
          {.fault = Fault::kWrongRange, .content_range = text},
          {.fault = Fault::kName, .fault_text = text},
          {.fault = Fault::kOther, .fault_text = text},
          {.status = 301, .region = text},
          refusal(403, "RequestTimeTooSkewed", "<ServerTime>" + text + "</ServerTime>"),
          {.status = 403, .body = refusal(403, "RequestTimeTooSkewed").body, .date = text}};
}

TEST(FailureOf, NeverShowsASecret) {
  for (const char* text : {"got AKID hidden token hidden", "hidden", "AKID", "token"})
    for (const Answer& answer : answersWith(text))
      for (const char* secret : {"AKID", "hidden", "token"})
        EXPECT_EQ(failure(answer)->error.text().find(secret), std::string::npos)
            << failure(answer)->error.text();
  EXPECT_EQ(shown("a**b", {.access_key = "", .secret_key = "**"}), "a***b");
}

TEST(FailureOf, IsOneShortPrintableLine) {
  const std::string text = "x\nviaduct[1] error: \x1b[2J" + std::string(5000, 'y');
  for (const Answer& answer : answersWith(text)) {
    const std::string line = failure(answer)->error.text();
    EXPECT_EQ(line.find_first_of("\n\x1b"), std::string::npos) << line;
    EXPECT_LT(line.size(), 1000U) << line;
  }
}

TEST(FailureOf, FindsAnErrorBehindStatus200) {
  EXPECT_FALSE(failure({.status = 200, .body = "<CompleteMultipartUploadResult/>"}));
  const auto out = failure(refusal(200, "InternalError"));
  ASSERT_TRUE(out);
  EXPECT_TRUE(out->again);
}

TEST(FailureOf, RepeatsOnlyWhatMayChange) {
  for (const Fault fault : {Fault::kName, Fault::kConnection, Fault::kHandshake})
    EXPECT_TRUE(failure({.fault = fault, .fault_text = "reset"})->again);
  for (const Fault fault : {Fault::kNotARange, Fault::kWrongRange, Fault::kWrongLength,
                            Fault::kMemory, Fault::kCertificate, Fault::kOther})
    EXPECT_FALSE(failure({.fault = fault})->again);
}

TEST(FailureOf, NamesTheRegionOfARedirect) {
  const auto out = failure({.status = 301, .region = "eu-west-1"});
  EXPECT_NE(out->error.remedy.find("VIADUCT_OBJECT_REGION=eu-west-1"), std::string::npos)
      << out->error.text();
  const auto command = failure({.status = 301, .region = "x; rm -r ."});
  EXPECT_EQ(command->error.text().find("rm -r"), std::string::npos) << command->error.text();
}

}  // namespace
}  // namespace viaduct::s3
