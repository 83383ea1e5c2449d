// The addresses that a table of pins gives to storage, with a backend that accepts everything.
#include <gtest/gtest.h>
#include <viaduct/agent.h>

#include <algorithm>
#include <string>
#include <vector>

#include "agent/basis/pins.h"

namespace viaduct::agent {
namespace {

class Accepting final : public core::Backend {
 public:
  const core::Capabilities& can() const override { return can_; }
  std::span<const std::unique_ptr<core::Rail>> rails() override { return {}; }
  core::Bytes address() const override { return {}; }
  std::unique_ptr<core::Link> link(core::LinkSeed, core::LinkHost&) override { return nullptr; }
  Result<core::Bytes> pinFor(const core::Audience&, std::uint32_t, const Segment&) override {
    return core::Bytes{};
  }
  Status unpin(std::uint32_t) override { return Ok{}; }

 private:
  const core::Capabilities can_{.name = "accepting",
                                .memory = {MemoryKind::kFile, MemoryKind::kObject}};
};

class StoragePins : public ::testing::Test {
 protected:
  using Backends = std::vector<std::unique_ptr<core::Backend>>;

  static Backends oneBackend() {
    Backends out;
    out.push_back(std::make_unique<Accepting>());
    return out;
  }

  Result<PinInfo> pin(std::uint64_t offset, std::uint64_t bytes,
                      MemoryKind kind = MemoryKind::kFile) {
    VIADUCT_TRY(const auto slot,
                pins_.add({.kind = kind, .bytes = bytes, .fd_offset = offset}, ""));
    return pins_[slot].info;
  }
  void unpin(std::uint32_t slot) {
    pins_.retire(slot);
    EXPECT_TRUE(pins_.remove(slot));
  }
  // Expects that no two live pins overlap.
  void expectApart() const {
    auto all = pins_.infos();
    std::sort(all.begin(), all.end(),
              [](const PinInfo& a, const PinInfo& b) { return a.address < b.address; });
    for (std::size_t i = 1; i < all.size(); ++i)
      EXPECT_LE(all[i - 1].address + all[i - 1].bytes, all[i].address) << i;
  }

  Backends backends_ = oneBackend();
  PinTable pins_{backends_};
};

TEST_F(StoragePins, HaveRangesOfTheirOwn) {
  std::uint64_t bytes = 1;
  for (int i = 0; i < 40; ++i, bytes *= 2) {
    const auto file = pin(0, bytes);
    const auto object = pin(0, 3, MemoryKind::kObject);
    ASSERT_TRUE(file && object);
    EXPECT_GE(file->address, kFirstStorageAddress);
    EXPECT_EQ(file->address % 4096, 0U);
  }
  expectApart();
}

TEST_F(StoragePins, HaveAddressesThatAreAlignedAsTheirOffsets) {
  for (const std::uint64_t offset : {0U, 1U, 512U, 4095U, 4096U, 70'000U}) {
    const auto file = pin(offset, 4096);
    ASSERT_TRUE(file);
    EXPECT_EQ(file->address % 4096, offset % 4096);
  }
  expectApart();
}

TEST_F(StoragePins, UseRangesAgainThatWereReleased) {
  constexpr std::uint64_t kHuge = std::uint64_t{1} << 59U;  // at most eight at once
  const auto small = pin(0, 4096);
  ASSERT_TRUE(small);
  for (int i = 0; i < 30; ++i) {
    const auto one = pin(0, kHuge), other = pin(512, kHuge);
    ASSERT_TRUE(one) << i << one.error().text();
    ASSERT_TRUE(other) << i << other.error().text();
    expectApart();
    unpin(one->slot);
    unpin(other->slot);
  }
}

TEST_F(StoragePins, ThatFindNoRangeAreRefused) {
  constexpr std::uint64_t kHalf = std::uint64_t{1} << 61U;
  ASSERT_TRUE(pin(0, kHalf));
  const auto second = pin(0, kHalf);
  for (const auto& more : {pin(0, kHalf), pin(0, kHalf * 2), pin(1, kHalf * 2 - 1)}) {
    ASSERT_FALSE(more);
    EXPECT_EQ(more.error().code, Code::kExhausted);
  }
  ASSERT_TRUE(second);
  unpin(second->slot);
  EXPECT_TRUE(pin(0, kHalf));
}

TEST(StoragePin, OfAnAgentWithoutSuchABackendSaysSo) {
  Agent agent = *Agent::open({.backends = {"local"}});
  const auto pin = agent.pin(Segment::file("/etc/hostname"));
  ASSERT_FALSE(pin);
  EXPECT_EQ(pin.error().code, Code::kUnsupported);
  EXPECT_NE(pin.error().text().find("no open backend takes segments of kind file"),
            std::string::npos)
      << pin.error().text();
}

}  // namespace
}  // namespace viaduct::agent
