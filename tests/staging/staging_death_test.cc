// Either end of a staged transfer is killed or frozen in each stage. The other end notices in time,
// nothing is touched afterwards, and the pair works again.
#include <filesystem>
#include <fstream>
#include <string_view>
#include <thread>

#include "device/fake_cuda.h"
#include "process/pair.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;

constexpr std::uint64_t kBytes = 32 << 20;
constexpr auto kDetect = 2s;
constexpr auto kSlack = 500ms + 10s;  // the grace, and 10 s for a busy machine

enum class Fault : std::uint8_t { kKill, kFreeze };

// A transfer between the survivor's and the victim's "memory", "file" or "gpu", and the stage of
// the fault.
struct Scene {
  const char* name;
  OpKind kind;
  const char *own, *victims;
  std::uint32_t stage;
  bool uses(std::string_view pin) const { return pin == own || pin == victims; }
  friend void PrintTo(const Scene& scene, std::ostream* out) { *out << scene.name; }
};
constexpr Scene kScenes[] = {
    {"write_file_to_memory_load", OpKind::kWrite, "file", "memory", 1},
    {"write_file_to_memory_move", OpKind::kWrite, "file", "memory", 2},
    {"write_memory_to_file_move", OpKind::kWrite, "memory", "file", 2},
    {"write_memory_to_file_store", OpKind::kWrite, "memory", "file", 3},
    {"write_file_to_file_store", OpKind::kWrite, "file", "file", 3},
    {"read_file_to_memory_load", OpKind::kRead, "memory", "file", 1},
    {"read_file_to_memory_move", OpKind::kRead, "memory", "file", 2},
    {"read_memory_to_file_store", OpKind::kRead, "file", "memory", 3},
    {"read_file_to_file_load", OpKind::kRead, "file", "file", 1},
    {"read_file_to_file_store", OpKind::kRead, "file", "file", 3},
    {"write_gpu_to_gpu_load", OpKind::kWrite, "gpu", "gpu", 1},
    {"write_gpu_to_gpu_move", OpKind::kWrite, "gpu", "gpu", 2},
    {"write_gpu_to_gpu_store", OpKind::kWrite, "gpu", "gpu", 3},
    {"write_memory_to_gpu_store", OpKind::kWrite, "memory", "gpu", 3},
    {"write_file_to_gpu_move", OpKind::kWrite, "file", "gpu", 2},
    {"read_gpu_to_gpu_load", OpKind::kRead, "gpu", "gpu", 1},
    {"read_gpu_to_memory_load", OpKind::kRead, "memory", "gpu", 1},
    {"read_memory_to_gpu_store", OpKind::kRead, "gpu", "memory", 3},
};

class StagingDies : public ::testing::TestWithParam<std::tuple<Scene, Fault>> {
 protected:
  const Scene& scene() const { return std::get<0>(GetParam()); }
  bool kills() const { return std::get<1>(GetParam()) == Fault::kKill; }

  void SetUp() override {
    auto agent = Agent::open(
        {.name = "survivor",
         .backends = {"tcp", "file", "cuda"},
         .detect = kDetect,
         .others = {{"VIADUCT_CUDA_LIBRARY", kFakeCuda}, {"VIADUCT_CUDA_KERNEL_BELOW", "0"}}});
    ASSERT_TRUE(agent) << agent.error().text();
    agent_.emplace(*std::move(agent));
    auto memory = agent_->allocate(kBytes, {.label = "memory"});
    ASSERT_TRUE(memory) << memory.error().text();
    memory_.emplace(*std::move(memory));
    auto file = agent_->pin(Segment::file(own_path_, {.bytes = kBytes, .create = true}), "file");
    ASSERT_TRUE(file) << file.error().text();
    file_.emplace(*std::move(file));
    if (scene().uses("gpu")) {
      auto gpu = agent_->allocate(kBytes, {.label = "gpu", .device = 0});
      ASSERT_TRUE(gpu) << gpu.error().text();
      gpu_.emplace(*std::move(gpu));
    }
    start();
  }
  static std::string victims() {
    return "name=victim backends=tcp,file,cuda detect=" + std::to_string(kDetect / 1ms) +
           " VIADUCT_CUDA_LIBRARY=" + kFakeCuda + " VIADUCT_CUDA_KERNEL_BELOW=0";
  }
  void start() {
    victim_.emplace(victims());
    victim_->must("memory memory " + std::to_string(kBytes));
    victim_->must("file file " + folder_.path() + "/victims " + std::to_string(kBytes));
    if (scene().uses("gpu")) victim_->must("gpu gpu " + std::to_string(kBytes) + " 1");
    victim_->must("import " + toHex(agent_->exportCard()));
    victim_->must("ready survivor 20000");
    const auto ready = peer().ready(20s);
    ASSERT_TRUE(ready) << ready.error().text();
  }
  // A process that was stopped between two posts would make its next post once it is admitted
  // again. It is not admitted while another process has its name.
  void resumeUntilTheStormHasEnded() {
    PeerProcess other(victims());
    other.must("import " + toHex(agent_->exportCard()));
    other.must("ready survivor 20000");
    victim_->process().resume();
    victim_->must("calm t 20000");
  }
  Peer peer() { return *agent_->peer("victim"); }
  Result<Transfer> plan() {
    VIADUCT_TRY(const PinInfo there, peer().waitPin(scene().victims, 20s));
    const PinInfo here = ownPin(scene().own).info();
    const auto blocks = [](const PinInfo& pin) {
      return Selection{
          *Blocks::strided({.base = pin.address, .bytes = 65536, .count = pin.bytes / 65536})};
    };
    return agent_->plan(scene().kind, peer(), blocks(here), blocks(there),
                        {.require = "backend:tcp"});
  }
  const Pin& ownPin(std::string_view name) const {
    return name == "file" ? *file_ : name == "gpu" ? *gpu_ : *memory_;
  }
  std::span<std::byte> ownGpuBytes() const {
    return {reinterpret_cast<std::byte*>(fakeCudaAlias(gpu_->info().address)), kBytes};
  }
  // Returns once a chunk has passed the stage of the scene, in the middle of a post.
  void waitForStage(const Transfer& transfer) {
    const auto end = Clock::now() + 60s;
    while (Clock::now() < end) {
      const Path path = transfer.path();  // sorted by stage
      for (const PathShare& share : path.shares)
        if (share.stage == scene().stage && share.bytes != 0 && path.shares.back().bytes != kBytes)
          return;
      std::this_thread::yield();
    }
    FAIL() << "no chunk passed the stage";
  }
  void strike() {
    if (kills())
      victim_->process().kill();
    else
      victim_->process().stop();
  }
  void expectInTime(Clock::time_point struck, const char* what) {
    std::printf("%s after %lld ms\n", what, static_cast<long long>(since(struck)));
    EXPECT_LT(Clock::now() - struck, kDetect + kSlack) << what;
  }
  template <class Done>
  void waitUntil(Done done) {
    const auto end = Clock::now() + 20s;
    while (!done() && Clock::now() < end)
      if (agent_) agent_->poll();
    EXPECT_TRUE(done());
  }
  void waitSettled() {
    waitUntil([this] { return peer().settled(); });
  }
  // Gives all of the survivor's bytes this value.
  void ownBytesBecome(int value) {
    std::memset(memory_->data(), value, kBytes);
    if (gpu_) std::memset(ownGpuBytes().data(), value, kBytes);
    std::ofstream(own_path_, std::ios::in | std::ios::binary)
        << std::string(kBytes, static_cast<char>(value));
  }
  void expectOwnBytesAre(int value) {
    EXPECT_EQ(countOther(memory_->bytes(), static_cast<std::byte>(value)), 0U) << "memory";
    if (gpu_) {
      EXPECT_EQ(countOther(ownGpuBytes(), static_cast<std::byte>(value)), 0U) << "GPU";
    }
    std::string content(kBytes, ' ');
    std::ifstream(own_path_, std::ios::binary).read(content.data(), kBytes);
    EXPECT_TRUE(content == std::string(kBytes, static_cast<char>(value))) << "file";
  }
  // A machine that other work keeps busy may lose the peer again, and nothing else may fail.
  void expectWorksAgain() {
    if (kills())
      start();
    else
      victim_->process().resume();
    const auto end = Clock::now() + 60s;
    Status moved = Ok{};
    do {
      ASSERT_TRUE(peer().ready(20s));
      moved = moveOnce();
    } while (!moved && moved.error().code == Code::kPeerLost && Clock::now() < end);
    EXPECT_TRUE(moved) << moved.error().text();
  }
  Status moveOnce() {
    VIADUCT_TRY(auto transfer, plan());
    VIADUCT_CHECK(transfer.post());
    return transfer.wait(60s);
  }

  TemporaryFolder folder_;
  const std::string own_path_ = folder_.path() + "/own";
  std::optional<Agent> agent_;
  std::optional<Pin> memory_, file_, gpu_;
  std::optional<PeerProcess> victim_;
};

TEST_P(StagingDies, ThePeerOfATransfer) {
  auto transfer = plan();
  ASSERT_TRUE(transfer) << transfer.error().text();
  {
    Storm storm(*transfer);
    waitForStage(*transfer);
    strike();
    const auto struck = Clock::now();
    const auto failure = storm.failure(60s);
    ASSERT_TRUE(failure) << "the transfer still runs";
    EXPECT_EQ(failure->code, Code::kPeerLost) << failure->text();
    expectInTime(struck, "the transfer failed");
  }
  waitSettled();
  ownBytesBecome(0x3C);
  if (!kills()) victim_->process().resume();
  ASSERT_TRUE(kills() || peer().ready(20s));
  expectOwnBytesAre(0x3C);
  expectWorksAgain();
}

TEST_P(StagingDies, TheInitiatorOfATransfer) {
  const char* const kind = scene().kind == OpKind::kWrite ? "read" : "write";
  victim_->must(std::string("plan t ") + kind + " survivor " + scene().victims + " " + scene().own +
                " 65536 backend:tcp");
  victim_->must("storm t");
  strike();
  const auto struck = Clock::now();
  const Peer victim = peer();
  ASSERT_TRUE(victim.over(victim.epoch(), 60s));
  expectInTime(struck, "the session ended");
  waitSettled();
  ownBytesBecome(0x3D);
  if (!kills()) resumeUntilTheStormHasEnded();
  ASSERT_TRUE(kills() || peer().ready(20s));
  expectOwnBytesAre(0x3D);
  expectWorksAgain();
}

// The survivor's GPU hangs while it copies between a ring and the survivor's memory. Both stay
// until the GPU goes on.
class GpuHangs : public StagingDies {
 protected:
  void endWhileTheGpuCopies() {
    auto transfer = plan();
    ASSERT_TRUE(transfer) << transfer.error().text();
    Storm storm(*transfer);
    waitForStage(*transfer);
    fakeCudaPause(true);
    waitUntil([] { return fakeCudaHeld("copies") != 0; });
    strike();
    ASSERT_TRUE(storm.failure(60s)) << "the transfer still runs";
  }
};

TEST_P(GpuHangs, AndItsCopiesFindTheirMemory) {
  endWhileTheGpuCopies();
  waitUntil([this] { return !agent_->self()->settled(); });
  // The ring would be unpinned after a second grace.
  const auto end = Clock::now() + 3s;
  while (Clock::now() < end) agent_->poll();
  EXPECT_FALSE(peer().settled());
  fakeCudaPause(false);
  waitSettled();
  expectWorksAgain();
}

TEST_P(GpuHangs, WhileTheAgentIsClosed) {
  endWhileTheGpuCopies();
  const Peer victim = peer();
  const auto begun = Clock::now();
  agent_.reset();
  std::printf("closed after %lld ms\n", static_cast<long long>(since(begun)));
  EXPECT_FALSE(victim.settled());
  fakeCudaPause(false);
  waitUntil([&] { return victim.settled(); });
}

std::string nameOf(const ::testing::TestParamInfo<std::tuple<Scene, Fault>>& test) {
  const auto& [scene, fault] = test.param;
  return std::string(scene.name) + (fault == Fault::kKill ? "_kill" : "_freeze");
}

INSTANTIATE_TEST_SUITE_P(InEachStage, GpuHangs,
                         ::testing::Combine(::testing::Values(kScenes[10], kScenes[17]),
                                            ::testing::Values(Fault::kKill)),
                         nameOf);
INSTANTIATE_TEST_SUITE_P(InEachStage, StagingDies,
                         ::testing::Combine(::testing::ValuesIn(kScenes),
                                            ::testing::Values(Fault::kKill, Fault::kFreeze)),
                         nameOf);

}  // namespace
}  // namespace viaduct::testing
