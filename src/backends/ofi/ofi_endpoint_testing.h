// A fixture with two endpoints in one process, connected over the provider of the test's parameter.
#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <memory>
#include <vector>

#include "backends/ofi/choose.h"
#include "backends/ofi/ofi_endpoint.h"
#include "support/bytes.h"

namespace viaduct::ofi {

using move::Flush;
using move::Piece;
using move::RemoteKey;

inline constexpr auto kLongest = std::chrono::seconds(20);

// One side: a domain, an endpoint, and memory that the other side may reach.
struct Side {
  std::unique_ptr<move::Domain> domain;
  std::unique_ptr<move::Registration> memory;
  std::unique_ptr<move::Endpoint> endpoint;
  std::vector<std::byte> bytes = std::vector<std::byte>(4U << 20U);
  RemoteKey key = nullptr;  // key to the other side's memory

  std::uint64_t address() const { return reinterpret_cast<std::uintptr_t>(bytes.data()); }
  // The endpoint and the registration close before their domain.
  void close() {
    endpoint.reset();
    memory.reset();
    domain.reset();
  }
};

// Random bytes of the length of Side::bytes. They are made once, because that takes an emulated
// processor half a second.
inline const std::vector<std::byte>& pattern() {
  static const std::vector<std::byte> made = [] {
    std::vector<std::byte> out(Side{}.bytes.size());
    testing::fillRandom(out, 1);
    return out;
  }();
  return made;
}

class OfiEndpointTest : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (const auto there = library(); !there) GTEST_SKIP() << there.error().text();
    settings_.backends = {"ofi"};
    settings_.ofi_provider = GetParam();
    const std::string_view provider(GetParam());
    if (provider != "shm" && !isRdma(GetParam())) settings_.rails = {"127.0.0.1"};
    if (const auto there = choose(settings_); !there) GTEST_SKIP() << there.error().text();
  }
  void meet() {
    for (Side* side : {&a_, &b_}) open(*side);
    join();
    a_.bytes = pattern();
  }
  void open(Side& side) {
    auto chosen = choose(settings_);
    ASSERT_TRUE(chosen) << chosen.error().text();
    side.domain = std::move(chosen->domains.front());
    auto memory = side.domain->add({.address = side.address(), .bytes = side.bytes.size()});
    ASSERT_TRUE(memory) << memory.error().text();
    side.memory = *std::move(memory);
    auto endpoint = side.domain->open();
    ASSERT_TRUE(endpoint) << endpoint.error().text();
    side.endpoint = *std::move(endpoint);
  }
  void join() {
    const auto first = a_.endpoint->join(b_.endpoint->address());
    ASSERT_TRUE(first) << first.error().text();
    const auto second = b_.endpoint->join(a_.endpoint->address());
    ASSERT_TRUE(second) << second.error().text();
    a_.key = a_.endpoint->keyOf(1, b_.memory->key());
    b_.key = b_.endpoint->keyOf(1, a_.memory->key());
    ASSERT_NE(a_.key, nullptr);
    ASSERT_NE(b_.key, nullptr);
  }

  bool connected() const { return static_cast<const OfiDomain&>(*a_.domain).connects(); }
  bool turnUntil(const std::function<bool()>& done) {
    const auto until = Clock::now() + kLongest;
    while (!done()) {
      if (Clock::now() > until) return false;
      for (Side* side : {&a_, &b_})
        if (side->endpoint) side->endpoint->progress();
    }
    return true;
  }
  // Pieces with the same offset at both ends, `stride` apart.
  std::vector<Piece> pieces(std::size_t count, std::size_t bytes, std::size_t stride) {
    std::vector<Piece> out;
    for (std::size_t i = 0; i < count; ++i)
      out.push_back({.here = a_.bytes.data() + i * stride,
                     .there = b_.address() + i * stride,
                     .bytes = bytes,
                     .local = a_.memory.get()});
    return out;
  }
  std::uint32_t moved(OpKind kind, std::span<const Piece> all) {
    std::uint32_t injected = 0;
    std::size_t at = 0;
    Flush flush;
    const bool posted = turnUntil([&] {
      const auto went = a_.endpoint->post(kind, all.subspan(at), a_.key);
      injected += went.injected;
      at += went.pieces;
      return at == all.size() || a_.endpoint->broken();
    });
    EXPECT_TRUE(posted);
    flush = a_.endpoint->flush();
    EXPECT_TRUE(turnUntil([&] { return a_.endpoint->ended(flush) || a_.endpoint->broken(); }));
    if (a_.endpoint->broken()) ADD_FAILURE() << a_.endpoint->broken()->text();
    return injected;
  }
  // Checks that a write with this key changes nothing and breaks the endpoint. The first eight
  // bytes may hold an earlier write.
  void reachesNothing(RemoteKey key) {
    const auto one = pieces(1, 4096, 0);
    EXPECT_EQ(a_.endpoint->post(OpKind::kWrite, one, key).pieces, 1U);
    auto flush = a_.endpoint->flush();
    EXPECT_TRUE(turnUntil([&] { return a_.endpoint->ended(flush) || a_.endpoint->broken(); }));
    EXPECT_TRUE(a_.endpoint->broken());
    EXPECT_EQ(b_.bytes[8], std::byte{0});
  }
  bool same(const Side& side, std::size_t from, std::size_t bytes) const {
    return testing::same(std::span(side.bytes).subspan(from, bytes),
                         std::span(pattern()).subspan(from, bytes));
  }

  Settings settings_;
  Side a_, b_;
};

}  // namespace viaduct::ofi
