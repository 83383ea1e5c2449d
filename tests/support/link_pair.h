// Connects two backends as two agents would, in one process and one thread. Tests of a backend use
// its links and rails without agents.
#pragma once

#include <fcntl.h>
#include <gtest/gtest.h>

#include <deque>
#include <memory>
#include <utility>
#include <vector>

#include "core/backend.h"

namespace viaduct::testing {

// Unpins as an agent does: repeats until no copy is inside, or the backend gives up.
inline Status withdraw(core::Backend& backend, std::uint32_t slot) {
  Status left = backend.unpin(slot);
  while (!left && left.error().code == Code::kBusy) left = backend.unpin(slot);
  return left;
}

class LinkEnd final : public core::LinkHost {
 public:
  Status send(std::span<const std::byte> message, std::span<const int> fds = {}) override {
    LinkMessage copy{{message.begin(), message.end()}, {}};
    for (const int fd : fds) copy.fds.emplace_back(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
    sent.push_back(std::move(copy));
    return Ok{};
  }
  void changed() override { ++changes; }

  struct LinkMessage {
    core::Bytes bytes;
    std::vector<core::Fd> fds;
  };
  std::deque<LinkMessage> sent;
  int changes = 0;
  std::unique_ptr<core::Link> link;
};

// Both ends' backends and links, and the one poller that drives them.
class LinkPair {
 public:
  // `seed` has the common fields; the constructor sets dialer and address.
  LinkPair(core::Backend& a, core::Backend& b, base::Poller& poller, const core::LinkSeed& seed)
      : backends_{&a, &b}, poller_(poller) {
    for (const int i : {0, 1}) {
      core::LinkSeed mine = seed;
      mine.peer = i == 0 ? "b" : "a";
      mine.dialer = i == 0;
      mine.address = backends_[1 - i]->address();
      ends[i].link = backends_[i]->link(std::move(mine), ends[i]);
    }
  }
  ~LinkPair() {
    for (LinkEnd& end : ends)
      if (end.link) end.link->close(done[&end == &ends[1] ? 1 : 0]);
  }

  // Pins memory at `owner`, and announces the pin to the other end.
  void pin(int owner, std::uint32_t slot, const Segment& memory) {
    auto key = backends_[owner]->pin(slot, memory);
    ASSERT_TRUE(key) << key.error().text();
    ends[1 - owner].link->addPin({.info = {.kind = memory.kind,
                                           .address = memory.address,
                                           .bytes = memory.bytes,
                                           .slot = slot},
                                  .key = *key});
  }

  // One round of progress of both ends: messages, fds, timers, rails.
  void progress(std::chrono::milliseconds block = std::chrono::milliseconds(0)) {
    deliver();
    base::Poller::Events events;
    const int count = poller_.block(events, poller_.now() + block);
    poller_.handle(events, count, poller_.now());
    for (const int i : {0, 1})
      for (const auto& rail : backends_[i]->rails()) core::pollAndHandle(*rail, done[i]);
    deliver();
  }

  // Makes progress until `until()` is true; false if it is not within a time that suffices on a
  // busy machine.
  template <class F>
  bool run(F until, std::chrono::milliseconds limit = std::chrono::seconds(30)) {
    const auto end = Clock::now() + limit;
    while (!until())
      if (progress(); Clock::now() > end) return until();
    return true;
  }

  bool ready() const {
    return ends[0].link->state().phase == core::LinkState::Phase::kReady &&
           ends[1].link->state().phase == core::LinkState::Phase::kReady;
  }

  std::array<LinkEnd, 2> ends;
  std::array<core::Completions, 2> done;

 private:
  void deliver() {
    for (const int i : {0, 1})
      while (!ends[i].sent.empty()) {
        auto message = std::move(ends[i].sent.front());
        ends[i].sent.pop_front();
        if (ends[1 - i].link) ends[1 - i].link->receive(message.bytes, std::move(message.fds));
      }
  }

  std::array<core::Backend*, 2> backends_;
  base::Poller& poller_;
};

}  // namespace viaduct::testing
