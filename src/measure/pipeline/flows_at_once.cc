#include "measure/pipeline/flows_at_once.h"

#include <algorithm>
#include <atomic>
#include <deque>
#include <optional>
#include <thread>
#include <utility>

#include "base/bytes.h"

namespace viaduct::measure::pipeline {
namespace {

constexpr std::chrono::milliseconds kLookAround{5};  // between looks at the running flows

// A flow in a thread of its own.
struct Running {
  explicit Running(Flow& one) : flow(one) {}
  Flow& flow;
  std::atomic<bool> moved{false}, ended{false};
  std::optional<Error> failure = {};  // once `ended` is set
};

// The member's own flows, and its agreement with the other member about their end.
class AtOnce {
 public:
  AtOnce(const std::vector<Flow*>& own, const FlowsScene& scene, std::chrono::nanoseconds duration)
      : scene_(scene), until_(Clock::now() + duration) {
    for (Flow* const flow : own) running_.emplace_back(*flow);
  }

  Status run() {
    std::vector<std::thread> threads;
    for (Running& one : running_)
      threads.emplace_back([&] {
        if (auto done = one.flow.run(enough_, one.moved, cancel_); !done)
          one.failure = std::move(done).error();
        one.ended.store(true);
      });
    while (!all([](const Running& one) { return one.ended.load(); })) {
      look();
      std::this_thread::sleep_for(kLookAround);
    }
    for (std::thread& thread : threads) thread.join();
    tellOnce();
    for (const Running& one : running_)
      if (one.failure) return *one.failure;
    return Ok{};
  }

 private:
  bool all(auto holds) const { return std::all_of(running_.begin(), running_.end(), holds); }

  void look() {
    const bool moved = all([](const Running& one) { return one.moved.load() || one.ended.load(); });
    if (moved) tellOnce();
    if (moved && hears() && Clock::now() >= until_) enough_.store(true);
    if (scene_.stop.load() || scene_.group.trouble()) cancel_.store(true);
  }
  // Tells the other member that these flows have moved their bytes. If the note cannot be sent, the
  // member is gone, and the group reports that.
  void tellOnce() {
    if (scene_.other == nullptr || std::exchange(told_, true)) return;
    static_cast<void>(scene_.other->note(base::Writer().put(scene_.part).take()));
  }
  bool hears() {
    if (scene_.other == nullptr) return true;
    while (const auto note = scene_.agent.takeNote())
      heard_ = heard_ || base::Reader(note->bytes).get<std::uint64_t>() == scene_.part;
    return heard_;
  }

  const FlowsScene& scene_;
  const Clock::time_point until_;
  std::deque<Running> running_;  // atomic members do not move
  std::atomic<bool> enough_{false}, cancel_{false};
  bool told_ = false, heard_ = false;
};

}  // namespace

Status runAtOnce(const std::vector<Flow*>& own, const FlowsScene& scene,
                 std::chrono::nanoseconds duration) {
  if (own.empty()) return Ok{};
  return AtOnce(own, scene, duration).run();
}

}  // namespace viaduct::measure::pipeline
