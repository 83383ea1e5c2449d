// Transfers between memory and files of two agents, over each network backend that needs no device.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kMiB = 1 << 20;

std::vector<std::byte> noise(std::uint64_t bytes, unsigned seed) {
  std::vector<std::byte> out(bytes);
  std::mt19937_64 random(seed);
  for (std::byte& byte : out) byte = static_cast<std::byte>(random());
  return out;
}

class StagingTest : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override { open(Privacy::kAuto); }
  void open(Privacy privacy) {
    b_peer_.reset();
    for (auto [agent, name] : {std::pair(&a_, "staging-a"), std::pair(&b_, "staging-b")}) {
      // No test here loses a peer by its silence.
      auto opened = Agent::open(Settings{
          .name = name, .backends = {GetParam(), "file"}, .privacy = privacy, .detect = 8h});
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    auto peer = a_->connect(b_->card());
    ASSERT_TRUE(peer) << peer.error().text();
    b_peer_.emplace(*std::move(peer));
    ASSERT_TRUE(b_peer_->ready(20s));
  }

  std::string file(const std::string& name, std::span<const std::byte> content) const {
    std::string path = folder_.path() + "/" + name;
    std::ofstream(path, std::ios::binary)
        .write(reinterpret_cast<const char*>(content.data()),
               static_cast<std::streamsize>(content.size()));
    return path;
  }
  static std::vector<std::byte> read(const std::string& path) {
    std::vector<std::byte> out(std::filesystem::file_size(path));
    std::ifstream(path, std::ios::binary)
        .read(reinterpret_cast<char*>(out.data()), static_cast<std::streamsize>(out.size()));
    return out;
  }
  static Pin pinFile(Agent& agent, const std::string& path, const char* label,
                     const FileOptions& options = {}) {
    auto pin = agent.pin(Segment::file(path, options), label);
    EXPECT_TRUE(pin) << pin.error().text();
    return *std::move(pin);
  }
  PinInfo atB(const char* label) {
    auto info = b_peer_->waitPin(label, 20s);
    EXPECT_TRUE(info) << info.error().text();
    return *info;
  }
  static Selection all(const PinInfo& pin, std::uint64_t block = 0) {
    if (block == 0) block = pin.bytes;
    return {*Blocks::strided({.base = pin.address, .bytes = block, .count = pin.bytes / block})};
  }
  Result<Path> move(OpKind kind, Selection here, Selection there) {
    VIADUCT_TRY(auto transfer, a_->plan(kind, *b_peer_, {std::move(here)}, {std::move(there)}));
    VIADUCT_CHECK(transfer.post());
    VIADUCT_CHECK(transfer.wait(60s));
    return transfer.path();
  }

  TemporaryFolder folder_;
  std::optional<Agent> a_, b_;
  std::optional<Peer> b_peer_;
};

TEST_P(StagingTest, ReadsAFileOfThePeerIntoMemory) {
  const auto content = noise(9 * kMiB + 77, 1);
  const Pin there = pinFile(*b_, file("f", content), "f");
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  const auto path = move(OpKind::kRead, all(memory->info()), all(atB("f")));
  ASSERT_TRUE(path) << path.error().text();
  EXPECT_EQ(0, std::memcmp(memory->data(), content.data(), content.size()));
  ASSERT_EQ(path->shares.size(), 2U) << path->text();
  EXPECT_EQ(path->shares[0].backend, "file");
  EXPECT_EQ(path->shares[1].backend, GetParam());
  for (const PathShare& share : path->shares) EXPECT_EQ(share.bytes, content.size());
  EXPECT_NE(path->text().find(" -> host -> " + GetParam()), std::string::npos) << path->text();
}

TEST_P(StagingTest, WritesMemoryIntoAFileOfThePeer) {
  const auto content = noise(5 * kMiB, 2);
  const std::string path = folder_.path() + "/new";
  const Pin there = pinFile(*b_, path, "new", {.bytes = content.size(), .create = true});
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  std::memcpy(memory->data(), content.data(), content.size());
  const auto moved = move(OpKind::kWrite, all(memory->info()), all(atB("new")));
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_EQ(read(path), content);
}

TEST_P(StagingTest, CopiesFromFileToFileBothWays) {
  const auto content = noise(12 * kMiB, 3);
  const Pin source = pinFile(*a_, file("a", content), "a");
  const std::string copy = folder_.path() + "/b", back = folder_.path() + "/back";
  const Pin sink = pinFile(*b_, copy, "b", {.bytes = content.size(), .create = true});
  const auto moved = move(OpKind::kWrite, all(source.info()), all(atB("b")));
  ASSERT_TRUE(moved) << moved.error().text();
  EXPECT_EQ(read(copy), content);
  EXPECT_EQ(moved->shares.size(), 3U) << moved->text();

  const Pin own = pinFile(*a_, back, "back", {.bytes = content.size(), .create = true});
  const auto returned = move(OpKind::kRead, all(own.info()), all(atB("b")));
  ASSERT_TRUE(returned) << returned.error().text();
  EXPECT_EQ(read(back), content);
}

TEST_P(StagingTest, ReadsManySmallBlocksInAnyOrder) {
  constexpr std::uint64_t kBlock = 4096, kBlocks = 3000;
  const auto content = noise(kBlock * kBlocks, 4);
  const Pin there = pinFile(*b_, file("kv", content), "kv");
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  std::vector<std::uint32_t> order(kBlocks);
  for (std::uint32_t i = 0; i < kBlocks; ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), std::mt19937(5));
  Selection from = all(atB("kv"), kBlock);
  from.indices = Indices(order);
  const auto path = move(OpKind::kRead, all(memory->info(), kBlock), std::move(from));
  ASSERT_TRUE(path) << path.error().text();
  for (std::uint32_t i = 0; i < kBlocks; ++i)
    ASSERT_EQ(0,
              std::memcmp(memory->data() + i * kBlock, content.data() + order[i] * kBlock, kBlock));
}

TEST_P(StagingTest, IsPostedAgainWithoutANewPlan) {
  const auto content = noise(4 * kMiB, 6);
  const std::string path = file("again", content);
  const Pin there = pinFile(*b_, path, "again");
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  auto transfer = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())}, {all(atB("again"))});
  ASSERT_TRUE(transfer) << transfer.error().text();
  for (int i = 0; i < 3; ++i) {
    std::memset(memory->data(), 0, content.size());
    ASSERT_TRUE(transfer->post());
    ASSERT_TRUE(transfer->wait(60s));
    EXPECT_EQ(0, std::memcmp(memory->data(), content.data(), content.size()));
    EXPECT_EQ(transfer->path().shares.at(0).bytes, content.size()) << "of this post alone";
  }
  EXPECT_EQ(transfer->carried().shares.at(0).bytes, 3 * content.size());
}

// The next session has other links, so the second post plans the transfer again.
TEST_P(StagingTest, CountsEachStageOnceIfItIsPlannedAgain) {
  const auto content = noise(3 * kMiB, 12);
  const Pin there = pinFile(*b_, file("twice", content), "twice");
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  auto transfer = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())}, {all(atB("twice"))});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  const auto epoch = b_peer_->epoch();
  b_peer_->forget();
  ASSERT_TRUE(a_->connect(b_->card()));
  ASSERT_TRUE(b_peer_->ready(20s));
  ASSERT_GT(b_peer_->epoch(), epoch);
  atB("twice");
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  for (const PathShare& share : transfer->carried().shares)
    EXPECT_EQ(share.bytes, 2 * content.size()) << share.backend;
}

TEST_P(StagingTest, IsRefusedWhereTheCallerForbidsIt) {
  const Pin there = pinFile(*b_, file("no", noise(4096, 7)), "no");
  auto memory = a_->allocate(4096);
  ASSERT_TRUE(memory);
  const std::string other = GetParam() == "tcp" ? "not-tcp" : "backend:tcp";
  for (const std::string& require : {std::string("no-staging"), std::string("rdma"), other}) {
    const auto refused = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())}, {all(atB("no"))},
                                  {.require = require});
    ASSERT_FALSE(refused) << require;
    EXPECT_EQ(refused.error().code, Code::kUnsupported);
  }
}

TEST_P(StagingTest, ARequirementHoldsForTheStageBetweenTheAgents) {
  const auto content = noise(kMiB, 17);
  const Pin there = pinFile(*b_, file("yes", content), "yes");
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  auto transfer = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())}, {all(atB("yes"))},
                           {.require = "backend:" + GetParam()});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  EXPECT_EQ(0, std::memcmp(memory->data(), content.data(), content.size()));
}

// A file is read in its own host. The stage between the agents has to be encrypted.
TEST_P(StagingTest, EncryptionIsRequiredOfTheStageBetweenTheAgents) {
  for (const Privacy privacy : {Privacy::kIntegrity, Privacy::kEncrypted}) {
    open(privacy);
    const Pin there = pinFile(*b_, file("private", noise(kMiB, 3)), "private");
    const auto memory = a_->allocate(kMiB);
    ASSERT_TRUE(memory);
    const auto planned = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())},
                                  {all(atB("private"))}, {.require = "encrypted"});
    const bool is_private =
        GetParam() == "local" || (GetParam() == "tcp" && privacy == Privacy::kEncrypted);
    EXPECT_EQ(planned.has_value(), is_private);
    if (is_private) continue;
    ASSERT_FALSE(planned);
    EXPECT_EQ(planned.error().code, Code::kUnsupported) << planned.error().text();
  }
}

TEST_P(StagingTest, ARefusalOfThePeersStorageNamesThePinAndNotItsPath) {
  const std::string path = file("secret-name", noise(kMiB, 8));
  const Pin there = pinFile(*b_, path, "short");
  const PinInfo info = atB("short");
  std::filesystem::resize_file(path, 4096);
  auto memory = a_->allocate(info.bytes);
  ASSERT_TRUE(memory);
  const auto failed = move(OpKind::kRead, all(memory->info()), all(info));
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().peer, "staging-b");
  EXPECT_EQ(failed.error().file, "short");
  EXPECT_EQ(failed.error().text().find("secret-name"), std::string::npos) << failed.error().text();
}

TEST_P(StagingTest, AFileOfThePeerThatIsMadeAgainIsNotFound) {
  for (const OpKind kind : {OpKind::kRead, OpKind::kWrite}) {
    const std::string label = kind == OpKind::kRead ? "read" : "written";
    const std::string path = file(label, noise(kMiB, 8));
    const Pin there = pinFile(*b_, path, label.c_str());
    const PinInfo info = atB(label.c_str());
    std::filesystem::remove(path);
    const auto content = noise(kMiB, 9);
    file(label, content);
    auto memory = a_->allocate(info.bytes);
    ASSERT_TRUE(memory);
    const auto failed = move(kind, all(memory->info()), all(info));
    ASSERT_FALSE(failed);
    EXPECT_EQ(failed.error().code, Code::kNotFound) << failed.error().text();
    EXPECT_EQ(read(path), content);
  }
}

TEST_P(StagingTest, APinThatIsReleasedMeanwhileEndsThePost) {
  const auto content = noise(16 * kMiB, 9);
  std::optional<Pin> there(pinFile(*b_, file("gone", content), "gone"));
  auto memory = a_->allocate(content.size());
  ASSERT_TRUE(memory);
  auto transfer = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())}, {all(atB("gone"))});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(there->release());
  const auto ended = transfer->wait(60s);
  EXPECT_TRUE(ended || ended.error().code == Code::kDenied) << ended.error().text();
  // The news of the release may still be on its way. Then the peer refuses.
  const Status again = transfer->post() ? transfer->wait(60s) : Status(Error{});
  EXPECT_FALSE(again) << "the pin is gone";
}

TEST_P(StagingTest, APeerThatClosesEndsThePost) {
  const auto content = noise(32 * kMiB, 10);
  const std::string path = file("closing", content);
  {
    const Pin there = pinFile(*b_, path, "closing");
    auto memory = a_->allocate(content.size());
    ASSERT_TRUE(memory);
    auto transfer = a_->plan(OpKind::kRead, *b_peer_, {all(memory->info())}, {all(atB("closing"))});
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_TRUE(transfer->post());
    b_->close();
    const auto ended = transfer->wait(20s);
    EXPECT_TRUE(ended || ended.error().code == Code::kPeerLost) << ended.error().text();
  }
}

TEST_P(StagingTest, CopiesFromFileToFileOfOneAgent) {
  const auto content = noise(7 * kMiB + 5, 11);
  const std::string copy = folder_.path() + "/self";
  const Pin source = pinFile(*a_, file("own", content), "own");
  const Pin sink = pinFile(*a_, copy, "self", {.bytes = content.size(), .create = true});
  auto self = a_->self();
  ASSERT_TRUE(self);
  ASSERT_TRUE(self->ready(20s));
  auto info = self->waitPin("self", 20s);
  ASSERT_TRUE(info);
  auto transfer = a_->plan(OpKind::kWrite, *self, {all(source.info())}, {all(*info)});
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto ended = transfer->wait(60s);
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(read(copy), content);
}

INSTANTIATE_TEST_SUITE_P(Over, StagingTest, ::testing::Values("local", "tcp"),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace viaduct::testing
