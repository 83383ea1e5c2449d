#include "measure/result/report.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <nlohmann/json.hpp>
#include <utility>

#include "support/text.h"

namespace viaduct::measure {
namespace {

host::Facts machine() {
  return {.boot_id = "b-1",
          .hostname = "node",
          .kernel = "6.1",
          .cpu_model = "Some CPU",
          .cores = 8,
          .memory = std::uint64_t{64} << 30U,
          .interfaces = {{"eth0", {"10.0.0.1"}, true, 100'000}, {"lo", {"127.0.0.1"}, true, 0}}};
}

Report fullReport() {
  return {
      .version = "1.2.3",
      .started = "2026-01-02T03:04:05Z",
      .end = "interrupted",
      .command = "viaduct bench --backend tcp",
      .environment = {.members = {{0, "a", "initiator", machine()}, {1, "b", "target", machine()}},
                      .fingerprint = "0123"},
      .settings = {{"block_sizes", "4KiB,64KiB"}, {"op", "write"}},
      .agent = optionsOf(Settings{}),
      .rows = {{.backend = "tcp", .block_size = 4096}, {.backend = "local", .block_size = 1}},
      .conclusion = {"the link limits", "look at eth0"}};
}

TEST(Reports, ReadBackAsTheyWereWritten) {
  const auto read = reportFromJson(toJson(fullReport()), "a.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(*read, fullReport());
}

TEST(Reports, SayWhereAndHowAndHideTheSecret) {
  Settings settings;
  settings.secret = "open sesame";
  Report report = startReport("1.2.3", settings);
  auto host = machine();
  host.hostname = "node\xff";
  report.environment.members = {{0, "a", "initiator", host}};
  const std::string text = toJson(report);
  EXPECT_EQ(text.find("sesame"), std::string::npos);
  const auto json = nlohmann::json::parse(text);
  EXPECT_EQ(json.at("format"), "viaduct-bench/1");
  EXPECT_EQ(json.at("version"), "1.2.3");
  EXPECT_EQ(json.at("settings").at("agent").at("detect"), "2s");
  EXPECT_EQ(json.at("end"), "complete");
  EXPECT_EQ(json.at("environment").at("fingerprint"), fingerprintOf(report.environment.members));
  EXPECT_EQ(json.at("environment").at("members").at(0).at("host").at("cores"), 8);
}

TEST(Reports, ContainTheVariablesOfTheBackendsLibraries) {
  ::setenv("FI_VIADUCT_TEST", "a b=c", 1);
  ::setenv("UCX_VIADUCT_TEST", "", 1);
  const auto told = [](std::vector<std::string> backends) {
    std::string out;
    for (const Option& one : startReport("1", {.backends = std::move(backends)}).agent)
      if (one.name.find("_VIADUCT_TEST") != std::string::npos)
        out += one.name + "=" + one.value + ";";
    return out;
  };
  EXPECT_EQ(told({}), "FI_VIADUCT_TEST=a b=c;UCX_VIADUCT_TEST=;");
  EXPECT_EQ(told({"tcp", "ofi"}), "FI_VIADUCT_TEST=a b=c;");
  EXPECT_EQ(told({"ucx"}), "UCX_VIADUCT_TEST=;");
  EXPECT_EQ(told({"tcp"}), "");
  ::unsetenv("FI_VIADUCT_TEST");
  ::unsetenv("UCX_VIADUCT_TEST");
}

TEST(Reports, TheFingerprintDependsOnlyOnTheKindsOfMachines) {
  const auto one = machine();
  const std::vector<RunMember> alone{{0, "a", "initiator", one}};
  const auto with = [&](auto change) {
    auto host = machine();
    change(host);
    return fingerprintOf({{0, "z", "target", host}});
  };
  EXPECT_EQ(fingerprintOf(alone), fingerprintOf({{0, "", "", one}, {1, "b", "target", one}}));
  EXPECT_EQ(fingerprintOf(alone), with([](host::Facts& h) {
              h.hostname = "other", h.boot_id = "b-2";
              h.memory += 1000;
              h.interfaces.push_back({"veth1", {"10.1.1.1"}, true, 0});
            }));
  EXPECT_NE(fingerprintOf(alone), with([](host::Facts& h) { h.cores = 4; }));
  EXPECT_NE(fingerprintOf(alone), with([](host::Facts& h) { h.cpu_model = "Other CPU"; }));
  EXPECT_NE(fingerprintOf(alone), with([](host::Facts& h) { h.kernel = "6.2"; }));
  EXPECT_NE(fingerprintOf(alone), with([](host::Facts& h) { h.memory /= 2; }));
  EXPECT_NE(fingerprintOf(alone), with([](host::Facts& h) { h.interfaces[0].mbit_per_s = 10; }));
  EXPECT_EQ(fingerprintOf({}), "");
}

std::string complaintAbout(const std::string& text) {
  const auto read = reportFromJson(text, "a.json");
  return read ? "it was read" : read.error().text();
}

using testing::has;

TEST(Reports, BadFilesAreRefusedWithTheReason) {
  const std::string whole = toJson(fullReport());
  const std::string cut = complaintAbout(whole.substr(0, whole.size() / 2));
  EXPECT_TRUE(has(cut, "a.json")) << cut;
  EXPECT_TRUE(has(cut, "ends too early")) << cut;
  EXPECT_TRUE(has(complaintAbout("Block Size (B)"), "line 1, column 1"));
  EXPECT_TRUE(has(complaintAbout("[1, 2]"), "is not a result file"));
  EXPECT_TRUE(has(complaintAbout(R"({"format": "pigeon/7"})"), "is not a result file"));
  EXPECT_EQ(complaintAbout(R"({"format": "viaduct-bench/2", "all": "new"})"),
            "read result file: unsupported: another viaduct wrote it: its format is "
            "viaduct-bench/2, and this one reads viaduct-bench/1; file a.json; what to do: read it "
            "with that viaduct, or measure again with `viaduct bench --json`");
  for (const auto& [format, command] : {std::pair("viaduct-pipeline/1", "viaduct pipeline"),
                                        {"viaduct-swap/1", "viaduct swap"},
                                        {"viaduct-gpu-matrix/1", "viaduct matrix"}})
    EXPECT_EQ(
        complaintAbout(fmt::format(R"({{"format": "{}", "version": "1"}})", format)),
        fmt::format("read result file: unsupported: an older viaduct wrote it: its format is "
                    "{}; file a.json; what to do: read it with that viaduct, or measure again "
                    "with `{} --json`",
                    format, command));
  EXPECT_TRUE(has(complaintAbout(R"({"format": "viaduct-doctor/1"})"),
                  "this is a file of `viaduct doctor`: its format is viaduct-doctor/1"));
  auto json = nlohmann::json::parse(whole);
  json["rows"][1].erase("block_size");
  EXPECT_TRUE(has(complaintAbout(json.dump()), "rows[1].block_size is missing"));
  json["environment"]["members"][1]["host"]["interfaces"][0]["addresses"] = "none";
  EXPECT_TRUE(has(complaintAbout(json.dump()),
                  "environment.members[1].host.interfaces[0].addresses is \"none\", not a list"));
  json.erase("environment");
  EXPECT_TRUE(has(complaintAbout(json.dump()), "environment is missing"));
}

// Truncates the file at many places. Each time reading has to fail with an error.
TEST(Reports, ATruncatedFileIsRefused) {
  const std::string whole = toJson(fullReport());
  for (std::size_t size = 0; size + 2 < whole.size(); size += 7)
    EXPECT_FALSE(reportFromJson(whole.substr(0, size), "a.json")) << size;
}

TEST(Reports, SettingsOfAnyPlainTypeAreRead) {
  auto json = nlohmann::json::parse(toJson(fullReport()));
  json["settings"] = {{"iterations", 100}, {"cold", true}, {"nested", {1, 2}}, {"op", "read"}};
  const auto read = reportFromJson(json.dump(), "a.json");
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_EQ(read->settings,
            (std::vector<Option>{{"cold", "true"}, {"iterations", "100"}, {"op", "read"}}));
  EXPECT_TRUE(read->agent.empty());
}

}  // namespace
}  // namespace viaduct::measure
