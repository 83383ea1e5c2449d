// Two tcp backends with a link between them, for tests. One thread runs both ends.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "backends/tcp/tcp_backend.h"
#include "backends/tcp/tcp_link.h"
#include "base/random.h"
#include "core/sink_testing.h"
#include "support/bytes.h"
#include "support/link_pair.h"

namespace viaduct::tcp {

struct Ended {
  std::uint64_t moved = 0, bytes = 0, failed = 0;
  std::optional<Error> why = {};
  bool rail_lost = false;
};

inline Ended endedOf(const core::Completions& done, std::uint64_t number) {
  Ended out;
  for (const core::Completion& one : done) {
    if (const auto* moved = std::get_if<core::Moved>(&one);
        moved != nullptr && moved->slice.number == number) {
      out.moved += moved->ops;
      out.bytes += moved->bytes;
    }
    if (const auto* failed = std::get_if<core::Failed>(&one);
        failed != nullptr && failed->slice.number == number) {
      out.failed += failed->ops;
      out.why = failed->why;
      out.rail_lost = failed->rail_lost;
    }
  }
  return out;
}

// A piece of memory to pin, with random bytes if `seed` is not 0.
struct Region {
  explicit Region(std::size_t size, std::uint64_t seed = 0) : bytes(size) {
    if (seed != 0) testing::fillRandom(bytes, seed);
  }
  std::uint64_t at(std::size_t offset = 0) const {
    return reinterpret_cast<std::uintptr_t>(bytes.data()) + offset;
  }
  Segment segment() const { return Segment::host(bytes.data(), bytes.size()); }
  std::vector<std::byte> bytes;
};

// Side 0 dials, side 1 accepts.
class TcpPair : public ::testing::Test {
 protected:
  // Set these before open().
  std::array<Settings, 2> settings_;
  core::LinkSeed seed_;

  void open(bool ready = true) {
    poller_ = *base::Poller::open(&clock_);
    for (const std::size_t i : {0U, 1U}) {
      backend_[i] = std::make_unique<TcpBackend>(
          core::BackendContext{.settings = settings_[i], .poller = *poller_});
      const auto opened = backend_[i]->open(settings_[i]);
      ASSERT_TRUE(opened) << opened.error().text();
    }
    seed_.epoch = 7;
    static_cast<void>(base::fillSecret(seed_.key));
    pair_ = std::make_unique<testing::LinkPair>(*backend_[0], *backend_[1], *poller_, seed_);
    if (ready) {
      ASSERT_TRUE(pair_->run([&] { return pair_->ready(); }))
          << pair_->ends[0].link->state().text << pair_->ends[1].link->state().text;
    }
  }
  void TearDown() override { pair_.reset(); }

  core::Link& link(std::size_t side) { return *pair_->ends[side].link; }
  // The descriptor of the socket that this rail uses next.
  int socketOf(std::size_t side, std::size_t on) {
    move::Channel* const channel = static_cast<TcpLink&>(link(side)).channelFor(on);
    return static_cast<TcpChannel&>(*channel).socket()->fd();
  }
  core::Rail& rail(std::size_t side, std::size_t i = 0) { return *backend_[side]->rails()[i]; }
  std::size_t post(std::size_t side, OpKind kind, std::uint64_t number,
                   std::span<const core::Op> ops, std::size_t on = 0) {
    return rail(side, on).post(
        {.kind = kind, .slice = core::testing::sliceOf(number), .link = &link(side), .ops = ops});
  }
  Ended ended(std::size_t side, std::uint64_t number) { return endedOf(pair_->done[side], number); }
  bool finish(std::size_t side, std::uint64_t number, std::uint64_t ops) {
    return pair_->run([&] {
      const Ended now = ended(side, number);
      return now.moved + now.failed >= ops;
    });
  }
  // Polls the rails of one side `count` times. The other side makes no progress.
  void turnRails(std::size_t side, int count) {
    for (int i = 0; i < count; ++i)
      for (const auto& one : backend_[side]->rails()) core::pollAndHandle(*one, pair_->done[side]);
  }

  // Polls the rails of one side until `until()` is true. The other side makes no progress. False
  // after 30 s.
  template <class F>
  bool runAlone(std::size_t side, F until) {
    const auto end = Clock::now() + std::chrono::seconds(30);
    for (; !until(); turnRails(side, 1)) {
      if (Clock::now() > end) return false;
      base::Poller::Events events;
      poller_->handle(events, poller_->block(events, Clock::now()), Clock::now());
    }
    return true;
  }

  base::MovableClock clock_;
  std::unique_ptr<base::Poller> poller_;
  std::array<std::unique_ptr<TcpBackend>, 2> backend_;
  std::unique_ptr<testing::LinkPair> pair_;
};

// Ops that cover both regions in pieces of random lengths, in shuffled order.
inline std::vector<core::Op> scattered(const Region& local, const Region& remote, std::size_t piece,
                                       std::uint64_t seed) {
  base::Random random(seed);
  std::vector<core::Op> ops;
  std::uint64_t at = 0;
  while (at < local.bytes.size()) {
    const std::uint64_t bytes =
        std::min<std::uint64_t>(1 + random.below(2 * piece), local.bytes.size() - at);
    ops.push_back({.local = local.at(at),
                   .remote = remote.at(at),
                   .bytes = bytes,
                   .local_pin = 0,
                   .remote_pin = 0});
    at += bytes;
  }
  for (std::size_t i = ops.size(); i > 1; --i) std::swap(ops[i - 1], ops[random.below(i)]);
  return ops;
}

}  // namespace viaduct::tcp
