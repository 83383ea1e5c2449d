// Tests both ends of a link while rails break and come back, over memory of this process.
#include "move/fabric_link.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstring>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "core/sink_testing.h"
#include "move/fabric_backend.h"
#include "support/link_pair.h"

namespace viaduct::move {
namespace {

using testing::LinkPair;

// A rail's device. While it is out, its open endpoints are broken, and no endpoint can be opened.
struct Device {
  bool out = false;
};
Error gone() { return {.code = Code::kDevice, .operation = "device", .detail = "unplugged"}; }

class MemoryEndpoint;
using OpenOnes = std::map<std::uint64_t, const MemoryEndpoint*>;  // indexed by address

class MemoryEndpoint final : public Endpoint {
 public:
  MemoryEndpoint(const Device& device, OpenOnes& all) : device_(device), all_(all) {
    all_[reinterpret_cast<std::uintptr_t>(this)] = this;
    address_ = base::Writer().put(std::uint64_t{reinterpret_cast<std::uintptr_t>(this)}).take();
  }
  ~MemoryEndpoint() override { all_.erase(reinterpret_cast<std::uintptr_t>(this)); }
  MemoryEndpoint(const MemoryEndpoint&) = delete;
  MemoryEndpoint& operator=(const MemoryEndpoint&) = delete;

  const Bytes& address() const override { return address_; }
  int fd() const override { return -1; }
  bool tellsUnarmed() const override { return true; }
  Status join(const Bytes& peer) override {
    peer_ = base::Reader(peer).get<std::uint64_t>();
    return Ok{};
  }
  const std::string& transport() const override { return transport_; }
  const std::string& transportDevices() const override { return transport_; }
  RemoteKey keyOf(std::uint32_t, const Bytes&) override { return this; }
  void retire(std::uint32_t) override {}
  void sweep() override {}
  Posted post(OpKind, std::span<const Piece> pieces, RemoteKey) override {
    if (broken()) return {};
    for (const Piece& one : pieces)
      // NOLINTNEXTLINE(performance-no-int-to-ptr): memory of this process
      std::memcpy(reinterpret_cast<void*>(one.there), one.here, one.bytes);
    return {.pieces = static_cast<std::uint32_t>(pieces.size())};
  }
  Flush flush() override { return {}; }
  bool ended(Flush&) override { return !broken(); }
  void letGo(Flush&) override {}
  bool progress() override { return false; }
  bool arm() override { return false; }
  void disarm() override {}
  std::optional<Error> broken() const override {
    if (device_.out || !all_.contains(peer_)) return gone();
    return std::nullopt;
  }

 private:
  const Device& device_;
  OpenOnes& all_;
  Bytes address_;
  std::uint64_t peer_ = 0;
  const std::string transport_ = "memory";
};

// The ranges that are registered, indexed by their keys.
using Registered = std::map<std::byte, MemoryRange>;

class MemoryRegistration final : public Registration {
 public:
  MemoryRegistration(Registered& all, const MemoryRange& range)
      : Registration(Bytes(1, all.empty() ? std::byte{1} : nextOf(all))), all_(all) {
    all_[key()[0]] = range;
  }
  ~MemoryRegistration() override { all_.erase(key()[0]); }
  MemoryRegistration(const MemoryRegistration&) = delete;
  MemoryRegistration& operator=(const MemoryRegistration&) = delete;

 private:
  static std::byte nextOf(const Registered& all) {
    return static_cast<std::byte>(std::to_integer<int>(all.rbegin()->first) + 1);
  }
  Registered& all_;
};

class MemoryGround final : public Domain {
 public:
  MemoryGround(const Device& device, OpenOnes& all, Registered& registered)
      : device_(device), all_(all), registered_(registered) {}
  Result<std::unique_ptr<Endpoint>> open() const override {
    if (device_.out) return gone();
    return std::unique_ptr<Endpoint>(std::make_unique<MemoryEndpoint>(device_, all_));
  }
  Result<std::unique_ptr<Registration>> add(const MemoryRange& range) const override {
    return std::unique_ptr<Registration>(std::make_unique<MemoryRegistration>(registered_, range));
  }

 private:
  const Device& device_;
  OpenOnes& all_;
  Registered& registered_;
};

// End 0 is the dialer. End 1 posts copies within one piece of memory that both ends have pinned.
class FabricLinkTest : public ::testing::Test {
 protected:
  void join(std::size_t rails, std::size_t others, core::PinRights rights = core::PinRights()) {
    devices_ = {std::vector<Device>(rails), std::vector<Device>(others)};
    settings_.detect = std::chrono::milliseconds(200);
    for (std::size_t end = 0; end < 2; ++end) {
      Fabric fabric{.can = {.name = "memory", .memory = {MemoryKind::kHost}}, .kind = "memory"};
      for (const Device& device : devices_[end]) {
        fabric.names.push_back("rail" + std::to_string(fabric.names.size()));
        fabric.domains.push_back(std::make_unique<MemoryGround>(device, open_, registered_[end]));
      }
      auto opened = FabricBackend::open({settings_, *poller_}, std::move(fabric));
      ASSERT_TRUE(opened) << opened.error().text();
      backends_[end] = *std::move(opened);
    }
    core::LinkSeed seed;
    seed.epoch = 1;
    seed.rights = std::make_shared<core::PinRights>(std::move(rights));
    pair_.emplace(*backends_[0], *backends_[1], *poller_, seed);
    for (const int end : {0, 1}) pair_->pin(end, 0, Segment::host(memory_.data(), memory_.size()));
    ASSERT_TRUE(pair_->run([&] { return pair_->ready() && open_.size() == 2 * channels(); }));
  }
  std::size_t channels() const { return devices_[0].size(); }
  FabricLink& link(std::size_t end) { return static_cast<FabricLink&>(*pair_->ends.at(end).link); }
  core::Rail& rail(std::size_t index) { return *backends_[1]->rails()[index]; }
  bool serves(std::size_t index) { return link(1).servedBy(rail(index)); }

  void post(std::size_t index, std::uint64_t number) {
    ASSERT_EQ(rail(index).post({.kind = OpKind::kWrite,
                                .slice = core::testing::sliceOf(number),
                                .link = &link(1),
                                .ops = {&op_, 1}}),
              1U);
  }
  struct Ended {
    int moved = 0, lost = 0, failed = 0;
  };
  Ended ended(std::uint64_t number) const {
    Ended out;
    for (const auto& one : pair_->done[1])
      if (const auto* failed = std::get_if<core::Failed>(&one); failed == nullptr)
        out.moved += std::get<core::Moved>(one).slice.number == number ? 1 : 0;
      else if (failed->slice.number == number)
        ++(failed->rail_lost ? out.lost : out.failed);
    return out;
  }
  static std::vector<Bytes> keysIn(const Bytes& message) {
    const auto answer = decode(message);
    if (!answer || !std::holds_alternative<KeyAnswer>(*answer)) return {Bytes{}};
    return std::get<KeyAnswer>(*answer).keys;
  }
  bool runUntilEnded(std::uint64_t number) {
    return pair_->run([&] {
      const Ended how = ended(number);
      return how.moved + how.lost + how.failed > 0;
    });
  }

  Settings settings_;
  std::array<std::vector<Device>, 2> devices_;
  OpenOnes open_;
  std::array<Registered, 2> registered_;
  std::unique_ptr<base::Poller> poller_ = std::move(*base::Poller::open());
  std::vector<std::byte> memory_ = std::vector<std::byte>(64);
  const core::Op op_{.local = reinterpret_cast<std::uintptr_t>(memory_.data()),
                     .remote = reinterpret_cast<std::uintptr_t>(memory_.data()) + 32,
                     .bytes = 8};
  std::array<std::unique_ptr<core::Backend>, 2> backends_;
  std::optional<LinkPair> pair_;
};

// The only rail has two channels, because the dialer has two rails.
TEST_F(FabricLinkTest, ARailServesWhileAnyOfItsChannelsIsUp) {
  for (const std::size_t lost : {0U, 1U}) {
    ASSERT_NO_FATAL_FAILURE(join(2, 1));
    devices_[0][lost].out = true;
    ASSERT_TRUE(pair_->run([&] { return open_.size() == 2; }));
    EXPECT_TRUE(serves(0)) << lost;
    for (std::uint64_t number = 1; number <= 4; ++number) {
      post(0, number);
      ASSERT_TRUE(runUntilEnded(number));
      EXPECT_EQ(ended(number).moved, 1) << number << " without the channel " << lost;
    }
    pair_.reset();
  }
}

// Both rails were down, and one is back. The dialer's other device does not open, so the other end
// gets no message about it.
TEST_F(FabricLinkTest, JobsOfADownRailMoveToTheRailThatComesBackFirst) {
  ASSERT_NO_FATAL_FAILURE(join(2, 2));
  for (Device& device : devices_[0]) device.out = true;
  ASSERT_TRUE(pair_->run([&] { return open_.empty(); }));
  ASSERT_TRUE(pair_->ready());
  for (const std::size_t index : {0U, 1U}) post(index, index);
  devices_[0][1].out = false;
  ASSERT_TRUE(runUntilEnded(1));
  EXPECT_EQ(ended(1).moved, 1);
  ASSERT_TRUE(runUntilEnded(0)) << "for ever";
  EXPECT_EQ(ended(0).lost, 1) << "to be posted again on the other";
}

// A peer should request keys again after each fence, but may use the keys it already has.
TEST_F(FabricLinkTest, UnpinFencesAPeerThatEverGotTheKey) {
  ASSERT_NO_FATAL_FAILURE(join(1, 1));
  for (const std::uint32_t slot : {1U, 2U})
    pair_->pin(0, slot, Segment::host(memory_.data(), memory_.size()));
  for (const std::uint32_t slot : {0U, 1U})
    link(0).receive(encode(KeyRequest{.slot = slot, .generation = slot + 1}), {});
  for (const std::uint32_t slot : {0U, 1U}) {
    ASSERT_TRUE(backends_[0]->unpin(slot));
    EXPECT_EQ(open_.size(), 1U) << "closed here, for " << slot;
    ASSERT_TRUE(pair_->run([&] { return open_.size() == 2; })) << "and open again";
  }
  ASSERT_TRUE(backends_[0]->unpin(2));
  EXPECT_EQ(open_.size(), 2U) << "nobody was told of that";
}

TEST_F(FabricLinkTest, APeerGetsNoKeyOfAPinForAnotherSession) {
  ASSERT_NO_FATAL_FAILURE(join(1, 1));
  const Segment memory = Segment::host(memory_.data(), memory_.size());
  ASSERT_TRUE(backends_[0]->pinFor(core::Audience::only(7), 3, memory));
  link(0).receive(encode(KeyRequest{.slot = 3, .generation = 2}), {});
  EXPECT_TRUE(keysIn(pair_->ends[0].sent.back().bytes).empty());
}

// The key of a limited peer allows what its card grants, and ends with the pin, or with the
// session.
TEST_F(FabricLinkTest, ALimitedPeerGetsAKeyOfItsOwn) {
  core::PinRights rights(5, /*limited=*/true);
  rights.grant(0, {.read = true});
  ASSERT_NO_FATAL_FAILURE(join(1, 1, rights));
  const auto ask = [&](std::uint32_t slot, std::uint32_t generation) {
    link(0).receive(encode(KeyRequest{.slot = slot, .generation = generation}), {});
    return keysIn(pair_->ends[0].sent.back().bytes);
  };
  const Registered before = registered_[0];
  pair_->pin(0, 1, Segment::host(memory_.data(), memory_.size()));
  EXPECT_TRUE(ask(1, 2).empty()) << "no right";
  EXPECT_TRUE(ask(0, 2).empty()) << "an earlier pin of that slot";
  const auto keys = ask(0, 1);
  ASSERT_EQ(keys.size(), 1U);
  EXPECT_FALSE(before.contains(keys[0][0])) << "the key of full peers";
  const MemoryRange granted = registered_[0].at(keys[0][0]);
  EXPECT_TRUE(granted.remote_read);
  EXPECT_FALSE(granted.remote_write);
  ASSERT_TRUE(backends_[0]->unpin(0));
  EXPECT_FALSE(registered_[0].contains(keys[0][0])) << "the pin is gone";
}

TEST_F(FabricLinkTest, TheKeysOfALimitedPeerEndWithItsSession) {
  core::PinRights rights(5, /*limited=*/true);
  rights.grant(0, {.read = true, .write = true});
  ASSERT_NO_FATAL_FAILURE(join(1, 1, rights));
  const std::size_t before = registered_[0].size();
  link(0).receive(encode(KeyRequest{.slot = 0, .generation = 1}), {});
  EXPECT_EQ(registered_[0].size(), before + 1);
  pair_.reset();
  EXPECT_EQ(registered_[0].size(), before);
}

TEST_F(FabricLinkTest, AnUnrequestedKeyAnswerIsIgnored) {
  ASSERT_NO_FATAL_FAILURE(join(1, 1));
  link(1).receive(encode(KeyAnswer{.slot = 0, .generation = 1}), {});  // a refusal
  post(0, 0);
  ASSERT_TRUE(runUntilEnded(0));
  EXPECT_EQ(ended(0).moved, 1);
}

TEST_F(FabricLinkTest, AKeyRequestSurvivesTheBreakOfAnotherChannel) {
  ASSERT_NO_FATAL_FAILURE(join(2, 2));
  post(1, 1);
  core::pollAndHandle(rail(1), pair_->done[1]);
  ASSERT_FALSE(pair_->ends[1].sent.empty()) << "it asks";
  link(1).receive(encode(ShutChannel{.channel = 0, .life = 1}), {});
  EXPECT_FALSE(serves(0));
  ASSERT_TRUE(runUntilEnded(1));
  EXPECT_EQ(ended(1).moved, 1);
}

TEST_F(FabricLinkTest, NothingIsOpenedOnceTheLinkIsOver) {
  ASSERT_NO_FATAL_FAILURE(join(1, 1));
  link(1).receive(std::vector<std::byte>(3), {});
  ASSERT_TRUE(pair_->run([&] { return open_.empty(); }));
  link(1).receive(encode(OpenChannel{.life = 9, .address = Bytes(8), .probe = {.key = Bytes(1)}}),
                  {});
  EXPECT_TRUE(open_.empty());
}

}  // namespace
}  // namespace viaduct::move
