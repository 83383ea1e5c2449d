#include "measure/pipeline/flows_at_once.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "base/bytes.h"

namespace viaduct::measure::pipeline {
namespace {

// Time between looks at a stop, at the group and at notes, which wake no waiting thread.
constexpr std::chrono::milliseconds kLookAround{20};

// A flow in a thread of its own.
struct Running {
  explicit Running(Flow& one) : flow(one) {}
  Flow& flow;
  bool moved = false, ended = false;
  std::optional<Error> failure = {};
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
    for (Running& one : running_) threads.emplace_back([&] { runOne(one); });
    awaitEnds();
    for (std::thread& thread : threads) thread.join();
    tellOnce();
    for (const Running& one : running_)
      if (one.failure) return *one.failure;
    return Ok{};
  }

 private:
  void runOne(Running& one) {
    auto done = one.flow.run(enough_, cancel_, [&] { change([&] { one.moved = true; }); });
    change([&] {
      one.ended = true;
      if (!done) one.failure = std::move(done).error();
    });
  }
  void change(auto how) {
    const std::lock_guard held(mutex_);
    how();
    changed_.notify_one();
  }
  bool all(auto holds) const { return std::all_of(running_.begin(), running_.end(), holds); }

  void awaitEnds() {
    std::unique_lock held(mutex_);
    while (!all([](const Running& one) { return one.ended; })) {
      look();
      const auto now = Clock::now(), soon = now + kLookAround;
      changed_.wait_until(held, until_ > now ? std::min(until_, soon) : soon);
    }
  }
  void look() {
    const bool moved = all([](const Running& one) { return one.moved || one.ended; });
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
  std::vector<Running> running_;  // what is in one is guarded by mutex_, except its flow
  std::mutex mutex_;
  std::condition_variable changed_;  // a flow has moved its bytes once, or has ended
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
