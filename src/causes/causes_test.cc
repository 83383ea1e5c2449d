#include "causes/causes.h"

#include <gtest/gtest.h>

#include <algorithm>

namespace viaduct::causes {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMB = 1'000'000;

// A member whose row took a second, without any limit.
Member healthy(const std::string& name = "rank 0") {
  return {.name = name,
          .host = "boot",
          .limits = {.processors = 4,
                     .allowed = {0, 1, 2, 3},
                     .send_buffer = 4 * kMB,
                     .receive_buffer = 6 * kMB},
          .links = {{.name = "rail0", .mtu = 1500}},
          .seconds = 1,
          .times = {.ran = 0.9, .waited = 0.05}};
}

SocketStatistics sending(std::uint64_t bytes, std::chrono::nanoseconds busy) {
  return {.sockets = 1,
          .sent_bytes = bytes,
          .sent_segments = bytes / 1448,
          .busy = busy,
          .round_trip = 50us,
          .segment_bytes = 1448,
          .path_mtu = 1500};
}

Scene row(std::vector<Member> members) {
  return {.members = std::move(members), .row = RowState{}};
}

std::vector<std::string_view> namesIn(const Scene& scene) {
  std::vector<std::string_view> out;
  for (const Cause& one : causesOf(scene)) out.push_back(one.name);
  return out;
}
using Names = std::vector<std::string_view>;

std::string whatIn(const Scene& scene) {
  const auto found = causesOf(scene);
  return found.empty() ? "" : found.front().what;
}

TEST(Causes, AHealthyRowNamesNothing) {
  Member member = healthy();
  for (const char* name : {"rail0", "rail1", "rail2"})
    member.rails.push_back({name, sending(300 * kMB, 900ms)});
  EXPECT_EQ(namesIn(row({member, healthy("rank 1")})), Names{});
  EXPECT_EQ(namesIn({.members = {healthy()}}), Names{});
  EXPECT_EQ(namesIn({}), Names{});
}

TEST(Causes, AShaperIsNamedOnlyIfTheRowReachedItsRate) {
  Member member = healthy();
  member.links.front().shaper = "tbf";
  member.links.front().shaped_bytes_per_s = 100 * kMB;
  member.interfaces = {{"rail0", 69 * kMB}};
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.interfaces = {{"rail0", 71 * kMB}};
  EXPECT_EQ(
      whatIn(row({member})),
      "interface rail0 of rank 0 is limited to 800 Mbit/s by its queueing discipline tbf, and "
      "sent 568 Mbit/s");
  // Without a row, each shaper is named.
  EXPECT_EQ(namesIn({.members = {member}}), Names{"shaped-interface"});
}

TEST(Causes, ARailThatTheOthersWaitForIsNamedWithAllRates) {
  Member member = healthy();
  member.rails = {{"rail0", sending(10 * kMB, 20ms)},
                  {"rail1", sending(10 * kMB, 950ms)},
                  {"rail2", sending(10 * kMB, 10ms)}};
  EXPECT_EQ(whatIn(row({member})),
            "the rails of rank 0 differ while they send: rail0 4 Gbit/s, rail1 84.2 Mbit/s, "
            "rail2 8 Gbit/s");
  member.rails[0].sockets.busy = member.rails[2].sockets.busy = 500ms;
  EXPECT_EQ(namesIn(row({member})), Names{});
  // A rail that waited for one timeout of TCP is not slow.
  Member brief = member;
  brief.seconds = 0.25;
  brief.rails = {{"rail0", sending(10 * kMB, 2ms)}, {"rail1", sending(10 * kMB, 220ms)}};
  EXPECT_EQ(namesIn(row({brief})), Names{});
  // The first of two rails has sent too few bytes to be judged.
  member.rails = {{"rail0", sending(kMB / 2, 1ms)}, {"rail1", sending(10 * kMB, 950ms)}};
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.rails[0] = {"rail0", sending(10 * kMB, 10ms)};
  EXPECT_EQ(namesIn(row({member})), Names{"slow-rail"});
  member.rails[0].sockets.busy = 0ms;
  EXPECT_EQ(
      whatIn(row({member})),
      "the rails of rank 0 differ while they send: rail0 too fast to tell, rail1 84.2 Mbit/s");
}

TEST(Causes, LostPacketsAreNamedFromThreeInAThousandOn) {
  Member member = healthy();
  member.rails = {{"rail0", sending(150 * kMB, 900ms)}};
  member.rails[0].sockets.sent_segments = 100'000;
  member.rails[0].sockets.repeated_segments = 299;
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.rails[0].sockets.repeated_segments = 4200;
  member.links[0].dropped = 649'564;
  EXPECT_EQ(whatIn(row({member})),
            "rail rail0 of rank 0 sent 4200 of 100000 TCP segments again (4.2 %), rail0 of rank 0 "
            "dropped 649564 packets");
  Member idle = healthy();
  idle.segments = {1'000'000, 2'999};
  EXPECT_EQ(namesIn({.members = {idle}}), Names{});
  idle.segments.repeated = 20'000;
  EXPECT_EQ(namesIn({.members = {idle}}), Names{"lost-packets"});
}

TEST(Causes, SmallBuffersNeedSocketsThatWaitedForThem) {
  Member member = healthy();
  member.rails = {{"rail0", sending(100 * kMB, 900ms)}};
  member.limits.send_buffer = 8192;
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.rails[0].sockets.send_limited = 90ms;
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.rails[0].sockets.send_limited = 180ms;
  EXPECT_EQ(namesIn(row({member})), Names{"small-buffers"});
  member.rails[0].sockets.send_limited = 600ms;
  EXPECT_EQ(whatIn(row({member})),
            "socket buffers hold at most 8 KiB (tcp_wmem), and rail rail0 of rank 0 waited for "
            "them for 67 % of its time");
  // A slow receiver also closes its window. Buffers are its cause only if they are small.
  member.limits.send_buffer = 4 * kMB;
  member.rails[0].sockets.send_limited = 0ms;
  member.rails[0].sockets.window_limited = 800ms;
  Member far = healthy("rank 1");
  EXPECT_EQ(namesIn(row({member, far})), Names{});
  far.limits.receive_buffer = 8192;
  EXPECT_EQ(namesIn(row({member, far})), Names{"small-buffers"});
  // On a long path, even large buffers are too small.
  far.limits.receive_buffer = 6 * kMB;
  member.rails[0].sockets.round_trip = 40ms;
  EXPECT_EQ(namesIn(row({member, far})), Names{"small-buffers"});
  EXPECT_EQ(namesIn({.members = {Member{.limits = {.receive_buffer = 8192}}}}),
            Names{"small-buffers"});
}

TEST(Causes, MtusThatDifferOrAreSmallAreNamed) {
  Member member = healthy();
  member.rails = {{"rail0", sending(100 * kMB, 900ms)}};
  member.rails[0].sockets.path_mtu = 9000;
  EXPECT_EQ(whatIn(row({member})),
            "rail rail0 of rank 0 has an MTU of 9000, and the other end takes only 1448 bytes of "
            "TCP in a packet");
  member.rails[0].sockets = sending(100 * kMB, 900ms);
  member.rails[0].sockets.path_mtu = 600;
  EXPECT_EQ(whatIn(row({member})), "the path of rail rail0 of rank 0 has an MTU of 600");
  // Loopback has other limits.
  member.rails[0].sockets.path_mtu = 65535;
  member.rails[0].sockets.segment_bytes = 32741;
  EXPECT_EQ(namesIn(row({member})), Names{});
}

TEST(Causes, FewProcessorsAreNamedIfThreadsWaitedForThem) {
  Member member = healthy();
  member.limits.allowed = {2};
  member.times = {.ran = 0.95, .waited = 0.02, .throttled = 0, .busy = 1};
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.times = {.ran = 0.5, .waited = 0.9, .throttled = 0, .busy = 0.55};
  EXPECT_EQ(whatIn(row({member})),
            "rank 0 may run on 1 of 4 processors, and its threads waited for them for 0.9 of 1 s");
  // A process that may run on all processors is not to blame for waiting.
  member.limits.allowed = {0, 1, 2, 3};
  EXPECT_EQ(namesIn(row({member})), Names{});
  // Without a row, the number of threads decides.
  Scene idle{.members = {healthy()}};
  idle.members[0].limits.allowed = {1, 2};
  EXPECT_EQ(namesIn(idle), Names{});
  idle.threads = 3;
  EXPECT_EQ(namesIn(idle), Names{"few-processors"});
}

TEST(Causes, ANeighbourOnTheSameProcessorIsNamed) {
  Member member = healthy();
  member.limits.allowed = {2};
  member.times = {.ran = 0.5, .waited = 0.5, .throttled = 0, .busy = 1};
  EXPECT_EQ(whatIn(row({member})), "other programs kept processor 2 of rank 0 busy for 0.5 of 1 s");
  // Another member of the row does not count as another program.
  Member other = member;
  other.name = "rank 1";
  EXPECT_EQ(namesIn(row({member, other})), Names{"few-processors"});
}

TEST(Causes, AQuotaIsNamedIfItHeldTheGroupBack) {
  Member member = healthy();
  member.limits.quota = 0.5;
  member.times.throttled = 0.05;
  EXPECT_EQ(namesIn(row({member})), Names{});
  member.times.throttled = 0.5;
  EXPECT_EQ(
      whatIn(row({member})),
      "the control group of rank 0 has a quota of 0.5 processors, and was held back for 0.5 s");
  EXPECT_EQ(namesIn({.members = {Member{.limits = {.quota = 0.5}}}}), Names{"quota"});
  EXPECT_EQ(namesIn({.members = {Member{.limits = {.quota = 2}}}}), Names{});
}

TEST(Causes, OtherProgramsAreNamedIfLittleIsIdle) {
  Scene scene = row({healthy()});
  scene.row->cores = 4;
  scene.row->cores_busy = 1;
  scene.row->cores_others = 2;
  EXPECT_EQ(namesIn(scene), Names{});
  scene.row->cores_others = 2.7;
  EXPECT_EQ(textOf(causesOf(scene)),
            "other processes kept 2.7 of 4 cores busy: measure again on an idle host");
}

TEST(Causes, SmallPagesMatterToSmallBlocksInMuchMemory) {
  Member member = healthy();
  member.limits.huge_shared_pages = "never";
  member.limits.huge_pages = "always";
  Scene scene = row({member});
  scene.row = RowState{.of_ceiling = 0.2,
                       .in_memory = true,
                       .pages = Pages::kShared,
                       .block = 4096,
                       .working_set = std::uint64_t{256} << 20U};
  EXPECT_EQ(namesIn(scene), Names{"small-pages"});
  const auto without = [&](auto change) {
    Scene other = scene;
    change(*other.row);
    return namesIn(other);
  };
  EXPECT_EQ(without([](RowState& r) { r.of_ceiling = 0.6; }), Names{});
  EXPECT_EQ(without([](RowState& r) { r.in_memory = false; }), Names{});
  EXPECT_EQ(without([](RowState& r) { r.pages = Pages::kHuge; }), Names{});
  EXPECT_EQ(without([](RowState& r) { r.pages = Pages::kOrdinary; }), Names{});
  EXPECT_EQ(without([](RowState& r) { r.block = 1 << 20; }), Names{});
  EXPECT_EQ(without([](RowState& r) { r.working_set = 1 << 20; }), Names{});
}

TEST(Causes, WhoGetsHugePagesDependsOnTheKindOfMemory) {
  const auto named = [](Pages pages, const std::string& ordinary, const std::string& shared) {
    Member member = healthy();
    member.limits.huge_pages = ordinary;
    member.limits.huge_shared_pages = shared;
    Scene scene = row({member});
    scene.row = RowState{.of_ceiling = 0.2,
                         .in_memory = true,
                         .pages = pages,
                         .block = 4096,
                         .working_set = std::uint64_t{256} << 20U};
    return !causesOf(scene).empty();
  };
  EXPECT_FALSE(named(Pages::kShared, "never", "advise"));
  EXPECT_TRUE(named(Pages::kShared, "always", "deny"));
  EXPECT_FALSE(named(Pages::kOrdinary, "always", "never"));
  EXPECT_TRUE(named(Pages::kOrdinary, "madvise", "advise"));
  EXPECT_TRUE(named(Pages::kShared, "off", "off"));
  EXPECT_FALSE(named(Pages::kShared, "", ""));  // unknown
  // Without a row, "madvise" is no cause, and "never" is one.
  EXPECT_TRUE(causesOf({.members = {Member{.limits = {.huge_pages = "madvise"}}}}).empty());
  EXPECT_EQ(causesOf({.members = {Member{.limits = {.huge_pages = "never"}}}}).size(), 1U);
}

TEST(Causes, ATracerIsNamed) {
  Member member = healthy();
  member.limits.tracer = 77;
  EXPECT_EQ(namesIn(row({member})), Names{"traced"});
}

TEST(Causes, FiguresOfSocketsThatWereClosedAreUnknown) {
  const SocketStatistics before = sending(100, 10ms), after = sending(300, 15ms);
  EXPECT_EQ(between(before, after).sent_bytes, 200U);
  EXPECT_EQ(between(before, after).busy, 5ms);
  EXPECT_EQ(between(after, before), SocketStatistics{.sockets = 1});
}

// Scripts look for names, and docs list them.
TEST(Causes, EachRuleHasANameOfItsOwnAndARemedy) {
  Names names;
  for (const Rule& rule : rules()) {
    names.push_back(rule.name);
    EXPECT_NE(std::string_view(rule.remedy), "") << rule.name;
  }
  std::ranges::sort(names);
  EXPECT_EQ(std::ranges::adjacent_find(names), names.end());
}

}  // namespace
}  // namespace viaduct::causes
