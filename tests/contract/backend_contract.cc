#include "contract/backend_contract.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "core/backend.h"
#include "support/agent_of_a_clock.h"
#include "support/bytes.h"

namespace viaduct::testing {
namespace {

// The points of the contract that are not tested with memory of GPUs.
struct LeftOut {
  std::string_view test;
  std::string_view subject;  // the start of its name; empty: all
  std::string_view why;
};
constexpr std::string_view kNoMemory =
    "it moves no memory, so the test with host memory has it all";
constexpr std::string_view kOneRail = "cuda has one rail";
constexpr std::string_view kBothEnds = "tcp_gpu_to_gpu has the stages of both ends at once";
constexpr LeftOut kLeftOut[] = {
    {"NotesOfAnySizeArriveOnceAndInOrder", "", kNoMemory},
    {"TheEventFdTellsOfNotesAndEnds", "", kNoMemory},
    {"BothMayDialAtOnce", "", kNoMemory},
    {"MemoryThatCannotBeReadIsNotPinned", "", "memory of a GPU has no page protection"},
    {"AFailedTransferDoesNotOutliveItsDeadline", "", "only ops of the fake backend hang"},
    {"OtherRailsCarryTheSlicesOfABrokenRail", "", "both agents post stages, so both lose rails"},
    {"AKilledPeerIsLostAtBothEndsAndComesBack", "",
     "the first op of a staged transfer is one of an agent with itself"},
    {"ReadOnlyMemoryIsReadAndNeverWritten", "cuda_host", "cuda copies nothing between hosts"},
    {"SeveralRailsTogetherCarryEveryByteOnce", "cuda", kOneRail},
    {"StripingIsTurnedOnAndOff", "cuda", kOneRail},
    {"SeveralRailsTogetherCarryEveryByteOnce", "tcp_gpu_to_host", kBothEnds},
    {"StripingIsTurnedOnAndOff", "tcp_gpu_to_host", kBothEnds},
    {"MoveEveryByteWhileMemoryIsPinnedAndReleased", "tcp_gpu_to_host", kBothEnds},
    {"SeveralRailsTogetherCarryEveryByteOnce", "tcp_host", kBothEnds},
    {"StripingIsTurnedOnAndOff", "tcp_host", kBothEnds},
    {"MoveEveryByteWhileMemoryIsPinnedAndReleased", "tcp_host", kBothEnds},
};

std::string currentTest() {
  const std::string name = ::testing::UnitTest::GetInstance()->current_test_info()->name();
  return name.substr(0, name.find('/'));
}

}  // namespace

std::string Subject::name() const {
  if (driver.empty()) return backend;
  return backend + (gpu_at_a ? "_gpu" : "_host") + (gpu_at_b ? "_to_gpu" : "_to_host");
}

std::vector<Subject> everyBackend() {
  std::vector<Subject> all;
  for (const auto& entry : core::backendCatalogue())
    if (!entry.facts->storage && !entry.facts->gpus)
      all.push_back({.backend = std::string(entry.name)});
  return all;
}

// All backends that move memory between agents, except the fake one, which claims to reach all
// memory.
std::vector<Subject> everyBackendOfGpus(std::string_view driver) {
  std::vector<Subject> all;
  const auto add = [&](std::string_view backend, bool gpu_at_a, bool gpu_at_b) {
    all.push_back({std::string(backend), std::string(driver), gpu_at_a, gpu_at_b});
  };
  for (const auto& entry : core::backendCatalogue())
    if (!entry.facts->storage && entry.name != "fake") add(entry.name, true, true);
  add("cuda", false, true);
  add("tcp", false, true);
  add("tcp", true, false);
  return all;
}

std::string BackendContract::whyLeftOut() {
  if (!onGpus()) return {};
  const auto* const row = std::ranges::find_if(kLeftOut, [](const LeftOut& one) {
    return one.test == currentTest() && subject().name().starts_with(one.subject);
  });
  return row != std::end(kLeftOut) ? std::string(row->why) : whyNoGpu(subject().driver);
}

Settings BackendContract::settings(const std::string& name) const {
  Settings settings = base_;
  settings.name = name;
  settings.backends = {backend()};
  settings.ofi_provider = ofiProvider();
  settings.others["VIADUCT_FAKE"] = fake_;
  if (!onGpus()) return settings;
  if (backend() != "cuda") settings.backends.emplace_back("cuda");
  settings.others["VIADUCT_CUDA_LIBRARY"] = subject().driver;
  settings.others["VIADUCT_CUDA_KERNEL_BELOW"] = "32KiB";
  return settings;
}

std::size_t BackendContract::railsOf(const Agent& agent) {
  const auto backends = agent.backends();
  return std::ranges::find(backends, backend(), &BackendInfo::name)->rails.size();
}

void BackendContract::open() {
  auto bytes = PinnedBytes::open(subject().driver);
  ASSERT_TRUE(bytes) << bytes.error().text();
  pinned_bytes_.emplace(*std::move(bytes));
  for (auto* agent : {&a_, &b_}) {
    auto opened = agent::AgentOfAClock::open(settings(agent == &a_ ? "a" : "b"), clock_);
    ASSERT_TRUE(opened) << opened.error().text();
    agent->emplace(*std::move(opened));
  }
  connect();
}

void BackendContract::connect() {
  auto peer = a_->importCard(b_->exportCard());
  ASSERT_TRUE(peer) << peer.error().text();
  b_at_a_ = *peer;
  const auto ready = b_at_a_->ready(60s);
  ASSERT_TRUE(ready) << ready.error().text();
  auto back = b_->peer("a");
  ASSERT_TRUE(back) << back.error().text();
  a_at_b_ = *back;
  const auto back_ready = a_at_b_->ready(60s);
  ASSERT_TRUE(back_ready) << back_ready.error().text();
}

void BackendContract::fill(std::span<std::byte> bytes, std::uint64_t salt) {
  fillRandom(bytes, salt);
}

bool BackendContract::holds(std::span<const std::byte> bytes, std::uint64_t salt) {
  std::vector<std::byte> expected(bytes.size());
  fill(expected, salt);
  return same(bytes, expected);
}

void BackendContract::fill(const Pin& pin, std::uint64_t salt, Part part) const {
  pinned_bytes_->change(pin, part, [&](std::span<std::byte> bytes) { fill(bytes, salt); });
}

void BackendContract::fillWith(const Pin& pin, std::byte one, Part part) const {
  pinned_bytes_->change(pin, part,
                        [&](std::span<std::byte> bytes) { testing::fillWith(bytes, one); });
}

Result<Pin> BackendContract::allocate(Agent& agent, bool gpu, std::uint64_t bytes,
                                      AllocateOptions options) {
  if (gpu) options.device = 0;
  return agent.allocate(bytes, std::move(options));
}

Segment BackendContract::plain(bool gpu, std::uint64_t bytes) {
  if (!gpu) return Segment::host(plain_.emplace_back(bytes).data(), bytes);
  auto memory = DriverMemory::make(subject().driver, cuda::MemoryClass::kLegacy, bytes);
  EXPECT_TRUE(memory) << memory.error().text();
  return Segment::gpu(0, plain_on_gpu_.emplace_back(*std::move(memory))->address(), bytes);
}

Selection BackendContract::blocks(const Pin& pin, std::uint64_t bytes, std::uint64_t stride,
                                  std::uint64_t count, std::vector<std::uint32_t> indices) {
  auto made = Blocks::strided(
      {.base = pin.info().address, .stride = stride, .bytes = bytes, .count = count});
  EXPECT_TRUE(made) << made.error().text();
  return {.blocks = made ? *std::move(made) : Blocks(), .indices = std::move(indices)};
}

void BackendContract::waitForPin(const Peer& at, const std::string& label) {
  const auto pin = at.waitPin(label, 60s);
  ASSERT_TRUE(pin) << pin.error().text();
}

Result<Transfer> BackendContract::plan(Agent& by, const Peer& peer, OpKind kind,
                                       const Selection& local, const Selection& remote,
                                       TransferOptions options) {
  if (onGpus() && options.require.empty()) options.require = "backend:" + backend();
  return by.plan(kind, peer, local, remote, std::move(options));
}

std::vector<PathShare> BackendContract::carried(const Path& path) {
  std::vector<PathShare> shares;
  for (const PathShare& share : path.shares) {
    if (share.backend == backend())
      shares.push_back(share);
    else
      EXPECT_TRUE(onGpus() && share.backend == "cuda") << path.text();
  }
  return shares;
}

VIADUCT_INSTANTIATE_CONTRACT(BackendContract);

}  // namespace viaduct::testing
