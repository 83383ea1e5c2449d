// Notes to and from a process that is stopped or killed.
#include "process/pair.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

class NotesOfProcesses : public ::testing::Test {
 protected:
  // Sends notes "FIRST", "FIRST + 1", ... until all buffers for the victim's notes are full.
  int sendUntilFull(const Peer& to, int first) {
    int next = first;
    for (; next < first + 100000; ++next) {
      const Status sent =
          to.note(std::to_string(next) + std::string(next % 10 == 0 ? 5000 : 1500, '.'));
      if (sent) continue;
      EXPECT_EQ(sent.error().code, Code::kBusy) << sent.error().text();
      break;
    }
    return next;
  }

  Survivor survivor_{kDataPaths[0], 60s};
  std::unique_ptr<PeerProcess> victim_ = survivor_.start();
};

TEST_F(NotesOfProcesses, AStoppedReceiverGetsThemAllOnceItContinues) {
  const Peer peer = survivor_.peer();
  victim_->process().stop();
  const int sent = sendUntilFull(peer, 0);
  EXPECT_GT(sent, 1000);  // far more than a ring holds
  victim_->process().resume();
  for (int i = 0; i < sent; ++i) {
    const std::string note = victim_->must("takenote 10000");
    ASSERT_NE(note.find(" " + std::to_string(i) + "."), std::string::npos) << i << ": " << note;
  }
}

TEST_F(NotesOfProcesses, NotesOfAKilledSenderAreRead) {
  for (int i = 0; i < 20; ++i) victim_->must("note survivor n" + std::to_string(i));
  const Peer peer = survivor_.peer();
  const auto epoch = peer.epoch();
  victim_->process().kill();
  ASSERT_TRUE(peer.over(epoch, 10s));
  for (int i = 0; i < 20; ++i) {
    const auto note = survivor_.agent().takeNote();
    ASSERT_TRUE(note) << i;
    EXPECT_EQ(note->text(), "n" + std::to_string(i));
  }
  EXPECT_FALSE(survivor_.agent().takeNote());
  victim_ = survivor_.start();  // the restarted victim starts with the first note
  victim_->must("note survivor again");
  EXPECT_EQ(survivor_.agent().waitNote(10s)->text(), "again");
  ASSERT_TRUE(survivor_.peer().note("back"));
  EXPECT_NE(victim_->must("takenote 10000").find("back"), std::string::npos);
}

}  // namespace
}  // namespace viaduct::testing
