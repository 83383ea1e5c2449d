#include "measure/run/stream_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <condition_variable>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "measure/proof/lane.h"
#include "measure/run/background.h"
#include "measure/run/spot_checks.h"
#include "measure/workload/collective.h"
#include "measure/workload/stream_contents.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kAnnounced = 10s;  // for the other end's pin to be announced
// First epochs of consecutive rows differ by this number, so that contents of an earlier row are
// recognised as stale.
constexpr std::uint64_t kEpochsOfARow = 4096;

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

class StreamTransfers final : public RowTransfers {
 public:
  StreamTransfers(WorkerState& worker, const Workload& row)
      : worker_(worker),
        spec_(worker.spec),
        row_(row),
        contents_(spec_, row, worker.streams, worker.bytes),
        begun_(worker.streams.size()),
        last_epoch_(++worker.rows * kEpochsOfARow) {}

  const Workload& row() const override { return row_; }

  Status prepare() override {
    VIADUCT_CHECK(beginStorage());
    VIADUCT_CHECK(planLanes());
    VIADUCT_CHECK(planBackground());
    touchSinks();
    return refill();
  }

  // The first transfer may register memory and open connections, so its time says little.
  std::vector<Goal> warmUp() const override { return {{.iterations = 1}, warmGoal(spec_, row_)}; }

  Schedule schedule(double seconds) override {
    schedule_ = scheduleOf(spec_, row_, seconds, worker_.streams.size(), contents_.fewestSets());
    return schedule_;
  }

  bool moveAlone(bool on) override {
    alone_ = on && scaledSide(spec_).has_value();
    return alone_;
  }

  // Fills the memory of the sources. Storage that is read keeps what beginStorage() has put there.
  Status refill() override {
    if (readsStorage()) return Ok{};
    epoch_ = ++last_epoch_;
    orderAfterAgent();
    for (const StreamEnd& end : ends(true))
      VIADUCT_CHECK(contents_.fill(end, epoch_, contents_.all(end.stream)));
    return Ok{};
  }

  void begin() override {
    for (Own& own : own_) own.lane->mark();
    background_.mark();
    timed_from_ = begun_;
  }

  Status between(const Moving& moving, bool /*last*/) override {
    if (schedule_.checks == 0) return Ok{};
    SpotChecks checks(
        worker_.agent, worker_.notes, contents_, epoch_, [&] { return moving.over(); },
        moving.hurried);
    auto done = runSpotChecks(checks);
    if (done) done = settleStorage();
    checks_ += checks.led();
    missed_ += checks.missed();
    if (mismatch_.empty()) mismatch_ = checks.wrong();
    return done;
  }

  // If every transfer is checked, the next sets get new contents. If storage is read, the receiving
  // memory gets words of an older epoch instead, which a skipped transfer leaves there.
  Status fill(const Goal& goal) override {
    if (!schedule_.every_transfer) return Ok{};
    const bool reads = readsStorage();
    if (!reads) epoch_ = ++last_epoch_;
    orderAfterAgent();
    for (const StreamEnd& end : ends(!reads))
      VIADUCT_CHECK(
          contents_.fill(end, reads ? epoch_ - 1 : epoch_, {begun_[end.stream], goal.iterations}));
    return Ok{};
  }

  Status move(const Goal& goal, const Moving& moving) override {
    std::mutex mutex;
    std::condition_variable ended;
    std::size_t running = 0;
    for (const Own& own : own_) running += moves(own.stream) ? 1 : 0;
    background_.start();
    std::vector<std::thread> threads;
    threads.reserve(running);
    for (Own& own : own_) {
      if (!moves(own.stream)) continue;
      threads.emplace_back([&] {
        runLane(own, goal, moving.orders);
        const std::lock_guard held(mutex);
        --running;
        ended.notify_one();
      });
    }
    auto look = Clock::now();
    for (bool over = false; !over; look = moving.look()) {
      std::unique_lock held(mutex);
      over = ended.wait_until(held, look, [&] { return running == 0; });
    }
    for (std::thread& thread : threads) thread.join();
    Failure found = background_.stop();
    for (const Own& own : own_)
      if (own.failure && (!found || found->code == Code::kCancelled)) found = own.failure;
    return found ? Status(*found) : Status(Ok{});
  }

  std::uint64_t bytesMoved() const override {
    std::uint64_t bytes = 0;
    for (const Own& own : own_)
      if (!own.echoes) bytes += own.lane->transfers() * own.row.bytes();
    return bytes * (spec_.ping_pong ? 2 : 1);
  }

  void tell(RoundShare& round) const override {
    for (const Own& own : own_)
      if (!own.echoes && !own.failure && moves(own.stream))
        round.streams.push_back(
            {own.stream, own.last.iterations, nanosecondsAt(own.last.start), own.last.parts});
  }

  Status ended(const Rounds::Round& round, bool timed) override {
    const std::vector<SetRange> used = usedIn(round);
    if (!timed) return Ok{};
    for (Own& own : own_) append(own.times, own.last);
    if (!schedule_.every_transfer) return Ok{};
    VIADUCT_TRY(const std::uint64_t wrong_streams, verify(used));
    missed_ += wrong_streams;
    for (const StreamEnd& end : ends(false)) checks_ += used[end.stream].count;
    return Ok{};
  }

  Status check(bool /*stopped*/) override {
    if (schedule_.every_transfer || spec_.verify == Verified::kOff) return Ok{};
    std::vector<SetRange> used;
    for (std::size_t s = 0; s < begun_.size(); ++s)
      used.push_back({.first = timed_from_[s], .count = begun_[s] - timed_from_[s]});
    auto done = verify(used);  // a wrong stream is counted by its mismatch
    return done ? Status(Ok{}) : Status(std::move(done).error());
  }

  std::vector<proof::Claim> claims() const override {
    std::vector<proof::Claim> out;
    for (const Own& own : own_) {
      if (!own.lane || own.failure) continue;
      out.push_back({.peer = worker_.rankOf(own.stream, other(own.role)),
                     .op = row_.op,
                     .path = own.lane->path(),
                     .stored = spec_.layout.stored(),
                     .device = worker_.numberOf(own.stream, own.role),
                     .far_device = worker_.numberOf(own.stream, other(own.role))});
    }
    for (proof::Claim& claim : background_.claims()) out.push_back(std::move(claim));
    return out;
  }

  void tell(RowShare& row) const override {
    row.mismatch = mismatch_;
    row.checks = checks_;
    row.missed = missed_;
    row.words = contents_.checkedWords();
    row.background = background_.figures();
    for (const Own& own : own_) {
      if (!own.lane) continue;
      row.prep.add(own.lane->prep());
      row.transfers += own.lane->transfers();
      row.bytes += own.lane->transfers() * own.row.bytes();
      row.ops = own.lane->ops();
      if (own.echoes) continue;
      row.latency.add(own.times.latency);
      row.post.add(own.times.post);
      row.tx.add(own.times.tx);
      row.streams.push_back({.stream = own.stream,
                             .iterations = own.times.iterations,
                             .bytes = own.times.iterations * own.row.bytes(),
                             .latency_us = latencyOf(own.times.latency)});
    }
    for (const WorkerDevice& device : worker_.devices)
      if (const auto gpu = device.memory ? device.memory->gpu() : std::nullopt)
        row.gpus.push_back(*gpu);
  }

 private:
  struct Own {  // a stream of which this process runs an end
    std::uint32_t stream = 0;
    Role role = Role::kInitiator;
    bool echoes = false;  // the answering end of a ping-pong
    Workload row = {};    // as the stream moves it
    std::unique_ptr<Lane> lane;
    LaneTimes last = {};   // of the last round
    LaneTimes times = {};  // of all timed rounds, without start and parts
    Failure failure = {};
  };

  // True if the stream moves in the present round.
  bool moves(std::uint32_t stream) const {
    return !alone_ || worker_.numberOf(stream, scaledSide(spec_)->role) == 0;
  }

  Status planLanes() {
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s)
      for (const Role role : {Role::kInitiator, Role::kTarget}) {
        const bool runs = role == worker_.initiating(s);
        if ((!runs && !spec_.ping_pong) || worker_.rankOf(s, role) != worker_.rank) continue;
        own_.push_back({.stream = s,
                        .role = role,
                        .echoes = !runs,
                        .row = workOf(row_, worker_.streams[s]),
                        .lane = {}});
        if (auto planned = plan(own_.back()); !planned) {
          Error why = std::move(planned).error();
          if (why.device.empty()) why.device = row_.backend;
          return why;
        }
      }
    return Ok{};
  }

  // One flow for each pair of devices between which streams of this process move.
  Status planBackground() {
    if (spec_.background == 0) return Ok{};
    std::set<std::tuple<std::uint32_t, std::uint32_t, bool>> pairs;
    for (const Own& own : own_) {
      const Stream& stream = worker_.streams[own.stream];
      if (own.echoes ||
          !pairs.emplace(stream.pair.initiator, stream.pair.target, stream.reverse).second)
        continue;
      const Role there = other(own.role);
      const std::uint32_t rank = worker_.rankOf(own.stream, there);
      const Peer& peer = worker_.peers.at(rank);
      VIADUCT_TRY(const PinInfo pin, peer.waitPin(labelOf(there, stream.pair), kAnnounced));
      const auto endOf = [&](Role role) {
        return role == Role::kInitiator ? worker_.bytes.initiator : worker_.bytes.target;
      };
      VIADUCT_CHECK(background_.add(
          worker_.agent,
          {.peer = peer,
           .here = worker_.deviceOf(own.stream, own.role)->memory->address() + endOf(own.role),
           .there = pin.address + endOf(there),
           .claim = {.peer = rank,
                     .op = row_.op,
                     .device = worker_.numberOf(own.stream, own.role),
                     .far_device = worker_.numberOf(own.stream, there)}},
          spec_.background, requireOf(row_, spec_.require)));
    }
    return Ok{};
  }

  Status plan(Own& own) {
    const Role there = other(own.role);
    const Pair& pair = worker_.streams[own.stream].pair;
    const Sets& sets = contents_.sets(own.stream);
    const Peer& peer = worker_.peers.at(worker_.rankOf(own.stream, there));
    const bool initiator = own.role == Role::kInitiator;
    std::function<Result<Blocks>(std::uint64_t)> remote;
    std::function<Result<LaneSides>(std::uint64_t, std::uint32_t)> sides;
    if (row_.kv) {
      VIADUCT_TRY(const PinInfo pin, peer.waitPin(labelOf(there, pair), kAnnounced));
      VIADUCT_TRY(sides, kvSides(own, pin.address));
    } else if (spec_.layout.stored()) {
      remote = [this, stream = own.stream](std::uint64_t set) {
        return storageOf(stream).blocks(storedSet(stream, set));
      };
    } else {
      VIADUCT_TRY(const PinInfo pin, peer.waitPin(labelOf(there, pair), kAnnounced));
      remote = [&sets, row = own.row,
                base = pin.address +
                       (initiator ? sets.target_at : sets.initiator_at)](std::uint64_t set) {
        return Blocks::strided(
            {.base = base + set * sets.stride, .bytes = row.block_bytes, .count = row.batch});
      };
    }
    VIADUCT_TRY(own.lane, Lane::plan({.spec = spec_,
                                      .row = own.row,
                                      .agent = worker_.agent,
                                      .peer = peer,
                                      .notes = worker_.notes,
                                      .memory = *worker_.deviceOf(own.stream, own.role)->memory,
                                      .own_at = initiator ? sets.initiator_at : sets.target_at,
                                      .remote = std::move(remote),
                                      .sides = std::move(sides),
                                      .sets = sets.count,
                                      .stride = sets.stride,
                                      .role = own.role,
                                      .number = own.stream}));
    return Ok{};
  }

  // Returns the sides of a KV row's transfers. `far` is the address of the other end's pool.
  Result<std::function<Result<LaneSides>(std::uint64_t, std::uint32_t)>> kvSides(
      const Own& own, std::uint64_t far) {
    const std::uint64_t near = worker_.deviceOf(own.stream, own.role)->memory->address();
    const bool push = row_.op == OpKind::kWrite;
    VIADUCT_TRY(KvSides kv, KvSides::make(*row_.kv, push ? near : far, push ? far : near));
    return std::function<Result<LaneSides>(std::uint64_t, std::uint32_t)>(
        [kv = std::move(kv), push](std::uint64_t set, std::uint32_t request) -> Result<LaneSides> {
          VIADUCT_TRY(KvSelections both, kv.of(set, request));
          if (!push) std::swap(both.source, both.destination);
          return LaneSides{std::move(both.source), std::move(both.destination)};
        });
  }

  bool readsStorage() const { return spec_.layout.stored() && row_.op == OpKind::kRead; }
  bool writesStorage() const { return spec_.layout.stored() && row_.op == OpKind::kWrite; }
  Storage& storageOf(std::uint32_t stream) {
    return *worker_.deviceOf(stream, Role::kTarget)->storage;
  }
  StoredSet storedSet(std::uint32_t stream, std::uint64_t set) const {
    const Sets& sets = contents_.sets(stream);
    return {.part = worker_.streams[stream].target_part,
            .first = set * sets.stride / row_.block_bytes,
            .at = sets.target_at + set * sets.stride};
  }

  static Error cancelled() { return {.code = Code::kCancelled, .operation = "bench"}; }

  // Gives the storage its first contents. A row of reads finds there what it checks, and a row of
  // writes finds blocks that are not written for the first time.
  Status beginStorage() {
    if (!spec_.layout.stored()) return Ok{};
    epoch_ = ++last_epoch_;
    for (WorkerDevice& device : worker_.devices)
      if (device.storage) VIADUCT_CHECK(device.storage->begin(row_));
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s) {
      WorkerDevice* const device = worker_.deviceOf(s, Role::kTarget);
      if (device == nullptr) continue;
      VIADUCT_CHECK(eachSet(s, contents_.all(s), [&](std::uint64_t set) -> Status {
        if (worker_.stop.load()) return cancelled();
        if (worker_.heard.preparing) worker_.heard.preparing(set, contents_.sets(s).count);
        return storeFirst(s, set, *device->storage);
      }));
    }
    return settleStorage();
  }

  Status storeFirst(std::uint32_t stream, std::uint64_t set, Storage& storage) {
    if (storage.isGiven()) return storage.load(storedSet(stream, set));
    VIADUCT_CHECK(contents_.fill({stream, Role::kTarget, storage.bytes()}, epoch_, {set, 1}));
    return storage.store(storedSet(stream, set));
  }

  // Leaves no work to the device that would fall into the next round.
  Status settleStorage() {
    for (WorkerDevice& device : worker_.devices)
      if (device.storage) VIADUCT_CHECK(device.storage->settle());
    return Ok{};
  }

  // Calls `visit` with the numbers of the sets in this range.
  template <class Visit>
  Status eachSet(std::uint32_t stream, SetRange range, Visit visit) {
    const std::uint64_t there = contents_.sets(stream).count;
    const std::uint64_t count = std::min(range.count, there);
    for (std::uint64_t i = 0; i < count; ++i) VIADUCT_CHECK(visit((range.first + i) % there));
    return Ok{};
  }

  // Returns the sets that each stream used in this round. They follow the sets of the rounds
  // before.
  std::vector<SetRange> usedIn(const Rounds::Round& round) {
    std::vector<SetRange> used(begun_.size());
    for (const RoundShare& share : round)
      for (const TimeStretch& stretch : share.streams)
        if (stretch.stream < used.size()) {
          used[stretch.stream] = {begun_[stretch.stream], stretch.iterations};
          begun_[stretch.stream] += stretch.iterations;
        }
    return used;
  }

  void runLane(Own& own, const Goal& goal, Orders& orders) const {
    auto times = own.echoes        ? own.lane->echo(orders)
                 : spec_.ping_pong ? own.lane->pingPong(goal, orders)
                                   : own.lane->run(goal, orders);
    if (times)
      own.last = *std::move(times);
    else
      own.failure = times.error();
    if (own.failure) orders.store(Order::kCancel);  // the row is over for all members
  }

  Status runSpotChecks(SpotChecks& checks) {
    const std::uint64_t first = last_epoch_ + 1;
    last_epoch_ += schedule_.checks;
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s) {
      const Role leads = worker_.initiating(s), follows = other(leads);
      WorkerDevice* const device = worker_.deviceOf(s, leads);
      WorkerDevice* const far_device = worker_.deviceOf(s, follows);
      if (device != nullptr && spec_.layout.stored()) {
        VIADUCT_CHECK(checks.leadStored(
            laneOf(s, leads), endOf(s, leads), endOf(s, follows), schedule_.checks, first,
            [&](std::uint64_t set) { return far_device->storage->load(storedSet(s, set)); }));
      } else if (device != nullptr) {
        const Peer& far = worker_.peers.at(worker_.rankOf(s, follows));
        VIADUCT_CHECK(checks.lead(laneOf(s, leads), endOf(s, leads), far, schedule_.checks, first));
      } else if (far_device != nullptr) {
        VIADUCT_CHECK(checks.follow(endOf(s, follows)));
      }
    }
    return Ok{};
  }

  Lane& laneOf(std::uint32_t stream, Role role) {
    return *std::find_if(own_.begin(), own_.end(), [&](const Own& own) {
              return own.stream == stream && own.role == role;
            })->lane;
  }

  // An end of a stream that this process has.
  StreamEnd endOf(std::uint32_t stream, Role role) {
    const WorkerDevice& device = *worker_.deviceOf(stream, role);
    StreamEnd out{
        .stream = stream, .role = role, .memory = device.bytes(), .mirror = device.mirror()};
    if (readsStorage() && storageOf(stream).isGiven()) out.original = storageOf(stream).bytes();
    return out;
  }

  std::vector<StreamEnd> ends(bool sources) {
    std::vector<StreamEnd> out;
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s) {
      const Role role = sources ? contents_.source(s) : other(contents_.source(s));
      if (worker_.deviceOf(s, role) != nullptr) out.push_back(endOf(s, role));
    }
    return out;
  }

  // The first access to a page takes longer than the transfer to it, so it happens before the timed
  // rounds.
  void touchSinks() {
    if (writesStorage()) return;
    for (const StreamEnd& end : ends(false)) contents_.touch(end);
  }

  // The agent's thread may have accessed the memory that is filled and checked here. Only the other
  // process has ordered both accesses. poll() orders them within this process too.
  void orderAfterAgent() { worker_.agent.poll(); }

  // `used` holds the sets that each stream has used. Their sources have the present epoch.
  // Returns the number of streams with wrong bytes.
  Result<std::uint64_t> verify(const std::vector<SetRange>& used) {
    std::uint64_t wrong_streams = 0;
    orderAfterAgent();
    for (const StreamEnd& end : ends(false)) {
      if (writesStorage()) VIADUCT_CHECK(loadStored(end.stream, used[end.stream]));
      VIADUCT_TRY(const Wrong wrong, contents_.verify(end, epoch_, used[end.stream]));
      if (!wrong) continue;
      ++wrong_streams;
      if (mismatch_.empty()) mismatch_ = *wrong;
    }
    return wrong_streams;
  }

  Status loadStored(std::uint32_t stream, SetRange used) {
    return eachSet(stream, used, [&](std::uint64_t set) {
      return storageOf(stream).load(storedSet(stream, set));
    });
  }

  WorkerState& worker_;
  const Spec& spec_;
  const Workload& row_;
  StreamContents contents_;
  std::uint64_t epoch_ = 0;  // of the sources' contents
  Schedule schedule_;
  std::vector<Own> own_;
  Background background_;
  bool alone_ = false;                          // only the first device of the scaled side moves
  std::vector<std::uint64_t> begun_;            // transfers of each stream so far
  std::vector<std::uint64_t> timed_from_ = {};  // at begin()
  // The highest content epoch that a fill or a spot check has used; the next takes a higher one.
  std::uint64_t last_epoch_;
  std::uint64_t checks_ = 0, missed_ = 0;
  std::string mismatch_;
};

}  // namespace

std::unique_ptr<RowTransfers> streamTransfers(WorkerState& worker, const Workload& row) {
  return std::make_unique<StreamTransfers>(worker, row);
}

}  // namespace viaduct::measure
