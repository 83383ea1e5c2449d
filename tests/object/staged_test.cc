// Objects of a peer, and from object to object, through host memory: each object is one upload.
#include "object/object_testing.h"

namespace viaduct::testing {
namespace {

class StagedObjectTest : public ObjectTest {
 protected:
  static constexpr std::uint64_t kBytes = 20 * kMiB + 5;

  // Opens two agents. The object is at `agent_`, which is the peer of `a_`.
  void openBoth(std::uint64_t chunk = 2 * kMiB, Privacy privacy = Privacy::kAuto) {
    Settings there = settings(), here;
    there.listen = here.listen;
    there.backends = here.backends = {"object", "tcp"};
    there.staging_chunk = here.staging_chunk = chunk;
    there.privacy = here.privacy = privacy;
    for (const auto& [agent, with] : {std::pair(&agent_, there), std::pair(&a_, here)}) {
      auto opened = Agent::open(with);
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    auto peer = a_->connect(agent_->card());
    ASSERT_TRUE(peer) << peer.error().text();
    peer_.emplace(*std::move(peer));
    ASSERT_TRUE(peer_->ready(30s));
  }
  void close() {
    transfer_.reset();
    pins_here_.clear();
    peer_.reset();
    self_.reset();
    a_.reset();
    agent_.reset();  // waits for aborts
  }
  // Plans a move between the memory here and an object of the peer.
  Transfer planned(OpKind kind, const std::string& key, const FileOptions& options) {
    // The peer may not have heard yet that an earlier pin is released.
    const std::string label = key + (kind == OpKind::kWrite ? "-there" : "-back");
    pins_here_.push_back(*agent_->pin(Segment::object("s3://kv/" + key, options), label));
    const auto there = peer_->waitPin(label, 30s);
    EXPECT_TRUE(there) << there.error().text();
    pins_here_.push_back(*a_->pin(Segment::host(memory_.data(), kBytes), key));
    return *a_->plan(
        kind, *peer_, whole(pins_here_.back()),
        Selection{*Blocks::strided({.base = there->address, .bytes = there->bytes, .count = 1})});
  }
  Status writeToPeer(const std::string& key) {
    transfer_.emplace(planned(OpKind::kWrite, key, {.bytes = kBytes, .create = true}));
    VIADUCT_CHECK(transfer_->post({.deadline = 60s}));
    return transfer_->wait(60s);
  }

  std::vector<std::uint64_t> memory_ = pattern(kBytes);
  std::optional<Agent> a_;
  std::optional<Peer> peer_;
  std::vector<Pin> pins_here_;
  std::optional<Transfer> transfer_;
};

TEST_F(StagedObjectTest, WritesAnObjectOfThePeerInPartsAndReadsIt) {
  openBoth();
  const auto written = writeToPeer("k");
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(tell("same kv k " + std::to_string(kBytes)), "yes");
  EXPECT_EQ(tell("count PUT"), "3");
  EXPECT_EQ(tell("uploads"), "0");
  std::fill(memory_.begin(), memory_.end(), 0);
  pins_here_.clear();
  transfer_.emplace(planned(OpKind::kRead, "k", {}));
  ASSERT_TRUE(transfer_->post({.deadline = 60s}));
  const auto read = transfer_->wait(60s);
  ASSERT_TRUE(read) << read.error().text();
  EXPECT_TRUE(isPattern(memory_, kBytes));
}

// The object's owner may reach its store over any network.
TEST_F(StagedObjectTest, IsNoPrivatePathAlthoughTheStageBetweenTheAgentsIs) {
  openBoth(2 * kMiB, Privacy::kEncrypted);
  tell("put kv k " + std::to_string(kBytes));
  const auto pin = agent_->pin(Segment::object("s3://kv/k"), "k");
  ASSERT_TRUE(pin) << pin.error().text();
  const auto there = peer_->waitPin("k", 30s);
  const auto here = a_->allocate(kBytes);
  ASSERT_TRUE(there && here);
  const auto plan = [&](const char* require) {
    return a_->plan(
        OpKind::kRead, *peer_, whole(*here),
        Selection{*Blocks::strided({.base = there->address, .bytes = there->bytes, .count = 1})},
        {.require = require});
  };
  EXPECT_TRUE(plan(""));
  const auto refused = plan("encrypted");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported) << refused.error().text();
}

TEST_F(StagedObjectTest, PartsAreAsLargeAsTheirChunks) {
  openBoth(3 * kMiB);
  const auto written = writeToPeer("k");
  ASSERT_TRUE(written) << written.error().text();
  EXPECT_EQ(tell("same kv k " + std::to_string(kBytes)), "yes");
  EXPECT_EQ(tell("count PUT"), "3") << "two of 9 MiB, and the rest";
}

TEST_F(StagedObjectTest, CopiesAnObjectOfItsOwn) {
  open();
  tell("put kv source " + std::to_string(kBytes));
  const auto source = pinObject("source");
  ASSERT_TRUE(source) << source.error().text();
  const auto copy = pinObject("copy", {.bytes = kBytes, .create = true});
  ASSERT_TRUE(copy) << copy.error().text();
  auto transfer = plan(OpKind::kWrite, *source, *copy);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post({.deadline = 60s}));
  const auto done = transfer->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv copy " + std::to_string(kBytes)), "yes");
  EXPECT_EQ(tell("uploads"), "0");
}

TEST_F(StagedObjectTest, AFailedPartFailsTheTransferAndLeavesNoUpload) {
  more_["VIADUCT_OBJECT_RETRIES"] = "0";
  openBoth();
  tell("fault PUT 500 1 partNumber=2");
  const auto written = writeToPeer("k");
  expectSays(written, Code::kDevice, {"write an object", "k-there", "500"});
  EXPECT_EQ(written.error().text().find("s3://"), std::string::npos) << written.error().text();
  close();
  EXPECT_EQ(tell("uploads"), "0");
  EXPECT_EQ(tell("same kv k 1"), "absent");
}

TEST_F(StagedObjectTest, ACancelledTransferLeavesNoUpload) {
  openBoth();
  tell("fault PUT hang 1 partNumber=2");
  transfer_.emplace(planned(OpKind::kWrite, "k", {.bytes = kBytes, .create = true}));
  ASSERT_TRUE(transfer_->post({.deadline = 60s}));
  ASSERT_EQ(tell("hung 1"), "ok");
  transfer_->cancel();
  expectSays(transfer_->wait(60s), Code::kCancelled, {});
  tell("release");
  close();
  EXPECT_EQ(tell("uploads"), "0");
  EXPECT_EQ(tell("same kv k 1"), "absent");
}

}  // namespace
}  // namespace viaduct::testing
