// KV caches that move layer by layer between agents, as parcels.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <memory>
#include <mutex>
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

constexpr std::uint32_t kLayers = 8, kTokens = 128;
constexpr std::uint64_t kPoolBytes = 1U << 20U;

// The shape of the cache at one end.
struct Shape {
  std::uint32_t tp = 1, block_tokens = 16;
  KvOrder order = KvOrder::kHnd;
  KvArrangement arrangement = KvArrangement::kApart;

  std::uint32_t blocks() const { return kTokens / block_tokens; }
};

KvLayout layoutOf(const Shape& shape, std::uint32_t rank, std::uint64_t address) {
  std::vector<std::uint32_t> layers(kLayers);
  std::iota(layers.begin(), layers.end(), 0);
  const KvLayout layout{.groups = {{.caches = {{.layers = layers, .kv_heads = 4, .head_size = 8}},
                                    .block_tokens = shape.block_tokens}},
                        .order = shape.order,
                        .tp = shape.tp,
                        .rank = rank};
  auto arranged = arrangeKv(layout, shape.arrangement, address, 2 * shape.blocks());
  EXPECT_TRUE(arranged) << arranged.error().text();
  EXPECT_LE(kvExtent(*arranged).bytes, kPoolBytes);
  return *std::move(arranged);
}

// Chooses blocks for the request, anywhere in the pool.
Indices someBlocks(const Shape& shape, std::mt19937& random) {
  std::vector<std::uint32_t> all(2 * shape.blocks());
  std::iota(all.begin(), all.end(), 0);
  std::shuffle(all.begin(), all.end(), random);
  all.resize(shape.blocks());
  return Indices(std::move(all));
}

// An agent with a pool of KV blocks.
struct KvAgent {
  KvAgent(const std::string& name, const char* backend, const std::string& fake = "")
      : agent(*Agent::open({.name = name,
                            .listen = {"127.0.0.1:0"},
                            .insecure = true,
                            .backends = {backend},
                            .detect = 10min,
                            .grace = 60s,
                            .others = {{"VIADUCT_FAKE", fake}}})),
        pin(*agent.allocate(kPoolBytes, {.label = "kv"})) {
    std::mt19937 random(1);
    for (std::byte& byte : pin->bytes()) byte = static_cast<std::byte>(random());
  }
  Peer meet(KvAgent& other) {
    auto peer = agent.importCard(other.agent.exportCard());
    EXPECT_TRUE(peer && peer->ready(60s));
    return *peer;
  }
  std::uint64_t address() const { return pin->info().address; }
  std::vector<std::byte> bytes() {
    agent.poll();
    const auto bytes = pin->bytes();
    return {bytes.begin(), bytes.end()};
  }
  void clear() { std::ranges::fill(pin->bytes(), std::byte{0}); }

  Agent agent;
  std::optional<Pin> pin;
};

// A request whose cache lies at two ranks of a source, and moves to one rank of a destination.
class KvPartsTest : public ::testing::TestWithParam<const char*> {
 protected:
  // Plans between two shapes, for a request with other blocks for each seed.
  void use(const Shape& source, const Shape& destination, std::uint32_t seed) {
    std::mt19937 random(seed);
    table_ = {someBlocks(source, random)};
    Indices in_part(source.blocks());
    std::iota(in_part.begin(), in_part.end(), 0U);
    here_ = someBlocks(destination, random);
    into_.clear();
    from_.clear();
    to_ = layoutOf(destination, 0, destination_.address());
    for (std::uint32_t rank = 0; rank < source.tp; ++rank) {
      from_.push_back(layoutOf(source, rank, sources_[rank]->address()));
      const auto layers = KvLayers::plan(from_.back(), to_);
      ASSERT_TRUE(layers) << layers.error().text();
      const std::array blocks{KvBlocks{.source = in_part, .destination = here_}};
      const auto into = layers->into(blocks);
      ASSERT_TRUE(into) << into.error().text();
      into_.insert(into_.end(), into->begin(), into->end());
    }
    ASSERT_EQ(into_.size(), source.tp * kLayers);
  }
  // Reads with one transfer from each rank, as KvReshard plans it.
  std::vector<std::byte> readAtOnce() {
    destination_.clear();
    const std::array blocks{KvBlocks{.source = table_[0], .destination = here_}};
    for (std::size_t rank = 0; rank < from_.size(); ++rank) {
      const auto taken = KvReshard::plan(from_[rank], to_)->select(blocks);
      auto transfer =
          destination_.agent.plan(OpKind::kRead, peers_[rank], taken->destination, taken->source);
      EXPECT_TRUE(transfer && transfer->post() && transfer->wait(60s));
    }
    return destination_.bytes();
  }
  std::vector<PublishedPart> pages(std::size_t rank) {
    auto pages = kvPages(from_[rank], table_);
    EXPECT_TRUE(pages) << pages.error().text();
    return *std::move(pages);
  }
  // Publishes one parcel from all ranks. No part is ready yet.
  std::vector<PublishedParcel> publish(const std::string& name) {
    std::vector<ParcelPart> all;
    for (const PartInto& part : into_) all.push_back(part.part);
    std::vector<PublishedParcel> out;
    for (std::size_t rank = 0; rank < from_.size(); ++rank) {
      PublishOptions options{.version = 1, .parts = all, .takers = 1};
      if (rank != 0) options.owner = at_owner_;
      auto parcel = sources_[rank]->agent.publish(name, std::move(options));
      EXPECT_TRUE(parcel) << parcel.error().text();
      out.push_back(*std::move(parcel));
    }
    return out;
  }
  ParcelFetch fetch(const std::string& name) {
    auto fetch = destination_.agent.fetch(peers_[0], name, {.into = into_});
    EXPECT_TRUE(fetch) << fetch.error().text();
    return *std::move(fetch);
  }

  std::array<std::unique_ptr<KvAgent>, 2> sources_{std::make_unique<KvAgent>("rank 0", GetParam()),
                                                   std::make_unique<KvAgent>("rank 1", GetParam())};
  KvAgent destination_{"destination", GetParam()};
  std::array<Peer, 2> peers_{destination_.meet(*sources_[0]), destination_.meet(*sources_[1])};
  Peer at_owner_ = sources_[1]->meet(*sources_[0]);
  std::vector<KvLayout> from_;
  KvLayout to_;
  std::array<Indices, 1> table_;
  Indices here_;
  std::vector<PartInto> into_;
};

TEST_P(KvPartsTest, LayersInAnyOrderEqualTransfersOfAll) {
  for (const auto& peer : peers_) ASSERT_TRUE(peer.waitPin("kv", 60s));
  const std::array shapes{Shape{}, Shape{.order = KvOrder::kNhd},
                          Shape{.block_tokens = 64, .arrangement = KvArrangement::kRows},
                          Shape{.tp = 2, .arrangement = KvArrangement::kTogether}};
  std::uint32_t seed = 0;
  for (const Shape& source : shapes)
    for (Shape destination : shapes) {
      destination.tp = 1;
      use(source, destination, ++seed);
      const auto expected = readAtOnce();
      ASSERT_NE(expected, std::vector<std::byte>(kPoolBytes));
      destination_.clear();
      const std::string name = "request " + std::to_string(seed);
      const ParcelFetch in = fetch(name);
      std::vector<PublishedParcel> out = publish(name);
      {
        std::vector<std::jthread> ranks;
        for (std::size_t rank = 0; rank < from_.size(); ++rank)
          ranks.emplace_back([&, rank] {
            auto layers = pages(rank);
            std::shuffle(layers.begin(), layers.end(), std::mt19937(7));
            for (PublishedPart& layer : layers) EXPECT_TRUE(out[rank].ready(std::move(layer)));
          });
      }
      const Status whole = in.wait(60s);
      ASSERT_TRUE(whole) << whole.error().text();
      ASSERT_EQ(destination_.bytes(), expected) << seed;
      for (const PublishedParcel& parcel : out)
        EXPECT_EQ(parcel.wait(60s)->outcome, ParcelOutcome::kWhole);
    }
}

TEST_P(KvPartsTest, ALayerCanBeUsedBeforeTheOthers) {
  for (const auto& peer : peers_) ASSERT_TRUE(peer.waitPin("kv", 60s));
  use({}, {}, 1);
  const auto expected = readAtOnce();
  destination_.clear();
  const ParcelFetch in = fetch("r1");
  std::vector<PublishedParcel> out = publish("r1");
  ASSERT_TRUE(out[0].ready(pages(0)[5]));
  ASSERT_TRUE(in.waitPart({.component = 5}, 60s));
  EXPECT_EQ(in.missing().size(), kLayers - 1);
  EXPECT_EQ(in.waitPart({.component = 4}, 0ms).error().code, Code::kTimeout);
  const auto now = destination_.bytes();
  std::uint64_t moved = 0;
  for (std::size_t i = 0; i < now.size(); ++i) {
    if (now[i] == std::byte{0}) continue;
    ++moved;
    EXPECT_EQ(now[i], expected[i]);
  }
  EXPECT_GT(moved, std::uint64_t{kTokens} * 4 * 8 * 2 * 2 * 9 / 10);  // some bytes are zeros
  ASSERT_TRUE(out[0].withdraw());
  EXPECT_EQ(in.waitPart({.component = 4}, 60s).error().code, Code::kCancelled);
  EXPECT_TRUE(in.waitPart({.component = 5}, 0ms));
}

TEST_P(KvPartsTest, AFailedLayerOfOneRankEndsAllAndIsNamed) {
  use({.tp = 2}, {}, 1);
  const ParcelFetch in = fetch("r1");
  std::vector<PublishedParcel> out = publish("r1");
  auto first = pages(0), second = pages(1);
  for (PublishedPart& layer : first) ASSERT_TRUE(out[0].ready(std::move(layer)));
  ASSERT_TRUE(out[1].ready(std::move(second[0])));
  ASSERT_TRUE(in.waitPart({.rank = 1, .component = 0}, 60s));
  ASSERT_TRUE(sources_[1]->pin->release());
  static_cast<void>(out[1].ready(std::move(second[3])));
  const Status failed = in.wait(60s);
  ASSERT_FALSE(failed);
  EXPECT_EQ(in.end()->part, (ParcelPart{.rank = 1, .component = 3})) << failed.error().text();
  for (const PublishedParcel& parcel : out) EXPECT_TRUE(parcel.wait(60s));
}

INSTANTIATE_TEST_SUITE_P(Over, KvPartsTest, ::testing::Values("local", "tcp"),
                         [](const auto& backend) { return std::string(backend.param); });

// Parts move over one rail, which moves nothing until the test lets it. All parts have equal bytes.
class QueuedPartsTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (std::uint32_t layer = 0; layer < kLayers; ++layer) parts_.push_back({.component = layer});
    fake::interruption.with([this](auto& one) { one = [this] { return moves_.load(); }; });
  }
  void TearDown() override {
    fake::interruption.with([](auto& one) { one = nullptr; });
  }
  static Selection all(const Pin& pin) {
    return {*Blocks::strided({.base = pin.info().address, .bytes = pin.size(), .count = 1}), {}};
  }
  ParcelFetch fetch() {
    const auto place = [this](const PartOffer& offer) -> Result<PartInto> {
      const std::lock_guard lock(mutex_);
      begun_.push_back(offer.part);
      return PartInto{.part = offer.part, .into = all(into_)};
    };
    auto fetch = destination_.agent.fetch(peer_, "r1", {.place = place});
    EXPECT_TRUE(fetch) << fetch.error().text();
    return *std::move(fetch);
  }
  // Makes the layers ready from the last to the first. Returns once the fetch knows of all layers.
  PublishedParcel publishFor(const ParcelFetch& in) {
    auto parcel = source_.agent.publish("r1", {.version = 1, .parts = parts_});
    EXPECT_TRUE(parcel) << parcel.error().text();
    while (in.missing().empty()) destination_.agent.poll();  // until the offer is here
    for (auto part = parts_.rbegin(); part != parts_.rend(); ++part)
      EXPECT_TRUE(parcel->ready({*part, all(from_)}));
    // A note comes after the frames of the parcel.
    EXPECT_TRUE(back_.note("all are ready"));
    EXPECT_TRUE(destination_.agent.waitNote(60s));
    return *std::move(parcel);
  }
  std::vector<ParcelPart> begun() {
    const std::lock_guard lock(mutex_);
    std::ranges::sort(begun_);
    return begun_;
  }

  static constexpr std::uint64_t kPart = 20U << 20U;
  KvAgent source_{"source", "fake", "rails=1"}, destination_{"destination", "fake", "rails=1"};
  Pin from_ = *source_.agent.allocate(kPart), into_ = *destination_.agent.allocate(kPart);
  Peer peer_ = destination_.meet(source_), back_ = source_.meet(destination_);
  std::vector<ParcelPart> parts_;
  std::atomic<bool> moves_{false};
  std::mutex mutex_;
  std::vector<ParcelPart> begun_;
};

TEST_F(QueuedPartsTest, FewPartsRunAtOnceAndTheFirstOnesFirst) {
  const ParcelFetch in = fetch();
  const PublishedParcel out = publishFor(in);
  while (begun().size() < 2) destination_.agent.poll();
  // Two threads may begin the two parts, so begun() sorts them.
  EXPECT_EQ(begun(), (std::vector<ParcelPart>{{.component = 6}, {.component = 7}}));
  moves_ = true;
  const Status whole = in.wait(60s);
  ASSERT_TRUE(whole) << whole.error().text();
  EXPECT_EQ(begun(), parts_);
}

TEST_F(QueuedPartsTest, ACancelEndsThoseThatWait) {
  ParcelFetch in = fetch();
  const PublishedParcel out = publishFor(in);
  while (begun().size() < 2) destination_.agent.poll();
  in.cancel("the user has left");
  moves_ = true;
  EXPECT_EQ(in.wait(60s).error().code, Code::kCancelled);
  EXPECT_EQ(in.end()->outcome, ParcelOutcome::kCancelled);
  EXPECT_EQ(begun().size(), 2U);
}

}  // namespace
}  // namespace viaduct
