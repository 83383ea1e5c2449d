// Two backends cuda of one process over the fake driver, with their links. Threads: one.
#pragma once

#include <gtest/gtest.h>

#include <cstring>
#include <map>
#include <memory>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "backends/cuda/cuda_backend.h"
#include "base/poller.h"
#include "core/sink_testing.h"
#include "device/fake_cuda.h"
#include "support/bytes.h"
#include "support/link_pair.h"

namespace viaduct::cuda {
Result<std::unique_ptr<core::Backend>> open(const core::BackendContext& context);
}

namespace viaduct::testing {

inline constexpr std::uint64_t kMiB = std::uint64_t{1} << 20U;

class CudaPair : public ::testing::Test {
 protected:
  using Variables = std::map<std::string, std::string, std::less<>>;

  // Opens both backends. The end `a` is the initiator of all transfers.
  void start(const Variables& variables = {}) {
    seed_.same_host = true;
    settings_.others = variables;
    settings_.others.emplace("VIADUCT_CUDA_LIBRARY", kFakeCuda);
    settings_.others.emplace("VIADUCT_CUDA_KERNEL_BELOW", "32KiB");
    poller_ = std::move(*base::Poller::open());
    a_ = std::move(*cuda::open({settings_, *poller_}));
    b_ = std::move(*cuda::open({settings_, *poller_}));
    pair_ = std::make_unique<LinkPair>(*a_, *b_, *poller_, seed_);
  }
  void TearDown() override {
    fakeCudaPause(false);
    pair_.reset();
    a_.reset();
    b_.reset();
  }

  static core::LinkSeed sameProcess() {
    core::LinkSeed seed;
    seed.same_process = true;
    return seed;
  }
  core::Backend& end(int i) { return i == 0 ? *a_ : *b_; }
  core::Rail& rail() { return *a_->rails()[0]; }
  core::Link& link() { return *pair_->ends[0].link; }
  const core::Completions& done() const { return pair_->done[0]; }

  // Memory of a GPU, pinned at an end.
  Segment device(int owner, std::uint32_t slot, std::uint64_t bytes, std::uint32_t ordinal = 0) {
    auto memory = end(owner).deviceMemory()->allocate(ordinal, bytes);
    EXPECT_TRUE(memory) << memory.error().text();
    pair_->pin(owner, slot, *memory);
    return *memory;
  }
  std::span<std::byte> host(int owner, std::uint32_t slot, std::uint64_t bytes) {
    auto& memory = memory_.emplace_back(bytes);
    pair_->pin(owner, slot, Segment::host(memory.data(), bytes));
    return memory;
  }
  static std::span<std::byte> bytesOf(const Segment& memory) {
    return {reinterpret_cast<std::byte*>(fakeCudaAlias(memory.address)), memory.bytes};
  }
  static std::uint64_t addressOf(std::span<std::byte> memory) {
    return reinterpret_cast<std::uintptr_t>(memory.data());
  }

  // `count` equal blocks: adjacent on the local side, twice their size apart on the remote side.
  static std::vector<core::Op> blocks(std::uint64_t local, std::uint64_t remote,
                                      std::uint64_t bytes, std::size_t count) {
    std::vector<core::Op> out;
    for (std::size_t i = 0; i < count; ++i)
      out.push_back({.local = local + i * bytes, .remote = remote + i * 2 * bytes, .bytes = bytes});
    return out;
  }

  std::size_t post(OpKind kind, std::span<const core::Op> ops, std::uint64_t number = 1) {
    return rail().post(
        {.kind = kind, .slice = core::testing::sliceOf(number), .link = &link(), .ops = ops});
  }
  std::uint64_t ended() const {
    std::uint64_t ops = 0;
    for (const auto& one : done()) ops += core::endedOps(one);
    return ops;
  }
  // Posts the ops and waits for all of them. Returns the error if they failed.
  std::optional<Error> move(OpKind kind, const std::vector<core::Op>& ops) {
    pair_->done[0].clear();
    EXPECT_EQ(post(kind, ops), ops.size());
    EXPECT_TRUE(pair_->run([&] { return ended() == ops.size(); }));
    return failure();
  }
  // Opens both backends, and writes a MiB of host memory to a GPU, so that the host memory is
  // registered. Returns the op, for further posts.
  std::vector<core::Op> startAndMoveOnce(const Variables& variables = {}) {
    start(variables);
    const auto here = host(0, 0, kMiB);
    const Segment there = device(1, 0, 2 * kMiB);
    auto ops = blocks(addressOf(here), there.address, kMiB, 1);
    EXPECT_EQ(move(OpKind::kWrite, ops), std::nullopt);
    pair_->done[0].clear();
    return ops;
  }
  // The error of the only completion, if it is one.
  std::optional<Error> failure() const {
    EXPECT_EQ(done().size(), 1U);
    const auto* failed = done().empty() ? nullptr : std::get_if<core::Failed>(&done()[0]);
    return failed == nullptr ? std::nullopt : std::optional(failed->why);
  }

  Settings settings_;
  core::LinkSeed seed_ = sameProcess();
  std::unique_ptr<base::Poller> poller_;
  std::unique_ptr<core::Backend> a_, b_;
  std::unique_ptr<LinkPair> pair_;
  std::deque<std::vector<std::byte>> memory_;
};

}  // namespace viaduct::testing
