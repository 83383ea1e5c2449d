// post() and poll() allocate no memory, except while queues grow. A separate program, because it
// replaces operator new.
#include <gtest/gtest.h>
#include <viaduct/viaduct.h>

#include <cstdio>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

namespace {
// The allocations of this thread. A test reads it before and after the calls that it tests.
thread_local std::size_t allocations = 0;
}  // namespace

void* operator new(std::size_t bytes) {
  ++allocations;
  if (void* const memory = std::malloc(bytes)) return memory;
  throw std::bad_alloc();
}
void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }

namespace viaduct {
namespace {

using namespace std::chrono_literals;

struct Case {
  const char* backend;
  std::uint64_t block;  // bytes
  std::uint64_t count;
};

class Posts : public ::testing::TestWithParam<Case> {
 protected:
  void SetUp() override {
    const auto [backend, block, count] = GetParam();
    for (auto* agent : {&a_, &b_}) {
      // Heartbeats allocate. None falls due, however long a busy machine makes the test.
      auto opened = Agent::open({.backends = {backend}, .detect = 8h});
      ASSERT_TRUE(opened) << opened.error().text();
      agent->emplace(*std::move(opened));
    }
    auto here = a_->allocate(2 * block * count),
         there = b_->allocate(2 * block * count, {.label = "t"});
    auto peer = a_->importCard(b_->exportCard());
    ASSERT_TRUE(here && there && peer && peer->ready(20s) && peer->waitPin("t", 20s));
    here_.emplace(*std::move(here));
    there_.emplace(*std::move(there));
    const auto blocks = [bytes = block, many = count](const Pin& pin) {
      return *Blocks::strided(
          {.base = pin.info().address, .stride = 2 * bytes, .bytes = bytes, .count = many});
    };
    auto transfer =
        a_->plan(OpKind::kWrite, *peer, {.blocks = blocks(*here_)}, {.blocks = blocks(*there_)});
    ASSERT_TRUE(transfer) << transfer.error().text();
    transfer_.emplace(*std::move(transfer));
  }

  std::optional<Agent> a_, b_;
  std::optional<Pin> here_, there_;
  std::optional<Transfer> transfer_;
};

// Queues allocate rarely, until they have room for all ops in flight. That is far less often than
// once a post.
TEST_P(Posts, AllocateNothing) {
  constexpr std::size_t kPosts = 400, kGrowth = kPosts / 4;
  std::size_t during = 0;
  for (std::size_t i = 0; i < kPosts; ++i) {
    const std::size_t before = allocations;
    const auto posted = transfer_->post();
    while (transfer_->poll() == TransferState::kRunning) {
    }
    during += allocations - before;
    ASSERT_TRUE(posted && transfer_->poll() == TransferState::kDone);
  }
  EXPECT_LT(during, kGrowth) << "of " << kPosts << " posts";
  std::printf("%zu allocations\n", during);
}

INSTANTIATE_TEST_SUITE_P(Backends, Posts,
                         ::testing::Values(Case{"local", 8, 1}, Case{"local", 1 << 18, 2},
                                           Case{"local", 4096, 1000}, Case{"tcp", 8, 1},
                                           Case{"tcp", 1 << 18, 2}, Case{"tcp", 4096, 1000}),
                         [](const auto& test) {
                           return std::string(test.param.backend) + "_" +
                                  std::to_string(test.param.count) + "x" +
                                  std::to_string(test.param.block);
                         });

}  // namespace
}  // namespace viaduct
