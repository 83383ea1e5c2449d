// Judges rows with figures as other benchmarks have published them, or might.
#include "measure/proof/judge.h"

#include <gtest/gtest.h>

#include "measure/proof/scene_testing.h"
#include "support/text.h"

namespace viaduct::measure::proof {
namespace {

constexpr std::uint64_t kLarge = 100'000'000;  // bytes of one transfer

using testing::has;

Judgement judged(std::vector<Observation> seen, double gb_per_s, const std::string& require = "",
                 std::vector<LinkRate> rates = {}) {
  return judge(seen,
               {.require = require,
                .gb_per_s = gb_per_s,
                .transfer_bytes = kLarge,
                .verified = Verified::kFull},
               rates);
}

Seen efaHost(const std::string& name, std::uint64_t sent, std::uint64_t received) {
  return Seen(name).rdma("efa0", 100 * kGbit, sent, received).memory(20);
}

TEST(Published, ALocalCopyAsGpuToGpuOverEfaIsInvalid) {
  const auto row = judged({efaHost("a", 4000, 0).claims(1, {{"ofi", "efa", "efa0", 285 * kGB, 9}}),
                           efaHost("b", 0, 4000)},
                          284.98);
  EXPECT_EQ(row.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(row.why, "a memory copy")) << row.why;
  EXPECT_TRUE(has(row.why, "efa0 of a")) << row.why;
  ASSERT_TRUE(row.ceiling);
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 12.5);
  ASSERT_EQ(row.path.size(), 1U);
  EXPECT_EQ(row.path[0].proven, Proven::kNo);
}

TEST(Published, ACopyWithinOneProcessAsRdmaIsInvalidToo) {
  auto host = efaHost("a", 0, 0).claims(0, {{"ucx", "rc_mlx5", "efa0", 285 * kGB, 9}});
  const auto row = judged({host}, 284.98);
  EXPECT_EQ(row.verdict, Verdict::kInvalid) << row.why;
  EXPECT_TRUE(has(row.why, "a memory copy")) << row.why;
}

TEST(Published, UcxAsRdmaWithItsBytesOnEthernetIsAFallback) {
  const std::uint64_t bytes = 300'000'000;
  const auto row = judged({efaHost("a", 0, 0)
                               .ethernet("eth0", 100 * kGbit, bytes + 9000, 100)
                               .claims(1, {{"ucx", "rc_mlx5", "efa0", bytes, 3}}),
                           efaHost("b", 0, 0).ethernet("eth0", 100 * kGbit, 100, bytes + 9000)},
                          0.3);
  EXPECT_EQ(row.verdict, Verdict::kFallback);
  EXPECT_TRUE(has(row.why, "went over eth0 of a, an Ethernet device: TCP")) << row.why;
  EXPECT_EQ(row.path[0].proven, Proven::kNo);
}

TEST(Published, NinetyEightPercentOfALinkIsFine) {
  const std::uint64_t bytes = 12'300'000'000;
  const auto row =
      judged({efaHost("a", bytes + kGB / 10, 1000).claims(1, {{"ofi", "efa", "efa0", bytes, 123}}),
              efaHost("b", 1000, bytes + kGB / 10)},
             12.3);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  ASSERT_TRUE(row.ceiling);
  EXPECT_NEAR(row.ceiling->percent, 98.4, 0.05);
  EXPECT_EQ(row.path[0].proven, Proven::kYes);
  EXPECT_TRUE(has(row.conclusion, "nothing left to gain")) << row.conclusion;
}

TEST(Published, ARateAboveTheNetworksIsInvalid) {
  const std::uint64_t bytes = 92'300'000'000;
  const auto row = judged(
      {Seen("a").rdma("mlx5_0", 200 * kGbit, bytes, 0).claims(1, {{"ucx", "rc", "any", bytes, 9}}),
       Seen("b").rdma("mlx5_0", 200 * kGbit, 0, bytes)},
      92.3);
  EXPECT_EQ(row.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(row.why, "369 %")) << row.why;
}

// Makes observations of two hosts with four interfaces. `carried` has the bytes of each interface;
// the transfers claim equal shares.
std::vector<Observation> fourRails(const std::vector<std::uint64_t>& carried,
                                   std::size_t claimed_rails = 4) {
  Seen a("a"), b("b");
  std::vector<std::string> names;
  for (std::size_t i = 0; i < carried.size(); ++i) {
    names.push_back("rail" + std::to_string(i));
    a.ethernet(names.back(), 10 * kGbit, carried[i], 10).address("10.0.0." + std::to_string(i));
    b.ethernet(names.back(), 10 * kGbit, 10, carried[i]);
  }
  std::vector<PathShare> shares;
  for (std::size_t i = 0; i < claimed_rails; ++i)
    shares.push_back({"tcp", "socket", "10.0.0." + std::to_string(i), 4 * kGB / claimed_rails, 1});
  return {a.rails(names).claims(1, shares), b};
}

TEST(Rails, AllRailsMakeTheCeiling) {
  const auto row = judged(fourRails({kGB + 100, kGB + 100, kGB + 100, kGB + 100}), 4.0);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 5.0);
  EXPECT_EQ(row.path[2].device, "rail2") << "by its name, not by its address";
}

TEST(Rails, ASilentRailOfFourIsNamed) {
  const auto row = judged(fourRails({2 * kGB, 2 * kGB, 2 * kGB, 900}, 3), 3.0);
  EXPECT_EQ(row.verdict, Verdict::kSilentRail);
  EXPECT_TRUE(has(row.why, "rail3 of a")) << row.why;
  EXPECT_FALSE(has(row.why, "rail2")) << row.why;
}

// Other programs' bytes on the link do not show that the rail carried the benchmark's bytes.
TEST(Rails, ASilentRailBesideOthersTrafficIsNamed) {
  const auto row = judged(fourRails({2 * kGB, 2 * kGB, 2 * kGB, kGB}, 3), 3.0);
  EXPECT_EQ(row.verdict, Verdict::kSilentRail) << row.why;
  EXPECT_TRUE(has(row.why, "rail3 of a")) << row.why;
}

TEST(Rails, TrafficOverAnotherRailIsNamed) {
  const auto row = judged(fourRails({2 * kGB, 20, kGB, kGB}), 3.0);
  EXPECT_EQ(row.verdict, Verdict::kFallback);
  EXPECT_TRUE(has(row.why, "went over rail0 of a, not over rail1")) << row.why;
  EXPECT_EQ(row.path[1].proven, Proven::kNo);
  EXPECT_EQ(row.path[2].proven, Proven::kYes);
}

TEST(Rails, TrafficThatWasSpreadOverOthersIsFound) {
  // A quarter of the payload belongs to each rail. Half of rail1's bytes took rail0, and half took
  // rail3.
  const auto row = judged(fourRails({kGB * 3 / 2, 20, kGB, kGB * 3 / 2}), 3.0);
  EXPECT_EQ(row.verdict, Verdict::kFallback);
  EXPECT_TRUE(has(row.why, "went over rail")) << row.why;
  EXPECT_TRUE(has(row.why, "rail0")) << row.why;
  EXPECT_TRUE(has(row.why, "rail3")) << row.why;
  const auto half = judged(fourRails({kGB / 2, kGB, kGB, kGB * 3 / 2}), 3.0);
  EXPECT_TRUE(has(half.why, "500 MB went over rail3 of a, not over rail0")) << half.why;
}

TEST(Rails, ASmallTransferNeedNotUseAllRails) {
  auto seen = fourRails({4 * kGB, 0, 0, 0}, 1);
  const auto row = judge(seen, {.gb_per_s = 1.0, .transfer_bytes = 16 << 10}, {});
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
}

TEST(Proof, OthersTrafficIsSubtractedAndNamed) {
  const auto with = [](std::uint64_t carried) {
    return judged({Seen("a")
                       .ethernet("eth0", 0, carried, 0)
                       .others(500'000)  // 0.1 GB during the second of the row
                       .claims(1, {{"tcp", "socket", "any", kGB, 1}}),
                   Seen("b").ethernet("eth0", 0, 0, carried).others(500'000)},
                  1.0);
  };
  const auto enough = with(kGB + kGB / 10);
  EXPECT_EQ(enough.verdict, Verdict::kOk) << enough.why;
  EXPECT_TRUE(has(enough.proof, "besides 100 MB/s of other traffic")) << enough.proof;
  const auto doubtful = with(kGB);
  EXPECT_EQ(doubtful.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(doubtful.why, "of which 100 MB may be other traffic")) << doubtful.why;
}

TEST(Proof, ACounterIsBelievedIfNetlinkConfirmsIt) {
  // The counts of two rails are swapped in /proc/net/dev of one end.
  const auto with = [](std::optional<host::LinkBytes> rail0, std::optional<host::LinkBytes> rail1) {
    return judged({Seen("a")
                       .ethernet("rail0", 0, kGB, 10)
                       .netlink(rail0)
                       .ethernet("rail1", 0, 500, 10)
                       .netlink(rail1)
                       .claims(1, {{"tcp", "socket", "rail0", kGB, 1}}),
                   Seen("b").ethernet("rail0", 0, 10, kGB)},
                  1.0);
  };
  const host::LinkBytes much{2 * kGB, kGB + 10}, little{kGB + 500, kGB + 10};
  EXPECT_EQ(with(much, little).verdict, Verdict::kOk) << with(much, little).why;
  const auto swapped = with(little, much);
  EXPECT_EQ(swapped.verdict, Verdict::kUnproven);
  EXPECT_EQ(swapped.path[0].proven, Proven::kUnproven);
  EXPECT_TRUE(
      has(swapped.why, "rail0 of a sent 1000000000 B by /proc/net/dev but 500 B by netlink"))
      << swapped.why;
  const auto alone = with(std::nullopt, little);
  EXPECT_EQ(alone.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(alone.why, "rail0 of a counted bytes that netlink does not confirm"))
      << alone.why;
}

TEST(Proof, AForgedCounterIsNoSilence) {
  const auto with = [](std::uint64_t looped) {
    return judged({Seen("a")
                       .netlink(host::LinkBytes{kGB + looped, kGB + looped})
                       .memory(20)
                       .claims(1, {{"local", "mapped", "memory", kGB, 1}}),
                   Seen("a")},
                  10.0);
  };
  EXPECT_EQ(with(0).verdict, Verdict::kOk) << with(0).why;
  const auto forged = with(kGB);
  EXPECT_EQ(forged.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(forged.why, "lo of a sent 0 B by /proc/net/dev but 1000000000 B by netlink"))
      << forged.why;
}

// Bytes that the named device did not count may have passed a device whose counter is doubted. So
// there is no proof of a memory copy.
TEST(Proof, ADoubtedCounterIsNoMemoryCopy) {
  const auto row = judged({Seen("a")
                               .ethernet("rail0", 0, 500, 0)
                               .ethernet("rail1", 0, 0, 0)
                               .netlink(std::nullopt)
                               .claims(1, {{"tcp", "socket", "rail0", kGB, 1}}),
                           Seen("b").ethernet("rail0", 0, 10, kGB)},
                          1.0);
  EXPECT_EQ(row.verdict, Verdict::kFallback);
  EXPECT_TRUE(has(row.why, "did not go over rail0 of a, and rail1 of a counted")) << row.why;
}

TEST(Proof, WithoutCountersNothingIsProven) {
  auto a = Seen("a").ethernet("eth0", 0, kGB, 0).silentCounters();
  a.claims(1, {{"tcp", "socket", "any", kGB, 1}});
  const auto row = judged({a, Seen("b").ethernet("eth0", 0, 0, kGB)}, 1.0);
  EXPECT_EQ(row.verdict, Verdict::kUnproven);
  EXPECT_EQ(row.path[0].proven, Proven::kUnproven);
  EXPECT_TRUE(isGood(row.verdict));
}

TEST(Proof, TheOtherEndMustHaveReceivedTheBytes) {
  const auto row =
      judged({Seen("a").ethernet("eth0", 0, kGB, 0).claims(1, {{"tcp", "socket", "any", kGB, 1}}),
              Seen("b").ethernet("eth0", 0, 0, kGB / 2)},
             1.0);
  EXPECT_EQ(row.verdict, Verdict::kUnproven) << "counters may lag, so it is not a no";
}

TEST(Proof, AWrappedCounterOf32BitsIsReadCorrectlyOrNotAtAll) {
  constexpr std::uint64_t kTurn = std::uint64_t{1} << 32U;
  const auto with = [](std::uint64_t payload) {
    return judged({Seen("a")
                       .rdma("mlx5_0", 0, 0, 0)
                       .counting(kTurn - 1000, 250'000'000, 4)
                       .claims(1, {{"ucx", "rc", "mlx5_0:1", payload, 1}}),
                   Seen("b").rdma("mlx5_0", 0, 0, payload)},
                  1.0);
  };
  EXPECT_EQ(with(kGB).verdict, Verdict::kOk) << with(kGB).why;
  const auto more = with(20 * kGB);
  EXPECT_EQ(more.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(more.why, "wrapped")) << more.why;
}

TEST(Proof, ABondsBytesAreCountedOnce) {
  const auto bonded = [](const char* name, std::uint64_t sent, std::uint64_t received) {
    return Seen(name)
        .ethernet("eth0", 25 * kGbit, sent / 2, received / 2)
        .ethernet("eth1", 25 * kGbit, sent / 2, received / 2)
        .device("bond0", host::DeviceKind::kVirtual, 50 * kGbit, sent, received)
        .lower({"eth0", "eth1"});
  };
  const auto row = [&](std::uint64_t carried) {
    return judged({bonded("a", carried, 0).claims(1, {{"tcp", "socket", "any", 4 * kGB, 1}}),
                   bonded("b", 0, carried)},
                  4.0);
  };
  EXPECT_EQ(row(4 * kGB).verdict, Verdict::kOk) << row(4 * kGB).why;
  EXPECT_EQ(row(4 * kGB).path[0].device, "bond0");
  EXPECT_DOUBLE_EQ(row(4 * kGB).ceiling->gb_per_s, 6.25);
  EXPECT_EQ(row(2 * kGB).verdict, Verdict::kFallback) << "parts and whole are not added up";
}

TEST(Proof, AReadIsReceivedByTheInitiator) {
  const auto row = judged({Seen("a")
                               .ethernet("eth0", 0, 5, kGB)
                               .claims(1, {{"tcp", "socket", "eth0", kGB, 1}}, OpKind::kRead),
                           Seen("b").ethernet("eth0", 0, kGB, 5)},
                          1.0);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
}

TEST(Proof, SocketsWithinAHostAreOnLoopback) {
  const auto pair = [](std::uint64_t looped) {
    return std::vector<Observation>{
        Seen("a").loopback(looped).memory(20).claims(1, {{"tcp", "socket", "any", kGB, 1}}),
        Seen("a").loopback(looped)};
  };
  const auto row = judged(pair(kGB), 1.0);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  EXPECT_EQ(row.path[0].device, "lo");
  ASSERT_TRUE(row.ceiling);
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 10.0) << "two copies";
  EXPECT_EQ(judged(pair(kGB / 2), 1.0).verdict, Verdict::kFallback) << "a memory copy";
}

TEST(Proof, MemoryIsProvenIfNoDeviceCountedTheBytes) {
  const auto pair = [](std::uint64_t looped) {
    return std::vector<Observation>{
        Seen("a").loopback(looped).memory(20).claims(1, {{"local", "mapped", "memory", kGB, 1}}),
        Seen("a").loopback(looped)};
  };
  const auto row = judged(pair(1000), 10.0);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  EXPECT_EQ(row.path[0].proven, Proven::kYes);
  EXPECT_DOUBLE_EQ(row.ceiling->percent, 50.0);
  const auto busy = judged(pair(kGB), 10.0);
  EXPECT_EQ(busy.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(busy.why, "lo of a was too busy")) << busy.why;
}

TEST(Ceilings, ARowThatOutranTheMeasuredMemoryRateHasNoPercentage) {
  const auto row = [](double gb_per_s, const char* backend, const char* way, const char* rail) {
    const std::uint64_t looped = std::string_view(backend) == "tcp" ? kGB : 0;
    return judged({Seen("a").loopback(looped).memory(20).claims(1, {{backend, way, rail, kGB, 1}}),
                   Seen("a").loopback(looped)},
                  gb_per_s);
  };
  const auto near = row(19.0, "local", "mapped", "memory");
  ASSERT_TRUE(near.ceiling);
  EXPECT_DOUBLE_EQ(near.ceiling->percent, 95.0);
  EXPECT_TRUE(has(near.conclusion, "nothing left to gain")) << near.conclusion;
  for (const auto& above :
       {row(22.0, "local", "mapped", "memory"), row(11.0, "tcp", "socket", "any")}) {
    EXPECT_EQ(above.verdict, Verdict::kOk) << above.why;
    EXPECT_FALSE(above.ceiling);
    EXPECT_TRUE(has(above.conclusion, "above the memory rate measured at the start"))
        << above.conclusion;
    EXPECT_FALSE(has(above.conclusion, "nothing left to gain")) << above.conclusion;
    EXPECT_FALSE(has(above.conclusion, "%")) << above.conclusion;
  }
  const auto untrue = row(41.0, "local", "mapped", "memory");
  EXPECT_EQ(untrue.verdict, Verdict::kInvalid);
  EXPECT_TRUE(untrue.ceiling) << "an invalid row says of what it is too much";
}

TEST(Proof, MemoryDoesNotReachAnotherHost) {
  const auto row =
      judged({Seen("a").claims(1, {{"local", "mapped", "memory", kGB, 1}}), Seen("b")}, 1.0);
  EXPECT_EQ(row.verdict, Verdict::kFallback);
  EXPECT_EQ(row.path[0].proven, Proven::kNo);
}

TEST(Proof, TwoContainersOnOneHostUseTheNetworkBetweenThem) {
  const auto row = judged({Seen("a")
                               .on("boot", "net:[1]")
                               .ethernet("eth0", 0, kGB, 0)
                               .claims(1, {{"tcp", "socket", "any", kGB, 1}}),
                           Seen("a").on("boot", "net:[2]").ethernet("eth0", 0, 0, kGB)},
                          1.0);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  EXPECT_TRUE(has(row.proof, "a (rank 0)")) << row.proof;
}

class Hosts : public ::testing::Test {
 protected:
  static constexpr double kStart = 1'795'839'427.25;
  static Judgement row(const std::string& boot_of_b, double start_of_b, double stat_of_b) {
    const bool same = boot_of_b == "boot of a";
    Seen a("a"), b("b");
    a.process(1).started(kStart, kStart - 0.25).on("boot of a", "net:[1]");
    b.process(2).started(start_of_b, stat_of_b).on(boot_of_b, same ? "net:[1]" : "net:[2]");
    if (same)
      return judged({a.memory(20).claims(1, {{"local", "mapped", "memory", kGB, 1}}), b}, 10.0);
    return judged({a.ethernet("eth0", 0, kGB, 0).claims(1, {{"tcp", "socket", "any", kGB, 1}}),
                   b.ethernet("eth0", 0, 0, kGB)},
                  1.0);
  }
};

TEST_F(Hosts, AreTwoIfBootIdsAndStartsOfTheirKernelsDiffer) {
  const auto two = row("boot of b", kStart + 12, kStart + 11.75);
  EXPECT_EQ(two.verdict, Verdict::kOk) << two.why;
  EXPECT_EQ(row("boot of b", 0, 0).verdict, Verdict::kOk) << "its start is unknown";
}

TEST_F(Hosts, ArePerhapsOneIfTheirKernelsStartedTogether) {
  const auto perhaps = row("boot of b", kStart + 2e-6, kStart - 0.25);
  EXPECT_EQ(perhaps.verdict, Verdict::kUnproven);
  EXPECT_EQ(perhaps.path[0].proven, Proven::kUnproven);
  EXPECT_TRUE(has(perhaps.why,
                  "ranks 0 and 1 have different boot ids, but kernels that started in "
                  "the same millisecond: perhaps one host"))
      << perhaps.why;
}

TEST_F(Hosts, ArePerhapsTwoIfOneBootIdHasTwoStarts) {
  EXPECT_EQ(row("boot of a", kStart, kStart - 0.25).verdict, Verdict::kOk);
  const auto perhaps = row("boot of a", kStart + 12, kStart + 11.75);
  EXPECT_EQ(perhaps.verdict, Verdict::kUnproven);
  EXPECT_TRUE(
      has(perhaps.why, "have one boot id, but kernels that started 12 s apart: perhaps two"))
      << perhaps.why;
}

TEST_F(Hosts, WhoseClocksContradictProcAreInDoubt) {
  const auto doubted = row("boot of b", kStart + 3600, kStart);
  EXPECT_EQ(doubted.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(doubted.why, "the clocks of rank 1 place the start of its kernel 3600 s"))
      << doubted.why;
}

TEST(Proof, AClaimAboutAnUnknownMemberIsNotBelieved) {
  EXPECT_EQ(judged({Seen("a").claims(7, {{"tcp", "socket", "any", kGB, 1}})}, 1.0).verdict,
            Verdict::kUnproven);
}

TEST(Ceilings, AGivenLinkRateWinsAndAVirtualLinkHasNoRate) {
  const std::vector<Observation> seen{
      Seen("a")
          .device("rail0", host::DeviceKind::kVirtual, 0, kGB, 0)
          .claims(1, {{"tcp", "socket", "rail0", kGB, 1}}),
      Seen("b").device("rail0", host::DeviceKind::kVirtual, 0, 0, kGB)};
  const auto unknown = judged(seen, 1.0);
  EXPECT_EQ(unknown.verdict, Verdict::kOk) << unknown.why;
  EXPECT_FALSE(unknown.ceiling);
  EXPECT_TRUE(has(unknown.conclusion, "no known ceiling: the rate of rail0")) << unknown.conclusion;
  const auto slow = judged(seen, 1.0, "", {{"rail0", 500'000'000 / 8}});
  EXPECT_EQ(slow.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(slow.why, "link rail0 of a, 0.5 Gbit/s")) << slow.why;
}

TEST(Ceilings, ANarrowSlotBindsBeforeItsLink) {
  const std::uint64_t bytes = 7 * kGB;
  const auto row = judged({Seen("a")
                               .rdma("mlx5_0", 100 * kGbit, bytes, 0)
                               .slot(7'880'000'000)
                               .claims(1, {{"ucx", "rc", "mlx5_0", bytes, 1}}),
                           Seen("b").rdma("mlx5_0", 100 * kGbit, 0, bytes)},
                          7.0);
  ASSERT_TRUE(row.ceiling);
  EXPECT_EQ(row.ceiling->name, "PCIe slot of mlx5_0 of a, 8.0 GT/s x8");
}

TEST(Ceilings, TheNarrowestHostOfManyBinds) {
  // Two initiators write to one target, whose link carries both.
  const auto row = judged(
      {Seen("a").rdma("n0", 100 * kGbit, 6 * kGB, 0).claims(2, {{"ofi", "efa", "n0", 6 * kGB, 1}}),
       Seen("b").rdma("n0", 100 * kGbit, 6 * kGB, 0).claims(2, {{"ofi", "efa", "n0", 6 * kGB, 1}}),
       Seen("c").rdma("n0", 100 * kGbit, 0, 12 * kGB)},
      12.0);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 12.5);
  EXPECT_TRUE(has(row.ceiling->name, "of c")) << row.ceiling->name;
}

TEST(Verdicts, TheMostSeriousReasonDecides) {
  const auto seen = fourRails({2 * kGB, 20, kGB, kGB});
  RowFacts facts{.require = "rdma", .gb_per_s = 50, .transfer_bytes = kLarge};
  facts.mismatch = "block 3 is wrong from offset 8: it is block 4's";
  facts.failure = Error{.code = Code::kTimeout, .operation = "transfer"};
  const auto verdict = [&] { return judge(seen, facts, {}).verdict; };
  EXPECT_EQ(verdict(), Verdict::kFailed);
  facts.failure.reset();
  EXPECT_EQ(verdict(), Verdict::kCorrupt);
  facts.mismatch.reset();
  EXPECT_EQ(verdict(), Verdict::kInvalid);
  facts.gb_per_s = 3;
  EXPECT_EQ(verdict(), Verdict::kNotRequired);
  facts.require = "backend:tcp";
  EXPECT_EQ(verdict(), Verdict::kFallback);
}

TEST(Verdicts, ARequirementIsCheckedAgainstTheActualPath) {
  const std::uint64_t bytes = kGB;
  const auto fallen = std::vector<Observation>{efaHost("a", 0, 0)
                                                   .ethernet("eth0", 0, bytes, 0)
                                                   .claims(1, {{"ofi", "efa", "efa0", bytes, 1}}),
                                               efaHost("b", 0, 0).ethernet("eth0", 0, 0, bytes)};
  for (const char* require : {"rdma", "not-tcp", "backend:ofi,rdma"}) {
    const auto row = judged(fallen, 1.0, require);
    EXPECT_EQ(row.verdict, Verdict::kNotRequired) << require;
    EXPECT_TRUE(has(row.why, "eth0")) << row.why;
  }
  EXPECT_EQ(judged(fallen, 1.0, "backend:ucx").verdict, Verdict::kNotRequired);
  EXPECT_EQ(judged(fallen, 1.0, "backend:ofi").verdict, Verdict::kFallback);
}

TEST(Verdicts, ARefusedRouteIsAnUnmetRequirement) {
  RowFacts facts{.require = "rdma"};
  facts.failure = Error{.code = Code::kUnsupported, .operation = "route", .detail = "none"};
  EXPECT_EQ(judge({}, facts, {}).verdict, Verdict::kNotRequired);
  facts.require.clear();
  EXPECT_EQ(judge({}, facts, {}).verdict, Verdict::kFailed);
}

TEST(Observations, TravelAsBytes) {
  const Observation seen = fourRails({1, 2, 3, 4})[0];
  const std::string bytes = encode(seen);
  const auto back = decodeObservation(bytes);
  ASSERT_TRUE(back) << back.error().text();
  EXPECT_EQ(*back, seen);
  for (std::size_t cut = 0; cut < bytes.size(); ++cut)
    EXPECT_FALSE(decodeObservation(bytes.substr(0, cut))) << cut;
}

TEST(Conclusions, NameNoLimitIfTheRequestedRateWasReached) {
  const auto concluded = [](double kept) {
    const std::vector<Observation> seen{
        Seen("a").loopback(kGB).memory(20).claims(1, {{"tcp", "socket", "any", kGB, 1}}),
        Seen("a").loopback(kGB)};
    return judge(seen, {.gb_per_s = 1, .rate_kept = kept, .transfer_bytes = 4096}, {}).conclusion;
  };
  EXPECT_TRUE(has(concluded(0.98), "the requested rate was kept")) << concluded(0.98);
  EXPECT_TRUE(has(concluded(0.5), "limited by per-transfer overhead")) << concluded(0.5);
  EXPECT_TRUE(has(concluded(0), "limited by per-transfer overhead")) << "closed loop";
}

TEST(Conclusions, NameOtherProgramsThatUsedTheProcessors) {
  const auto concluded = [](double busy, double others, double cores) {
    const std::vector<Observation> seen{
        Seen("a").loopback(kGB).memory(20).claims(1, {{"tcp", "socket", "any", kGB, 1}}),
        Seen("a").loopback(kGB)};
    return judge(seen,
                 {.gb_per_s = 1,
                  .cores_busy = busy,
                  .cores_others = others,
                  .cores = cores,
                  .transfer_bytes = kLarge,
                  .verified = Verified::kFull},
                 {})
        .conclusion;
  };
  const std::string blamed = "other processes kept 1.4 of 2 cores busy";
  EXPECT_TRUE(has(concluded(0.5, 1.4, 2), blamed)) << concluded(0.5, 1.4, 2);
  EXPECT_FALSE(has(concluded(1.8, 0.1, 2), "other processes")) << "it was ours";
  EXPECT_FALSE(has(concluded(1, 4, 64), "other processes")) << "most were idle";
  EXPECT_FALSE(has(concluded(0.5, 1.4, 0), "other processes")) << "the cores are unknown";
}

TEST(LinkRates, AreReadAsPeopleWriteThem) {
  EXPECT_EQ(*parseLinkRate("eth0=500Mbit"), (LinkRate{"eth0", 62'500'000}));
  EXPECT_EQ(*parseLinkRate("mlx5_0=12.5GB"), (LinkRate{"mlx5_0", 12'500'000'000}));
  for (const char* gigabit : {"1gbit", "1Gbit", "1GBit", "1G", "1g", "1Gb", "1gbps", "1Gbit/s",
                              "1000M", "1e6kbit", "0.001T"})
    EXPECT_EQ(parseLinkRate(std::string("eth0=") + gigabit)->bytes_per_s, 125'000'000U) << gigabit;
  EXPECT_EQ(parseLinkRate("eth0=1gB/s")->bytes_per_s, 1'000'000'000U);
  for (const char* wrong :
       {"", "eth0", "=1Gbit", "eth0=fast", "eth0=10", "eth0=-1Gbit", "eth0=0Gbit", "eth0=1furlong",
        "eth0=nanGbit", "eth0=1GBPS", "eth0=infGbit", "eth0=1e300T"}) {
    const auto rate = parseLinkRate(wrong);
    ASSERT_FALSE(rate) << wrong;
    EXPECT_TRUE(has(rate.error().text(), "eth0=500Mbit")) << rate.error().text();
  }
}

// Judges a row between two hosts that is faultless except for the given facts.
Judgement plain(RowFacts facts) {
  const auto bytes = static_cast<std::uint64_t>(facts.totals.all);
  facts.gb_per_s = facts.gb_per_s == 0 ? 1 : facts.gb_per_s;
  facts.transfer_bytes = 1'000'000;
  const std::vector<Observation> seen{
      Seen("a").ethernet("eth0", 0, kGB, 0).claims(1, {{"tcp", "socket", "any", bytes, 1}}),
      Seen("b").ethernet("eth0", 0, 0, kGB)};
  return judge(seen, facts, {});
}

constexpr Totals kAgree{.rated = 9e8, .timed = 9e8, .all = 1e9, .seconds = 0.9};

TEST(Totals, EqualTotalsAreValid) { EXPECT_EQ(plain({.totals = kAgree}).verdict, Verdict::kOk); }

TEST(Totals, UnequalTotalsAreInvalidAndNamed) {
  Totals rated = kAgree;
  rated.rated = 1.8e9;
  const auto row = plain({.gb_per_s = 2, .totals = rated});
  EXPECT_EQ(row.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(row.why, "the rate counts 1.80 GB, the clock timed 900 MB")) << row.why;
  const auto path = judge({}, {.gb_per_s = 1, .totals = kAgree}, {});
  EXPECT_EQ(path.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(path.why, "the paths count 0 B of 1.00 GB")) << path.why;
}

TEST(Totals, AMedianFarFromTheMeanIsReported) {
  EXPECT_EQ(plain({.totals = kAgree}).remark, "");
  const auto slow = plain({.gb_per_s = 0.9, .totals = kAgree});
  EXPECT_EQ(slow.remark, "uneven: mean 1 GB/s, median 0.9 GB/s");
  const auto pauses = plain({.gb_per_s = 1.25, .parts = {1.25, 0.2, 1.3}, .totals = kAgree});
  EXPECT_EQ(pauses.remark,
            "uneven: mean 1 GB/s, median 1.25 GB/s of 3 parts (0.2 to 1.3), as if idle for 20 % of "
            "the time");
  EXPECT_EQ(plain({.gb_per_s = 1.04, .totals = kAgree}).remark, "");
}

TEST(Clocks, MoreBusyCoresThanTheHostsHaveMakeARowInvalid) {
  const auto row = plain({.cores_busy = 34.4, .cores = 2, .totals = kAgree});
  EXPECT_EQ(row.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(row.why, "34.4 of 2 cores busy")) << row.why;
  EXPECT_EQ(plain({.cores_busy = 2.4, .cores = 2, .totals = kAgree}).verdict, Verdict::kOk);
  const Totals brief{.rated = 9e6, .timed = 9e6, .all = 1e7, .seconds = 0.009};
  EXPECT_EQ(plain({.cores_busy = 3.1, .cores = 2, .totals = brief}).verdict, Verdict::kOk)
      << "members that read their clocks one after the other";
}

TEST(Clocks, MoreTicksOfTheKernelThanTheClocksCountMakeARowInvalid) {
  const auto ticked = [](double seconds, double ticks) {
    return plain({.totals = kAgree, .ticks = {.rank = 1, .seconds = seconds, .ticked = ticks}});
  };
  const auto half = ticked(1, 2);
  EXPECT_EQ(half.verdict, Verdict::kInvalid);
  EXPECT_TRUE(
      has(half.why, "the clocks of rank 1 counted 1.000 s while the kernel counted 2.000 s"))
      << half.why;
  EXPECT_EQ(ticked(1, 1.1).verdict, Verdict::kOk);
  EXPECT_EQ(ticked(0.02, 0.05).verdict, Verdict::kOk) << "the kernel counts in steps of 10 ms";
  EXPECT_EQ(ticked(1, 0.5).verdict, Verdict::kOk) << "containers may hide other processors' time";
}

TEST(Clocks, AClockThatRunsFastOrJumpsMakesARowInvalid) {
  const auto fast =
      plain({.totals = kAgree, .clock = {.seconds = 1, .ahead = 9, .largest = 2}, .clock_rank = 1});
  EXPECT_EQ(fast.verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(fast.why, "the clock of rank 1 ran 9.000 s ahead of")) << fast.why;
  const auto jump = plain({.totals = kAgree, .clock = {.seconds = 1, .ahead = -5, .largest = -5}});
  EXPECT_TRUE(has(jump.why, "jumped 5.000 s behind")) << jump.why;
  EXPECT_EQ(plain({.totals = kAgree, .clock = {.seconds = 1, .ahead = 0.001}}).verdict,
            Verdict::kOk);
}

TEST(Noise, OtherProgramsAreNamedIfNoCeilingIsKnown) {
  const auto row = plain({.cores_busy = 0.5, .cores_others = 1.5, .cores = 2, .totals = kAgree});
  EXPECT_TRUE(has(row.conclusion, "no known ceiling")) << row.conclusion;
  EXPECT_TRUE(has(row.conclusion, "other processes kept 1.5 of 2 cores busy")) << row.conclusion;
}

// A row of one second that sent 80 MB over an interface that is limited to 100 MB/s.
std::vector<Observation> shapedRow() {
  Observation a = Seen("a")
                      .ethernet("eth0", 0, 80'000'000, 0)
                      .claims(1, {{"tcp", "socket", "eth0", 80'000'000, 1}});
  a.after.links = {{.name = "eth0", .shaper = "tbf", .shaped_bytes_per_s = 100'000'000}};
  a.after.causes_at_ns = kGB;
  return {a, Seen("b").ethernet("eth0", 0, 0, 80'000'000)};
}

TEST(Causes, ASlowRowNamesItsCauseInThePlaceOfAHint) {
  const auto row = judged(shapedRow(), 0.08);
  ASSERT_EQ(row.causes.size(), 1U) << row.conclusion;
  EXPECT_EQ(row.causes[0].name, "shaped-interface");
  EXPECT_TRUE(has(row.conclusion,
                  "interface eth0 of rank 0 is limited to 800 Mbit/s by its "
                  "queueing discipline tbf, and sent 640 Mbit/s: raise the rate"))
      << row.conclusion;
  const auto known = judged(shapedRow(), 0.08, "", {{"eth0", kGbit}});
  EXPECT_TRUE(has(known.conclusion, "is limited to")) << known.conclusion;
  EXPECT_FALSE(has(known.conclusion, "try a larger")) << known.conclusion;
}

TEST(Causes, ARowAtItsCeilingOrAtItsRequestedRateNamesNone) {
  EXPECT_TRUE(judged(shapedRow(), 0.08, "", {{"eth0", 85'000'000}}).causes.empty());
  EXPECT_TRUE(judge(shapedRow(), {.gb_per_s = 0.08, .rate_kept = 1, .transfer_bytes = kLarge}, {})
                  .causes.empty());
}

TEST(Required, AProvenPathMayBeRequired) {
  const auto silent = [](const std::string& require) {
    return judge({}, {.require = require, .gb_per_s = 1}, {});
  };
  EXPECT_EQ(silent("").verdict, Verdict::kUnproven);
  EXPECT_EQ(silent("proven").verdict, Verdict::kNotRequired);
  EXPECT_EQ(plain({.require = "not-tcp,proven", .totals = kAgree}).verdict, Verdict::kNotRequired);
  EXPECT_EQ(plain({.require = "proven", .totals = kAgree}).verdict, Verdict::kOk);
}

Seen host() { return Seen("a").memory(20); }

// The shares of a transfer from memory of a GPU to memory of another host's GPU.
std::vector<PathShare> staged(std::uint64_t bytes) {
  return {
      {.backend = "cuda", .way = "direct", .rail = "gpus", .bytes = bytes, .ops = 1, .stage = 1},
      {.backend = "tcp", .way = "socket", .rail = "eth0", .bytes = bytes, .ops = 1, .stage = 2},
      {.backend = "cuda", .way = "direct", .rail = "gpus", .bytes = bytes, .ops = 1, .stage = 3}};
}

Judgement judgedStaged(std::uint64_t carried, const std::string& require) {
  const std::vector<Observation> seen{
      Seen("a").ethernet("eth0", 100 * kGbit, carried, 0).memory(20).claims(1, staged(kGB)),
      Seen("b").ethernet("eth0", 100 * kGbit, 0, carried).memory(20)};
  constexpr auto kBytes = static_cast<double>(kGB);
  return judge(seen,
               {.require = require,
                .gb_per_s = 1,
                .totals = {.rated = kBytes, .timed = kBytes, .all = kBytes, .seconds = 1},
                .transfer_bytes = kGB,
                .verified = Verified::kFull},
               {});
}

TEST(Staged, EachStageIsProvenAndThePayloadCountsOnce) {
  const Judgement row = judgedStaged(kGB + kGB / 50, "not-tcp");
  ASSERT_EQ(row.path.size(), 3U);
  for (std::uint32_t i = 0; i < 3; ++i) {
    EXPECT_EQ(row.path[i].stage, i + 1);
    EXPECT_EQ(row.path[i].proven, Proven::kYes) << row.proof;
  }
  EXPECT_EQ(row.verdict, Verdict::kNotRequired) << row.why;
  ASSERT_TRUE(row.ceiling);
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 12.5) << row.ceiling->name;
}

TEST(Staged, ARequirementIsOneOfTheStageBetweenTheMembers) {
  EXPECT_EQ(judgedStaged(kGB + kGB / 50, "backend:tcp").verdict, Verdict::kOk);
  for (const char* word : {"no-staging", "gpu-direct", "rdma"})
    EXPECT_EQ(judgedStaged(kGB + kGB / 50, word).verdict, Verdict::kNotRequired) << word;
  EXPECT_EQ(judgedStaged(kGB + kGB / 50, "packed").verdict, Verdict::kOk);
}

TEST(Staged, CopiesThatPassedADeviceAreNotProven) {
  const Judgement row = judgedStaged(3 * kGB, "");
  EXPECT_EQ(row.path[0].proven, Proven::kUnproven);
  EXPECT_EQ(row.verdict, Verdict::kUnproven) << row.why;
}

// A copy between GPU 0 of rank 0 and GPU 1 of rank 1, both of host a.
std::vector<PathShare> direct(std::uint64_t bytes) {
  return {{.backend = "cuda", .way = "direct", .rail = "gpus", .bytes = bytes, .ops = 1}};
}

TEST(GpuCeiling, IsThatOfTheMemoriesThatTheRowConnects) {
  const Seen one = Seen("a")
                       .memory(20)
                       .gpu(0, "x")
                       .gpuRate("x", "", 50)
                       .gpuRate("", "x", 55)
                       .gpuRate("x", "x", 1500);
  const auto out = judged({Seen(one).claims(1, direct(kGB)), Seen("a").memory(20)}, 25);
  ASSERT_TRUE(out.ceiling) << out.ceiling_unknown;
  EXPECT_EQ(out.ceiling->name, "copy from GPU x to pinned host memory of a");
  EXPECT_DOUBLE_EQ(out.ceiling->gb_per_s, 50);
  EXPECT_DOUBLE_EQ(out.ceiling->percent, 50);
  EXPECT_TRUE(has(out.conclusion, "below the GPU's ceiling")) << out.conclusion;
  const auto in =
      judged({Seen(one).claims(1, direct(kGB), OpKind::kRead), Seen("a").memory(20)}, 25);
  ASSERT_TRUE(in.ceiling);
  EXPECT_EQ(in.ceiling->name, "copy from pinned host memory to GPU x of a");
  const auto within = judged({Seen(one).claims(1, direct(kGB)), Seen("a").gpu(0, "x")}, 25);
  ASSERT_TRUE(within.ceiling);
  EXPECT_EQ(within.ceiling->name, "copy within GPU x of a");
  EXPECT_DOUBLE_EQ(within.ceiling->gb_per_s, 1500);
}

TEST(Gpus, ThatOnlyTheirDriverKnowsAreUnproven) {
  const auto with = [](const std::string& doubt) {
    return judged({Seen("a").gpu(0, "x", doubt).claims(1, direct(kGB)), Seen("a").gpu(0, "x")}, 25);
  };
  EXPECT_EQ(with("").verdict, Verdict::kOk) << with("").why;
  const auto fake = with("the kernel knows no NVIDIA device at 0000:21:00.0");
  EXPECT_EQ(fake.verdict, Verdict::kUnproven);
  EXPECT_EQ(fake.path[0].proven, Proven::kUnproven);
  EXPECT_TRUE(has(fake.why,
                  "GPU x is known to its driver only: the kernel knows no NVIDIA device "
                  "at 0000:21:00.0"))
      << fake.why;
}

TEST(GpuCeiling, FollowsTheWorkingSetAsThatOfMemory) {
  const std::vector<Observation> seen{
      Seen("a").gpu(0, "x").gpuRate("x", "x", 1500).claims(1, direct(kGB)), Seen("a").gpu(0, "x")};
  const auto row = judge(seen, {.gb_per_s = 25, .transfer_bytes = 1 << 20}, {});
  ASSERT_TRUE(row.ceiling);
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 4500) << "it fits into the caches";
}

TEST(GpuCeiling, OfSeveralGpusIsTheSumOfEqualOnes) {
  auto both = Seen("a").gpu(0, "x").gpu(1, "y").gpuRate("x", "", 50).gpuRate("y", "", 50);
  both.claims(1, direct(kGB)).between(0, 0).claims(1, direct(kGB)).between(1, 1);
  const auto row = judged({both, Seen("a")}, 25);
  ASSERT_TRUE(row.ceiling);
  EXPECT_DOUBLE_EQ(row.ceiling->gb_per_s, 300) << "each has half of the working set";
}

TEST(GpuCeiling, BetweenTwoGpusNeedsAProcessThatHasBoth) {
  const std::vector<Observation> apart{Seen("a").gpu(0, "x").claims(1, direct(kGB)),
                                       Seen("a").gpu(0, "y")};
  const auto unknown = judged(apart, 25);
  EXPECT_FALSE(unknown.ceiling);
  EXPECT_EQ(unknown.ceiling_unknown,
            "the rate of the copy from GPU x to GPU y of a was not measured: no process has both "
            "GPUs");
  EXPECT_TRUE(has(unknown.conclusion, "no known ceiling: " + unknown.ceiling_unknown))
      << unknown.conclusion;
  const auto known =
      judged({apart[0], Seen("a").gpu(0, "y").gpu(1, "x").gpuRate("x", "y", 350)}, 25);
  ASSERT_TRUE(known.ceiling);
  EXPECT_DOUBLE_EQ(known.ceiling->gb_per_s, 350);
}

TEST(GpuCeiling, OfAStagedRowIsThatOfItsSlowestStage) {
  const auto row = [](double out, double in) {
    return judged(
               {Seen("a")
                    .ethernet("eth0", 100 * kGbit, kGB, 0)
                    .gpu(0, "x")
                    .gpuRate("x", "", out)
                    .claims(1, staged(kGB)),
                Seen("b").ethernet("eth0", 100 * kGbit, 0, kGB).gpu(0, "x").gpuRate("", "x", in)},
               1)
        .ceiling.value_or(Ceiling{})
        .name;
  };
  EXPECT_EQ(row(8, 9), "copy from GPU x to pinned host memory of a");
  EXPECT_EQ(row(9, 8), "copy from pinned host memory to GPU x of b");
  EXPECT_TRUE(has(row(50, 50), "link eth0")) << row(50, 50);
}

TEST(GpuCeiling, ThatIsUnknownIsSaidBesideOneThatIsKnown) {
  const auto row =
      judged({Seen("a")
                  .ethernet("eth0", 100 * kGbit, kGB, 0)
                  .gpu(0, "x")
                  .gpuRateFailed("x", "", "no memory")
                  .claims(1, staged(kGB)),
              Seen("b").ethernet("eth0", 100 * kGbit, 0, kGB).gpu(0, "x").gpuRate("", "x", 50)},
             1);
  ASSERT_TRUE(row.ceiling);
  EXPECT_TRUE(has(row.conclusion,
                  "although the rate of the copy from GPU x to pinned host memory "
                  "of a was not measured: no memory"))
      << row.conclusion;
}

TEST(GpuCeiling, IsNoneOfARowThatIsFasterAndInvalidFarBelowTheRow) {
  const auto at = [](double gb_per_s) {
    return judged({Seen("a").gpu(0, "x").gpuRate("x", "", 50).claims(1, direct(kGB)), Seen("a")},
                  gb_per_s);
  };
  EXPECT_FALSE(at(60).ceiling);
  EXPECT_TRUE(has(at(60).conclusion, "above the copy rate measured at the start"))
      << at(60).conclusion;
  EXPECT_EQ(at(120).verdict, Verdict::kInvalid);
  EXPECT_TRUE(has(at(120).why, "not all bytes were moved")) << at(120).why;
}

TEST(StoredFiles, AreProvenByTheBlockDevicesOfTheirProcess) {
  const std::vector<PathShare> path{{"file", "uring", "files", kGB, 9}};
  const auto row = judged({host().disk(0, kGB).stored(path)}, 1);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  EXPECT_EQ(row.path[0].proven, Proven::kYes);
  EXPECT_TRUE(has(row.proof, "block devices wrote 1.00 GB for 1.00 GB")) << row.proof;
  EXPECT_FALSE(row.ceiling) << "memory and networks do not limit a disk";
  EXPECT_TRUE(has(row.conclusion, "the limit of the storage is not measured")) << row.conclusion;
  const auto cached = judged({host().disk(kGB, 0).stored(path)}, 1);
  EXPECT_EQ(cached.verdict, Verdict::kUnproven) << "it read, but the row wrote";
  EXPECT_EQ(judged({host().disk(kGB, 0).stored(path, OpKind::kRead)}, 1).verdict, Verdict::kOk);
  EXPECT_EQ(judged({host().stored(path)}, 1).verdict, Verdict::kUnproven) << "no counters";
  EXPECT_EQ(judged({host().disk(0, kGB).stored(path), host().disk(0, 0).stored(path)}, 1).verdict,
            Verdict::kUnproven)
      << "the second member has no such bytes";
  EXPECT_EQ(judged({host().disk(0, kGB).stored(path)}, 1, "same-host").verdict, Verdict::kOk);
}

TEST(StoredFiles, AreProvenOnlyByTheLowestDevice) {
  const std::vector<PathShare> path{{"file", "uring", "files", kGB, 9}};
  const auto over = [&](const std::vector<std::string>& layers, std::uint64_t read) {
    return judged({host().disk(kGB, 0).storage(layers, read, 0).stored(path, OpKind::kRead)}, 1);
  };
  const auto real = over({"xfs", "dm-0", "nvme0n1"}, kGB);
  EXPECT_EQ(real.verdict, Verdict::kOk) << real.why;
  EXPECT_EQ(real.path[0].device, "xfs over dm-0 over nvme0n1");
  const auto cached = over({"xfs", "loop0", "ext4", "vda"}, 4096);
  EXPECT_EQ(cached.verdict, Verdict::kUnproven);
  EXPECT_TRUE(has(cached.why, "vda read 4.10 kB for 1.00 GB of payload: memory above it answered"))
      << cached.why;
  const auto memory = over({"xfs", "loop0", "tmpfs"}, 0);
  EXPECT_EQ(memory.verdict, Verdict::kUnproven);
  EXPECT_EQ(memory.path[0].device, "xfs over loop0 over tmpfs");
  EXPECT_TRUE(has(memory.why, "the file of rank 0 is in memory (xfs over loop0 over tmpfs)"))
      << memory.why;
  Observation unknown = host().disk(kGB, 0).stored(path, OpKind::kRead);
  unknown.place.storage = {{.layers = {"nfs4 (server:/home)"}}};
  EXPECT_TRUE(has(judged({unknown}, 1).why, "no block device is known under the files of rank 0"));
}

// If two members read from one disk, the disk must have counted the payloads of both.
TEST(StoredFiles, ADiskThatMembersShareCarriesTheBytesOfBoth) {
  const std::vector<PathShare> path{{"file", "uring", "files", kGB, 9}};
  const auto with = [&](std::uint64_t read) {
    const Seen one =
        host().disk(kGB, 0).storage({"ext4", "vda"}, read, 0).stored(path, OpKind::kRead);
    return judged({one, one}, 1);
  };
  EXPECT_EQ(with(2 * kGB).verdict, Verdict::kOk) << with(2 * kGB).why;
  EXPECT_EQ(with(kGB).verdict, Verdict::kUnproven);
}

TEST(StoredFiles, InThePageCacheAreCopiesInMemory) {
  const auto row =
      judged({host().disk(0, 0).stored({{"file", "uring buffered", "files", kGB, 9}})}, 1);
  EXPECT_EQ(row.verdict, Verdict::kOk) << row.why;
  ASSERT_TRUE(row.ceiling);
  EXPECT_TRUE(has(row.ceiling->name, "memory copy")) << row.ceiling->name;
  EXPECT_TRUE(has(row.conclusion, "the page cache carried the bytes")) << row.conclusion;
}

TEST(Hints, NameOnlyFlagsOfTheCommand) {
  const auto conclusionOf = [](const Observation& here, const Observation& there,
                               const FlagNames& flags) {
    return judge(std::vector{here, there},
                 {.gb_per_s = 0.5, .transfer_bytes = 1 << 20, .flags = flags}, {})
        .conclusion;
  };
  const Observation cuda =
      Seen("a").memory(20).gpu(0, "x").gpuRate("x", "", 50).claims(1, direct(kGB));
  const Observation link =
      host().ethernet("eth0", 100 * kGbit, kGB, 0).stored({{"object", "s3", "object0", kGB, 9}});
  const Observation cached =
      host().disk(0, 0).stored({{"file", "uring buffered", "files", kGB, 9}});
  for (const Observation& seen : {cuda, link, cached}) {
    const std::string plain = conclusionOf(seen, Seen("a").memory(20), {});
    EXPECT_FALSE(has(plain, "--")) << plain;
  }
  const std::string deeper = conclusionOf(cuda, Seen("a").memory(20), {"pipeline_depth"});
  EXPECT_TRUE(has(deeper, "try larger blocks or batches or a larger --pipeline-depth")) << deeper;
}

TEST(StoredObjects, PassALocalOrADistantStore) {
  const std::vector<PathShare> path{{"object", "s3", "object0", kGB, 9}};
  auto here = host().loopback(kGB).stored(path);
  EXPECT_EQ(judged({here}, 1).verdict, Verdict::kOk);
  const auto far = judged({host().ethernet("eth0", 100 * kGbit, kGB, 0).stored(path)}, 1);
  EXPECT_EQ(far.verdict, Verdict::kOk) << far.why;
  EXPECT_EQ(far.path[0].device, "eth0");
  EXPECT_FALSE(far.ceiling);
  const auto read = judged({host().ethernet("eth0", 0, kGB, 0).stored(path, OpKind::kRead)}, 1);
  EXPECT_EQ(read.path[0].proven, Proven::kNo) << "nothing was received";
}

}  // namespace
}  // namespace viaduct::measure::proof
