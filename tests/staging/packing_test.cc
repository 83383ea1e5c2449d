// Small blocks of host memory that are packed into chunks, on their way between two agents.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <chrono>
#include <optional>
#include <random>
#include <string>
#include <vector>

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 4U << 20U;

// The backend `file` has storage, so the agents open the backend `staged` as well.
Result<Agent> open(std::string name, std::vector<std::string> backends) {
  return Agent::open({.name = std::move(name),
                      .listen = {"127.0.0.1:0"},
                      .insecure = true,
                      .backends = std::move(backends),
                      .detect = 10min});
}

class PackingTest : public ::testing::Test {
 protected:
  void connect(const std::vector<std::string>& backends) {
    auto a = open("a", backends), b = open("b", backends);
    ASSERT_TRUE(a && b) << (a ? "" : a.error().text());
    a_ = *std::move(a);
    b_ = *std::move(b);
    here_ = *a_->allocate(kBytes);
    there_ = *b_->allocate(kBytes, {.label = "there"});
    auto peer = a_->importCard(b_->exportCard());
    ASSERT_TRUE(peer && peer->ready(60s));
    peer_ = *peer;
    ASSERT_TRUE(peer_->waitPin("there", 60s));
  }
  Result<Transfer> plan(OpKind kind, const Selection& local, const Selection& remote,
                        std::string require) {
    return a_->plan(kind, *peer_, local, remote, {.require = std::move(require)});
  }
  static Selection strided(const Pin& pin, std::uint64_t bytes, std::uint64_t count) {
    return {.blocks = *Blocks::strided({.base = pin.info().address,
                                        .stride = kBytes / count,
                                        .bytes = bytes,
                                        .count = count})};
  }

  std::optional<Agent> a_, b_;
  std::optional<Pin> here_, there_;
  std::optional<Peer> peer_;
};

bool isPacked(const Path& path) {
  return std::ranges::any_of(path.shares, [](const auto& share) { return share.way == "packed"; });
}

// Disjoint runs of random sizes, in a random order.
Blocks randomRuns(const Pin& pin, const std::vector<std::uint64_t>& sizes, std::mt19937& random) {
  std::vector<std::uint64_t> order(sizes.size()), places(sizes.size());
  for (std::size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::shuffle(order.begin(), order.end(), random);
  std::uint64_t at = pin.info().address;
  for (const std::uint64_t i : order) {
    at += random() % 5;
    places[i] = at;
    at += sizes[i];
  }
  EXPECT_LE(at, pin.info().address + pin.size());
  std::vector<Run> runs;
  for (std::size_t i = 0; i < sizes.size(); ++i)
    runs.push_back({.base = places[i], .stride = sizes[i], .bytes = sizes[i], .count = 1});
  return *Blocks::of(runs);
}

TEST_F(PackingTest, MovesTheSameBytesAsADirectTransfer) {
  connect({"tcp", "file"});
  std::mt19937 random(3);
  for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
    for (int round = 0; round < 5; ++round) {
      std::vector<std::uint64_t> sizes(2000);
      for (std::uint64_t& size : sizes) size = random() % 300 + 1;
      sizes[7] = 700'000;  // more than a chunk
      sizes[8] = 100'000;
      const Selection local{.blocks = randomRuns(*here_, sizes, random)};
      const Selection remote{.blocks = randomRuns(*there_, sizes, random)};
      const Pin& from = kind == OpKind::kWrite ? *here_ : *there_;
      const Pin& into = kind == OpKind::kWrite ? *there_ : *here_;
      for (std::byte& byte : from.bytes()) byte = static_cast<std::byte>(random());
      std::vector<std::byte> expected;
      for (const char* require : {"no-staging", "packed"}) {
        std::ranges::fill(into.bytes(), std::byte{0});
        auto transfer = plan(kind, local, remote, require);
        ASSERT_TRUE(transfer) << transfer.error().text();
        ASSERT_TRUE(transfer->post());
        const Status moved = transfer->wait(60s);
        ASSERT_TRUE(moved) << moved.error().text();
        a_->poll();
        b_->poll();
        EXPECT_EQ(isPacked(transfer->path()), require == std::string("packed"));
        if (expected.empty()) expected.assign(into.bytes().begin(), into.bytes().end());
        ASSERT_TRUE(std::ranges::equal(expected, into.bytes())) << opKindName(kind) << round;
      }
    }
}

TEST_F(PackingTest, IsChosenForSmallBlocksOfASlowBackendOnly) {
  if (!open("probe", {"ofi"})) GTEST_SKIP() << "skipped: no libfabric";
  connect({"ofi"});
  const auto packed = [&](std::uint64_t bytes, std::uint64_t count, const char* require) {
    auto transfer = plan(OpKind::kWrite, strided(*here_, bytes, count),
                         strided(*there_, bytes, count), require);
    EXPECT_TRUE(transfer && transfer->post() && transfer->wait(60s));
    return isPacked(transfer->path());
  };
  const auto backends = a_->backends();
  const auto ofi = std::ranges::find(backends, "ofi", &BackendInfo::name);
  if (ofi == backends.end() || !ofi->tcp) GTEST_SKIP() << "skipped: no provider tcp";
  EXPECT_TRUE(packed(256, 1024, ""));
  EXPECT_FALSE(packed(256, 1024, "no-staging"));
  EXPECT_FALSE(packed(256, 100, ""));
  EXPECT_FALSE(packed(32 << 10, 64, ""));
}

TEST_F(PackingTest, IsRefusedWhereItIsImpossible) {
  connect({"tcp"});
  const auto refused =
      plan(OpKind::kWrite, strided(*here_, 64, 512), strided(*there_, 64, 512), "packed");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kUnsupported) << refused.error().text();
  connect({"tcp", "file"});
  EXPECT_FALSE(plan(OpKind::kWrite, strided(*here_, 64, 512), strided(*there_, 64, 512),
                    "packed,no-staging"));
}

TEST_F(PackingTest, MemoryThatIsGoneIsAnError) {
  connect({"tcp", "file"});
  void* const memory =
      ::mmap(nullptr, kBytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(memory, MAP_FAILED);
  for (const bool at_target : {true, false}) {
    auto pin = (at_target ? *b_ : *a_)
                   .pin(Segment::host(memory, kBytes), at_target ? "gone there" : "gone here");
    ASSERT_TRUE(pin) << pin.error().text();
    ASSERT_TRUE(!at_target || peer_->waitPin("gone there", 60s));
    auto transfer = plan(OpKind::kWrite, strided(at_target ? *here_ : *pin, 64, 512),
                         strided(at_target ? *pin : *there_, 64, 512), "packed");
    ASSERT_TRUE(transfer) << transfer.error().text();
    ASSERT_EQ(::mprotect(memory, kBytes, PROT_NONE), 0);
    ASSERT_TRUE(transfer->post());
    const Status moved = transfer->wait(60s);
    ASSERT_FALSE(moved);
    EXPECT_EQ(moved.error().code, Code::kDenied) << moved.error().text();
    ASSERT_EQ(::mprotect(memory, kBytes, PROT_READ | PROT_WRITE), 0);
    ASSERT_TRUE(pin->release());
  }
  ::munmap(memory, kBytes);
}

TEST_F(PackingTest, AReleasedPinOfThePeerIsRefused) {
  connect({"tcp", "file"});
  auto transfer =
      plan(OpKind::kWrite, strided(*here_, 64, 512), strided(*there_, 64, 512), "packed");
  ASSERT_TRUE(transfer);
  ASSERT_TRUE(there_->release());
  std::ranges::fill(there_->bytes(), std::byte{7});
  // The post fails, or the transfer does later, depending on whether the release is known by then.
  EXPECT_FALSE(transfer->post() && transfer->wait(60s));
  EXPECT_TRUE(
      std::ranges::all_of(there_->bytes(), [](std::byte one) { return one == std::byte{7}; }));
}

}  // namespace
}  // namespace viaduct
