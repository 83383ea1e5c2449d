#include "measure/run/row_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>

#include "host/processors.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnnounced = 10s;   // for the other end's pin to be known here
constexpr auto kLookAfter = 50ms;  // how often a running row is

std::string labelOf(Role role, const Pair& pair) {
  return role == Role::kInitiator ? fmt::format("bench-initiator-{}", pair.initiator)
                                  : fmt::format("bench-target-{}", pair.target);
}

void append(LaneTimes& all, const LaneTimes& more) {
  all.latency.add(more.latency);
  all.post.add(more.post);
  all.tx.add(more.tx);
  all.iterations += more.iterations;
}

std::uint64_t nanosecondsAt(Clock::time_point at) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

class CpuWatch {
 public:
  CpuUse used() const {
    CpuUse out{.used = host::ownProcessorSeconds() - used_,
               .over = std::chrono::duration<double>(Clock::now() - begun_).count()};
    if (const auto machine = host::processorUse(); machine && machine_) {
      out.machine = machine->seconds - machine_->seconds;
      out.processors = machine->count;
    }
    return out;
  }

 private:
  double used_ = host::ownProcessorSeconds();
  std::optional<host::ProcessorUse> machine_ = host::processorUse();
  Clock::time_point begun_ = Clock::now();
};

}  // namespace

RowRun::RowRun(Worker& worker, const Workload& row)
    : worker_(worker),
      spec_(worker.spec_),
      row_(row),
      contents_(spec_, row, worker.streams_, worker.bytes_) {}

Result<Composed> RowRun::run() {
  VIADUCT_TRY(const bool whole, steps());
  if (!whole && !failure_)
    failure_ = Error{.code = Code::kCancelled, .operation = "bench", .detail = "another failed"};
  return finish();
}

Result<bool> RowRun::steps() {
  const std::uint64_t warm = ++worker_.epoch_, now = ++worker_.epoch_;
  auto done = prepare();
  if (done) fill(warm);
  if (!done) failure_ = done.error();
  VIADUCT_TRY(bool well, worker_.allWell(failure_));
  if (!well) return false;
  done = runLanes(Phase::kWarm);
  if (!done) failure_ = done.error();
  VIADUCT_TRY(well, worker_.allWell(failure_));
  if (!well) return false;
  fill(now);
  // From here until all have looked at their devices nobody moves anything.
  VIADUCT_TRY(well, worker_.allWell({}));
  worker_.observer_.before();
  VIADUCT_TRY(well, timed());
  return well;
}

Result<bool> RowRun::timed() {
  CpuWatch cpu;
  for (std::uint32_t repeat = 0; repeat < spec_.repeat; ++repeat) {
    VIADUCT_TRY(const bool well, worker_.allWell(failure_));
    if (!well) return false;
    left_ns_.push_back(nanosecondsAt(Clock::now()));
    if (repeat == 0) cpu = CpuWatch();
    auto done = runLanes(Phase::kTimed);
    if (!done) failure_ = done.error();
  }
  // How often each stream has run is how much of its memory the other end has to check.
  RowShare used{.failure = failure_};
  for (const Own& own : own_)
    if (!own.echoes) used.streams.push_back({.stream = own.stream, .iterations = own.most});
  VIADUCT_TRY(const auto all, worker_.gather(encode(used)));
  cpu_ = cpu.used();  // a target works while it waits here
  claim();
  return verify(all);
}

Status RowRun::prepare() {
  for (std::uint32_t s = 0; s < worker_.streams_.size(); ++s)
    for (const Role role : {Role::kInitiator, Role::kTarget}) {
      const bool runs = role == worker_.initiating(s);
      if ((!runs && !spec_.ping_pong) || worker_.rankOf(s, role) != worker_.rank_) continue;
      own_.push_back({.stream = s, .role = role, .echoes = !runs, .lane = {}});
      if (auto planned = plan(own_.back()); !planned) {
        Error why = std::move(planned).error();
        if (why.device.empty()) why.device = row_.backend;
        return why;
      }
    }
  return Ok{};
}

Status RowRun::plan(Own& own) {
  const Role there = other(own.role);
  const Pair& pair = worker_.streams_[own.stream].pair;
  const Sets& sets = contents_.sets(own.stream);
  const Peer& peer = worker_.peers_.at(worker_.rankOf(own.stream, there));
  VIADUCT_TRY(const PinInfo pin, peer.waitPin(labelOf(there, pair), kAnnounced));
  const bool initiator = own.role == Role::kInitiator;
  VIADUCT_TRY(
      own.lane,
      Lane::plan({.spec = spec_,
                  .row = row_,
                  .agent = worker_.agent_,
                  .peer = peer,
                  .memory = worker_.deviceOf(own.stream, own.role)->memory,
                  .own_at = initiator ? sets.initiator_at : sets.target_at,
                  .remote_start = pin.address + (initiator ? sets.target_at : sets.initiator_at),
                  .sets = sets.count,
                  .stride = sets.stride,
                  .role = own.role,
                  .number = own.stream}));
  return Ok{};
}

Status RowRun::runLanes(Phase phase) {
  std::mutex mutex;
  std::condition_variable ended;
  std::size_t running = own_.size();
  std::vector<std::thread> threads;
  threads.reserve(own_.size());
  for (Own& own : own_)
    threads.emplace_back([&] {
      runLane(own, phase);
      const std::lock_guard held(mutex);
      --running;
      ended.notify_one();
    });
  for (bool over = false; !over;) {
    std::unique_lock held(mutex);
    over = ended.wait_for(held, kLookAfter, [&] { return running == 0; });
    held.unlock();
    watch();
  }
  for (std::thread& thread : threads) thread.join();
  Failure found;
  for (const Own& own : own_)
    if (own.failure && (!found || found->code == Code::kCancelled)) found = own.failure;
  return found ? Status(*found) : Status(Ok{});
}

void RowRun::runLane(Own& own, Phase phase) {
  const Goal goal = phase == Phase::kWarm ? warmGoal(spec_, row_) : timedGoal(spec_, row_);
  auto times = own.echoes        ? own.lane->echo(stop_lanes_)
               : spec_.ping_pong ? own.lane->pingPong(goal, stop_lanes_)
                                 : own.lane->run(goal, stop_lanes_);
  if (!times) own.failure = times.error();
  if (times) keep(own, *std::move(times), phase);
  if (own.failure) stop_lanes_.store(true);  // the row is over for all
}

void RowRun::keep(Own& own, LaneTimes times, Phase phase) {
  if (phase == Phase::kWarm) return;
  append(own.times, times);
  own.stretches.push_back({nanosecondsAt(times.start), std::move(times.parts)});
  own.most = std::max(own.most, times.iterations);
}

// A lane knows its own peer only: what happens to others ends it as well.
void RowRun::watch() {
  if (worker_.stop_.load() || worker_.group_.trouble()) stop_lanes_.store(true);
  if (worker_.heard_.tick) worker_.heard_.tick();
}

std::vector<StreamEnd> RowRun::ends(bool sources) {
  std::vector<StreamEnd> out;
  for (std::uint32_t s = 0; s < worker_.streams_.size(); ++s) {
    const Role role = sources ? contents_.source(s) : other(contents_.source(s));
    if (Device* device = worker_.deviceOf(s, role))
      out.push_back({.stream = s, .role = role, .memory = device->memory.bytes()});
  }
  return out;
}

void RowRun::fill(std::uint64_t epoch) {
  orderAfterAgent();
  for (const StreamEnd& end : ends(true)) contents_.fill(end, epoch);
}

// The agent's thread may have read or written what is filled and checked here, and only the other
// process has seen both: a turn of the agent's loop orders the two within this one as well.
void RowRun::orderAfterAgent() { worker_.agent_.poll(); }

Result<bool> RowRun::verify(const std::vector<std::string>& all) {
  std::vector<std::uint64_t> iterations(worker_.streams_.size());
  bool well = true;
  for (const std::string& one : all) {
    VIADUCT_TRY(const RowShare used, decodeShare(one));
    well = well && !used.failure;
    for (const StreamShare& s : used.streams)
      if (s.stream < iterations.size()) iterations[s.stream] = s.iterations;
  }
  if (!well) return false;
  orderAfterAgent();
  for (const StreamEnd& end : ends(false))
    if (auto wrong = contents_.verify(end, worker_.epoch_, iterations[end.stream]))
      mismatch_ = *std::move(wrong);
  return true;
}

// What this process's transfers say that they have moved, for the observer.
void RowRun::claim() {
  std::vector<proof::Claim> claims;
  for (const Own& own : own_) {
    if (!own.lane || own.failure) continue;
    claims.push_back({.peer = worker_.rankOf(own.stream, other(own.role)),
                      .op = row_.op,
                      .path = own.lane->path()});
  }
  worker_.observer_.after(std::move(claims));
}

RowShare RowRun::share() const {
  RowShare out{.failure = failure_, .left_ns = left_ns_, .cpu = cpu_, .mismatch = mismatch_};
  for (const Own& own : own_) {
    if (!own.lane) continue;
    out.prep.add(own.lane->prep());
    if (own.echoes) continue;
    out.latency.add(own.times.latency);
    out.post.add(own.times.post);
    out.tx.add(own.times.tx);
    out.streams.push_back({.stream = own.stream,
                           .iterations = own.times.iterations,
                           .latency_us = latencyOf(own.times.latency),
                           .stretches = own.stretches});
  }
  out.observation = worker_.observer_.encoded();
  return out;
}

Result<Composed> RowRun::finish() {
  VIADUCT_TRY(const auto all, worker_.gather(encode(share())));
  if (worker_.rank_ != 0) return Composed{};
  std::vector<RowShare> shares;
  for (const std::string& one : all) {
    VIADUCT_TRY(RowShare decoded, decodeShare(one));
    shares.push_back(std::move(decoded));
  }
  return compose(spec_, row_, shares);
}

}  // namespace viaduct::measure
