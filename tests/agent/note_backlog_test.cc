#include "agent/peers/note_backlog.h"

#include <gtest/gtest.h>

namespace viaduct::agent {
namespace {

NoteBacklog::SenderPtr sender(std::string name) {
  auto out = std::make_shared<NoteBacklog::Sender>();
  out->name = std::move(name);
  return out;
}

TEST(NoteBacklog, OneSenderMayUseHalfOfIt) {
  NoteBacklog backlog(10'000);
  const auto a = sender("a"), b = sender("b");
  int taken = 0;
  for (; backlog.hasRoom(*a); ++taken) ASSERT_TRUE(backlog.add(a, {}));
  EXPECT_LE(taken, 100) << "an empty note costs something";
  EXPECT_TRUE(backlog.hasRoom(*b));
  EXPECT_FALSE(backlog.full());
  while (backlog.hasRoom(*b)) ASSERT_TRUE(backlog.add(b, {}));
  EXPECT_TRUE(backlog.full());
  EXPECT_FALSE(backlog.madeRoom());
  EXPECT_EQ(backlog.take()->from, "a");
  EXPECT_TRUE(backlog.forgetMadeRoom());
  EXPECT_TRUE(backlog.hasRoom(*a));
}

// The limit may be exceeded by the notes that a lost session leaves in its ring and sockets.
TEST(NoteBacklog, AllSendersTogetherMayUseTwiceTheLimit) {
  constexpr int kLimit = 10'000'000, kOfOneLife = 4 << 20, kNote = 10'000;
  NoteBacklog backlog(kLimit);
  const auto a = sender("a");
  int kept = 0;
  while (backlog.add(a, base::Bytes(kNote))) ++kept;
  EXPECT_LE((kept - 1) * kNote, kLimit + kOfOneLife);
  const auto b = sender("b"), c = sender("c");
  while (backlog.add(b, base::Bytes(kNote))) ++kept;
  while (backlog.add(c, base::Bytes(kNote))) ++kept;
  EXPECT_LE((kept - 3) * kNote, 2 * kLimit + kOfOneLife);
  for (int i = 0; i < kept; ++i) ASSERT_TRUE(backlog.take());
  EXPECT_TRUE(backlog.empty());
  EXPECT_TRUE(backlog.add(a, {}));
}

}  // namespace
}  // namespace viaduct::agent
