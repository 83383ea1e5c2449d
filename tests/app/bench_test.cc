// `viaduct bench` as users run it: its output, its files, and its end.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <unistd.h>
#include <viaduct/deadline.h>

#include <array>
#include <atomic>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <thread>
#include <utility>
#include <vector>

#include "app/program.h"
#include "host/devices.h"
#include "support/free_port.h"
#include "support/paths.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using Json = nlohmann::json;

class BenchCommand : public ::testing::Test {
 protected:
  BenchCommand()
      : file_(::testing::TempDir() + "viaduct_bench_" + std::to_string(::getpid()) + ".json") {}
  ~BenchCommand() override { std::filesystem::remove(file_); }
  Json results() const {
    std::ifstream in(file_);
    return Json::parse(in);
  }
  std::string file_;
};

// The lines on stderr without progress, which appears there after five seconds.
std::string warnings(const Program& run) {
  std::istringstream lines(run.err());
  std::string out;
  for (std::string line; std::getline(lines, line);)
    if (!line.starts_with('[')) out += line + "\n";
  return out;
}

void expectWholeRow(const Json& row) {
  EXPECT_TRUE(row.at("verdict") == "ok" || row.at("verdict") == "unproven") << row.dump();
  EXPECT_EQ(row.at("verified"), "sampled");
  EXPECT_EQ(row.at("iterations"), 5);
  EXPECT_EQ(row.at("batch_size"), 3);
  EXPECT_GT(row.at("gb_per_s"), 0.0);
  EXPECT_GT(row.at("completions_per_s"), 0.0);
  EXPECT_GE(row.at("cpu_s_per_gb"), 0.0);
  const Json& latency = row.at("latency_us");
  EXPECT_GT(latency.at("p50"), 0.0);
  EXPECT_LE(latency.at("p50"), latency.at("p90"));
  EXPECT_LE(latency.at("p99"), latency.at("p99_9"));
  EXPECT_LE(latency.at("p99_9"), latency.at("max"));
  std::uint64_t bytes = 0;
  for (const Json& share : row.at("path")) {
    EXPECT_EQ(share.at("backend"), row.at("backend"));
    EXPECT_NE(share.at("way"), "");
    bytes += share.at("bytes").get<std::uint64_t>();
  }
  EXPECT_EQ(bytes, row.at("block_size").get<std::uint64_t>() * 3 *
                       row.at("transfers").get<std::uint64_t>());
  EXPECT_GT(row.at("transfers"), 5) << "short runs are checked, and not timed";
}

TEST_F(BenchCommand, ATinySweepIsMeasuredCheckedAndWritten) {
  for (const char* op : {"write", "read"})
    for (const char* memory : {"allocate", "malloc"}) {
      Program run({"bench", "--backend", "local,tcp", "--block-sizes", "4K,1MB", "--batch", "3",
                   "--iterations", "5", "--op", op, "--memory", memory, "--json", file_});
      EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
      EXPECT_EQ(warnings(run), "");
      const Json json = results();
      EXPECT_EQ(json.at("format"), "viaduct-bench/1");
      EXPECT_EQ(json.at("end"), "complete");
      EXPECT_FALSE(json.at("environment")
                       .at("members")
                       .at(1)
                       .at("host")
                       .at("kernel")
                       .get<std::string>()
                       .empty());
      EXPECT_EQ(json.at("settings").at("agent").at("detect"), "2s");
      ASSERT_EQ(json.at("rows").size(), 4U);
      for (const Json& row : json.at("rows")) {
        expectWholeRow(row);
        EXPECT_EQ(row.at("op"), op);
      }
      EXPECT_EQ(json.at("rows").at(3).at("block_size"), 1'000'000);
      EXPECT_TRUE(has(run.out(), "GB/s"));
      EXPECT_TRUE(has(run.out(), "tcp/socket"));
    }
}

// The targets in the row's pairs, by initiator.
std::map<int, std::vector<int>> targetsOf(const Json& row) {
  std::map<int, std::vector<int>> out;
  for (const Json& pair : row.at("pairs")) {
    EXPECT_GT(pair.at("gb_per_s"), 0.0);
    EXPECT_GT(pair.at("latency_us").at("p50"), 0.0);
    out[pair.at("initiator")].push_back(pair.at("target"));
  }
  return out;
}

using Targets = std::map<int, std::vector<int>>;

TEST_F(BenchCommand, TheVariableSaysTheBackendsWhereNoFlagDoes) {
  const std::vector<std::string> words{"bench", "--block-sizes", "4K", "--iterations",
                                       "5",     "--json",        file_};
  Program run(words, {"VIADUCT_BACKENDS=local"});
  EXPECT_EQ(run.finish(), 0) << run.err();
  ASSERT_EQ(results().at("rows").size(), 1U);
  EXPECT_EQ(results().at("rows").at(0).at("backend"), "local");
  Program wrong(words, {"VIADUCT_BACKENDS=garbage"});
  EXPECT_EQ(wrong.finish(), 2) << wrong.out();
  EXPECT_TRUE(has(wrong.err(), "VIADUCT_BACKENDS: unsupported: garbage is not a backend"))
      << wrong.err();
}

TEST_F(BenchCommand, WorkersOfThisMachineReachEachOtherByTheRailThatIsNamed) {
  const auto there = host::findDevice("::1");
  if (!there) GTEST_SKIP() << "skipped: no IPv6 loopback here";
  Program run({"bench", "--backend", "tcp", "--device-list", "::1", "--block-sizes", "64K",
               "--batch", "3", "--iterations", "5", "--json", file_});
  EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
  expectWholeRow(results().at("rows").at(0));
}

TEST_F(BenchCommand, EverySchemeRunsAsWorkersOfThisMachine) {
  const std::tuple<const char*, const char*, Targets> cases[] = {
      {"pairwise", "4", {{0, {2}}, {1, {3}}}},
      {"manytoone", "4", {{0, {3}}, {1, {3}}, {2, {3}}}},
      {"onetomany", "4", {{0, {1, 2, 3}}}},
      {"tp", "4", {{0, {2}}, {1, {3}}}},
  };
  for (const auto& [scheme, workers, targets] : cases)
    for (const char* backend : {"local", "tcp"}) {
      Program run({"bench", "--scheme", scheme, "--local-workers", workers, "--backend", backend,
                   "--block-sizes", "64K", "--batch", "4", "--iterations", "20", "--json", file_});
      EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
      const Json row = results().at("rows").at(0);
      EXPECT_EQ(row.at("scheme"), scheme);
      EXPECT_EQ(row.at("verified"), "sampled");
      EXPECT_EQ(targetsOf(row), targets) << scheme;
      EXPECT_EQ(results().at("environment").at("members").size(), 4U);
    }
}

TEST_F(BenchCommand, ManyDevicesOfOneProcessAreMeasuredTogether) {
  Program run({"bench",
               "--mode",
               "MG",
               "--scheme",
               "tp",
               "--num_initiator_dev",
               "2",
               "--num_target_dev",
               "4",
               "--backend",
               "local",
               "--block-sizes",
               "64K",
               "--total_buffer_size",
               "4M",
               "--batch",
               "4",
               "--cold",
               "--iterations",
               "50",
               "--json",
               file_});
  EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
  const Json row = results().at("rows").at(0);
  EXPECT_EQ(row.at("pairs").size(), 4U);
  EXPECT_EQ(row.at("iterations"), 200);
  EXPECT_EQ(results().at("environment").at("members").size(), 2U);
}

TEST_F(BenchCommand, EveryWayOfMovingArrivesRight) {
  for (const std::vector<std::string>& flags : {std::vector<std::string>{"--bidirectional"},
                                                {"--latency"},
                                                {"--recreate_xfer"},
                                                {"--reregister_mem"},
                                                {"--num_threads", "2", "--pipeline_depth", "3"},
                                                {"--rate", "2000", "--arrivals", "poisson"},
                                                {"--repeat", "2"},
                                                {"--cold"},
                                                {"--verify", "sampled"},
                                                {"--duration", "50ms", "--warmup", "10ms"}}) {
    std::vector<std::string> words{"bench", "--block-sizes", "64K", "--batch",
                                   "2",     "--json",        file_};
    if (flags[0] != "--duration") words.insert(words.end(), {"--iterations", "30"});
    words.insert(words.end(), flags.begin(), flags.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << flags[0] << run.out() << run.err();
    const Json result = results();
    for (const Json& row : result.at("rows")) EXPECT_GT(row.at("gb_per_s"), 0.0) << flags[0];
  }
}

TEST_F(BenchCommand, BackgroundTransfersRunBesideTheTimedOnesAndAreCounted) {
  for (const char* scheme : {"pairwise", "manytoone"}) {
    Program run({"bench", "--backend", "tcp", "--block-sizes", "64K", "--batch", "1",
                 "--num-initiator-dev", "2", "--num-target-dev", "2", "--scheme", scheme,
                 "--background", "256K", "--duration", "200ms", "--json", file_});
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    const Json json = results();
    EXPECT_EQ(json.at("settings").at("background"), "262144");
    const Json row = json.at("rows").at(0);
    const Json beside = row.at("background");
    EXPECT_EQ(beside.at("size"), 262144);
    EXPECT_GT(beside.at("gb_per_s"), 0.0);
    EXPECT_GT(beside.at("longest_gap_ms"), 0.0);
    EXPECT_TRUE(has(row.at("remark"), "beside background transfers of 256")) << row.dump();
    // The path's bytes include background transfers. A row whose path has other bytes is refused.
    std::uint64_t bytes = 0;
    for (const Json& share : row.at("path")) bytes += share.at("bytes").get<std::uint64_t>();
    const auto own = row.at("iterations").get<std::uint64_t>() * 65536;
    EXPECT_GT(bytes, own + 262144) << row.dump();
  }
}

// The fabric corrupts data without an error. The check of contents, and the exit code, show it.
TEST_F(BenchCommand, CorruptionInFlightIsDetected) {
  for (const char* lie : {"corrupt", "swap", "shift", "stale"})
    for (const char* op : {"write", "read"}) {
      Program run({"bench", "--backend", "fake", "--op", op, "--block-sizes", "64K", "--batch", "8",
                   "--iterations", "20", "--json", file_},
                  {std::string("VIADUCT_FAKE=far=1,lie=") + lie});
      EXPECT_EQ(run.finish(), 1) << lie;
      const Json row = results().at("rows").at(0);
      EXPECT_EQ(row.at("verdict"), "corrupt") << lie << row.dump();
      EXPECT_TRUE(has(row.at("why"), "is wrong from offset")) << row.dump();
    }
}

TEST_F(BenchCommand, ABusyMachineIsNamedAsTheCause) {
  const auto row = [&] {
    Program run({"bench", "--backend", "tcp", "--block-sizes", "1M", "--batch", "8", "--duration",
                 "500ms", "--json", file_});
    EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
    return std::pair(results().at("rows").at(0), run.out());
  };
  const unsigned cores = std::thread::hardware_concurrency();
  std::atomic<bool> over{false};
  std::vector<std::jthread> others;
  for (unsigned i = 0; i < 4 * cores; ++i)
    others.emplace_back([&] {
      while (!over) {
      }
    });
  const auto [busy, said] = row();
  over = true;
  EXPECT_GT(busy.at("cores_others"), 0.4 * cores);
  EXPECT_TRUE(has(said, "measure again on an idle host")) << said;
}

TEST_F(BenchCommand, EveryOutputFormatIsValid) {
  const auto output = [](const char* form) {
    Program run({"bench", "--backend", "local", "--block-sizes", "4K", "--iterations", "5",
                 "--output", form});
    EXPECT_EQ(run.finish(), 0) << run.err();
    EXPECT_EQ(warnings(run), "");
    return run.out();
  };
  EXPECT_EQ(Json::parse(output("json")).at("rows").size(), 1U);
  EXPECT_TRUE(has(output("csv"), "gb_per_s"));
  EXPECT_TRUE(has(output("table"), "of max"));
  const std::string nixl = output("nixlbench");
  EXPECT_EQ(nixl.rfind(std::string(160, '*') + "\nNIXLBench Configuration\n", 0), 0U);
  EXPECT_TRUE(has(nixl, "\n4096                64             "));
  EXPECT_TRUE(has(nixl, "\nCarried by local/mapped on memory, ")) << nixl;
}

// nixlbench's names of these backends do not say whether RDMA carries the bytes.
TEST_F(BenchCommand, TheTableOfNixlbenchSaysThatTcpCarriedIt) {
  for (const char* backend : {"LIBFABRIC", "UCX"}) {
    Program run({"--local_workers=2", "--backend", backend, "-total_buffer_size=8388608",
                 "-max_block_size", "4096", "--num_iter=16", "--warmup_iter=1"},
                {"FI_PROVIDER=tcp", "UCX_TLS=tcp"}, "/usr/bin/nixlbench");
    const int code = run.finish();
    if (has(run.err(), "not built in")) continue;
    EXPECT_EQ(code, 0) << run.err();
    EXPECT_TRUE(has(run.out(), "\nCarried by ")) << run.out();
    EXPECT_TRUE(has(run.out(), " (TCP, no RDMA)\n")) << run.out();
  }
}

TEST_F(BenchCommand, ThePageOfFlagsIsCurrent) {
  Program run({"bench", "--help=markdown"});
  EXPECT_EQ(run.finish(), 0);
  std::ifstream page(std::string(kSourceDir) + "/docs/bench-flags.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  EXPECT_EQ(run.out(), text) << "viaduct bench --help=markdown > docs/bench-flags.md";
}

std::set<std::string> wordsInCode(const std::string& text) {
  std::set<std::string> out;
  for (std::size_t at = text.find('`'); at != std::string::npos; at = text.find('`', at)) {
    const std::size_t end = text.find('`', at + 1);
    out.insert(text.substr(at + 1, end - at - 1));
    at = end + 1;
  }
  return out;
}

std::set<std::string> namesIn(const Json& object) {
  std::set<std::string> out;
  for (const auto& [name, value] : object.items()) out.insert(name);
  return out;
}

TEST_F(BenchCommand, ThePageOfTheResultFileNamesTheSettings) {
  Program run(
      {"bench", "--backend", "local", "--block-sizes", "4K", "--iterations", "2", "--json", file_});
  EXPECT_EQ(run.finish(), 0);
  std::ifstream page(std::string(kSourceDir) + "/docs/results.md");
  const std::string text((std::istreambuf_iterator<char>(page)), {});
  const auto of_run = text.find("defaults included: "), of_agent = text.find("`agent`: ", of_run);
  ASSERT_NE(of_agent, std::string::npos);
  const auto end = text.find("\n\n", of_agent);
  std::set<std::string> expected = wordsInCode(text.substr(of_run, of_agent - of_run));
  expected.insert("agent");
  const Json settings = results().at("settings");
  EXPECT_EQ(namesIn(settings), expected);
  EXPECT_EQ(namesIn(settings.at("agent")),
            wordsInCode(text.substr(of_agent + 7, end - of_agent - 7)));
}

// The fields in the table of a section. Of "pairs[]" and "path[].way" these are "pairs" and "path".
std::set<std::string> fieldsIn(const std::string& page, const std::string& heading) {
  std::set<std::string> out;
  std::istringstream lines(page.substr(page.find(heading + "\n") + heading.size() + 1));
  for (std::string line; std::getline(lines, line) && !line.starts_with('#');) {
    if (!line.starts_with("| `")) continue;
    for (const std::string& name : wordsInCode(line.substr(0, line.find(" |", 2))))
      out.insert(name.substr(0, name.find_first_of(".[")));
  }
  return out;
}

TEST_F(BenchCommand, ThePageOfTheResultFileNamesTheFields) {
  Json file;
  std::set<std::string> of_rows;
  for (const auto& more : std::vector<std::vector<std::string>>{
           {"--duration", "100ms", "--interval", "50ms"},
           {"--duration", "200ms", "--rate", "50", "--background", "1M"}}) {
    std::vector<std::string> words{"bench", "--backend", "tcp", "--block-sizes", "64K", "--repeat",
                                   "2",     "--json",    file_};
    words.insert(words.end(), more.begin(), more.end());
    Program run(words);
    EXPECT_EQ(run.finish(), 0) << run.err();
    file = results();
    of_rows.merge(namesIn(file.at("rows").at(0)));
  }
  std::ifstream in(std::string(kSourceDir) + "/docs/results.md");
  const std::string page((std::istreambuf_iterator<char>(in)), {});
  EXPECT_EQ(namesIn(file), fieldsIn(page, "# The result file"));
  EXPECT_EQ(namesIn(file.at("environment")).size(), 2U) << "members and fingerprint";
  std::set<std::string> expected = fieldsIn(page, "## A row");
  // Fields of other commands, of GPUs, of an early end, and those that depend on the machine's
  // load.
  for (const char* name :
       {"kv", "replay", "pipeline", "swap", "matrix", "operation", "copied_by", "devices",
        "scaling", "interrupted", "ceiling", "ceiling_unknown", "why", "causes", "remark"}) {
    EXPECT_TRUE(expected.contains(name)) << name;
    if (!of_rows.contains(name)) expected.erase(name);
  }
  EXPECT_EQ(of_rows, expected);
}

TEST_F(BenchCommand, CalledAsNixlbenchItHasItsDefaults) {
  Program run({"--local_workers=2", "--backend", "tcp", "-total_buffer_size=8388608",
               "-max_block_size", "8192", "--num_iter=100", "--warmup_iter=1", "--json", file_},
              {}, "/usr/bin/nixlbench");
  EXPECT_EQ(run.finish(), 0) << run.out() << run.err();
  EXPECT_TRUE(has(run.out(), "NIXLBench Configuration"));
  const Json json = results();
  ASSERT_EQ(json.at("rows").size(), 2U);
  EXPECT_EQ(json.at("rows").at(0).at("block_size"), 4096);
  EXPECT_EQ(json.at("rows").at(0).at("batch_size"), 1);
  EXPECT_EQ(json.at("rows").at(0).at("iterations"), 112) << "rounded up to a multiple of 16";
  EXPECT_EQ(json.at("rows").at(1).at("block_size"), 8192);
}

TEST_F(BenchCommand, MembersThatMeetAtAnAddressMakeOneRun) {
  const std::vector<std::string> words{
      "bench", "--meet",        freeAddress(), "--scheme",     "onetomany", "--num_target_dev",
      "2",     "--block-sizes", "64K",         "--iterations", "20",        "--backend",
      "tcp"};
  const auto ranked = [&](const char* rank, std::vector<std::string> more = {}) {
    std::vector<std::string> out = words;
    out.insert(out.end(), {"--rank", rank});
    return withFlags(std::move(out), more);
  };
  // Rank 0, at whose address the members meet, starts last.
  Program second(ranked("2")), first(ranked("1"));
  Program lead(ranked("0", {"--json", file_}));
  EXPECT_EQ(lead.finish(), 0) << lead.out() << lead.err();
  EXPECT_EQ(first.finish(), 0) << first.err();
  EXPECT_EQ(second.finish(), 0) << second.err();
  EXPECT_EQ(first.out(), "");
  const Json json = results();
  EXPECT_EQ(json.at("environment").at("members").size(), 3U);
  EXPECT_EQ(targetsOf(json.at("rows").at(0)), (Targets{{0, {1, 2}}}));
}

TEST_F(BenchCommand, MembersThatWereStartedDifferentlyAreTold) {
  std::vector<std::string> words{"bench", "--meet", freeAddress(), "--iterations", "20"};
  words.insert(words.end(), {"--backend", "tcp", "--block-sizes"});
  std::vector<std::string> other = words;
  words.insert(words.end(), {"4K", "--rank", "0"});
  other.insert(other.end(), {"8K", "--rank", "1"});
  Program here(words), there(other);
  EXPECT_EQ(here.finish(), 1);
  EXPECT_EQ(there.finish(), 1);
  for (const Program* one : {&here, &there})
    EXPECT_TRUE(has(one->err(), "rank 1 was started with rows=tcp/8192")) << one->err();
}

// The members belong to two Jobs, or are the pods prefill-0 and decode-0 of two StatefulSets.
TEST_F(BenchCommand, MembersWhoseEnvironmentsSayTheSameRankMeet) {
  for (const std::string rank : {"0", "1", "7"}) {
    std::vector<std::string> words{"bench", "--meet", freeAddress(), "--iterations", "20"};
    words.insert(words.end(), {"--backend", "tcp", "--block-sizes", "4K"});
    const std::vector<std::string> environment{"JOB_COMPLETION_INDEX=" + rank};
    Program one(words, environment), other(words, environment);
    EXPECT_EQ(one.finish(), 0) << one.err();
    EXPECT_EQ(other.finish(), 0) << other.err();
    const std::string said = one.err() + other.err();
    EXPECT_TRUE(has(said, "instead of " + rank + ", which the environment says")) << said;
    EXPECT_NE(one.out().empty(), other.out().empty()) << "one of them is rank 0";
  }
}

TEST_F(BenchCommand, ARankOfTheCommandLineIsADemand) {
  std::vector<std::string> words{"bench", "--meet", freeAddress(), "--iterations", "20"};
  words.insert(words.end(), {"--backend", "tcp", "--block-sizes", "4K", "--rank"});
  std::vector<std::string> lead = words, next = words;
  lead.emplace_back("0");
  next.emplace_back("2");
  next.insert(next.end(), {"--meet-timeout", "20s"});
  Program first(lead), third(next);
  EXPECT_EQ(third.finish(), 1);
  EXPECT_TRUE(has(third.err(), "rank 2")) << third.err();
}

TEST_F(BenchCommand, IntervalsArePrintedAndStandInTheRow) {
  Program run({"bench", "--backend", "local,tcp", "--block-sizes", "4K", "--batch", "3",
               "--duration", "500ms", "--local-workers", "4", "--interval", "0.1", "--json",
               file_});
  EXPECT_EQ(run.finish(), 0) << run.err();
  for (const char* backend : {"local", "tcp"})
    EXPECT_TRUE(has(run.out(), std::string(backend) + " write 3 x 4 KiB: 0.00 to 0.")) << run.out();
  const Json all = results();
  for (const Json& row : all.at("rows")) {
    double end = 0, bytes = 0;
    for (const Json& interval : row.at("intervals")) {
      EXPECT_EQ(interval.at("start_s"), end);
      const double next = interval.at("end_s");
      bytes += interval.at("gb_per_s").get<double>() * (next - end);
      end = next;
    }
    EXPECT_GE(end, 0.5);
    const double moved = row.at("iterations").get<double>() * 3 * 4096e-9;
    EXPECT_NEAR(bytes / moved, 1, 0.5) << "of the streams of both initiators: " << row.dump();
  }
}

TEST_F(BenchCommand, IntervalsAreOnStderrIfAProgramReadsStdout) {
  for (const char* form : {"json", "csv", "nixlbench"}) {
    Program run({"bench", "--backend", "local", "--block-sizes", "4K", "--duration", "50ms", "-i",
                 "0.02", "--output", form});
    EXPECT_EQ(run.finish(), 0) << run.err();
    EXPECT_FALSE(has(run.out(), "KiB: 0.00 to")) << run.out();
    EXPECT_TRUE(has(run.err(), "local write 64 x 4 KiB: 0.00 to 0.0")) << run.err();
  }
}

TEST_F(BenchCommand, AnIntervalThatIsNoneIsRefused) {
  for (const char* wrong : {"0", "-1", "0.001", "x", "", "1s2", "100000"}) {
    Program run({"bench", "-i", wrong});
    EXPECT_EQ(run.finish(), 2) << wrong;
    EXPECT_TRUE(has(run.err(), "--interval: invalid: \"" + std::string(wrong) +
                                   "\" is no interval; what to do: seconds from 0.01 to 86400"))
        << run.err();
    Program p2p({"p2p", "--mode", "initiator", "--ip", "127.0.0.1", "-i", wrong});
    EXPECT_EQ(p2p.finish(), 2) << wrong;
  }
}

// On a terminal, each progress line replaces the one before.
TEST_F(BenchCommand, ATerminalShowsTheRateOfTheRowThatRuns) {
  const base::Fd terminal(::posix_openpt(O_RDWR | O_NOCTTY | O_CLOEXEC));
  if (!terminal || ::grantpt(terminal.get()) != 0 || ::unlockpt(terminal.get()) != 0)
    GTEST_SKIP() << "skipped: no pseudo terminals";
  const base::Fd other(::open(::ptsname(terminal.get()), O_RDWR | O_NOCTTY | O_CLOEXEC));
  Program run({"bench", "--backend", "local", "--block-sizes", "4K", "--duration", "1h"}, {},
              kProgram, other.get());
  std::string shown;
  std::array<char, 512> part{};
  while (!has(shown, " GB/s so far\r")) {
    const ssize_t got = ::read(terminal.get(), part.data(), part.size());
    ASSERT_GT(got, 0) << shown;
    shown.append(part.data(), static_cast<std::size_t>(got));
    ASSERT_LT(shown.size(), 100'000U) << "it shows no rate: " << shown;
  }
  std::istringstream lines(shown);
  for (std::string line; std::getline(lines, line, '\r');) EXPECT_LE(line.size(), 79U + 3) << line;
}

}  // namespace
}  // namespace viaduct::testing
