// `viaduct doctor` as users run it: exit codes, output, bad input, and two doctors together.
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <csignal>
#include <filesystem>
#include <fstream>
#include <sstream>

#include "app/program.h"
#include "base/json.h"
#include "diag/fixtures_testing.h"
#include "support/free_port.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using base::Json;
using diag::testing::Fixture;
using diag::testing::NodeFolder;

// The program's exit code and its output.
struct Ran {
  int code = 0;
  std::string out = {}, err = {};
};
Ran doctor(std::vector<std::string> words, const std::vector<std::string>& environment = {}) {
  words.insert(words.begin(), "doctor");
  Program program(words, environment);
  const int code = program.finish();
  return {code, program.out(), program.err()};
}

Ran doctorOf(const NodeFolder& folder, std::vector<std::string> words = {}) {
  folder.save();
  words.insert(words.end(), {"--root", folder.root()});
  return doctor(std::move(words));
}

TEST(Doctor, EndsByTheWorstFinding) {
  Fixture folder = diag::testing::roceNode();
  const Ran fine = doctorOf(folder);
  EXPECT_EQ(fine.code, 0) << fine.out << fine.err;
  EXPECT_TRUE(has(fine.out, "no fault found")) << fine.out;
  folder.live.shm_bytes = 64U << 20U;
  const Ran warned = doctorOf(folder);
  EXPECT_EQ(warned.code, 1) << warned.out;
  EXPECT_TRUE(has(warned.out, "WARNING  memory.shm-small")) << warned.out;
  folder.write("/proc/meminfo", std::string("\0", 1));
  const Ran unread = doctorOf(folder, {"--only", "memory"});
  EXPECT_EQ(unread.code, 1);
  EXPECT_TRUE(has(unread.out, "Could not read /proc/meminfo: holds binary data")) << unread.out;
}

TEST(Doctor, FitsEightyColumnsApartFromCommands) {
  Fixture folder = diag::testing::roceNode();
  folder.live.shm_bytes = 64U << 20U;
  std::istringstream lines(doctorOf(folder, {"--verbose"}).out);
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with("          ")) {
      EXPECT_LE(line.size(), 80U) << line;
    }
}

TEST(Doctor, PrintsJson) {
  Fixture folder = diag::testing::roceNode();
  folder.live.shm_bytes = 64U << 20U;
  const Ran ran = doctorOf(folder, {"--json"});
  const auto json = base::parseJson(ran.out);
  ASSERT_TRUE(json) << ran.out;
  EXPECT_EQ((*json)["format"], "viaduct-doctor/1");
  EXPECT_EQ((*json)["exit_code"], ran.code);
  EXPECT_EQ((*json)["worst"], "warning");
  bool found = false;
  for (const Json& one : (*json)["findings"])
    if (one["code"] == "memory.shm-small") {
      found = true;
      EXPECT_FALSE(one["evidence"].empty());
      EXPECT_FALSE(one["fix"].get<std::string>().empty());
    }
  EXPECT_TRUE(found) << ran.out;
}

TEST(Doctor, BadInputIsExplained) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> wrong{
      {{"--only", "memry"}, "did you mean memory?"},
      {{"--only", "nonsense"}, "topics: "},
      {{"--root", "/nowhere"}, "No such file or directory"},
      {{"--root", "/etc/hostname"}, "read snapshot"},
      {{"--explain", "/nowhere"}, "No such file or directory"},
      {{"snapshot", "-o", "/nowhere/node.tar.gz"}, "No such file or directory"},
      {{"snapshot"}, "--output is required"},
      {{"--frobnicate"}, "--frobnicate"},
      {{"--root", "/etc", "--path", "/tmp"}, "look at this machine"},
      {{"--bucket", "s3://kv/key"}, "is no bucket"},
      {{"--peer", "a", "--listen", "b"}, "excludes"}};
  for (const auto& [words, why] : wrong) {
    const Ran ran = doctor(words);
    EXPECT_EQ(ran.code, 3) << words[0] << ran.out;
    EXPECT_TRUE(has(ran.err, why)) << words[0] << ": " << ran.err;
  }
}

TEST(Doctor, DiagnosesThisMachine) {
  const Ran ran = doctor({"--json"});
  EXPECT_LE(ran.code, 2) << ran.err;
  EXPECT_TRUE(base::parseJson(ran.out)) << ran.out;
  const Ran card = doctor({"--card"});
  EXPECT_EQ(card.code, 0);
  EXPECT_TRUE(has(card.out, "| kernel |")) << card.out;
  EXPECT_TRUE(has(doctor({"--list"}).out, "memory"));
}

// Several paths may follow one flag, and the flag may be repeated.
TEST(Doctor, LooksAtPaths) {
  const TemporaryFolder folder;
  folder.write("/block", "x");
  const Ran ran = doctor({"--only", "storage", "--json", "--path", "/nowhere", folder.path(),
                          "--path", folder.path() + "/block"});
  EXPECT_EQ(ran.code, 2) << ran.out << ran.err;
  const auto json = base::parseJson(ran.out);
  ASSERT_TRUE(json) << ran.out;
  EXPECT_TRUE(has(ran.out, "storage.path-missing")) << ran.out;
  EXPECT_TRUE(has(ran.out, folder.path() + "/block")) << ran.out;
}

TEST(Doctor, MeasuresThePathToAnother) {
  const std::string where = "127.0.0.1:" + std::to_string(freePort());
  Program listens({"doctor", "--listen", where, "--secret", "word"});
  ASSERT_TRUE(listens.readUntil("waiting for: viaduct doctor --peer " + where + " --secret WORD"))
      << listens.out();
  const Ran wrong = doctor({"--peer", where, "--secret", "other"});
  EXPECT_EQ(wrong.code, 3) << wrong.out;
  const Ran ran = doctor({"--peer", where, "--secret", "word", "--json"});
  const auto json = base::parseJson(ran.out);
  ASSERT_TRUE(json) << ran.out << ran.err;
  EXPECT_EQ((*json)["format"], "viaduct-doctor-pair/1");
  EXPECT_EQ((*json)["peer"]["node"]["hostname"], (*json)["own"]["node"]["hostname"]);
  EXPECT_EQ((*json)["path"]["rows"].size(), 2U);
  listens.interrupt(SIGINT);
  EXPECT_LE(listens.finish(), 2) << listens.err();
}

TEST(Doctor, SaysWhereNoDoctorListens) {
  const std::string where = "127.0.0.1:" + std::to_string(freePort());
  Program target({"p2p", "--mode", "target", "--ip", "127.0.0.1", "--port", where.substr(10)});
  ASSERT_TRUE(target.readUntil("waiting for:"));
  const Ran ran = doctor({"--peer", where});
  EXPECT_EQ(ran.code, 3) << ran.out;
  EXPECT_TRUE(has(ran.err, "shows no diagnosis")) << ran.err;
}

// Even if the program is killed while it waits for a log, no files remain.
TEST(Doctor, RemovesUnpackedFilesBeforeItReadsALog) {
  const TemporaryFolder folder, unpacked;
  const std::string file = folder.path() + "/node.tar.gz", log = folder.path() + "/log";
  ASSERT_EQ(doctor({"snapshot", "-o", file}).code, 0);
  ASSERT_EQ(::mkfifo(log.c_str(), 0600), 0);
  Program program({"doctor", "--root", file, "--explain", log}, {"TMPDIR=" + unpacked.path()});
  std::ofstream writer(log);  // opening waits until the program opens the pipe as well
  EXPECT_TRUE(std::filesystem::is_empty(unpacked.path()));
  writer << "NCCL INFO NET/Socket\n";
  writer.close();
  program.finish();
}

}  // namespace
}  // namespace viaduct::testing
