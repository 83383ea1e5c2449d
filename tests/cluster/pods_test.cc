// Scenario: prefill and decode are pods on two hosts. They start at the same instant, with
// nixlbench's own flags, and meet at an etcd on a third host.
#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include "cluster/hosts.h"
#include "support/etcd_server.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

// Usual flags, except for the sizes and the kind of memory.
constexpr auto kFlags =
    " -etcd_endpoints http://10.77.0.3:2379 --benchmark_group bg100000 --target_seg_type DRAM "
    "--initiator_seg_type DRAM --num_initiator_dev=8 --num_target_dev=8 "
    "--total_buffer_size=16777216 --start_block_size=65536 --max_block_size=131072 "
    "--warmup_iter=1 --mode=MG --meet_timeout=60s --backend ";

class Pods : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto why = EtcdServer::whyAbsent(); !why.empty()) GTEST_SKIP() << "skipped: " << why;
    if (!desk_.made()) GTEST_SKIP() << "skipped: no CAP_NET_ADMIN";
    std::filesystem::create_symlink(kProgram, folder_.path() + "/nixlbench");
  }

  std::unique_ptr<Process> pod(std::size_t host, const std::string& more = " --num_iter=16") const {
    const std::string command = folder_.path() + "/nixlbench" + kFlags + GetParam() + more;
    return std::make_unique<Process>(
        std::vector<std::string>{"sh", "-c", "exec " + command + " 2>&1"}, desk_[host].pid());
  }
  void startEtcd() {
    const std::string command = "exec etcd --data-dir " + folder_.path() +
                                "/etcd --listen-client-urls http://10.77.0.3:2379 "
                                "--advertise-client-urls http://10.77.0.3:2379 "
                                "--listen-peer-urls http://127.0.0.1:2380 >" +
                                folder_.path() + "/etcd.log 2>&1";
    etcd_ =
        std::make_unique<Process>(std::vector<std::string>{"sh", "-c", command}, desk_[2].pid());
  }
  // The pod's output up to its end, and its exit code.
  static std::pair<int, std::string> finish(Process& pod) {
    std::string text;
    while (const auto line = pod.answer(90s)) text += *line + "\n";
    return {pod.wait(10s), text};
  }
  static void expectOneRun(Process& prefill, Process& decode) {
    const auto [code, said] = finish(prefill);
    const auto [other_code, other_said] = finish(decode);
    EXPECT_EQ(code, 0) << said;
    EXPECT_EQ(other_code, 0) << other_said;
    EXPECT_NE(has(said, "\n131072 "), has(other_said, "\n131072 ")) << "one of them is rank 0:\n"
                                                                    << said << other_said;
  }

  const Desk desk_{3};
  const TemporaryFolder folder_;
  std::unique_ptr<Process> etcd_;
};

TEST_P(Pods, ThatStartAtTheSameInstantAreOneRunOverTheKeysOfAKilledOneToo) {
  const auto prefill = pod(0), decode = pod(1);
  startEtcd();  // later than both pods
  expectOneRun(*prefill, *decode);

  const auto lead = pod(0, " --duration=1h"), next = pod(1, " --duration=1h");
  std::string said;
  for (const Deadline until = 60s; !has(said, "Block Size");) {
    ASSERT_FALSE(until.passed()) << said;
    for (Process* one : {lead.get(), next.get()})  // either may be rank 0
      if (const auto line = one->answer(50ms)) said += *line;
  }
  lead->kill();
  next->kill();
  const auto again = pod(0), with = pod(1);
  expectOneRun(*again, *with);
}

INSTANTIATE_TEST_SUITE_P(Over, Pods, ::testing::Values("tcp", "LIBFABRIC"),
                         [](const auto& one) { return std::string(one.param); });

}  // namespace
}  // namespace viaduct::testing
