#include "measure/run/flows_at_once.h"

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

namespace viaduct::measure::pipeline {
namespace {

// How often the waiting thread checks for a stop request and a failed group, which do not wake it.
// It also checks for notes, which wake it only if the members' flows share a ring.
constexpr std::chrono::milliseconds kLookAround{20};

// A flow in a thread of its own.
struct Running {
  explicit Running(const OwnFlow& one) : own(one) {}
  OwnFlow own;
  bool moved = false, ended = false;
  std::optional<Error> failure = {};
};

// The member's own flows, and its agreement with the other member about their end.
class AtOnce {
 public:
  AtOnce(const std::vector<OwnFlow>& own, const FlowsScene& scene,
         std::chrono::nanoseconds duration)
      : scene_(scene), until_(Clock::now() + duration) {
    for (const OwnFlow& one : own) running_.emplace_back(one);
    if (scene_.across != nullptr)
      scene_.across->tellWith([this](const RingCounts& ring) { return tell({.ring = ring}); });
  }

  Status run() {
    std::vector<std::thread> threads;
    threads.reserve(running_.size());
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
    const auto moved = [&] { change([&] { one.moved = true; }); };
    auto done = one.own.flow.run(enough_, cancel_, moved, one.own.neighbours);
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
      const auto until = until_ > now ? std::min(until_, soon) : soon;
      if (scene_.across == nullptr) {
        changed_.wait_until(held, until);
        continue;
      }
      // Waits for notes instead of `changed_`, because a flow may be blocked until the other
      // member's news about the shared ring arrives.
      held.unlock();
      if (const auto note = scene_.agent.waitNote(until)) hear(*note);
      held.lock();
    }
  }
  void look() {
    const bool moved = all([](const Running& one) { return one.moved || one.ended; });
    if (moved) tellOnce();
    scene_.moving.look();
    const Order order = scene_.moving.orders.load();
    const bool late = Clock::now() >= until_ || order == Order::kFinish;
    if (moved && hears() && late) enough_.store(true);
    if (order == Order::kCancel) cancel_.store(true);
    if (scene_.across != nullptr) scene_.across->tellAgain();
  }
  // Tells the other member that all flows here have moved their bytes once. If the note cannot be
  // sent, the other member is gone, and the group reports that.
  void tellOnce() {
    if (scene_.other == nullptr || std::exchange(told_, true)) return;
    static_cast<void>(tell({.moved = true}));
  }
  bool tell(FlowNews news) const {
    news.part = scene_.part;
    return scene_.other->note(base::encode(news)).has_value();
  }
  bool hears() {
    if (scene_.other == nullptr) return true;
    while (const auto note = scene_.agent.takeNote()) hear(*note);
    return heard_;
  }
  void hear(const Note& note) {
    FlowNews news;
    if (!base::unpack(base::textOf(note.bytes), news) || news.part != scene_.part) return;
    heard_ = heard_ || news.moved;
    if (scene_.across != nullptr) scene_.across->hear(news.ring);
  }

  const FlowsScene& scene_;
  const Clock::time_point until_;
  std::vector<Running> running_;  // mutex_ guards each entry except its flow
  std::mutex mutex_;
  std::condition_variable changed_;  // a flow has moved its bytes once, or has ended
  std::atomic<bool> enough_{false}, cancel_{false};
  bool told_ = false, heard_ = false;
};

}  // namespace

Status runAtOnce(const std::vector<OwnFlow>& own, const FlowsScene& scene,
                 std::chrono::nanoseconds duration) {
  if (own.empty()) return Ok{};
  return AtOnce(own, scene, duration).run();
}

}  // namespace viaduct::measure::pipeline
