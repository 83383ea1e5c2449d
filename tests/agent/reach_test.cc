// TransferOptions::reach and notes for peers that are still connecting: nothing waits for a peer on
// the caller's thread.
#include <gtest/gtest.h>
#include <poll.h>
#include <viaduct/viaduct.h>

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

// "here" has the card of an agent "there" that is closed, and that may be opened again at the same
// address. No other test uses the ports of that loopback address.
class Reach : public ::testing::Test {
 protected:
  static constexpr std::size_t kBytes = 1 << 16;
  static constexpr auto kLong = 60s;

  static Agent opened(const char* name, std::string listen = "127.0.0.1:0",
                      Settings settings = {}) {
    settings.name = name;
    settings.listen = {std::move(listen)};
    settings.secret = "ours";
    settings.backends = {"tcp"};
    auto agent = Agent::open(settings);
    EXPECT_TRUE(agent) << agent.error().text();
    return *std::move(agent);
  }
  static std::string textOf(const Note& note) { return std::string(note.text()); }
  Reach() : card_(opened("there", "127.8.0.1:0").card()), peer_(*here_.connect(card_)) {
    card_.addresses.resize(1);
  }
  void openThere() {
    there_.emplace(opened("there", card_.addresses.at(0)));
    into_pin_ = *there_->pin({.address = addressOf(into_), .bytes = kBytes}, "into-7");
  }
  Result<Transfer> plan(TransferOptions options) {
    return here_.plan(OpKind::kWrite, peer_, of(from_), of(into_), std::move(options));
  }
  static std::uint64_t addressOf(std::vector<std::byte>& memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }
  static Selection of(std::vector<std::byte>& memory) {
    return {*Blocks::list(std::vector<Extent>{{addressOf(memory), kBytes}}), {}};
  }

  std::vector<std::byte> from_ = std::vector<std::byte>(kBytes, std::byte{7}),
                         into_ = std::vector<std::byte>(kBytes);
  Agent here_ = opened("here");
  Pin from_pin_ = *here_.pin({.address = addressOf(from_), .bytes = kBytes});
  Card card_;
  Peer peer_;
  std::optional<Agent> there_;
  std::optional<Pin> into_pin_;
};

TEST_F(Reach, APostWaitsInTheBackgroundUntilThePeerIsReady) {
  auto transfer = plan({.reach = Deadline(kLong),
                        .awaits = [](std::string_view label) { return label == "into-7"; }});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(peer_.note(std::as_bytes(std::span(std::string_view("first"))), kLong));
  ASSERT_TRUE(transfer->post({.note = std::as_bytes(std::span(std::string_view("second")))}));
  EXPECT_EQ(transfer->state(), TransferState::kRunning);
  EXPECT_FALSE(transfer->post()) << "it runs already";
  openThere();
  const Status done = transfer->wait(kLong);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(into_, from_);
  EXPECT_EQ(transfer->bytes(), kBytes);
  EXPECT_EQ(textOf(*there_->waitNote(kLong)), "first");
  EXPECT_EQ(textOf(*there_->waitNote(kLong)), "second");
  ASSERT_TRUE(transfer->post() && transfer->wait(kLong)) << "a later post needs no other plan";
}

TEST_F(Reach, APostEndsWithTheReasonIfThePeerDoesNotComeInTime) {
  auto transfer = plan({.reach = Deadline(20ms)});
  ASSERT_TRUE(transfer && transfer->post());
  const Status late = transfer->wait(kLong);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kPeerLost);
  EXPECT_EQ(transfer->state(), TransferState::kFailed);
  EXPECT_FALSE(transfer->post()) << "the time has passed";
  EXPECT_FALSE(plan({.reach = Deadline(0s)}));
  EXPECT_FALSE(plan({})) << "without `reach`, a peer that is not ready is refused at once";

  auto other = plan({.reach = Deadline(kLong)});
  ASSERT_TRUE(other && other->post({.deadline = Deadline(20ms)}));
  EXPECT_FALSE(other->wait(kLong)) << "the deadline of the post counts as well";
}

TEST_F(Reach, AWaitingPostIsCancelledOrEndsWithItsAgent) {
  auto cancelled = plan({.reach = Deadline(kLong)}), closed = plan({.reach = Deadline(kLong)}),
       dropped = plan({.reach = Deadline(kLong)}), forgotten = plan({.reach = Deadline(kLong)});
  ASSERT_TRUE(cancelled && closed && dropped && forgotten);
  ASSERT_TRUE(cancelled->post() && dropped->post() && forgotten->post());
  cancelled->cancel();
  EXPECT_EQ(cancelled->state(), TransferState::kCancelled);
  dropped = Error{};  // the handle's destructor ends the post
  peer_.forget();
  EXPECT_EQ(forgotten->state(), TransferState::kFailed);
  ASSERT_TRUE(closed->post()) << "the time has not passed";
  here_.close();
  EXPECT_EQ(closed->state(), TransferState::kFailed);
}

// The peer answers, and has another secret.
TEST_F(Reach, AWrongCardEndsAWaitingPost) {
  auto transfer = plan({.reach = Deadline(kLong)});
  ASSERT_TRUE(transfer && transfer->post());
  auto stranger = Agent::open({.name = "there",
                               .listen = {card_.addresses.at(0)},
                               .secret = "theirs",
                               .backends = {"tcp"}});
  ASSERT_TRUE(stranger) << stranger.error().text();
  const Status denied = transfer->wait(kLong);
  ASSERT_FALSE(denied);
  EXPECT_EQ(denied.error().code, Code::kDenied) << denied.error().text();
}

TEST_F(Reach, WithdrawnMemoryIsRefusedAtOnceAndUnknownMemoryInTime) {
  openThere();
  ASSERT_TRUE(peer_.ready(kLong) && peer_.waitPin("into-7", kLong));
  ASSERT_TRUE(into_pin_->release());
  while (!peer_.pins().empty()) here_.poll();
  const auto withdrawn = plan({.reach = Deadline(kLong),
                               .awaits = [](std::string_view label) { return label == "into-7"; }});
  ASSERT_FALSE(withdrawn);
  EXPECT_EQ(withdrawn.error().code, Code::kDenied);

  auto unknown = plan({.reach = Deadline(20ms),
                       .awaits = [](std::string_view label) { return label == "into-8"; }});
  ASSERT_TRUE(unknown && unknown->post());
  const Status late = unknown->wait(kLong);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kDenied) << late.error().text();

  auto announced = plan({.reach = Deadline(kLong),
                         .awaits = [](std::string_view label) { return label == "into-9"; }});
  ASSERT_TRUE(announced && announced->post());
  into_pin_ = *there_->pin({.address = addressOf(into_), .bytes = kBytes}, "into-9");
  const Status done = announced->wait(kLong);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(into_, from_);
}

// The session announces the peer's pins before the peer is ready, so a missing pin is refused soon.
TEST_F(Reach, MemoryWithdrawnBeforeTheSessionIsRefusedSoon) {
  auto transfer = plan(
      {.reach = Deadline(10min), .awaits = [](std::string_view label) { return label == "old"; }});
  ASSERT_TRUE(transfer && transfer->post({.deadline = Deadline(10min)}));
  openThere();
  const Status refused = transfer->wait(kLong);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kDenied) << refused.error().text();
}

TEST_F(Reach, TheEventDescriptorTellsOfEarlierNotes) {
  openThere();
  ASSERT_TRUE(peer_.ready(kLong));
  ASSERT_TRUE(there_->peer("here")->ready(kLong) && there_->peer("here")->note("early"));
  while (here_.statistics().notes_received == 0) here_.poll();
  pollfd events{.fd = *here_.eventFd(), .events = POLLIN, .revents = 0};
  EXPECT_EQ(::poll(&events, 1, 0), 1);
}

TEST_F(Reach, NotesForAPeerThatDoesNotComeAreBounded) {
  const std::vector<std::byte> large(kMaxNoteBytes);
  ASSERT_TRUE(peer_.note(large, 500ms));
  const Status full = peer_.note(large, kLong);
  ASSERT_FALSE(full);
  EXPECT_EQ(full.error().code, Code::kBusy);
  for (const Deadline limit = kLong; !limit.passed() && !peer_.note(large, kLong);) here_.poll();
  EXPECT_FALSE(peer_.note(large, kLong)) << "the first was dropped when its time passed";
  EXPECT_FALSE(peer_.note(large, 0s)) << "a peer that is not ready";
}

}  // namespace
}  // namespace viaduct
