// KV caches that move layer by layer between two agents, pushed and pulled.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "backends/fake/fake_rail.h"

namespace viaduct {
namespace {

using namespace std::chrono_literals;

constexpr std::uint32_t kLayers = 8;
constexpr std::uint64_t kPoolBytes = 1U << 20U;

// The shape of one end.
struct Shape {
  std::uint32_t tp = 1, rank = 0, block_tokens = 16;
  KvOrder order = KvOrder::kHnd;
  KvArrangement arrangement = KvArrangement::kApart;
};

constexpr std::uint32_t kTokens = 128;

KvLayout layoutOf(const Shape& shape, std::uint64_t address) {
  std::vector<std::uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  KvLayout layout{.groups = {{.caches = {{.layers = layers, .kv_heads = 4, .head_size = 8}},
                              .block_tokens = shape.block_tokens}},
                  .order = shape.order,
                  .tp = shape.tp,
                  .rank = shape.rank};
  auto arranged = arrangeKv(layout, shape.arrangement, address, 2 * kTokens / shape.block_tokens);
  EXPECT_TRUE(arranged) << arranged.error().text();
  EXPECT_LE(kvExtent(*arranged).bytes, kPoolBytes);
  return *std::move(arranged);
}

// Blocks of the request, anywhere in the pool.
Indices someBlocks(const Shape& shape, std::mt19937& random) {
  std::vector<std::uint32_t> all(2 * kTokens / shape.block_tokens);
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(kTokens / shape.block_tokens);
  return Indices(std::move(all));
}

class KvStreamTest : public ::testing::TestWithParam<const char*> {
 protected:
  explicit KvStreamTest(const std::string& fake = "")
      : source_(open("source", fake)), destination_(open("destination", fake)) {}
  static Agent open(std::string name, const std::string& fake) {
    auto agent = Agent::open({.name = std::move(name),
                              .listen = {"127.0.0.1:0"},
                              .insecure = true,
                              .backends = {GetParam()},
                              .detect = 10min,
                              .grace = 60s,
                              .others = {{"VIADUCT_FAKE", fake}}});
    EXPECT_TRUE(agent) << agent.error().text();
    return *std::move(agent);
  }
  void SetUp() override {
    source_pin_ = *source_.allocate(kPoolBytes, {.label = "source"});
    destination_pin_ = *destination_.allocate(kPoolBytes, {.label = "destination"});
    auto peer = source_.importCard(destination_.exportCard());
    ASSERT_TRUE(peer && peer->ready(60s));
    to_ = *peer;
    from_ = *destination_.peer("source");
    ASSERT_TRUE(from_->ready(60s));
    ASSERT_TRUE(to_->waitPin("destination", 60s));
    ASSERT_TRUE(from_->waitPin("source", 60s));
    std::mt19937 random(1);
    for (std::byte& byte : source_pin_->bytes()) byte = static_cast<std::byte>(random());
    use({}, {}, 1);
  }
  // Plans between two shapes, for a request with other blocks for each seed.
  void use(const Shape& source, const Shape& destination, std::uint32_t seed) {
    from_layout_ = layoutOf(source, source_pin_->info().address);
    to_layout_ = layoutOf(destination, destination_pin_->info().address);
    auto layers = KvLayers::plan(from_layout_, to_layout_);
    ASSERT_TRUE(layers) << layers.error().text();
    layers_ = *std::move(layers);
    ASSERT_EQ(layers_.layers().size(), kLayers);
    std::mt19937 random(seed);
    blocks_ = {KvBlocks{.source = someBlocks(source, random),
                        .destination = someBlocks(destination, random)}};
  }
  KvPush push(std::uint64_t stream) {
    auto push = KvPush::open(source_, *to_, layers_, blocks_, {.stream = stream, .name = "r1"});
    EXPECT_TRUE(push) << push.error().text();
    return *std::move(push);
  }
  KvArrival arrival(std::uint64_t stream) {
    return *KvArrival::open(destination_, *from_, layers_.layers(),
                            {.stream = stream, .name = "r1"});
  }
  KvOffer offer(std::uint64_t stream) {
    return *KvOffer::open(source_, *to_, layers_.layers(), {.stream = stream, .name = "r1"});
  }
  KvPull pull(std::uint64_t stream) {
    auto pull =
        KvPull::open(destination_, *from_, layers_, blocks_, {.stream = stream, .name = "r1"});
    EXPECT_TRUE(pull) << pull.error().text();
    return *std::move(pull);
  }
  std::vector<std::byte> taken() {
    destination_.poll();
    const auto bytes = destination_pin_->bytes();
    return {bytes.begin(), bytes.end()};
  }
  void clear() { std::ranges::fill(destination_pin_->bytes(), std::byte{0}); }
  // One transfer of all layers, as KvReshard plans it.
  std::vector<std::byte> pulledAtOnce() {
    clear();
    const auto reshard = KvReshard::plan(from_layout_, to_layout_);
    const auto selections = reshard->select(blocks_);
    auto transfer =
        destination_.plan(OpKind::kRead, *from_, selections->destination, selections->source);
    EXPECT_TRUE(transfer && transfer->post() && transfer->wait(60s));
    return taken();
  }

  Agent source_, destination_;
  std::optional<Pin> source_pin_, destination_pin_;
  std::optional<Peer> to_, from_;
  KvLayout from_layout_, to_layout_;
  KvLayers layers_;
  std::array<KvBlocks, 1> blocks_;
};

TEST_P(KvStreamTest, LayersInAnyOrderEqualOneTransferOfAll) {
  const std::array shapes{Shape{}, Shape{.order = KvOrder::kNhd},
                          Shape{.block_tokens = 64, .arrangement = KvArrangement::kRows},
                          Shape{.block_tokens = 32, .arrangement = KvArrangement::kTogether},
                          Shape{.tp = 2, .rank = 1}};
  std::uint64_t stream = 0;
  for (const Shape& source : shapes)
    for (const Shape& destination : shapes) {
      use(source, destination, static_cast<std::uint32_t>(++stream));
      const auto expected = pulledAtOnce();
      ASSERT_NE(expected, std::vector<std::byte>(kPoolBytes));

      clear();
      {
        KvArrival in = arrival(stream);
        KvPush out = push(stream);
        std::vector<std::uint32_t> order = layers_.layers();
        std::shuffle(order.begin(), order.end(), std::mt19937(7));
        std::vector<std::jthread> threads;
        for (std::uint32_t first : {0U, 1U})
          threads.emplace_back([&, first] {
            for (std::uint32_t i = first; i < kLayers; i += 2) EXPECT_TRUE(out.ready(order[i]));
          });
        threads.clear();
        const Status all = in.waitAll(60s);
        ASSERT_TRUE(all) << all.error().text();
        ASSERT_TRUE(out.wait(60s));
      }
      ASSERT_EQ(taken(), expected) << stream;

      clear();
      const std::uint64_t pulled = stream + 1000;
      {
        KvPull in = pull(pulled);
        KvOffer out = offer(pulled);
        for (const std::uint32_t layer : layers_.layers()) ASSERT_TRUE(out.ready(layer));
        const Status all = in.waitAll(60s);
        ASSERT_TRUE(all) << all.error().text();
        const Status read = out.waitRead(60s);
        ASSERT_TRUE(read) << read.error().text();
      }
      ASSERT_EQ(taken(), expected) << stream;
    }
}

TEST_P(KvStreamTest, ALayerCanBeUsedBeforeTheOthers) {
  const auto expected = pulledAtOnce();
  clear();
  KvArrival in = arrival(1);
  KvPush out = push(1);
  ASSERT_TRUE(out.ready(5));
  ASSERT_TRUE(in.waitLayer(5, 60s));
  ASSERT_TRUE(in.waitCount(1, 60s));
  EXPECT_TRUE(in.has(5));
  EXPECT_EQ(in.count(), 1U);
  const Status other = in.waitLayer(4, 0ms);
  ASSERT_FALSE(other);
  EXPECT_EQ(other.error().code, Code::kTimeout);
  EXPECT_EQ(other.error().operation, "wait for layer 4 of request r1");
  // The pages of layer 5: K and V of kApart.
  const auto now = taken();
  std::uint64_t moved = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] == std::byte{0}) continue;
    ++moved;
    EXPECT_EQ(now[i], expected[i]);
  }
  EXPECT_GT(moved, std::uint64_t{kTokens} * 4 * 8 * 2 * 2 * 9 / 10);  // some bytes are zeros
  EXPECT_EQ(out.ready(5).error().code, Code::kInvalid);
  EXPECT_EQ(out.ready(99).error().code, Code::kInvalid);
  EXPECT_EQ(in.waitLayer(99, 0ms).error().code, Code::kInvalid);
  ASSERT_TRUE(out.ready(4));  // misuse has ended nothing
  ASSERT_TRUE(in.waitLayer(4, 60s));
}

TEST_P(KvStreamTest, AllLayersCanBeReadWithoutAnOffer) {
  const auto expected = pulledAtOnce();
  clear();
  KvPull in = pull(1);
  ASSERT_TRUE(in.readAll());
  ASSERT_TRUE(in.waitAll(60s));
  EXPECT_EQ(taken(), expected);
}

TEST_P(KvStreamTest, ACancelEndsBothEndsAndKeepsWhatCame) {
  for (const bool by_source : {true, false}) {
    const std::uint64_t stream = by_source ? 1 : 2;
    std::optional<KvPush> out = push(stream);
    KvArrival in = arrival(stream);
    ASSERT_TRUE(out->ready(0));
    ASSERT_TRUE(in.waitLayer(0, 60s));
    if (by_source) {
      out->cancel("the user has left");
    } else {
      // The source's callback ends its side; nobody has to call it.
      const Status over = in.cancel("the user has left", 60s);
      ASSERT_TRUE(over) << over.error().text();
    }
    const Status missing = in.waitLayer(1, 60s);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::kCancelled);
    EXPECT_EQ(missing.error().operation, "wait for layer 1 of request r1");
    EXPECT_NE(missing.error().detail.find("the user has left"), std::string::npos);
    EXPECT_TRUE(in.waitLayer(0, 0ms));
    const Status late = out->ready(1);
    ASSERT_FALSE(late);
    EXPECT_EQ(late.error().code, Code::kCancelled) << late.error().text();
    EXPECT_EQ(late.error().operation, "push layer 1 of request r1");
    EXPECT_EQ(out->wait(60s).error().code, Code::kCancelled);
  }
}

TEST_P(KvStreamTest, AnOwnerThatGoesEarlyEndsTheOtherEnd) {
  {
    KvArrival in = arrival(1);
    static_cast<void>(push(1));
    const Status missing = in.waitAll(60s);
    ASSERT_FALSE(missing);
    EXPECT_EQ(missing.error().code, Code::kCancelled);
    EXPECT_EQ(missing.error().operation, "wait for layer 0 of request r1");
  }
  KvPull in = pull(2);
  static_cast<void>(offer(2));
  EXPECT_EQ(in.waitAll(60s).error().code, Code::kCancelled);
}

// Over one rail, which a test holds back.
class OneRailKvStreamTest : public KvStreamTest {
 protected:
  OneRailKvStreamTest() : KvStreamTest("rails=1") {}
  void TearDown() override {
    fake::interruption.with([](auto& one) { one = nullptr; });
  }
  // No op comes back before the thread `waiting_` has polled often while `owner_goes_` was set.
  void holdBack() {
    fake::interruption.with([this](auto& one) {
      one = [this] {
        if (std::this_thread::get_id() != waiting_.load()) return false;
        waits_ = true;
        return owner_goes_.load() && ++polls_ > kPolls;
      };
    });
  }
  static Selection word(const Pin& pin) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = 8, .count = 1})};
  }

  static constexpr int kPolls = 100;
  std::atomic<std::thread::id> waiting_{};
  std::atomic<bool> waits_{false}, owner_goes_{false}, owner_gone_{false};
  std::atomic<int> polls_{0};
};

// Another thread ends the owner's last transfer. It is late with the transfer's callback.
TEST_P(OneRailKvStreamTest, AnOwnerThatGoesBeforeItsCallbackEndsTheOtherEnd) {
  holdBack();
  auto earlier = source_.plan(OpKind::kWrite, *to_, word(*source_pin_), word(*destination_pin_),
                              {.on_end = [this](const TransferEnd&) { owner_gone_.wait(false); }});
  ASSERT_TRUE(earlier && earlier->post());
  const KvArrival in = arrival(1);
  std::optional<KvPush> out = push(1);
  ASSERT_TRUE(out->ready(0));
  earlier->cancel();
  std::thread waiter([this] {
    waiting_ = std::this_thread::get_id();
    EXPECT_TRUE(source_.waitNote(60s));
  });
  while (!waits_) std::this_thread::yield();
  owner_goes_ = true;
  out.reset();
  owner_gone_ = true;
  owner_gone_.notify_all();
  EXPECT_EQ(in.waitAll(60s).error().code, Code::kCancelled);
  EXPECT_TRUE(from_->note("end"));
  waiter.join();
}

INSTANTIATE_TEST_SUITE_P(OnFake, OneRailKvStreamTest, ::testing::Values("fake"));

TEST_P(KvStreamTest, AFailedLayerIsNamedAtBothEnds) {
  KvArrival in = arrival(1);
  KvPush out = push(1);
  ASSERT_TRUE(out.ready(0));
  ASSERT_TRUE(in.waitLayer(0, 60s));
  ASSERT_TRUE(out.wait(60s));
  ASSERT_TRUE(source_pin_->release());
  const Status failed = out.ready(3);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().operation, "push layer 3 of request r1");
  const Status missing = in.waitLayer(6, 60s);
  ASSERT_FALSE(missing);
  EXPECT_EQ(missing.error().operation, "wait for layer 6 of request r1");
  EXPECT_NE(missing.error().detail.find("push layer 3 of request r1"), std::string::npos)
      << missing.error().text();
  EXPECT_TRUE(in.waitLayer(0, 0ms));
}

TEST_P(KvStreamTest, ALostDestinationEndsThePush) {
  KvPush out = push(1);
  ASSERT_TRUE(out.ready(0));
  ASSERT_TRUE(out.wait(60s));
  destination_.close();
  const auto epoch = to_->epoch();
  ASSERT_TRUE(to_->over(epoch, 60s));
  const Status late = out.ready(1);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Code::kPeerLost) << late.error().text();
}

TEST(KvLayersTest, KeepsGroupsApart) {
  // Layers 0 and 2 have a window, and layer 1 has none: two groups.
  const auto at = [](std::uint64_t address) {
    KvLayout layout{.groups = {{.caches = {{.layers = {1}, .head_size = 64}}},
                               {.caches = {{.layers = {0, 2}, .head_size = 64}}, .window = 64}}};
    return *arrangeKv(layout, KvArrangement::kApart, address, 8);
  };
  const auto layers = KvLayers::plan(at(1U << 20U), at(1U << 24U));
  ASSERT_TRUE(layers) << layers.error().text();
  EXPECT_EQ(layers->layers(), (std::vector<std::uint32_t>{0, 1, 2}));
  const std::array blocks{KvBlocks{.source = {0, 1, 2}, .destination = {5, 6, 7}},
                          KvBlocks{.source = {3}, .destination = {4}}};
  const auto selections = layers->select(blocks);
  ASSERT_TRUE(selections) << selections.error().text();
  constexpr std::uint64_t kPage = 16 * 64 * 2;
  const std::array<std::uint64_t, 3> pages{1, 3, 1};
  for (std::size_t i = 0; i < 3; ++i) {
    EXPECT_EQ((*selections)[i].source.blocks.bytes(), pages[i] * 2 * kPage) << i;
    EXPECT_EQ((*selections)[i].destination.blocks.bytes(), pages[i] * 2 * kPage) << i;
  }
  EXPECT_EQ(layers->select({}).error().code, Code::kInvalid);
}

INSTANTIATE_TEST_SUITE_P(Over, KvStreamTest, ::testing::Values("local", "tcp"),
                         [](const auto& backend) { return std::string(backend.param); });

}  // namespace
}  // namespace viaduct
