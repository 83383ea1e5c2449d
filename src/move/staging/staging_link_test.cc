// Two staging links, joined in memory. Their hosts do hops as copies between byte arrays, when and
// in the order that a test chooses.
#include "move/staging/staging_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <utility>
#include <vector>

#include "core/sink_testing.h"
#include "move/staging/staging_backend.h"

namespace viaduct::move {
namespace {

constexpr std::uint64_t kStorageAt = std::uint64_t{1} << 62U, kHostAt = 1 << 20, kRingAt = 1 << 28;
constexpr std::uint32_t kHostPin = 1, kStoragePin = 2, kRingPin = 3;
constexpr std::uint32_t kGpuPin = 9000;
constexpr std::uint64_t kGpuAt = std::uint64_t{1} << 44U;
constexpr std::uint64_t kBytes = 2 << 20, kChunkBytes = 64 << 10;
constexpr std::uint32_t kChunks = 4;

// The memory of one agent: an array for each pin.
struct Memory {
  struct Area {
    PinInfo info;
    std::vector<std::byte> bytes;
  };
  std::map<std::uint32_t, Area> pins;
  std::uint32_t rings = 0;
  std::uint32_t most_rings = 100, used_rings = 0;
  std::set<std::uint64_t> unsettled;  // chunks, by their addresses divided by kChunkBytes

  void add(std::uint32_t slot, MemoryKind kind, std::uint64_t address, std::uint64_t bytes) {
    pins[slot] = {.info = {.kind = kind, .address = address, .bytes = bytes, .slot = slot},
                  .bytes = std::vector<std::byte>(bytes)};
  }
  std::byte* at(std::uint32_t pin, std::uint64_t address, std::uint64_t bytes) {
    Area& area = pins.at(pin);
    EXPECT_GE(address, area.info.address);
    EXPECT_LE(address + bytes, area.info.address + area.info.bytes);
    return area.bytes.data() + (address - area.info.address);
  }
};

struct PendingHop {
  StagingHost::To to;
  OpKind kind;
  core::OpList list;
  core::Requirement required;
  HopOwner* owner;
  std::uint32_t chunk;
  bool cancelled = false, dropped = false;
};
using PendingHops = std::deque<std::shared_ptr<PendingHop>>;

class FakeHop final : public Hop {
 public:
  explicit FakeHop(std::shared_ptr<PendingHop> hop) : hop_(std::move(hop)) {}
  FakeHop(const FakeHop&) = delete;
  FakeHop& operator=(const FakeHop&) = delete;
  ~FakeHop() override { hop_->dropped = true; }
  void cancel() override { hop_->cancelled = true; }

 private:
  const std::shared_ptr<PendingHop> hop_;
};

class FakeHost final : public StagingHost {
 public:
  FakeHost(Memory& mine, PendingHops& hops) : mine_(mine), hops_(hops) {}
  const PinInfo* ownPin(std::uint32_t slot) const override {
    const auto found = mine_.pins.find(slot);
    return found == mine_.pins.end() ? nullptr : &found->second.info;
  }
  core::PinRight peersRight(std::uint32_t /*slot*/) const override { return right; }
  std::uint64_t ownGeneration(std::uint32_t /*slot*/) const override { return generation; }
  std::uint64_t peerGeneration(std::uint32_t /*slot*/) const override { return generation; }
  ~FakeHost() override { mine_.used_rings -= rings; }
  FakeHost(const FakeHost&) = delete;
  FakeHost& operator=(const FakeHost&) = delete;
  Result<std::optional<StagingRing>> ring(bool /*lent*/,
                                          std::optional<std::uint32_t> gpu) override {
    if (gpu ? refuses_gpu_ring : refuses_ring)
      return Error{.code = Code::kExhausted, .operation = "ring"};
    if (!hasRoom()) return std::optional<StagingRing>();
    ++mine_.used_rings;
    ++rings;
    const std::uint32_t slot = kRingPin + mine_.rings++;
    const std::uint64_t address = kRingAt + slot * chunk_bytes * chunks;
    mine_.add(slot, MemoryKind::kHost, address, chunk_bytes * chunks);
    return std::optional(
        StagingRing{.address = address, .chunk_bytes = chunk_bytes, .chunks = chunks, .pin = slot});
  }
  void giveBack(std::uint32_t pin) override {
    EXPECT_EQ(mine_.pins.erase(pin), 1U);
    --mine_.used_rings;
    --rings;
  }
  bool hasRoom() const override { return mine_.used_rings < mine_.most_rings; }
  Duration deadline() const override { return std::chrono::seconds(30); }
  bool sharesGpus(const core::Requirement& /*required*/) const override { return shares_gpus; }
  bool reachesGpus(OpKind /*kind*/, std::uint32_t /*local_pin*/, std::uint32_t /*remote_pin*/,
                   const core::Requirement& /*required*/) const override {
    return reaches_gpus;
  }
  Result<std::unique_ptr<Hop>> start(To to, OpKind kind, core::OpList list,
                                     const core::Requirement& required, HopOwner& owner,
                                     std::uint32_t chunk) override {
    auto hop = std::make_shared<PendingHop>(PendingHop{.to = to,
                                                       .kind = kind,
                                                       .list = std::move(list),
                                                       .required = required,
                                                       .owner = &owner,
                                                       .chunk = chunk});
    hops_.push_back(hop);
    return std::unique_ptr<Hop>(std::make_unique<FakeHop>(std::move(hop)));
  }
  std::function<bool()> settling() const override { return {}; }
  Clock::time_point now() const override { return time; }
  std::uint64_t newWhole() override { return ++last_whole_; }
  void giveUp(std::uint64_t whole) override { given_up.push_back(whole); }

  std::uint64_t chunk_bytes = kChunkBytes;
  std::uint32_t chunks = kChunks;
  Clock::time_point time = {};
  std::uint32_t rings = 0;  // that it has now
  std::uint64_t generation = 1;
  core::PinRight right = {.read = true, .write = true};  // the peer's to each pin
  std::vector<std::uint64_t> given_up;
  bool refuses_ring = false;
  bool shares_gpus = false, reaches_gpus = true, refuses_gpu_ring = false;

 private:
  Memory& mine_;
  PendingHops& hops_;
  std::uint64_t last_whole_ = 0;
};

// A hop that wrote to storage.
struct Store {
  std::uint64_t whole, place, bytes, ops;
};

// One agent, with its link to the other one.
struct End final : public core::LinkHost {
  Status send(std::span<const std::byte> message, std::span<const int>) override {
    sent.emplace_back(message.begin(), message.end());
    return Ok{};
  }
  void changed() override { broken = link->state().phase == core::LinkState::Phase::kUnusable; }

  void open(bool self = false) {
    auto made = std::make_unique<FakeHost>(memory, hops);
    host = made.get();
    core::LinkSeed seed;
    seed.peer = "other";
    seed.self = self;
    link = std::make_unique<StagingLink>(std::move(seed), rail, *this, std::move(made));
  }
  void knowsStorageOf(const Memory& other) {
    link->addPin({.info = other.pins.at(kStoragePin).info, .key = {}});
  }

  Memory memory;
  PendingHops hops;
  std::vector<Store> stores;
  std::deque<core::Bytes> sent;
  StagingRail rail;
  FakeHost* host = nullptr;
  std::unique_ptr<StagingLink> link;
  core::Completions done;
  bool broken = false;
};

class StagingLinkTest : public ::testing::Test {
 protected:
  void SetUp() override {
    for (End* end : {&a_, &b_}) {
      end->memory.add(kHostPin, MemoryKind::kHost, kHostAt, kBytes);
      end->memory.add(kStoragePin, MemoryKind::kFile, kStorageAt, kBytes);
      end->open();
    }
    a_.knowsStorageOf(b_.memory);
    b_.knowsStorageOf(a_.memory);
  }

  void doHop(End& end, End& other, std::size_t index, std::optional<Error> error = {}) {
    const auto hop = end.hops[index];
    end.hops.erase(end.hops.begin() + static_cast<std::ptrdiff_t>(index));
    if (hop->dropped) return;
    if (hop->cancelled) error = Error{.code = Code::kCancelled, .operation = "hop"};
    std::uint64_t bytes = 0;
    for (const core::Op& op : hop->list.ops) {
      Memory& far = hop->to == StagingHost::To::kStorage ? end.memory : other.memory;
      std::byte* const local = end.memory.at(op.local_pin, op.local, op.bytes);
      std::byte* const remote = far.at(op.remote_pin, op.remote, op.bytes);
      EXPECT_FALSE(end.memory.unsettled.contains(op.local / kChunkBytes));
      EXPECT_FALSE(far.unsettled.contains(op.remote / kChunkBytes));
      if (!error)
        std::memcpy(hop->kind == OpKind::kWrite ? remote : local,
                    hop->kind == OpKind::kWrite ? local : remote, op.bytes);
      bytes += op.bytes;
    }
    const bool storage = hop->to == StagingHost::To::kStorage;
    const bool unsettled = storage && error && failed_hops_are_unsettled_;
    if (unsettled)
      for (const core::Op& op : hop->list.ops) end.memory.unsettled.insert(op.local / kChunkBytes);
    if (storage && hop->kind == OpKind::kWrite)
      end.stores.push_back({.whole = hop->list.whole,
                            .place = hop->list.ops.front().remote,
                            .bytes = bytes,
                            .ops = hop->list.ops.size()});
    hop->owner->hopEnded(
        hop->chunk, {.error = std::move(error),
                     .shares = {{.backend = storage ? "file" : "tcp", .way = "x", .bytes = bytes}},
                     .unsettled = unsettled});
  }

  // One event: a message arrives, a hop ends, or a rail is polled. False: there is none.
  bool step(std::mt19937_64& random) {
    std::vector<std::function<void()>> events;
    for (const auto& ends : {std::pair(&a_, &b_), std::pair(&b_, &a_)}) {
      auto* const one = ends.first;
      auto* const other = ends.second;
      if (!one->sent.empty())
        events.emplace_back([one, other] {
          const core::Bytes message = std::move(one->sent.front());
          one->sent.pop_front();
          if (other->link) other->link->receive(message, {});
        });
      for (std::size_t i = 0; i < one->hops.size(); ++i)
        events.emplace_back([this, one, other, i] {
          std::optional<Error> error;
          if (fail_hop_ != 0 && --fail_hop_ == 0)
            error = Error{.code = Code::kDevice, .detail = "I/O"};
          doHop(*one, *other, i, std::move(error));
        });
      if (one->rail.busy()) events.emplace_back([one] { one->rail.poll(one->done); });
    }
    if (events.empty()) return false;
    events[random() % events.size()]();
    return true;
  }
  void run(std::uint64_t seed = 1) {
    std::mt19937_64 random(seed);
    while (step(random)) {
    }
  }

  std::vector<core::Op> ops(std::uint64_t local, std::uint64_t remote, std::uint32_t local_pin,
                            std::uint32_t remote_pin, std::uint64_t bytes, int count) {
    std::vector<core::Op> out;
    for (int i = 0; i < count; ++i)
      out.push_back({.local = local + static_cast<std::uint64_t>(i) * bytes,
                     .remote = remote + static_cast<std::uint64_t>(i) * bytes,
                     .bytes = bytes,
                     .local_pin = local_pin,
                     .remote_pin = remote_pin});
    return out;
  }
  void post(OpKind kind, std::span<const core::Op> ops, std::uint64_t number = 5) {
    EXPECT_EQ(a_.rail.post({.kind = kind,
                            .slice = core::testing::sliceOf(number),
                            .link = a_.link.get(),
                            .ops = ops}),
              ops.size());
  }
  static void fill(Memory& memory, std::uint32_t pin) {
    std::uint32_t value = 12345;
    for (std::byte& byte : memory.pins.at(pin).bytes)
      byte = static_cast<std::byte>((value = value * 1664525U + 1013904223U) >> 24U);
  }
  // The ends of posts at `a_`, without the shares of stages.
  std::vector<core::Completion> ends() {
    auto out = std::exchange(a_.done, {});
    for (const auto& one : out)
      if (const auto* staged = std::get_if<core::Staged>(&one)) stages_.add(staged->share);
    std::erase_if(out, [](const auto& one) { return std::holds_alternative<core::Staged>(one); });
    return out;
  }

  End a_, b_;
  int fail_hop_ = 0;  // the hop of this number fails
  bool failed_hops_are_unsettled_ = false;
  Path stages_;
};

struct Route {
  OpKind kind;
  bool local_storage, remote_storage;
  std::uint32_t stages;
};

TEST_F(StagingLinkTest, MovesBetweenStorageAndMemoryOfTwoAgents) {
  for (const Route route :
       {Route{OpKind::kWrite, true, false, 2}, Route{OpKind::kWrite, false, true, 2},
        Route{OpKind::kWrite, true, true, 3}, Route{OpKind::kRead, true, false, 2},
        Route{OpKind::kRead, false, true, 2}, Route{OpKind::kRead, true, true, 3}})
    for (std::uint64_t seed = 1; seed < 9; ++seed) {
      const auto local = route.local_storage ? kStoragePin : kHostPin;
      const auto remote = route.remote_storage ? kStoragePin : kHostPin;
      const bool write = route.kind == OpKind::kWrite;
      Memory& from = write ? a_.memory : b_.memory;
      fill(from, write ? local : remote);
      const auto list = ops((route.local_storage ? kStorageAt : kHostAt) + 100,
                            (route.remote_storage ? kStorageAt : kHostAt) + 5000, local, remote,
                            seed % 2 == 0 ? 30'000 : 150'000, 11);
      stages_ = {};
      post(route.kind, list);
      run(seed);
      const auto ended = ends();
      ASSERT_EQ(ended.size(), 1U);
      const auto* moved = std::get_if<core::Moved>(&ended[0]);
      ASSERT_NE(moved, nullptr) << std::get<core::Failed>(ended[0]).why.text();
      EXPECT_EQ(moved->ops, list.size());
      for (const core::Op& op : list)
        ASSERT_EQ(0, std::memcmp(a_.memory.at(op.local_pin, op.local, op.bytes),
                                 b_.memory.at(op.remote_pin, op.remote, op.bytes), op.bytes));
      EXPECT_EQ(stages_.shares.size(), route.stages);
      for (const PathShare& share : stages_.shares)
        EXPECT_TRUE(share.backend != "file" || share.bytes == moved->bytes) << "each byte once";
    }
}

// The bytes go once through a ring on the peer's GPU if that can be, else through host memory.
TEST_F(StagingLinkTest, MovesBetweenGpusThroughARingOnAGpu) {
  for (End* end : {&a_, &b_}) end->memory.add(kGpuPin, MemoryKind::kDevice, kGpuAt, kBytes);
  b_.link->addPin({.info = b_.memory.pins.at(kGpuPin).info, .key = {}});
  a_.link->addPin({.info = b_.memory.pins.at(kGpuPin).info, .key = {}});
  a_.host->shares_gpus = true;
  for (const bool reaches : {true, false}) {
    a_.host->reaches_gpus = reaches;
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
      for (std::uint64_t seed = 1; seed < 5; ++seed) {
        fill(kind == OpKind::kWrite ? a_.memory : b_.memory, kGpuPin);
        const auto list = ops(kGpuAt + 16, kGpuAt + 4096, kGpuPin, kGpuPin, 150'000, 11);
        stages_ = {};
        post(kind, list);
        run(seed);
        ASSERT_TRUE(std::holds_alternative<core::Moved>(ends().at(0)));
        for (const core::Op& op : list)
          ASSERT_EQ(0, std::memcmp(a_.memory.at(op.local_pin, op.local, op.bytes),
                                   b_.memory.at(op.remote_pin, op.remote, op.bytes), op.bytes));
        EXPECT_EQ(stages_.shares.size(), reaches ? 2U : 3U);
        const bool gpu = stages_.text().find(" -> GPU -> ") != std::string::npos;
        EXPECT_EQ(gpu, reaches) << stages_.text();
      }
  }
}

TEST_F(StagingLinkTest, AGpuWithoutRoomForARingIsReachedThroughHostMemory) {
  for (End* end : {&a_, &b_}) end->memory.add(kGpuPin, MemoryKind::kDevice, kGpuAt, kBytes);
  a_.link->addPin({.info = b_.memory.pins.at(kGpuPin).info, .key = {}});
  a_.host->shares_gpus = b_.host->refuses_gpu_ring = true;
  fill(a_.memory, kGpuPin);
  const auto list = ops(kGpuAt, kGpuAt, kGpuPin, kGpuPin, 150'000, 3);
  post(OpKind::kWrite, list);
  run();
  ASSERT_TRUE(std::holds_alternative<core::Moved>(ends().at(0)));
  EXPECT_EQ(stages_.shares.size(), 3U);
  EXPECT_EQ(0, std::memcmp(a_.memory.at(kGpuPin, kGpuAt, 450'000),
                           b_.memory.at(kGpuPin, kGpuAt, 450'000), 450'000));
}

TEST_F(StagingLinkTest, AFailedHopFailsThePostOnceAllItsChunksAreBack) {
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 20);
  for (int hop = 1; hop < 30; ++hop) {
    fail_hop_ = hop;
    post(OpKind::kWrite, list);
    run(static_cast<std::uint64_t>(hop));
    const auto ended = ends();
    ASSERT_EQ(ended.size(), 1U);
    const auto* failed = std::get_if<core::Failed>(&ended[0]);
    ASSERT_NE(failed, nullptr);
    EXPECT_EQ(failed->why.code, Code::kDevice);
    EXPECT_EQ(failed->ops, list.size());
    EXPECT_TRUE(a_.hops.empty() && b_.hops.empty());
  }
  fail_hop_ = 0;
  post(OpKind::kWrite, list);
  run();
  EXPECT_TRUE(std::holds_alternative<core::Moved>(ends().at(0))) << "the next post works";
}

// A GPU or a disk hangs, and finishes its copy later.
TEST_F(StagingLinkTest, AChunkWithAnUnsettledHopIsNotUsedAgain) {
  failed_hops_are_unsettled_ = true;
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 20);
  for (int hop = 1; hop < 30; ++hop) {
    fail_hop_ = hop;
    post(OpKind::kWrite, list);
    post(OpKind::kWrite, list);
    run(static_cast<std::uint64_t>(hop));
    const auto ended = ends();
    ASSERT_EQ(ended.size(), 2U);
    const auto moved = [](const auto& one) { return std::holds_alternative<core::Moved>(one); };
    EXPECT_EQ(std::ranges::count_if(ended, moved), 1) << hop;
  }
  EXPECT_GT(a_.memory.unsettled.size(), 5U);
  EXPECT_GT(b_.memory.unsettled.size(), 5U);
}

TEST_F(StagingLinkTest, CancelEndsEachStageAndThenThePost) {
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 20);
  for (std::uint64_t steps = 0; steps < 60; ++steps) {
    std::mt19937_64 random(steps);
    post(OpKind::kRead, list);
    for (std::uint64_t i = 0; i < steps; ++i) static_cast<void>(step(random));
    a_.rail.cancel(core::testing::sinkOf(5));
    while (step(random)) {
    }
    const auto ended = ends();
    ASSERT_EQ(ended.size(), 1U);
    ASSERT_TRUE(std::holds_alternative<core::Failed>(ended[0]));
    EXPECT_EQ(std::get<core::Failed>(ended[0]).why.code, Code::kCancelled);
  }
}

TEST_F(StagingLinkTest, CloseGivesBackEachPostAndDropsItsHops) {
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 20);
  post(OpKind::kWrite, list, 5);
  post(OpKind::kWrite, list, 6);
  std::mt19937_64 random(1);
  for (int i = 0; i < 25; ++i) static_cast<void>(step(random));
  core::Completions closed;
  a_.link->close(closed);
  b_.link->close(closed);
  EXPECT_EQ(closed.size(), 2U);
  for (const auto* hops : {&a_.hops, &b_.hops})
    for (const auto& hop : *hops) EXPECT_TRUE(hop->dropped);
  EXPECT_FALSE(a_.rail.busy());
}

TEST_F(StagingLinkTest, APeerWithoutMemoryForARingIsAnError) {
  b_.host->refuses_ring = true;
  const auto list = ops(kHostAt, kStorageAt, kHostPin, kStoragePin, 100'000, 3);
  post(OpKind::kWrite, list);
  run();
  const auto ended = ends();
  ASSERT_EQ(ended.size(), 1U);
  EXPECT_EQ(std::get<core::Failed>(ended[0]).why.code, Code::kExhausted);
  EXPECT_EQ(std::get<core::Failed>(ended[0]).why.peer, "other");
}

TEST_F(StagingLinkTest, APostWaitsForMemoryOfARingAndThenNamesTheSetting) {
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 3);
  for (End* const short_of_memory : {&a_, &b_}) {
    short_of_memory->memory.most_rings = 0;
    post(OpKind::kWrite, list);
    run();
    EXPECT_TRUE(ends().empty()) << "it waits";
    short_of_memory->host->time += std::chrono::seconds(23);
    run();
    const auto failed = ends();
    ASSERT_EQ(failed.size(), 1U);
    const Error& why = std::get<core::Failed>(failed[0]).why;
    EXPECT_EQ(why.code, Code::kExhausted);
    EXPECT_NE(why.text().find("VIADUCT_STAGING_MEMORY"), std::string::npos) << why.text();
    EXPECT_EQ(why.peer, short_of_memory == &a_ ? "" : "other");
    post(OpKind::kWrite, list);
    run();
    EXPECT_TRUE(ends().empty());
    short_of_memory->memory.most_rings = 100;
    run();
    EXPECT_TRUE(std::holds_alternative<core::Moved>(ends().at(0)));
    for (End* const end : {&a_, &b_}) end->link->recallRings();
    run();
  }
}

// Others want the memory of both rings, at any moment of a transfer.
TEST_F(StagingLinkTest, GivesItsRingsBackBetweenTwoChunksAndGoesOn) {
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 20);
  for (std::uint64_t steps = 0; steps < 60; steps += 3) {
    std::mt19937_64 random(steps);
    auto& bytes = a_.memory.pins.at(kStoragePin).bytes;
    std::memset(bytes.data(), static_cast<int>(steps + 1), bytes.size());
    post(OpKind::kWrite, list);
    for (std::uint64_t i = 0; i < steps; ++i) static_cast<void>(step(random));
    const std::uint32_t pins = a_.memory.rings + b_.memory.rings;
    a_.link->recallRings();
    b_.link->recallRings();
    while (step(random)) {
    }
    ASSERT_TRUE(std::holds_alternative<core::Moved>(ends().at(0))) << steps;
    ASSERT_EQ(0, std::memcmp(a_.memory.at(kStoragePin, kStorageAt, 2'000'000),
                             b_.memory.at(kStoragePin, kStorageAt, 2'000'000), 2'000'000));
    EXPECT_LE(a_.host->rings, 1U);
    EXPECT_LE(b_.host->rings, 1U);
    if (steps > 10) {
      EXPECT_GT(a_.memory.rings + b_.memory.rings, pins) << "it got new rings";
    }
  }
}

TEST_F(StagingLinkTest, IdleRingsAreGivenBackAtOnce) {
  const auto list = ops(kStorageAt, kStorageAt, kStoragePin, kStoragePin, 100'000, 3);
  post(OpKind::kWrite, list);
  run();
  ASSERT_EQ(a_.host->rings + b_.host->rings, 2U);
  a_.link->recallRings();
  b_.link->recallRings();
  run();
  EXPECT_EQ(a_.host->rings + b_.host->rings, 0U);
}

TEST_F(StagingLinkTest, APeerThatKeepsARecalledRingLosesItsSession) {
  b_.link->receive(encode(RingRequest{}), {});
  b_.rail.poll(b_.done);
  b_.link->recallRings();
  b_.host->time += std::chrono::seconds(14);
  b_.link->recallRings();
  EXPECT_FALSE(b_.broken);
  b_.host->time += std::chrono::seconds(2);
  b_.link->recallRings();
  EXPECT_TRUE(b_.broken);
}

// Otherwise a peer could make this end store rings for ever new GPUs.
TEST_F(StagingLinkTest, IgnoresRingsThatItHasNotAskedFor) {
  for (const RingPlace place : {RingPlace{}, RingPlace{7}})
    a_.link->receive(encode(RingAnswer{.place = place,
                                       .address = kHostAt,
                                       .chunk_bytes = kChunkBytes,
                                       .chunks = kChunks,
                                       .pin = kHostPin}),
                     {});
  post(OpKind::kWrite, ops(kHostAt, kStorageAt, kHostPin, kStoragePin, 1000, 1));
  a_.rail.poll(a_.done);
  ASSERT_EQ(a_.sent.size(), 1U);
  EXPECT_TRUE(std::holds_alternative<RingRequest>(*decodeStaging(a_.sent.front())));
}

// A peer that sends what the protocol forbids gets an error, and reaches nothing.
TEST_F(StagingLinkTest, ReachesOnlyPinnedStorage) {
  b_.link->receive(encode(RingRequest{}), {});
  b_.rail.poll(b_.done);
  b_.sent.clear();
  const auto asked = [&](StorageRequest request) {
    b_.link->receive(encode(request), {});
    b_.rail.poll(b_.done);
    EXPECT_TRUE(b_.hops.empty());
    if (b_.sent.empty()) return std::optional<Error>();
    const auto message = decodeStaging(b_.sent.front());
    b_.sent.clear();
    return std::get<StorageAnswer>(*message).error;
  };
  const StoragePiece good{
      .pin = kStoragePin, .place = 0, .address = kStorageAt, .bytes = 4096, .generation = 1};
  const auto with = [&](auto change) {
    StoragePiece piece = good;
    change(piece);
    return asked({.chunk = 0, .pieces = {good, piece}});
  };
  EXPECT_EQ(with([](auto& p) { p.pin = kHostPin; })->code, Code::kDenied);
  EXPECT_EQ(with([](auto& p) { p.pin = 99; })->code, Code::kDenied);
  EXPECT_EQ(with([](auto& p) { p.generation = 0; })->code, Code::kDenied) << "an earlier pin";
  EXPECT_EQ(with([](auto& p) { p.address -= 1; })->code, Code::kDenied);
  EXPECT_EQ(with([](auto& p) { p.address += kBytes - 4095; })->code, Code::kDenied);
  EXPECT_EQ(with([](auto& p) { p.bytes = ~std::uint64_t{0}; })->code, Code::kDenied);
  EXPECT_EQ(with([](auto& p) { p.place = kChunks * kChunkBytes - 4095; })->code, Code::kProtocol);
  EXPECT_FALSE(asked({.chunk = kChunks, .pieces = {good}})) << "no such chunk: no answer";
  b_.memory.pins.at(kStoragePin).info.access = MemoryAccess::kReadOnly;
  EXPECT_EQ(asked({.chunk = 0, .store = true, .pieces = {good}})->code, Code::kDenied);
}

TEST_F(StagingLinkTest, ReachesNoPinThatIsReleasedAfterTheRequest) {
  b_.link->receive(encode(RingRequest{}), {});
  b_.rail.poll(b_.done);
  b_.sent.clear();
  b_.link->receive(
      encode(StorageRequest{
          .chunk = 0,
          .pieces = {{.pin = kStoragePin, .address = kStorageAt, .bytes = 4096, .generation = 1}}}),
      {});
  b_.memory.pins.erase(kStoragePin);
  b_.rail.poll(b_.done);
  EXPECT_TRUE(b_.hops.empty());
  ASSERT_EQ(b_.sent.size(), 1U);
  EXPECT_EQ(std::get<StorageAnswer>(*decodeStaging(b_.sent.front())).error->code, Code::kDenied);
}

// One copy of packed pieces takes the lock for a bounded time, whatever the peer asks for.
TEST_F(StagingLinkTest, CopiesNoMorePackedBytesThanTheLimit) {
  b_.host->chunks = 64;
  b_.link->receive(encode(RingRequest{}), {});
  b_.rail.poll(b_.done);
  b_.sent.clear();
  const auto asked = [&](std::vector<StoragePiece> pieces) {
    b_.link->receive(encode(StorageRequest{.chunk = 0, .pieces = std::move(pieces)}), {});
    b_.rail.poll(b_.done);
    return !b_.hops.empty();
  };
  const std::uint64_t half = kMostPacked / 2;
  const StoragePiece first{
      .pin = kHostPin, .place = 0, .address = kHostAt, .bytes = half, .generation = 1};
  const StoragePiece second{
      .pin = kHostPin, .place = half, .address = kHostAt + half, .bytes = half, .generation = 1};
  EXPECT_FALSE(asked({first, first})) << "twice to one place";
  EXPECT_FALSE(asked({second, first})) << "out of order";
  EXPECT_FALSE(
      asked({{.pin = kHostPin, .address = kHostAt, .bytes = kMostPacked + 1, .generation = 1}}));
  for (const core::Bytes& message : b_.sent)
    EXPECT_EQ(std::get<StorageAnswer>(*decodeStaging(message)).error->code, Code::kProtocol);
  EXPECT_EQ(b_.sent.size(), 3U);
  EXPECT_TRUE(asked({first, second}));
}

TEST_F(StagingLinkTest, AListAboveItsLimitMakesTheLinkUnusable) {
  StorageAnswer answer;
  answer.shares.resize(16'000);
  a_.link->receive(encode(answer), {});
  const core::LinkState state = a_.link->state();
  EXPECT_EQ(state.phase, core::LinkState::Phase::kUnusable);
  EXPECT_NE(state.text.find("16000 exceeds the limit of 128"), std::string::npos) << state.text;
}

// Each rail that the peer names stays in the path of the transfer.
TEST_F(StagingLinkTest, APeerNamesABoundedNumberOfRails) {
  const auto list = ops(kHostAt, kStorageAt, kHostPin, kStoragePin, kChunkBytes, kChunks);
  post(OpKind::kRead, list);
  a_.rail.poll(a_.done);
  a_.link->receive(
      encode(RingAnswer{
          .address = kRingAt, .chunk_bytes = kChunkBytes, .chunks = kChunks, .pin = kRingPin}),
      {});
  a_.rail.poll(a_.done);
  std::size_t named = 0;
  for (std::uint32_t chunk = 0; chunk < kChunks; ++chunk) {
    EXPECT_EQ(a_.link->state().phase, core::LinkState::Phase::kReady) << named;
    StorageAnswer answer{.chunk = chunk};
    for (std::size_t i = 0; i < kMostShares / 3; ++i)
      answer.shares.push_back({.backend = "file", .rail = std::to_string(named++)});
    a_.link->receive(encode(answer), {});
  }
  EXPECT_EQ(a_.link->state().phase, core::LinkState::Phase::kUnusable);
}

class StagingObjectTest : public StagingLinkTest {
 protected:
  static constexpr std::uint64_t kMiB = 1 << 20, kObjectAt = kStorageAt + kBytes,
                                 kLargeAt = kHostAt + kBytes;
  static constexpr std::uint32_t kObjectPin = 200, kLargePin = 201;

  // Both agents get an object, and host memory of its size.
  void setObjects(std::uint64_t bytes) {
    for (End* end : {&a_, &b_}) {
      end->host->chunk_bytes = 2 * kMiB;
      end->host->chunks = 8;
      end->memory.add(kObjectPin, MemoryKind::kObject, kObjectAt, bytes);
      end->memory.add(kLargePin, MemoryKind::kHost, kLargeAt, bytes);
      fill(end->memory, kLargePin);
    }
    a_.link->addPin({.info = b_.memory.pins.at(kObjectPin).info, .key = {}});
  }
  // Blocks of `block` bytes, from large memory to the object, the last one first.
  std::vector<core::Op> blocks(std::uint64_t bytes, std::uint64_t block, bool to_local) {
    std::vector<core::Op> out;
    for (std::uint64_t at = 0; at < bytes; at += block)
      out.insert(out.begin(), {.local = (to_local ? kObjectAt : kLargeAt) + at,
                               .remote = (to_local ? kLargeAt : kObjectAt) + at,
                               .bytes = std::min(block, bytes - at),
                               .local_pin = to_local ? kObjectPin : kLargePin,
                               .remote_pin = to_local ? kLargePin : kObjectPin});
    return out;
  }
  static std::optional<Code> failure(const std::vector<core::Completion>& ended) {
    EXPECT_EQ(ended.size(), 1U);
    const auto* const failed = std::get_if<core::Failed>(&ended.at(0));
    return failed == nullptr ? std::nullopt : std::optional(failed->why.code);
  }
};

TEST_F(StagingObjectTest, WritesALargeObjectInEqualPartsOfOneNumber) {
  constexpr std::uint64_t kObject = 19 * kMiB + 77;
  setObjects(kObject);
  for (const bool to_local : {false, true})
    for (std::uint64_t seed = 1; seed < 4; ++seed) {
      End& owner = to_local ? a_ : b_;
      const auto list = blocks(kObject, 300'000, to_local);
      post(to_local ? OpKind::kRead : OpKind::kWrite, list);
      run(seed);
      EXPECT_EQ(failure(ends()), std::nullopt);
      EXPECT_EQ(owner.memory.pins.at(kObjectPin).bytes,
                (to_local ? b_ : a_).memory.pins.at(kLargePin).bytes);
      auto stores = std::exchange(owner.stores, {});
      std::ranges::sort(stores, {}, &Store::place);
      ASSERT_EQ(stores.size(), 3U);
      std::uint64_t place = kObjectAt;
      for (const Store& store : stores) {
        EXPECT_EQ(store.place, place);
        EXPECT_EQ(store.bytes, std::min(8 * kMiB, kObjectAt + kObject - place));
        EXPECT_NE(store.whole, 0U);
        EXPECT_EQ(store.whole, stores[0].whole);
        place += store.bytes;
      }
      EXPECT_EQ(std::exchange(owner.host->given_up, {}), std::vector{stores[0].whole});
    }
}

TEST_F(StagingObjectTest, WritesASmallObjectInOneHop) {
  setObjects(3 * kMiB);
  const auto list = blocks(3 * kMiB, 100'000, false);
  post(OpKind::kWrite, list);
  run();
  EXPECT_EQ(failure(ends()), std::nullopt);
  ASSERT_EQ(b_.stores.size(), 1U);
  EXPECT_EQ(b_.stores[0].whole, 0U);
  EXPECT_EQ(b_.stores[0].ops, 1U) << "neighbours are asked for as one piece";
  EXPECT_TRUE(b_.host->given_up.empty());
}

TEST_F(StagingObjectTest, RefusesAPartOfAnObject) {
  setObjects(3 * kMiB);
  auto list = blocks(3 * kMiB, 1 << 20, false);
  list.erase(list.begin() + 1);
  post(OpKind::kWrite, list);
  run();
  EXPECT_EQ(failure(ends()), Code::kUnsupported);
  EXPECT_TRUE(b_.stores.empty());
}

TEST_F(StagingObjectTest, GivesUpAnObjectThatItDoesNotFinish) {
  constexpr std::uint64_t kObject = 40 * kMiB;
  setObjects(kObject);
  const auto list = blocks(kObject, kMiB, false);
  fail_hop_ = 4;
  post(OpKind::kWrite, list);
  run();
  EXPECT_EQ(failure(ends()), Code::kDevice);
  EXPECT_EQ(std::exchange(b_.host->given_up, {}).size(), 1U);

  post(OpKind::kWrite, list);
  std::mt19937_64 random(1);
  b_.stores.clear();
  while (b_.stores.empty()) ASSERT_TRUE(step(random));
  core::Completions closed;
  b_.link->close(closed);
  EXPECT_EQ(b_.host->given_up.size(), 1U) << "the peer was lost in the middle";
}

// Four chunks that lie together become free only if the job behind does not take each free one.
TEST_F(StagingObjectTest, ALaterTransferDoesNotTakeTheChunksOfAPart) {
  setObjects(8 * kMiB);
  const auto files = ops(kHostAt, kStorageAt, kHostPin, kStoragePin, kBytes, 1);
  const auto object = blocks(8 * kMiB, kMiB, false);
  for (std::uint64_t number = 1; number <= 8; ++number) post(OpKind::kWrite, files, number);
  post(OpKind::kWrite, object, 9);
  for (std::uint64_t number = 10; number <= 29; ++number) post(OpKind::kWrite, files, number);
  run();
  std::vector<std::uint32_t> order;
  for (const auto& one : ends()) order.push_back(std::get<core::Moved>(one).slice.number);
  ASSERT_EQ(order.size(), 29U);
  const auto place = std::ranges::find(order, std::uint32_t{9}) - order.begin();
  EXPECT_LT(place, 20) << "it waits for those before it, and not for all behind it";
}

TEST_F(StagingObjectTest, ARingThatIsSmallerThanAPartIsAnError) {
  setObjects(9 * kMiB);
  b_.host->chunks = 3;
  const auto list = blocks(9 * kMiB, kMiB, false);
  post(OpKind::kWrite, list);
  run();
  EXPECT_EQ(failure(ends()), Code::kExhausted);
}

// Two chunks are in the first stage for 10 ms, then one for 5 ms more: 15 ms, not 25.
TEST_F(StagingLinkTest, CountsTheTimeInWhichAStageHasWork) {
  using namespace std::chrono_literals;
  const auto list = ops(kStorageAt, kHostAt, kStoragePin, kHostPin, kChunkBytes, 2);
  post(OpKind::kWrite, list);
  a_.rail.poll(a_.done);
  ASSERT_EQ(a_.hops.size(), 2U);
  for (const auto wait : {10ms, 5ms}) {
    a_.host->time += wait;
    doHop(a_, b_, 0);
    a_.rail.poll(a_.done);
  }
  a_.host->time += 7ms;
  run();
  ends();
  ASSERT_EQ(stages_.shares.size(), 2U);
  EXPECT_EQ(stages_.shares[0].busy_ns, 15'000'000U);
  EXPECT_EQ(stages_.shares[1].busy_ns, 12'000'000U) << "the first chunk's move took 5 + 7 ms";
}

// A chunk of the own ring has no stage that would fill it.
TEST(StagingLinkWithItself, LeavesItsOwnMemoryAndItsStorageToTheBackends) {
  End end;
  end.memory.add(kHostPin, MemoryKind::kHost, kHostAt, kBytes);
  end.memory.add(kStoragePin, MemoryKind::kFile, kStorageAt, kBytes);
  end.open(true);
  end.link->addPin({.info = end.memory.pins.at(kStoragePin).info, .key = {}});
  EXPECT_FALSE(end.link->reaches(OpKind::kWrite, kHostPin, kStoragePin));
  EXPECT_FALSE(end.link->reaches(OpKind::kRead, kStoragePin, kHostPin));
  EXPECT_TRUE(end.link->reaches(OpKind::kWrite, kStoragePin, kStoragePin));
}

TEST(StagingLinkWithItself, MovesFromFileToFileThroughOneRing) {
  End end;
  end.memory.add(kStoragePin, MemoryKind::kFile, kStorageAt, kBytes);
  end.memory.add(kStoragePin + 100, MemoryKind::kFile, kStorageAt + 2 * kBytes, kBytes);
  end.open(true);
  for (const auto pin : {kStoragePin, kStoragePin + 100})
    end.link->addPin({.info = end.memory.pins.at(pin).info, .key = {}});
  std::fill(end.memory.pins.at(kStoragePin).bytes.begin(),
            end.memory.pins.at(kStoragePin).bytes.end(), std::byte{7});
  const std::vector<core::Op> list{{.local = kStorageAt,
                                    .remote = kStorageAt + 2 * kBytes,
                                    .bytes = 1 << 20,
                                    .local_pin = kStoragePin,
                                    .remote_pin = kStoragePin + 100}};
  end.rail.post({.kind = OpKind::kWrite,
                 .slice = core::testing::sliceOf(1),
                 .link = end.link.get(),
                 .ops = list});
  while (end.rail.busy() || !end.hops.empty()) {
    end.rail.poll(end.done);
    if (end.hops.empty()) continue;
    const auto hop = end.hops.front();
    end.hops.pop_front();
    for (const core::Op& op : hop->list.ops) {
      std::byte* const ring = end.memory.at(op.local_pin, op.local, op.bytes);
      std::byte* const file = end.memory.at(op.remote_pin, op.remote, op.bytes);
      const bool write = hop->kind == OpKind::kWrite;
      std::memcpy(write ? file : ring, write ? ring : file, op.bytes);
    }
    hop->owner->hopEnded(hop->chunk, {});
  }
  EXPECT_TRUE(std::holds_alternative<core::Moved>(end.done.back()));
  const auto& bytes = end.memory.pins.at(kStoragePin + 100).bytes;
  EXPECT_EQ(std::count(bytes.begin(), bytes.end(), std::byte{7}), 1 << 20);
  EXPECT_TRUE(end.sent.empty()) << "no message to itself";
}

}  // namespace
}  // namespace viaduct::move
