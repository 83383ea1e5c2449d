#include "contract/backend_contract.h"

#include "core/backend.h"
#include "support/agent_of_a_clock.h"
#include "support/bytes.h"

namespace viaduct::testing {

void BackendContract::open() {
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

std::vector<std::string> everyBackend() {
  std::vector<std::string> names;
  for (const auto& entry : core::backendCatalogue())
    if (!entry.facts->storage && !entry.facts->gpus) names.emplace_back(entry.name);
  return names;
}

INSTANTIATE_TEST_SUITE_P(Every, BackendContract, ::testing::ValuesIn(everyBackend()),
                         [](const auto& backend) { return backend.param; });

}  // namespace viaduct::testing
