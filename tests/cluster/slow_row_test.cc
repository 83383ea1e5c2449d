// `viaduct bench`, `bench --explain` and `doctor` name the cause of a slow row that the test has
// planted, and name nothing in a healthy run.
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <string>

#include "cluster/command.h"
#include "cluster/hosts.h"
#include "support/paths.h"

namespace viaduct::testing {
namespace {

// Joins lines, because the output breaks them at the terminal's width.
std::string flat(const std::string& text) {
  std::string out;
  for (const char c : text)
    if (c != '\n' && c != ' ') out += c;
  return out;
}

bool hasWords(const std::string& text, const std::string& part) {
  return flat(text).find(flat(part)) != std::string::npos;
}

// Expects no text that names a cause, except the cause "other programs": test machines run some.
void expectNoCause(const std::string& text) {
  for (const char* words : {"is limited to", "differ while", "segments again", "socket buffers",
                            "MTU of", "quota", "traces"})
    EXPECT_FALSE(hasWords(text, words)) << words << "\n" << text;
}

bool hasCommand(const std::string& name) {
  return std::system(("command -v " + name + " >/dev/null 2>&1").c_str()) == 0;
}

// Most causes are planted by `./dev check --long` alone, because each takes a run of a second. The
// rules themselves have quick tests.
bool plantsAll() { return std::getenv("VIADUCT_PLANT_ALL") != nullptr; }
#define VIADUCT_LONG_TEST() \
  if (!plantsAll()) GTEST_SKIP() << "skipped: VIADUCT_PLANT_ALL is not set"

class SlowRow : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!a_.made() || !b_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
  }
  void makeRails(int count) {
    for (int i = 0; i < count; ++i) {
      const std::string net = "10.77." + std::to_string(i);
      ASSERT_TRUE(join(a_, b_, "rail" + std::to_string(i), net + ".1/24", net + ".2/24"));
      rails_a_ += (i == 0 ? "" : ",") + net + ".1";
      rails_b_ += (i == 0 ? "" : ",") + net + ".2";
      listen_a_ += (i == 0 ? "" : ",") + net + ".1:0";
      listen_b_ += (i == 0 ? "" : ",") + net + ".2:0";
    }
  }
  // Runs an initiator on A and a target on B. `before` is put before the program, for example
  // "taskset -c 0".
  std::string run(const std::string& flags, const std::string& before = "") {
    const auto environment = [&](const std::string& rails, const std::string& listen) {
      return "VIADUCT_SECRET=word VIADUCT_LISTEN=" + listen + " VIADUCT_RAILS=" + rails + " " +
             before;
    };
    const std::string all = "bench --meet 10.77.0.1:7000 --backend tcp " + flags + " --rank ";
    Command initiator(a_, all + "0", environment(rails_a_, listen_a_));
    Command target(b_, all + "1", environment(rails_b_, listen_b_));
    EXPECT_EQ(target.finish(), 0) << target.text();
    EXPECT_EQ(initiator.finish(), 0) << initiator.text();
    return initiator.text();
  }
  static std::string on(const Host& host, const std::string& arguments,
                        const std::string& before = "") {
    Command command(host, arguments, before);
    command.finish();
    return command.text();
  }
  // Expects the same words in the output of all three commands.
  static void expectEverywhere(const std::string& row, const Host& host, const std::string& words,
                               const std::string& before = "") {
    EXPECT_TRUE(hasWords(row, words)) << row;
    const std::string doctor = on(host, "doctor --only speed", before);
    EXPECT_TRUE(hasWords(doctor, words)) << doctor;
    const std::string explained = on(host, "bench --explain --backend tcp", before);
    EXPECT_TRUE(hasWords(explained, words)) << explained;
  }

  Host a_, b_;
  std::string rails_a_, rails_b_, listen_a_, listen_b_;
};

constexpr auto kFourRails = "--block-sizes 256K --batch 8 --iterations 16 --warmup 10ms";

TEST_F(SlowRow, AHealthyRunOverFourRailsNamesNothing) {
  makeRails(4);
  expectNoCause(run(kFourRails));
  expectNoCause(on(a_, "doctor --only speed"));
  expectNoCause(on(a_, "bench --explain --backend tcp"));
}

TEST_F(SlowRow, OneShapedRailOfFourIsNamedWithItsRate) {
  makeRails(4);
  ASSERT_TRUE(a_.limit("rail2", 50));
  const std::string row = run(kFourRails);
  expectEverywhere(row, a_, "is limited to 50 Mbit/s by its queueing discipline tbf");
  EXPECT_TRUE(hasWords(row, "interface rail2 of rank 0")) << row;
  EXPECT_TRUE(hasWords(row, "the rails of rank 0 differ while they send: 10.77.0.1 ")) << row;
}

TEST_F(SlowRow, SmallSocketBuffersAreNamed) {
  makeRails(1);
  for (const Host* host : {&a_, &b_})
    ASSERT_TRUE(
        host->run("sysctl -qw net.ipv4.tcp_wmem=\"4096 8192 8192\" "
                  "net.ipv4.tcp_rmem=\"4096 8192 8192\""));
  expectEverywhere(run("--block-sizes 256K --batch 4 --duration 300ms"), a_,
                   "socket buffers hold at most 8 KiB (tcp_wmem)");
}

TEST_F(SlowRow, LostPacketsAreNamedWithTheirRail) {
  if (!hasCommand("nft")) GTEST_SKIP() << "skipped: no nft";
  makeRails(1);
  // Drops segments at the receiving host. TCP notices a drop at the sending host at once.
  ASSERT_TRUE(b_.run(
      "nft add table ip loss && nft add chain ip loss in \"{ type filter hook input priority "
      "0; }\" && nft add rule ip loss in iifname rail0 numgen random mod 100 \\< 5 drop"));
  const std::string row = run("--block-sizes 256K --batch 4 --iterations 30");
  EXPECT_TRUE(hasWords(row, "rail 10.77.0.1 of rank 0 sent")) << row;
  EXPECT_TRUE(hasWords(row, "TCP segments again")) << row;
  const std::string doctor = on(a_, "doctor --only speed");
  EXPECT_TRUE(hasWords(doctor, "segments of this network namespace were sent again")) << doctor;
}

TEST_F(SlowRow, ProcessesThatShareOneProcessorAreNamed) {
  makeRails(1);
  const std::string row = run("--block-sizes 1M --batch 4 --duration 500ms", "taskset -c 0");
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "skipped: one processor";
  expectEverywhere(row, a_, "may run on 1 of", "taskset -c 0");
  EXPECT_FALSE(hasWords(row, "--num-threads")) << row;
}

TEST_F(SlowRow, ABusyNeighbourOnTheSameProcessorIsNamed) {
  VIADUCT_LONG_TEST();
  if (::sysconf(_SC_NPROCESSORS_ONLN) < 2) GTEST_SKIP() << "skipped: one processor";
  makeRails(1);
  const std::vector<std::string> spin{"taskset", "-c", "1", "sh", "-c", "while :; do :; done"};
  const Process one(spin), two(spin);
  const std::string row = run("--block-sizes 1M --batch 4 --duration 500ms", "taskset -c 1");
  EXPECT_TRUE(hasWords(row, "other programs kept processor 1 of rank 0 busy")) << row;
}

TEST_F(SlowRow, EndsWithDifferentMtusAreNamed) {
  VIADUCT_LONG_TEST();
  makeRails(1);
  ASSERT_TRUE(a_.ip("link set rail0 mtu 9000"));
  const std::string row = run("--block-sizes 1M --batch 4 --duration 200ms");
  EXPECT_TRUE(hasWords(row,
                       "rail 10.77.0.1 of rank 0 has an MTU of 9000, and the other end takes "
                       "only 1448 bytes"))
      << row;
}

TEST_F(SlowRow, TwoDoctorsNameDifferentMtus) {
  VIADUCT_LONG_TEST();
  makeRails(1);
  ASSERT_TRUE(a_.ip("link set rail0 mtu 9000"));
  Command listener(b_, "doctor --only speed --listen 10.77.0.2 --secret word");
  ASSERT_TRUE(listener.readUntil("waiting for:")) << listener.text();
  const std::string out = on(a_, "doctor --only speed --peer 10.77.0.2 --secret word");
  EXPECT_TRUE(hasWords(out, "has an MTU of 9000, and the other end takes only 1448 bytes")) << out;
}

TEST_F(SlowRow, ASmallMtuIsNamed) {
  VIADUCT_LONG_TEST();
  makeRails(1);
  ASSERT_TRUE(a_.ip("link set rail0 mtu 700") && b_.ip("link set rail0 mtu 700"));
  expectEverywhere(run("--block-sizes 64K --batch 4 --duration 200ms"), a_, "has an MTU of 700");
}

TEST_F(SlowRow, ATracerIsNamed) {
  VIADUCT_LONG_TEST();
  if (!hasCommand("strace")) GTEST_SKIP() << "skipped: no strace";
  makeRails(1);
  const std::string row =
      run("--block-sizes 64K --batch 4 --duration 200ms", "strace -f -o /dev/null");
  EXPECT_TRUE(hasWords(row, "traces rank 0")) << row;
}

// Runs the program on this host, without namespaces. The doctor exits with code 1 if it has a
// finding.
std::string here(const std::string& before, const std::string& arguments, int code = 0) {
  Process process({"sh", "-c", before + " exec \"" + kProgram + "\" " + arguments + " 2>&1"});
  std::string out;
  while (const auto line = process.answer(std::chrono::seconds(60))) out += *line + "\n";
  EXPECT_EQ(process.wait(std::chrono::seconds(10)), code) << out;
  return out;
}

// A control group with a quota of processors, for one test.
class Quota {
 public:
  explicit Quota(unsigned percent)
      : folder_("/sys/fs/cgroup/cpu/viaduct-test-" + std::to_string(::getpid())) {
    std::error_code failed;
    std::filesystem::create_directory(folder_, failed);
    std::ofstream(folder_ + "/cpu.cfs_period_us") << 100000 << std::flush;
    std::ofstream quota(folder_ + "/cpu.cfs_quota_us");
    quota << percent * 1000 << std::flush;
    made_ = quota.good();
  }
  ~Quota() {
    std::error_code failed;
    std::filesystem::remove(folder_, failed);
  }
  Quota(const Quota&) = delete;
  Quota& operator=(const Quota&) = delete;
  bool made() const { return made_; }
  std::string joining() const { return "echo $$ > " + folder_ + "/cgroup.procs;"; }

 private:
  const std::string folder_;
  bool made_ = false;
};

TEST(SlowRowHere, AQuotaOfProcessorsIsNamed) {
  VIADUCT_LONG_TEST();
  const Quota quota(20);
  if (!quota.made()) GTEST_SKIP() << "skipped: no control groups of version 1, or no right";
  const std::string row =
      here(quota.joining(), "bench --backend tcp --block-sizes 1M --batch 4 --duration 500ms");
  EXPECT_TRUE(hasWords(row,
                       "the control group of rank 0 has a quota of 0.2 processors, and was "
                       "held back"))
      << row;
  EXPECT_TRUE(hasWords(here(quota.joining(), "doctor --only speed", 1), "quota of 0.2 processors"));
  EXPECT_TRUE(hasWords(here(quota.joining(), "bench --explain"), "quota of 0.2 processors"));
}

// Moves small blocks within much memory. Huge pages are a setting of the machine, so the test asks
// for ordinary memory, and is skipped if the kernel gives huge pages to all memory.
TEST(SlowRowHere, MemoryWithoutHugePagesIsNamed) {
  std::ifstream file("/sys/kernel/mm/transparent_hugepage/enabled");
  std::string setting;
  std::getline(file, setting);
  if (setting.empty() || setting.find("[always]") != std::string::npos)
    GTEST_SKIP() << "skipped: each process gets huge pages: " << setting;
  const std::string scattered =
      "bench --backend local --memory malloc --block-sizes 4K --batch 256 --duration 100ms ";
  const std::string cold = here("", scattered + "--working-set 128M");
  EXPECT_TRUE(hasWords(cold, "memory of rank 0 has no huge pages")) << cold;
  const std::string hot = here("", scattered);
  EXPECT_FALSE(hasWords(hot, "has no huge pages")) << hot;
}

}  // namespace
}  // namespace viaduct::testing
