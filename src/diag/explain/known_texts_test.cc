#include "diag/explain/known_texts.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <set>
#include <string>

#include "diag/explain/finding_codes.h"
#include "diag/explain/log_reader.h"
#include "diag/explain/samples_testing.h"

namespace viaduct::diag {
namespace {

LogSummary summaryOf(std::string_view log) {
  LogScanner scanner;
  scanner.feed(log);
  return scanner.finish();
}

bool contains(std::string_view line, const TextPattern& pattern) {
  std::size_t at = 0;
  for (const std::string_view part : pattern) {
    at = line.find(part, at);
    if (at == std::string_view::npos) return false;
    at += part.size();
  }
  return true;
}

std::set<std::string_view> codesOfFindings() {
  std::set<std::string_view> out;
  for (const FindingCode& finding : findingCodesOfTexts()) out.insert(finding.code);
  return out;
}

TEST(KnownTexts, EachSampleLineHasExactlyItsText) {
  for (const LogSample& sample : allSamples()) {
    const LogSummary summary = summaryOf(sample.line);
    ASSERT_EQ(summary.findings.size(), 1U) << sample.line;
    EXPECT_EQ(summary.findings[0].text->code, sample.code) << sample.line;
    EXPECT_EQ(summary.findings[0].lines, 1U);
  }
}

TEST(KnownTexts, EachSampleLineIsFoundInsideJson) {
  for (const LogSample& sample : allSamples()) {
    const nlohmann::json json{{"log", "\x1b[31mE\x1b[0m " + std::string(sample.line) + "\n"}};
    const LogSummary summary = summaryOf(json.dump());
    ASSERT_EQ(summary.findings.size(), 1U) << json;
    EXPECT_EQ(summary.findings[0].text->code, sample.code) << json;
  }
}

TEST(KnownTexts, EveryPatternHasASampleLine) {
  for (const KnownText& text : knownTexts())
    for (const TextPattern& pattern : text.patterns) {
      const auto samples = allSamples();
      EXPECT_TRUE(std::ranges::any_of(samples,
                                      [&](const LogSample& sample) {
                                        return sample.code == text.code &&
                                               contains(sample.line, pattern);
                                      }))
          << text.code << ": " << pattern[0];
    }
}

TEST(KnownTexts, HarmlessLinesHaveNone) {
  for (const std::string_view line : harmlessLines())
    EXPECT_TRUE(summaryOf(line).findings.empty())
        << line << ": " << summaryOf(line).findings[0].text->code;
}

TEST(KnownTexts, TwoTextsOfOneLogAreBothFound) {
  const auto samples = allSamples();
  for (std::size_t i = 0; i < samples.size(); ++i)
    for (std::size_t j = 0; j < samples.size(); j += 7) {
      const LogSummary summary =
          summaryOf(std::string(samples[i].line) + "\n" + std::string(samples[j].line) + "\n");
      ASSERT_EQ(summary.findings.size(), samples[i].code == samples[j].code ? 1U : 2U)
          << samples[i].line << "\n"
          << samples[j].line;
      EXPECT_EQ(summary.findings[0].text->code, samples[i].code);
      EXPECT_EQ(summary.findings.back().text->code, samples[j].code);
    }
}

TEST(KnownTexts, CodesAreDifferent) {
  std::set<std::string_view> codes;
  for (const KnownText& text : knownTexts())
    EXPECT_TRUE(codes.insert(text.code).second) << text.code;
  EXPECT_EQ(codesOfFindings().size(), findingCodesOfTexts().size());
}

TEST(KnownTexts, EachHasAFix) {
  for (const KnownText& text : knownTexts()) {
    EXPECT_TRUE(text.code.starts_with("log.")) << text.code;
    EXPECT_FALSE(text.title.empty() || text.meaning.empty() || text.patterns.empty()) << text.code;
    const bool explains = text.kind == TextKind::kError || text.kind == TextKind::kWarning;
    EXPECT_EQ(explains, !text.causes.empty()) << text.code;
    for (const TextCause& cause : text.causes)
      EXPECT_FALSE(cause.cause.empty() || cause.fix.empty()) << text.code;
  }
}

TEST(KnownTexts, TheListOfFindingCodesIsComplete) {
  std::set<std::string_view> used;
  for (const KnownText& text : knownTexts())
    for (const TextCause& cause : text.causes)
      used.insert(cause.findings.begin(), cause.findings.end());
  EXPECT_EQ(used, codesOfFindings());
}

}  // namespace
}  // namespace viaduct::diag
