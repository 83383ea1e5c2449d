#include "diag/explain/log_reader.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <fstream>
#include <string>
#include <thread>

#include "base/fd.h"
#include "diag/explain/samples_testing.h"
#include "support/temporary_folder.h"

namespace viaduct::diag {
namespace {

using testing::TemporaryFolder;

constexpr std::string_view kFlush = "cq entry: Work Request Flushed Error";
constexpr std::string_view kProtection =
    "NCCL WARN NET/IB: Got completion from peer 10.1.8.30<55095> with "
    "status=IBV_WC_LOC_PROT_ERR(4) opcode=IBV_WC_SEND(0) reqSize=524288 vendor_err=81";

LogSummary scanned(std::string_view log, std::size_t part = std::string_view::npos) {
  LogScanner scanner;
  for (std::size_t at = 0; at < log.size(); at += std::min(part, log.size()))
    scanner.feed(log.substr(at, part));
  return scanner.finish();
}

std::string codesOf(const LogSummary& summary) {
  std::string out;
  for (const LogFinding& finding : summary.findings)
    out += std::string(finding.text->code) + " " + std::to_string(finding.lines) + " " +
           std::to_string(finding.first_line) + "-" + std::to_string(finding.last_line) + "\n";
  return out;
}

void expectSame(const LogSummary& a, const LogSummary& b) {
  EXPECT_EQ(a.bytes, b.bytes);
  EXPECT_EQ(a.lines, b.lines);
  ASSERT_EQ(codesOf(a), codesOf(b));
  for (std::size_t i = 0; i < a.findings.size(); ++i)
    EXPECT_EQ(a.findings[i].quote, b.findings[i].quote);
}

std::string firstQuote(std::string_view line) {
  const LogSummary summary = scanned(line);
  return summary.findings.empty() ? "nothing" : summary.findings[0].quote;
}

TEST(LogScanner, EqualTextsAreCounted) {
  const std::string log = "start\n" + std::string(kFlush) + "\nx\n" + std::string(kProtection) +
                          "\n" + std::string(kFlush) + "\n";
  const LogSummary summary = scanned(log);
  EXPECT_EQ(summary.lines, 5U);
  EXPECT_EQ(summary.bytes, log.size());
  EXPECT_EQ(codesOf(summary), "log.wr-flush 2 2-5\nlog.loc-prot-err 1 4-4\n");
}

TEST(LogScanner, ALineWithoutAnEndIsRead) {
  EXPECT_EQ(codesOf(scanned("x\n" + std::string(kFlush))), "log.wr-flush 1 2-2\n");
  EXPECT_EQ(scanned("x").lines, 1U);
  EXPECT_EQ(scanned("x\n").lines, 1U);
}

TEST(LogScanner, AnEmptyLogHasNothing) {
  const LogSummary summary = scanned("");
  EXPECT_EQ(summary.bytes, 0U);
  EXPECT_EQ(summary.lines, 0U);
  EXPECT_TRUE(summary.findings.empty());
}

TEST(LogScanner, ColoursAndLineEndsAreIgnored) {
  EXPECT_EQ(firstQuote("\x1b[31mERROR\x1b[0m IBV_WC_\x1b[1;31mLOC_PROT_ERR\x1b[0m\r\n"),
            "ERROR IBV_WC_LOC_PROT_ERR");
  EXPECT_EQ(codesOf(scanned("a\r\n" + std::string(kFlush) + "\r\nb\r\n")), "log.wr-flush 1 2-2\n");
}

TEST(LogScanner, ADamagedEscapeSequenceHidesNoLine) {
  EXPECT_EQ(codesOf(scanned("\x1b[38;5;\n" + std::string(kFlush) + "\n\x1b[")),
            "log.wr-flush 1 2-2\n");
}

TEST(LogScanner, ControlCharactersAreShownAsText) {
  EXPECT_EQ(firstQuote(std::string("a\0b\a\x9b\t", 6) + "IBV_WC_REM_OP_ERR"),
            "a\\x00b\\x07\\x9b IBV_WC_REM_OP_ERR");
}

TEST(LogScanner, LinesWrappedInJsonAreRead) {
  EXPECT_EQ(
      codesOf(scanned(R"({"log":"n:1:2 [0] NCCL INFO Using network Socket\n","stream":"x"})")),
      "log.nccl-socket 1 1-1\n");
  // A container's log in one JSON string: each line in it counts.
  EXPECT_EQ(
      codesOf(scanned(R"({"text":"a\nNCCL INFO Using network Socket\ncq: IBV_WC_REM_OP_ERR\n"})")),
      "log.nccl-socket 1 1-1\nlog.rem-op-err 1 1-1\n");
}

TEST(LogScanner, AMessageOfTwoTextsIsExplainedByThePreciseOne) {
  EXPECT_EQ(codesOf(scanned("NCCL WARN NET/IB: Got completion with status=IBV_WC_WR_FLUSH_ERR(5) "
                            "vendor err 249, after IBV_WC_LOC_PROT_ERR")),
            "log.loc-prot-err 1 1-1\n");
}

TEST(LogScanner, ALongLineIsQuotedInParts) {
  const std::string quote = firstQuote("2026-01-01 host-7 " + std::string(5000, 'x') +
                                       " IBV_WC_LOC_PROT_ERR(4) " + std::string(5000, 'y'));
  EXPECT_LT(quote.size(), 400U);
  EXPECT_TRUE(quote.starts_with("2026-01-01 host-7 xxx"));
  EXPECT_NE(quote.find("xxx ... xxx"), std::string::npos);
  EXPECT_NE(quote.find("IBV_WC_LOC_PROT_ERR(4)"), std::string::npos);
  EXPECT_TRUE(quote.ends_with("yyy ..."));
}

TEST(LogScanner, PartsOfAnySizeGiveTheSame) {
  std::string log;
  for (const LogSample& sample : allSamples()) {
    log += "\x1b[33m";
    log.append(sample.line).append("\x1b[0m\r\n");
  }
  log += std::string(300, '\0') + std::string(kFlush);
  const LogSummary whole = scanned(log);
  for (const std::size_t part : {1U, 2U, 3U, 7U, 64U, 1000U, 4096U})
    expectSame(scanned(log, part), whole);
}

TEST(LogScanner, ACutAtAnyByteGivesTheSame) {
  const std::string log = "start\n\x1b[31m" + std::string(kProtection) + "\x1b[0m\r\n" +
                          std::string(kFlush) + "\nlast \x1b[1mIBV_WC_REM_OP_ERR";
  const LogSummary whole = scanned(log);
  EXPECT_EQ(whole.findings.size(), 3U);
  for (std::size_t cut = 0; cut <= log.size(); ++cut) {
    LogScanner scanner;
    scanner.feed(std::string_view(log).substr(0, cut));
    scanner.feed(std::string_view(log).substr(cut));
    expectSame(scanner.finish(), whole);
  }
}

// The line is longer than a piece, and the message lies anywhere across the borders of pieces.
TEST(LogScanner, AMessageIsFoundAnywhereInALongLine) {
  for (std::size_t before = 11'000; before < 18'000; before += 13) {
    const LogSummary summary =
        scanned(std::string(before, 'x') + std::string(kProtection) + std::string(20'000, 'y'));
    ASSERT_EQ(codesOf(summary), "log.loc-prot-err 1 1-1\n") << before;
  }
}

// One message has a general and a precise text, in either order.
TEST(LogScanner, AMessageAcrossABorderIsNotExplainedTwice) {
  const std::string general = "transport retry counter exceeded", precise = "IBV_WC_LOC_PROT_ERR";
  const std::string between(1500, '-');
  for (const std::string& message : {general + between + precise, precise + between + general})
    for (std::size_t before = 9'000; before < 18'000; before += 11) {
      const LogSummary summary =
          scanned(std::string(before, 'x') + message + std::string(20'000, 'y'));
      ASSERT_EQ(codesOf(summary), "log.loc-prot-err 1 1-1\n") << before << message;
    }
}

TEST(LogScanner, ALineOf100MegabytesIsRead) {
  LogScanner scanner;
  const std::string filler(1'000'000, 'N');
  for (int i = 0; i < 50; ++i) scanner.feed(filler);
  scanner.feed(kProtection);
  for (int i = 0; i < 50; ++i) scanner.feed(filler);
  const LogSummary summary = scanner.finish();
  EXPECT_EQ(summary.lines, 1U);
  EXPECT_EQ(codesOf(summary), "log.loc-prot-err 1 1-1\n");
}

TEST(LogScanner, ATextThatALineRepeatsCountsOnce) {
  for (const std::string_view between : {" ", "\\n"}) {
    std::string line;
    for (int i = 0; i < 2000; ++i) line.append(kFlush).append(between);
    EXPECT_EQ(codesOf(scanned(line + "\n" + line)), "log.wr-flush 2 1-2\n");
  }
}

TEST(ReadLog, AFileIsReadAndItsProgressTold) {
  const TemporaryFolder folder;
  folder.write("/log", "x\n" + std::string(kFlush));
  const base::Fd file(::open((folder.path() + "/log").c_str(), O_RDONLY | O_CLOEXEC));
  std::uint64_t told = 0;
  const auto summary = readLog(file.get(), [&](std::uint64_t bytes) { told = bytes; });
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(codesOf(*summary), "log.wr-flush 1 2-2\n");
  EXPECT_EQ(told, summary->bytes);
}

TEST(ReadLog, APipeThatIsEmptyForAMomentIsWaitedFor) {
  std::array<int, 2> ends{};
  ASSERT_EQ(::pipe2(ends.data(), O_CLOEXEC | O_NONBLOCK), 0);
  const base::Fd out(ends[0]);
  std::thread writer([in = base::Fd(ends[1])] {
    for (const char c : kProtection) ASSERT_EQ(::write(in.get(), &c, 1), 1);
  });
  const auto summary = readLog(out.get());
  writer.join();
  ASSERT_TRUE(summary) << summary.error().text();
  EXPECT_EQ(codesOf(*summary), "log.loc-prot-err 1 1-1\n");
}

TEST(ReadLog, AFolderIsAnError) {
  const TemporaryFolder folder;
  const base::Fd file(::open(folder.path().c_str(), O_RDONLY | O_CLOEXEC));
  const auto summary = readLog(file.get());
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().code, Code::kInvalid);
  EXPECT_EQ(summary.error().os_errno, EISDIR);
  EXPECT_EQ(summary.error().remedy, "name a file in the folder");
}

TEST(ReadLog, AFailedReadIsAnErrorWithTheSystemsText) {
  // A read of this file fails at once, because the first page of a process is not mapped.
  const base::Fd memory(::open("/proc/self/mem", O_RDONLY | O_CLOEXEC));
  if (!memory) GTEST_SKIP() << "skipped: no /proc/self/mem";
  const auto summary = readLog(memory.get());
  ASSERT_FALSE(summary);
  EXPECT_EQ(summary.error().os_errno, EIO);
  EXPECT_NE(summary.error().text().find("Input/output error"), std::string::npos);
}

}  // namespace
}  // namespace viaduct::diag
