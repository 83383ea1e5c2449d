// `viaduct meet` as users run it.
#include <gtest/gtest.h>
#include <signal.h>

#include <string>

#include "app/program.h"
#include "meet/groups/group.h"
#include "meet/place.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

const meet::StopFlag kGoOn{false};

// The address that the program prints when it listens.
std::string addressOf(Program& program) {
  const auto line = program.readLine().value_or("");
  const std::string front = "meeting place at ";
  EXPECT_EQ(line.rfind(front, 0), 0U) << line;
  return line.substr(front.size(), line.find(',') - front.size());
}

TEST(MeetCommand, PrintsItsAddressAndEventsUntilItIsInterrupted) {
  Program program({"meet", "--listen", "127.0.0.1:0", "--token", "swordfish"});
  const auto where = addressOf(program);
  auto place = meet::openGroupPlace({.where = where, .token = "swordfish"});
  ASSERT_TRUE(place);
  auto group = (*place)->join({.group = "g", .size = 1, .name = "host:7"}, 20s, kGoOn);
  ASSERT_TRUE(group) << group.error().text();
  EXPECT_NE(program.readLine().value_or("").find("group g formed: 1 members"), std::string::npos);
  EXPECT_TRUE((*group)->finish(20s));
  EXPECT_NE(program.readLine().value_or("").find("group g ended"), std::string::npos);

  auto stranger = meet::openGroupPlace({.where = where, .token = "guessed"});
  ASSERT_TRUE(stranger);
  EXPECT_FALSE((*stranger)->join({.group = "g", .size = 1, .name = "host:8"}, 20s, kGoOn));
  EXPECT_NE(program.readLine().value_or("").find("turned 127.0.0.1"), std::string::npos);

  ::kill(program.pid(), SIGINT);
  EXPECT_EQ(program.finish(), 0);
  EXPECT_EQ(program.err(), "");
}

TEST(MeetCommand, BeyondLoopbackItWantsAToken) {
  Program open({"meet", "--listen", "0.0.0.0:0"});
  EXPECT_EQ(open.finish(), 1);
  EXPECT_NE(open.err().find("token"), std::string::npos) << open.err();
  Program secret({"meet", "--listen", "0.0.0.0:0"}, {"VIADUCT_SECRET=swordfish"});
  EXPECT_NE(secret.readLine().value_or("").find("with a token"), std::string::npos);
}

TEST(MeetCommand, AWaitForANameNamesTheMissingOne) {
  Program program({"meet", "--listen", "127.0.0.1:0", "--secret", "swordfish"});
  std::string said;
  auto place = meet::openMeetingPlace({.where = addressOf(program),
                                       .token = "swordfish",
                                       .waiting = [&](const std::string& line) { said += line; }});
  ASSERT_TRUE(place);
  EXPECT_FALSE((*place)->find("decode-0", 4s, kGoOn));
  EXPECT_NE(said.find("still waiting: find decode-0: meeting place "), std::string::npos) << said;
  EXPECT_NE(said.find("no agent has published \"decode-0\""), std::string::npos) << said;
  EXPECT_NE(said.find(" s left"), std::string::npos) << said;
}

TEST(MeetCommand, AnUnusableListenAddressIsNamed) {
  Program wrong({"meet", "--listen", "127.0.0.1:70000"});
  EXPECT_EQ(wrong.finish(), 2);
  EXPECT_NE(wrong.err().find("above 65535"), std::string::npos) << wrong.err();
  Program first({"meet", "--listen", "127.0.0.1:0"});
  Program second({"meet", "--listen", addressOf(first)});
  EXPECT_EQ(second.finish(), 1);
  EXPECT_NE(second.err().find("in use"), std::string::npos) << second.err();
}

}  // namespace
}  // namespace viaduct::testing
