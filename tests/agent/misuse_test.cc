// Mistakes of callers are refused with a helpful error, and do no harm.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <optional>
#include <string>
#include <vector>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

class Misuse : public ::testing::Test {
 protected:
  void SetUp() override {
    for (auto* agent : {&a_, &b_}) {
      Settings settings;
      settings.name = agent == &a_ ? "a" : "b";
      auto opened = Agent::open(settings);
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    auto here = a_->allocate(64 << 10, {.label = "here"});
    auto there = b_->allocate(64 << 10, {.label = "there"});
    auto peer = a_->importCard(b_->exportCard());
    ASSERT_TRUE(here && there && peer && peer->ready(5s));
    ASSERT_TRUE(peer->waitPin("there", 5s));
    here_.emplace(*std::move(here));
    there_.emplace(*std::move(there));
    peer_ = *peer;
  }

  static Selection part(const Pin& pin, std::uint64_t offset, std::uint64_t bytes) {
    return {.blocks = *Blocks::strided(
                {.base = pin.info().address + offset, .bytes = bytes, .count = 1})};
  }
  void refuses(const Selection& local, const Selection& remote, std::string_view word) {
    const auto plan = a_->plan(OpKind::kWrite, *peer_, local, remote);
    ASSERT_FALSE(plan) << word;
    EXPECT_NE(plan.error().text().find(word), std::string::npos) << plan.error().text();
    EXPECT_FALSE(plan.error().remedy.empty()) << plan.error().text();
  }
  void stillWorks() {
    auto transfer = a_->plan(OpKind::kWrite, *peer_, part(*here_, 0, 4096), part(*there_, 0, 4096));
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    EXPECT_TRUE(transfer->wait(5s));
  }

  std::optional<Agent> a_, b_;
  std::optional<Pin> here_, there_;
  std::optional<Peer> peer_;
};

TEST_F(Misuse, OfBlocksIsRefusedWhenPlanned) {
  std::vector<std::byte> loose(4096);
  const Selection unpinned{
      .blocks = *Blocks::strided(
          {.base = reinterpret_cast<std::uintptr_t>(loose.data()), .bytes = 4096, .count = 1})};
  refuses(unpinned, part(*there_, 0, 4096), "pin");
  refuses(part(*here_, 0, 4096), part(*there_, 62 << 10, 4096), "pin");
  refuses(part(*here_, 0, 4096), part(*there_, 0, 8192), "8192");
  const Selection beyond{
      .blocks = *Blocks::strided({.base = here_->info().address, .bytes = 4096, .count = 16}),
      .indices = {0, 16}};
  refuses(beyond, part(*there_, 0, 8192), "16");
  const Selection twice{
      .blocks = *Blocks::strided({.base = there_->info().address, .bytes = 4096, .count = 16}),
      .indices = {3, 3}};
  refuses(part(*here_, 0, 8192), twice, "3");
  stillWorks();
}

TEST_F(Misuse, OfSegmentsIsRefusedWhenPinned) {
  std::byte memory[64] = {};
  for (const Segment& segment :
       {Segment::host(memory, 0), Segment::host(memory, std::uint64_t{1} << 63U),
        Segment::host(nullptr, 4096),
        Segment{.kind = MemoryKind::kDevice, .address = 4096, .bytes = 1}}) {
    const auto pin = a_->pin(segment);
    ASSERT_FALSE(pin) << segment.bytes;
    EXPECT_FALSE(pin.error().detail.empty());
  }
  EXPECT_FALSE(a_->allocate(0));
  EXPECT_FALSE(a_->allocate(std::uint64_t{1} << 62U));
  stillWorks();
}

TEST_F(Misuse, AnAllocationThatDoesNotFitNamesTheFreeMemory) {
  const auto huge = a_->allocate(std::uint64_t{1} << 50U);
  ASSERT_FALSE(huge);
  EXPECT_EQ(huge.error().code, Code::kExhausted);
  const std::string text = huge.error().text();
  EXPECT_NE(text.find("1.0 PiB do not fit: this process may allocate "), std::string::npos) << text;
  EXPECT_NE(text.find("allocate at most "), std::string::npos) << text;
  EXPECT_TRUE(a_->allocate(4U << 20U));
}

TEST_F(Misuse, AWaitBeforeAPostSaysThatThePostIsMissing) {
  auto transfer = a_->plan(OpKind::kWrite, *peer_, part(*here_, 0, 4096), part(*there_, 0, 4096));
  ASSERT_TRUE(transfer) << transfer.error().text();
  const Status waited = transfer->wait(1s);
  ASSERT_FALSE(waited);
  EXPECT_EQ(waited.error().code, Code::kInvalid);
  EXPECT_EQ(waited.error().remedy, "call post() first");
}

// Because of a label that is too long, a peer would end this session and every later one.
TEST_F(Misuse, OfLabelsIsRefusedWhenPinned) {
  std::byte memory[64] = {};
  const std::string longest(1024, 'l');
  for (const auto& pin : {a_->pin(Segment::host(memory, 64), longest + "l"),
                          a_->allocate(64, {.label = longest + "l"})}) {
    ASSERT_FALSE(pin);
    EXPECT_EQ(pin.error().code, Code::kInvalid);
    EXPECT_NE(pin.error().text().find("1024"), std::string::npos) << pin.error().text();
  }
  const auto pin = b_->pin(Segment::host(memory, 64), longest);
  ASSERT_TRUE(pin) << pin.error().text();
  EXPECT_TRUE(peer_->waitPin(longest, 5s));
  stillWorks();
}

// The limit is the number of pins that a peer keeps.
TEST_F(Misuse, OfMorePinsThanPeersAcceptIsRefused) {
  Settings settings;
  settings.backends = {"fake"};
  auto agent = Agent::open(settings);
  ASSERT_TRUE(agent) << agent.error().text();
  static std::byte memory[64] = {};
  std::vector<Pin> pins;
  for (std::size_t i = 0; i < std::size_t{1} << 16U; ++i) {
    auto pin = agent->pin(Segment::host(memory, 64));
    ASSERT_TRUE(pin) << i << pin.error().text();
    pins.push_back(*std::move(pin));
  }
  const auto beyond = agent->pin(Segment::host(memory, 64));
  ASSERT_FALSE(beyond);
  EXPECT_EQ(beyond.error().code, Code::kExhausted);
  ASSERT_TRUE(pins.back().release());
  EXPECT_TRUE(agent->pin(Segment::host(memory, 64)));
}

TEST_F(Misuse, OfListenIsRefusedBeforePeersDo) {
  Settings settings;
  settings.listen.assign(300, "127.0.0.1:0");
  const auto agent = Agent::open(settings);
  ASSERT_FALSE(agent);
  EXPECT_NE(agent.error().text().find("listen"), std::string::npos) << agent.error().text();
}

TEST_F(Misuse, OfCardsIsRefusedWithTheReason) {
  auto card = b_->exportCard();
  EXPECT_FALSE(a_->importCard(std::span(card).first(card.size() - 1)));
  EXPECT_FALSE(a_->importCard({}));
  card[card.size() / 2] ^= std::byte{1};
  const auto corrupted = a_->importCard(card);
  ASSERT_FALSE(corrupted);
  EXPECT_FALSE(corrupted.error().text().empty());
  stillWorks();
}

TEST_F(Misuse, OfSettingsIsRefusedWithTheNameOfTheSetting) {
  const auto refusal = [](auto change) {
    Settings settings;
    change(settings);
    const auto agent = Agent::open(settings);
    EXPECT_FALSE(agent);
    return agent ? std::string() : agent.error().text();
  };
  EXPECT_NE(refusal([](Settings& s) { s.backends = {"pigeon"}; }).find("pigeon"),
            std::string::npos);
  EXPECT_NE(refusal([](Settings& s) { s.sockets = 0; }).find("sockets"), std::string::npos);
  EXPECT_NE(refusal([](Settings& s) { s.detect = 1ms; }).find("detect"), std::string::npos);
  EXPECT_NE(refusal([](Settings& s) { s.listen = {"nonsense"}; }).find("nonsense"),
            std::string::npos);
  EXPECT_NE(refusal([&](Settings& s) {
              s.listen = a_->card().addresses;
            }).find(a_->card().addresses.front()),
            std::string::npos);
  stillWorks();
}

TEST_F(Misuse, OfATransferThatRunsOrOfAnothersPeerIsRefused) {
  auto transfer = a_->plan(OpKind::kWrite, *peer_, part(*here_, 0, 4096), part(*there_, 0, 4096));
  ASSERT_TRUE(transfer);
  EXPECT_FALSE(transfer->wait(0ms));  // no post is running
  const std::vector<std::byte> long_note(kMaxNoteBytes + 1);
  EXPECT_FALSE(transfer->post({.note = long_note}));
  const auto foreign = b_->plan(OpKind::kWrite, *peer_, part(*here_, 0, 8), part(*there_, 0, 8));
  ASSERT_FALSE(foreign);
  EXPECT_EQ(foreign.error().code, Code::kInvalid);
  stillWorks();
}

TEST_F(Misuse, InAForkedChildIsRefusedAndTheParentGoesOn) {
  auto transfer = a_->plan(OpKind::kWrite, *peer_, part(*here_, 0, 4096), part(*there_, 0, 4096));
  ASSERT_TRUE(transfer);
  auto marks = a_->openMarks(*peer_, {.number = 1, .marks = 1});
  const auto back = b_->peer("a");
  ASSERT_TRUE(marks && back);
  const auto other_end = b_->openMarks(*back, {.number = 1});
  ASSERT_TRUE(other_end);
  const pid_t child = ::fork();
  if (child == 0) {
    const bool refused = !transfer->post() && !a_->allocate(4096) && !a_->poll() &&
                         !peer_->note("from the child") && !a_->importCard(b_->exportCard());
    {
      // The child's copies of agent and stream end here, which must not harm the parent.
      const Agent moved = *std::move(a_);
      const MarkStream freed = *std::move(marks);
    }
    ::_exit(refused ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  EXPECT_FALSE(other_end->over(100ms)) << "the child has ended the stream of its parent";
  stillWorks();
}

}  // namespace
}  // namespace viaduct
