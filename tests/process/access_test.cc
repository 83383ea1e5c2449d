// Pinned memory is unmapped or protected, at the target or at the initiator: both ends get an
// error, and no process dies.
#include <string>

#include "process/pair.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class Access : public ::testing::TestWithParam<DataPath> {
 protected:
  // Whether our code copies at the end whose memory has changed, so that the copy can fail.
  static bool copyIsOurs(OpKind kind) {
    const std::string name = GetParam().name;
    return name != "ofi" && (name != "ucx" || kind == OpKind::kWrite);
  }
  // Peers map the file, independently of the owner's own mapping.
  static bool staysReachable() { return GetParam().name == std::string("mapped"); }
  // If the test needs memory that peers map, the agent allocates it.
  static std::string memory(const std::string& label, std::uint64_t bytes) {
    if (staysReachable()) return "memory " + label + " " + std::to_string(bytes);
    return "pages " + label + " " + std::to_string(bytes) + " write";
  }
};

struct Case {
  const char* label;
  std::uint64_t bytes, block;
};
// Few bytes travel with their header, and many do not.
constexpr Case kCases[] = {{"few", 4096, 512}, {"many", 4 << 20, 64 << 10}};

TEST_P(Access, OfThePeersMemoryIsKnownBeforeAPost) {
  Survivor survivor(GetParam());
  auto victim = survivor.start();
  victim->must("pages fixed 65536 read");
  const auto there = survivor.peer().waitPin("fixed", 10s);
  ASSERT_TRUE(there) << there.error().text();
  EXPECT_EQ(there->access, MemoryAccess::kReadOnly);
  const auto mine = survivor.memory(65536, "mine");
  const auto whole = [](const PinInfo& pin) {
    return Selection{*Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1}), {}};
  };
  const auto write = survivor.agent().plan(OpKind::kWrite, survivor.peer(), whole(mine.pin->info()),
                                           whole(*there));
  ASSERT_FALSE(write);
  EXPECT_EQ(write.error().code, Code::kDenied) << write.error().text();
  Transfer read = survivor.plan(OpKind::kRead, mine, "fixed");
  ASSERT_TRUE(read.post());
  const auto done = read.wait(10s);
  EXPECT_TRUE(done) << done.error().text();
  EXPECT_EQ(mine.differ(1), 0);
  survivor.expectWorks(*victim);
}

TEST_P(Access, ThatTheTargetLosesFailsTheTransferAndNobodyDies) {
  Survivor survivor(GetParam());
  auto victim = survivor.start();
  int number = 0;
  for (const Case& c : kCases)
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
      for (const char* const change : {"read", "none", "gone"}) {
        if (!copyIsOurs(kind) || (kind == OpKind::kRead && change == std::string("read"))) continue;
        SCOPED_TRACE(std::string(c.label) + " " + opKindName(kind) + " " + change);
        const std::string label = c.label + std::to_string(++number);
        victim->must(memory(label, c.bytes));
        const auto mine = survivor.memory(c.bytes, "");
        Transfer transfer = survivor.plan(kind, mine, label, c.block);
        victim->must("protect " + label + " " + change);
        Status ended = transfer.post();
        if (ended) ended = transfer.wait(10s);
        EXPECT_EQ(ended.has_value(), staysReachable());
        if (!ended) {
          EXPECT_EQ(ended.error().code, Code::kDenied) << ended.error().text();
        }
        survivor.expectWorks(*victim);
      }
}

// The initiator unmaps or protects memory that it has pinned, and the transfer fails. With plain
// copies ("mapped"), a process that does so kills itself, like any program.
TEST_P(Access, ThatTheInitiatorLosesFailsTheTransferAndNobodyDies) {
  const std::string name = GetParam().name;
  if (name != "tcp" && name != "cma") GTEST_SKIP() << "skipped: " << name << " does not tell";
  Survivor survivor(GetParam());
  auto victim = survivor.start();
  int number = 0;
  for (const Case& c : kCases)
    for (const char* const kind : {"write", "read"})
      for (const char* const change : {"read", "none", "gone"}) {
        if (kind == std::string("write") && change == std::string("read")) continue;
        SCOPED_TRACE(std::string(c.label) + " " + kind + " " + change);
        const std::string label = c.label + std::to_string(++number);
        const auto mine = survivor.memory(c.bytes, label);
        victim->must("pages " + label + " " + std::to_string(c.bytes) + " write");
        victim->must("plan t " + std::string(kind) + " survivor " + label + " " + label + " " +
                     std::to_string(c.block));
        victim->must("protect " + label + " " + change);
        std::string ended = victim->ask("post t");
        if (ended.starts_with("ok")) ended = victim->ask("wait t 10000");
        EXPECT_TRUE(ended.starts_with(std::string("error ") + codeName(Code::kDenied))) << ended;
        survivor.expectWorks(*victim);
      }
}

INSTANTIATE_TEST_SUITE_P(Every, Access, ::testing::ValuesIn(kDataPaths),
                         [](const auto& path) { return std::string(path.param.name); });

}  // namespace
}  // namespace viaduct::testing
