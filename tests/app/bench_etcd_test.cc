// Scenario: pods start at the same instant and meet at an etcd, with nixlbench's own flags.
#include "app/bench_etcd.h"

#include <gtest/gtest.h>
#include <signal.h>

#include "support/etcd_server.h"
#include "support/free_port.h"

namespace viaduct::testing {
namespace {

// The number of changes that this etcd has made.
std::string revision(const EtcdServer& etcd) {
  const std::string text = etcd.ctl("get / --prefix --write-out=json");
  const auto at = text.find("\"revision\":");
  return at == std::string::npos ? text : text.substr(at, text.find(',', at) - at);
}

TEST(BenchAtEtcd, PodsThatStartAtTheSameInstantAreOneRunEachTime) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  for (int run = 0; run < 3; ++run) {
    Pair pods(Words{"-etcd_endpoints", etcd.url()} + kManyDevices);
    pods.expectOneRun();
    EXPECT_TRUE(has(pods.printed(), "\n131072              1              ")) << pods.printed();
  }
  EXPECT_EQ(etcd.ctl("get / --prefix --keys-only"), "") << "nothing has to be cleaned";
}

TEST(BenchAtEtcd, RanksOfTheEnvironmentMayBeTheSame) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  for (const char* variable : {"JOB_COMPLETION_INDEX=0", "SLURM_PROCID=0"}) {
    Pair pods(Words{"-etcd_endpoints", etcd.url()} + kManyDevices, {variable});
    pods.expectOneRun();
    EXPECT_TRUE(has(pods.said(), "rank 1 instead of 0, which the environment says")) << pods.said();
  }
}

// A run that continues until it is interrupted.
const Words kEndless{"--backend=tcp", "--benchmark_group=bg", "--max_block_size=4096",
                     "--total_buffer_size=1048576", "--duration=1h"};

TEST(BenchAtEtcd, TheKeysOfAKilledRunAreNoHindrance) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const Words there{"-etcd_endpoints", etcd.url()};
  {
    Nixlbench lead(there + kEndless + Words{"--rank=0"}), next(there + kEndless);
    ASSERT_TRUE(lead.readUntil("Block Size"));
    ::kill(lead.pid(), SIGKILL);
    ::kill(next.pid(), SIGKILL);
    lead.finish();
    next.finish();
  }
  EXPECT_TRUE(has(etcd.ctl("get / --prefix --keys-only"), "bg")) << "it left keys";
  Pair pods(there + Words{"--backend=tcp", "--benchmark_group=bg", "--max_block_size=4096",
                          "--total_buffer_size=1048576", "--num_iter=16"});
  pods.expectOneRun();
}

TEST(BenchAtEtcd, CtrlCAtAnyMemberKeepsThePartialRowAndLeavesNoKeys) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const Words there{"-etcd_endpoints", etcd.url(), "--output=table", "-i=0.05"};
  Nixlbench lead(there + kEndless + Words{"--rank=0"}), next(there + kEndless);
  ASSERT_TRUE(lead.readUntil("tcp write 1 x 4 KiB: 0.00 to ")) << lead.out();
  next.interrupt(SIGINT);
  EXPECT_EQ(next.finish(), 130) << next.err();
  EXPECT_EQ(lead.finish(), 130) << lead.err();
  EXPECT_TRUE(has(lead.err(), "interrupted at rank 1; 1 row measured")) << lead.err();
  EXPECT_TRUE(has(lead.out(), " of 3600 s")) << lead.out();
  EXPECT_EQ(etcd.ctl("get / --prefix --keys-only"), "");
}

TEST(BenchAtEtcd, ASecondRunOfTheSameNameIsRefusedAndHarmsNobody) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const Words there{"-etcd_endpoints", etcd.url()};
  Nixlbench lead(there + kEndless + Words{"--rank=0"}), next(there + kEndless);
  ASSERT_TRUE(lead.readUntil("Block Size"));
  Pair late(there + kEndless);
  for (Nixlbench* one : {&late.one, &late.other}) {
    EXPECT_EQ(one->finish(), 1) << one->err();
    EXPECT_TRUE(has(one->err(), "join group bg") &&
                has(one->err(), "the group is complete and running"))
        << one->err();
    EXPECT_EQ(one->out(), "");
  }
  // If the second run had harmed the first, the first would have ended earlier, with another code.
  ::kill(lead.pid(), SIGINT);
  EXPECT_EQ(lead.finish(), 130) << lead.err();
  EXPECT_EQ(next.finish(), 130) << next.err();
  EXPECT_TRUE(has(next.err(), "interrupted at rank 0")) << next.err();
}

TEST(BenchAtEtcd, UnavailableOptionsAreRefusedBeforeEtcdIsAsked) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  const std::string before = revision(etcd);
  for (const std::string backend : {"GPUNETIO", "Mooncake"}) {
    Nixlbench run({"-etcd_endpoints", etcd.url(), "--backend", backend, "--benchmark_group",
                   "bg100000", "--target_seg_type", "VRAM", "--initiator_seg_type", "VRAM",
                   "--num_initiator_dev=8", "--num_target_dev=8", "--total_buffer_size=64424509440",
                   "--max_block_size=2147483648", "--mode=MG"});
    EXPECT_EQ(run.finish(), 2);
    EXPECT_TRUE(has(run.err(), backend + " is not built in: ")) << run.err();
    EXPECT_EQ(run.out(), "");
  }
  EXPECT_EQ(revision(etcd), before);
}

// The agents of a run find each other through their group. Published names of several runs would
// collide.
TEST(BenchAtEtcd, AgentsOfARunPublishNoNames) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  Pair pods(kManyDevices, {"NIXL_ETCD_ENDPOINTS=" + etcd.url(), "VIADUCT_NAME=worker"});
  pods.expectOneRun();

  const std::string before = revision(etcd);
  Program here({"bench", "--backend", "tcp", "--block-sizes", "4K", "--iterations", "5"},
               {"VIADUCT_MEET=" + etcd.url()});
  EXPECT_EQ(here.finish(), 0) << here.err();
  EXPECT_TRUE(has(here.err(), "all workers run here")) << here.err();
  EXPECT_EQ(revision(etcd), before);
}

TEST(BenchAtEtcd, AWaitingMemberNamesTheMissingOnes) {
  VIADUCT_NEEDS_ETCD();
  const EtcdServer etcd;
  Nixlbench alone(Words{"-etcd_endpoints", etcd.url()} + kEndless + Words{"--meet_timeout=4s"});
  EXPECT_EQ(alone.finish(), 1);
  EXPECT_TRUE(has(alone.err(), "still waiting: join group bg: meeting place etcd " + etcd.url()) &&
              has(alone.err(), ": 1 of 2 have joined: "))
      << alone.err();
}

TEST(BenchAtEtcd, AMemberThatReachesNoEtcdSaysTheLastError) {
  const std::string nobody = "http://" + freeAddress();
  Nixlbench alone(Words{"-etcd_endpoints", nobody} + kEndless + Words{"--meet_timeout=4s"});
  EXPECT_EQ(alone.finish(), 1);
  EXPECT_TRUE(has(alone.err(), "still waiting: ")) << alone.err();
  EXPECT_TRUE(has(alone.err(), nobody + ": connect: ")) << alone.err();
  EXPECT_TRUE(has(alone.err(), " s left\n")) << alone.err();
}

}  // namespace

void Pair::expectOneRun() {
  EXPECT_EQ(one.finish(), 0) << one.err();
  EXPECT_EQ(other.finish(), 0) << other.err();
  EXPECT_NE(one.out().empty(), other.out().empty()) << "one of them is rank 0" << printed();
}

}  // namespace viaduct::testing
