// The time of the first contact with a peer whose host is still unknown. Runs in the guest of
// `./dev check --verbs`, whose clock counts instructions, so a test may judge times.
#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <chrono>
#include <cstdlib>
#include <iostream>
#include <memory>
#include <string>
#include <vector>

#include "backends/ofi/choose.h"
#include "backends/ofi/ofi_endpoint.h"

namespace viaduct::ofi {
namespace {

using namespace std::chrono_literals;

struct End {
  std::vector<std::byte> bytes = std::vector<std::byte>(4096);
  std::unique_ptr<move::Domain> domain;
  std::unique_ptr<move::Registration> memory;
  std::unique_ptr<move::Endpoint> endpoint;
};

class FirstContact : public ::testing::Test {
 protected:
  static void open(End& end, const std::string& rail) {
    Settings settings;
    settings.backends = {"ofi"};
    settings.ofi_provider = "verbs;ofi_rxm";
    settings.rails = {rail};
    auto chosen = choose(settings);
    ASSERT_TRUE(chosen) << chosen.error().text();
    end.domain = std::move(chosen->domains.front());
    auto memory = end.domain->add(
        {.address = std::bit_cast<std::uintptr_t>(end.bytes.data()), .bytes = 4096});
    ASSERT_TRUE(memory) << memory.error().text();
    end.memory = *std::move(memory);
    auto endpoint = end.domain->open();
    ASSERT_TRUE(endpoint) << endpoint.error().text();
    end.endpoint = *std::move(endpoint);
  }
  // Opens and joins both ends. The near one writes, until the write is done or fails.
  void write() {
    ASSERT_NO_FATAL_FAILURE(open(near_, "near1"));
    ASSERT_NO_FATAL_FAILURE(open(far_, "far1"));
    ASSERT_EQ(std::system("/rail unknown 1"), 0);
    timed([&] { ASSERT_TRUE(near_.endpoint->join(far_.endpoint->address())); });
    timed([&] { ASSERT_TRUE(far_.endpoint->join(near_.endpoint->address())); });
    const move::Piece piece{.here = near_.bytes.data(),
                            .there = std::bit_cast<std::uintptr_t>(far_.bytes.data()),
                            .bytes = 8,
                            .local = near_.memory.get()};
    const auto key = near_.endpoint->keyOf(1, far_.memory->key());
    const auto begun = Clock::now();
    move::Flush flush;
    bool posted = false;
    while (!(posted && near_.endpoint->ended(flush)) && !near_.endpoint->broken()) {
      ASSERT_LT(Clock::now() - begun, 20s);
      timed([&] {
        if (posted) return;
        posted = near_.endpoint->post(OpKind::kWrite, std::span(&piece, 1), key).pieces == 1;
        if (posted) flush = near_.endpoint->flush();
      });
      timed([&] { near_.endpoint->progress(); });
      timed([&] { far_.endpoint->progress(); });
    }
    const std::chrono::duration<double> took = Clock::now() - begun, longest = longest_;
    std::cout << "with a host that is not known yet it ended after " << took.count()
              << " s; the longest call took " << longest.count() << " s\n";
  }
  template <class F>
  void timed(F call) {
    const auto begun = Clock::now();
    call();
    longest_ = std::max<Duration>(longest_, Clock::now() - begun);
  }

  End near_, far_;
  Duration longest_{};
};

TEST_F(FirstContact, NoCallWaitsForAHostThatAnswers) {
  ASSERT_NO_FATAL_FAILURE(write());
  EXPECT_FALSE(near_.endpoint->broken()) << near_.endpoint->broken()->text();
  EXPECT_LT(longest_, 500ms);
}

TEST_F(FirstContact, NoCallWaitsForAHostThatDoesNotAnswer) {
  ASSERT_EQ(std::system("/rail deaf 1"), 0);
  write();
  ASSERT_EQ(std::system("/rail hears 1"), 0);
  ASSERT_TRUE(near_.endpoint->broken());
  std::cout << near_.endpoint->broken()->text() << "\n";
  EXPECT_LT(longest_, 500ms);
}

}  // namespace
}  // namespace viaduct::ofi
