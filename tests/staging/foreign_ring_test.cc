// An agent tries to reach the rings through which two other agents stage their transfers. It uses
// the public API alone. VIADUCT_STAGED_ATTACKS sets the number of reads and of writes.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 4 << 20;
constexpr auto kForeign = std::byte{0xBB}, kOwn = std::byte{0x11};

int rounds() {
  const char* const text = std::getenv("VIADUCT_STAGED_ATTACKS");
  return text == nullptr ? 4 : std::atoi(text);
}

Selection all(const PinInfo& pin) {
  return {*Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1})};
}

bool hasForeignBytes(std::span<const std::byte> bytes) {
  return std::memchr(bytes.data(), static_cast<int>(kForeign), bytes.size()) != nullptr;
}

class ForeignRing : public ::testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    for (auto [agent, name] : {std::pair(&owner_, "owner"), {&user_, "user"}, {&foe_, "foe"}}) {
      auto opened =
          Agent::open(Settings{.name = name, .backends = {GetParam(), "file"}, .detect = 8h});
      if (!opened) GTEST_SKIP() << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    for (Agent* const from : {&*user_, &*foe_}) {
      auto peer = from->connect(owner_->card());
      ASSERT_TRUE(peer) << peer.error().text();
      ASSERT_TRUE(peer->ready(20s));
    }
    attacker_ = std::jthread([this](const std::stop_token& stop) { attack(stop); });
  }
  void TearDown() override {
    attacker_ = {};
    std::printf("%llu foreign writes ended well\n", static_cast<unsigned long long>(written_));
  }

  // Writes into all memory of the owner that the attacker may know: the pins that the owner
  // announces to the attacker, and those that it announces to the user.
  void attack(const std::stop_token& stop) {
    auto source = foe_->allocate(32 << 20);
    ASSERT_TRUE(source);
    std::memset(source->data(), static_cast<int>(kForeign), source->info().bytes);
    Peer owner = *foe_->peer("owner");
    while (!stop.stop_requested()) {
      for (const Peer& known : {owner, *user_->peer("owner")})
        for (const PinInfo& pin : known.pins())
          if (pin.kind == MemoryKind::kHost) overwrite(owner, *source, pin);
      std::this_thread::sleep_for(1ms);
    }
  }
  void overwrite(const Peer& owner, const Pin& source, PinInfo pin) {
    PinInfo from = source.info();
    from.bytes = pin.bytes = std::min(pin.bytes, from.bytes);
    auto transfer = foe_->plan(OpKind::kWrite, owner, all(from), all(pin));
    if (transfer && transfer->post() && transfer->wait(20s)) ++written_;
  }

  std::string path(const char* name) const { return folder_.path() + "/" + name; }
  Result<Pin> pinned(const char* name, const FileOptions& options) {
    return owner_->pin(Segment::file(path(name), options), name);
  }
  Status move(OpKind kind, const Pin& memory, const char* file) {
    Peer owner = *user_->peer("owner");
    VIADUCT_TRY(const PinInfo there, owner.waitPin(file, 20s));
    VIADUCT_TRY(auto transfer, user_->plan(kind, owner, all(memory.info()), all(there)));
    VIADUCT_CHECK(transfer.post());
    return transfer.wait(60s);
  }

  TemporaryFolder folder_;
  std::optional<Agent> owner_, user_, foe_;
  std::atomic<std::uint64_t> written_{0};
  std::jthread attacker_;
};

TEST_P(ForeignRing, IsNotReachedByAnotherPeer) {
  std::ofstream(path("read"), std::ios::binary) << std::string(kBytes, static_cast<char>(kOwn));
  const auto source = pinned("read", {.read_only = true});
  const auto sink = pinned("written", {.bytes = kBytes, .create = true});
  const auto memory = user_->allocate(kBytes);
  ASSERT_TRUE(source && sink && memory);
  int wrong_reads = 0, wrong_writes = 0;
  for (int i = 0; i < rounds(); ++i) {
    const Status read = move(OpKind::kRead, *memory, "read");
    ASSERT_TRUE(read) << read.error().text();
    wrong_reads += hasForeignBytes(memory->bytes()) ? 1 : 0;
    std::memset(memory->data(), static_cast<int>(kOwn), kBytes);
    const Status written = move(OpKind::kWrite, *memory, "written");
    ASSERT_TRUE(written) << written.error().text();
    std::vector<std::byte> content(kBytes);
    std::ifstream(path("written"), std::ios::binary)
        .read(reinterpret_cast<char*>(content.data()), kBytes);
    wrong_writes += hasForeignBytes(content) ? 1 : 0;
  }
  EXPECT_EQ(wrong_reads, 0);
  EXPECT_EQ(wrong_writes, 0);
  EXPECT_EQ(written_, 0U);
}

// A ring is announced only to its session's peer. Cards and statistics list only applications'
// pins.
TEST_P(ForeignRing, IsAnnouncedOnlyToThePeerOfItsSession) {
  const auto sink = pinned("written", {.bytes = kBytes, .create = true});
  const auto memory = user_->allocate(kBytes);
  ASSERT_TRUE(sink && memory);
  ASSERT_TRUE(move(OpKind::kWrite, *memory, "written"));
  EXPECT_EQ(user_->peer("owner")->pins().size(), 2U) << "the file, and the ring of this session";
  EXPECT_EQ(foe_->peer("owner")->pins().size(), 1U) << "the file";
  EXPECT_EQ(owner_->card().pins.size(), 1U);
  EXPECT_EQ(owner_->statistics().pins, 1U);
  EXPECT_EQ(user_->statistics().pins, 1U);
}

INSTANTIATE_TEST_SUITE_P(Over, ForeignRing, ::testing::Values("local", "tcp", "ofi", "ucx"),
                         [](const auto& network) { return network.param; });

}  // namespace
}  // namespace viaduct::testing
