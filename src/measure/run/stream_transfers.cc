#include "measure/run/stream_transfers.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
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

#include "base/fields.h"
#include "base/random.h"
#include "measure/proof/lane.h"
#include "measure/run/background.h"
#include "measure/run/changing_words.h"
#include "measure/workload/collective.h"
#include "measure/workload/stream_contents.h"

namespace viaduct::measure {

// base::Fields finds the fields() functions below by argument-dependent lookup, so these stay
// outside of the unnamed namespace.
auto fields(base::Is<WordSum> auto& s) { return std::tie(s.first, s.second, s.words); }
auto fields(base::Is<ChangedWord> auto& w) { return std::tie(w.block, w.offset, w.value); }
auto fields(base::Is<SetContents> auto& c) {
  return std::tie(c.stream, c.set, c.seed, c.epoch, c.changed);
}

// The sums of a stream's sets that are compared after a run, at one end.
struct StreamSums {
  std::uint32_t stream = 0;
  bool source = false;
  std::vector<WordSum> sets = {};
};
auto fields(base::Is<StreamSums> auto& s) { return std::tie(s.stream, s.source, s.sets); }

namespace {

using namespace std::chrono_literals;

constexpr auto kAnnounced = 10s;  // for the other end's pin to be announced
// The most sets of a stream that are compared after a run, and the most bytes of these sets. The
// limit is never below the number of transfers in flight.
constexpr std::uint64_t kComparedSets = 72, kComparedBytes = std::uint64_t{1} << 20U;
// The most sets of a stream whose words change between two runs, or the number in flight if larger.
constexpr std::uint64_t kChangedSets = 16;

std::string labelOf(Role role, const Pair& pair) {
  return role == Role::kInitiator ? fmt::format("bench-initiator-{}", pair.initiator)
                                  : fmt::format("bench-target-{}", pair.target);
}

std::uint64_t nanosecondsAt(Clock::time_point at) {
  return static_cast<std::uint64_t>(std::chrono::nanoseconds(at.time_since_epoch()).count());
}

class StreamTransfers final : public RowTransfers {
 public:
  StreamTransfers(WorkerState& worker, const Workload& row)
      : worker_(worker), spec_(worker.spec), row_(row), begun_(worker.streams.size()) {}

  const Workload& row() const override { return row_; }

  Status prepare() override {
    VIADUCT_TRY(seed_, base::secretNumber());
    contents_.emplace(spec_, row_, worker_.streams, worker_.bytes, seed_);
    VIADUCT_CHECK(beginStorage());
    VIADUCT_CHECK(beginWords());
    VIADUCT_CHECK(planLanes());
    VIADUCT_CHECK(planBackground());
    touchSinks();
    return refill();
  }

  // The first round is a single transfer, because that may register memory and open connections.
  std::vector<Goal> warmUp() const override {
    return {{.iterations = 1, .timed = false}, warmGoal(spec_, row_)};
  }

  Schedule schedule(const WarmUp& warm) override {
    schedule_ = scheduleOf(
        spec_, row_,
        {.warm = warm, .streams = worker_.streams.size(), .sets = contents_->fewestSets()});
    return schedule_;
  }

  bool moveAlone(bool on) override {
    alone_ = on && scaledSide(spec_).has_value();
    return alone_;
  }

  // Fills the memory of the sources. Storage that is read keeps what beginStorage() has put there.
  Status refill() override {
    if (readsStorage()) return Ok{};
    ++epoch_;
    orderAfterAgent();
    for (const StreamEnd& end : ends(true))
      VIADUCT_CHECK(contents_->fill(end, epoch_, contents_->all(end.stream)));
    return Ok{};
  }

  void begin() override {
    for (Own& own : own_) own.lane->mark();
    for (const auto& ends : words_)
      for (const auto& words : ends)
        if (words) words->mark();
    background_.mark();
  }

  // Gives the sources new contents. If storage is read, the receiving memory instead gets words of
  // an older epoch, by which a check recognises a skipped transfer.
  Status fill(const Goal& goal) override {
    if (spec_.verify == Verified::kOff) return Ok{};
    if (!schedule_.refills) return changeWords(goal);
    const bool reads = readsStorage();
    if (!reads) ++epoch_;
    for (const StreamEnd& end : ends(!reads))
      VIADUCT_CHECK(
          contents_->fill(end, reads ? epoch_ - 1 : epoch_, {begun_[end.stream], goal.iterations}));
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
        round.streams.push_back({own.stream, own.last.iterations, nanosecondsAt(own.last.start),
                                 own.last.parts, own.last.transfers});
  }

  Status ended(const Rounds::Round& round, const Goal* run) override {
    const std::vector<SetRange> used = usedIn(round);
    sums_.clear();
    sent_.clear();
    wrong_.clear();
    if (run == nullptr) return Ok{};
    if (run->timed)
      for (Own& own : own_) own.iterations += own.last.iterations;
    if (spec_.verify == Verified::kOff) return Ok{};
    VIADUCT_CHECK(countReads());
    VIADUCT_CHECK(sumUp(used, round));
    return settleStorage();
  }

  std::string answer() override {
    std::vector<SetContents> told;
    for (const SetContents& one : sent_)
      if (wrong_.contains({one.stream, one.set})) told.push_back(one);
    return base::packed(sums_, told);
  }

  // Compares the sums first. If some differ, all members answer again, and the sources describe the
  // contents that they sent.
  Result<bool> compare(const std::vector<std::string>& answers) override {
    std::vector<StreamSums> sums;
    std::vector<SetContents> told;
    for (const std::string& one : answers) {
      std::vector<StreamSums> theirs;
      std::vector<SetContents> sent;
      if (!base::unpack(one, theirs, sent)) return malformed();
      sums.insert(sums.end(), theirs.begin(), theirs.end());
      told.insert(told.end(), sent.begin(), sent.end());
    }
    if (!wrong_.empty()) return describe(told);
    for (const StreamSums& source : sums)
      for (const StreamSums& sink : sums)
        if (source.source && !sink.source && source.stream == sink.stream)
          VIADUCT_CHECK(compareSums(source, sink));
    return !wrong_.empty();
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
    if (lane_missed_ != 0) tellLaneMisses(row);
    row.words = row_.kv ? checked_words_ : 0;
    row.background = background_.figures();
    for (const Own& own : own_) {
      if (!own.lane) continue;
      row.prep.add(own.lane->prep());
      row.transfers += own.lane->transfers();
      row.bytes += own.lane->transfers() * own.row.bytes();
      row.ops = own.lane->ops();
      if (own.echoes) continue;
      row.latency.add(own.lane->counts().latency);
      row.post.add(own.lane->counts().post);
      row.tx.add(own.lane->counts().tx);
      row.streams.push_back({.stream = own.stream,
                             .iterations = own.iterations,
                             .bytes = own.iterations * own.row.bytes(),
                             .latency_us = latencyOf(own.lane->counts().latency)});
    }
    for (const WorkerDevice& device : worker_.devices)
      if (const auto gpu = device.memory ? device.memory->gpu() : std::nullopt)
        row.gpus.push_back(*gpu);
  }

 private:
  // Adds the transfers that the lanes found wrong. A ping-pong's lanes check one direction only, so
  // all their misses count as one.
  void tellLaneMisses(RowShare& row) const {
    if (row.mismatch.empty()) row.mismatch = "a transfer brought nothing: an older word is there";
    row.missed = std::max(missed_, spec_.ping_pong ? 1 : lane_missed_);
    row.checks = std::max(checks_, row.missed);
  }

  struct Own {  // a stream of which this process runs an end
    std::uint32_t stream = 0;
    Role role = Role::kInitiator;
    bool echoes = false;  // the answering end of a ping-pong
    Workload row = {};    // the part of the row that the stream moves
    std::unique_ptr<Lane> lane;
    LaneTimes last = {};           // of the last round
    std::uint64_t iterations = 0;  // of all timed runs
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

  // Adds a background flow for each pair of devices between which this process's streams move.
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
      const auto end_of = [&](Role role) {
        return role == Role::kInitiator ? worker_.bytes.initiator : worker_.bytes.target;
      };
      VIADUCT_CHECK(background_.add(
          worker_.agent,
          {.peer = peer,
           .here = worker_.deviceOf(own.stream, own.role)->memory->address() + end_of(own.role),
           .there = pin.address + end_of(there),
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
    const Sets& sets = contents_->sets(own.stream);
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
                                      .number = own.stream,
                                      .marks = marksOf(own)}));
    return Ok{};
  }

  // Returns the words that the lane changes and checks. Null: no word changes within a run.
  LaneMarks* marksOf(const Own& own) const {
    const bool changes = changesWithin(own.stream) || spec_.fresh;
    return changes ? wordsOf(own.stream, own.role) : nullptr;
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
    const Sets& sets = contents_->sets(stream);
    return {.part = worker_.streams[stream].target_part,
            .first = set * sets.stride / row_.block_bytes,
            .at = sets.target_at + set * sets.stride};
  }

  static Error cancelled() { return {.code = Code::kCancelled, .operation = "bench"}; }

  // Gives the storage its first contents. A row of reads finds there what it checks, and a row of
  // writes finds blocks that are not written for the first time.
  Status beginStorage() {
    if (!spec_.layout.stored()) return Ok{};
    ++epoch_;
    for (WorkerDevice& device : worker_.devices)
      if (device.storage) VIADUCT_CHECK(device.storage->begin(row_));
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s) {
      WorkerDevice* const device = worker_.deviceOf(s, Role::kTarget);
      if (device == nullptr) continue;
      VIADUCT_CHECK(eachSet(s, contents_->all(s), [&](std::uint64_t set) -> Status {
        if (worker_.stop.load()) return cancelled();
        if (worker_.heard.preparing)
          worker_.heard.preparing("preparing storage", set, contents_->sets(s).count);
        return storeFirst(s, set, *device->storage);
      }));
    }
    return settleStorage();
  }

  Status storeFirst(std::uint32_t stream, std::uint64_t set, Storage& storage) {
    if (storage.isGiven()) return storage.load(storedSet(stream, set));
    VIADUCT_CHECK(contents_->fill({stream, Role::kTarget, storage.bytes()}, epoch_, {set, 1}));
    return storage.store(storedSet(stream, set));
  }

  // Waits until the storage devices have finished, so that no work delays the next round.
  Status settleStorage() {
    for (WorkerDevice& device : worker_.devices)
      if (device.storage) VIADUCT_CHECK(device.storage->settle());
    return Ok{};
  }

  // Calls `visit` with the numbers of the sets in this range.
  template <class Visit>
  Status eachSet(std::uint32_t stream, SetRange range, Visit visit) {
    const std::uint64_t there = contents_->sets(stream).count;
    const std::uint64_t count = std::min(range.count, there);
    for (std::uint64_t i = 0; i < count; ++i) VIADUCT_CHECK(visit((range.first + i) % there));
    return Ok{};
  }

  // Returns the sets that each stream used in this round. A stream continues after the sets that it
  // used in earlier rounds.
  std::vector<SetRange> usedIn(const Rounds::Round& round) {
    std::vector<SetRange> used(begun_.size());
    for (const RoundShare& share : round)
      for (const TimeStretch& stretch : share.streams)
        if (stretch.stream < used.size()) {
          used[stretch.stream] = {begun_[stretch.stream], stretch.transfers};
          begun_[stretch.stream] += stretch.transfers;
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

  // Returns an end of a stream. The end must be in this process.
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
      const Role role = sources ? contents_->source(s) : other(contents_->source(s));
      if (worker_.deviceOf(s, role) != nullptr) out.push_back(endOf(s, role));
    }
    return out;
  }

  // Touches the receiving memory before the timed rounds, because the first access to a page takes
  // longer than the transfer to it.
  void touchSinks() {
    if (writesStorage()) return;
    for (const StreamEnd& end : ends(false)) contents_->touch(end);
  }

  // Orders earlier accesses of the agent's thread before accesses to the same memory here. So far
  // only messages of the other process order them. This call takes the agent's lock, which orders
  // them in this process too. poll() would delay the next run: for a millisecond after poll(), the
  // agent's thread leaves all work to the polling thread.
  void orderAfterAgent() const { (void)worker_.agent.peers(); }

  // True if one word of memory changes before each transfer of a run. The initiating end changes
  // it.
  bool changesWithin(std::uint32_t stream) const {
    const bool gpu = worker_.initiating(stream) == Role::kInitiator
                         ? spec_.initiator_gpu.has_value()
                         : spec_.target_gpu.has_value();
    return !gpu && !row_.kv && contents_->sets(stream).count >= spec_.depth;
  }

  // Returns the sets whose contents are compared after a run. Each of them changed before its last
  // transfer. If transfers in flight share sets, a short run may not use them all, so none is
  // compared.
  SetRange compared(std::uint32_t stream, SetRange used) const {
    const std::uint64_t sets = contents_->sets(stream).count;
    if (schedule_.refills) return {used.first, std::min(used.count, sets)};
    if (sets < spec_.depth) return {0, used.count >= spec_.depth ? sets : 0};
    // If words change only between two runs, only the first sets of a run have changed words.
    if (!changesWithin(stream))
      return {used.first, std::min({used.count, sets, std::uint64_t{spec_.depth}})};
    const std::uint64_t bytes = workOf(row_, worker_.streams[stream]).bytes();
    const std::uint64_t most =
        std::max<std::uint64_t>(spec_.depth, std::min(kComparedSets, kComparedBytes / bytes));
    const std::uint64_t count = std::min({used.count, sets, most});
    return {used.first + used.count - count, count};
  }

  // Chooses at random the words that change at an end of a stream. Null: none change there, or the
  // end belongs to another process.
  Result<std::unique_ptr<ChangingWords>> newWords(std::uint32_t s, Role role) {
    using Way = ChangingWords::Way;
    const Role leader = worker_.initiating(s), source = contents_->source(s);
    const bool leads = role == leader, echoes = spec_.ping_pong && !leads;
    const bool answers = !leads && !echoes;
    if (worker_.deviceOf(s, role) == nullptr || (answers && (source != role || readsStorage())))
      return std::unique_ptr<ChangingWords>();
    VIADUCT_TRY(const std::uint64_t dice, base::secretNumber());
    return std::make_unique<ChangingWords>(
        ChangingWords::Facts{.contents = *contents_,
                             .end = endOf(s, role),
                             .way = echoes             ? Way::kEcho
                                    : spec_.ping_pong  ? Way::kBounce
                                    : source != leader ? Way::kRead
                                                       : Way::kWrite,
                             .depth = spec_.depth,
                             .dice = dice,
                             .whole = spec_.fresh && leads,
                             .by_transfer = changesWithin(s)});
  }

  // Chooses at random the words that change: at the initiating end, at the answering end of a
  // ping-pong, and at a source in memory that does not initiate.
  Status beginWords() {
    words_.resize(worker_.streams.size());
    if (spec_.verify == Verified::kOff) return Ok{};
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s) {
      const Role leader = worker_.initiating(s);
      VIADUCT_TRY(words_[s][0], newWords(s, leader));
      VIADUCT_TRY(words_[s][1], newWords(s, other(leader)));
    }
    return Ok{};
  }

  // Returns the changing words of this end, or null.
  ChangingWords* wordsOf(std::uint32_t stream, Role role) const {
    return words_[stream][role == worker_.initiating(stream) ? 0 : 1].get();
  }

  // Changes words of the sets that the next run uses first: at the sources, or in the receiving
  // memory if storage is read.
  Status changeWords(const Goal& goal) {
    for (const StreamEnd& end : ends(!readsStorage())) {
      ChangingWords* const words = wordsOf(end.stream, end.role);
      const SetRange next{begun_[end.stream],
                          std::min(std::max<std::uint64_t>(goal.lead + goal.iterations, 1),
                                   std::max<std::uint64_t>(spec_.depth, kChangedSets))};
      if (words != nullptr)
        VIADUCT_CHECK(
            eachSet(end.stream, next, [&](std::uint64_t set) { return words->change(set); }));
    }
    return Ok{};
  }

  // Counts the transfers that the lanes have checked, and those that they found wrong.
  Status countReads() {
    std::uint64_t checked = 0;
    lane_missed_ = 0;
    for (const Own& own : own_) {
      const ChangingWords* const words = wordsOf(own.stream, own.role);
      if (words == nullptr) continue;
      VIADUCT_CHECK(words->failure());
      checked += words->checked();
      lane_missed_ += words->missed();
    }
    if (schedule_.every_transfer && !schedule_.refills) checks_ = checked;
    return Ok{};
  }

  Status sumUp(const std::vector<SetRange>& used, const Rounds::Round& round) {
    orderAfterAgent();
    for (std::uint32_t s = 0; s < worker_.streams.size(); ++s) {
      ranges_[s] = compared(s, used[s]);
      const std::uint64_t nonce = round[worker_.rankOf(s, contents_->source(s))].nonce;
      VIADUCT_CHECK(eachSet(s, ranges_[s], [&](std::uint64_t set) {
        return sumUp(s, set, base::splitmix(nonce + s));
      }));
    }
    return Ok{};
  }

  // Sums up a set at each end that is in this process.
  Status sumUp(std::uint32_t stream, std::uint64_t set, std::uint64_t key) {
    const Role source = contents_->source(stream);
    std::optional<WordSum> sent;
    if (worker_.deviceOf(stream, source) != nullptr) {
      VIADUCT_TRY(sent, contents_->sum(endOf(stream, source), key, set));
      sumsOf(stream, true).push_back(*sent);
      sent_.push_back(sentIn(stream, set));
    }
    if (worker_.deviceOf(stream, other(source)) == nullptr) return Ok{};
    if (writesStorage()) VIADUCT_CHECK(storageOf(stream).load(storedSet(stream, set)));
    VIADUCT_TRY(const WordSum found, contents_->sum(endOf(stream, other(source)), key, set));
    sumsOf(stream, false).push_back(found);
    // If both ends are here, describes wrong bytes at once, because new contents may be written
    // before the members answer.
    return sent && *sent != found ? describe(sent_.back()) : Status(Ok{});
  }

  std::vector<WordSum>& sumsOf(std::uint32_t stream, bool source) {
    const auto known = std::ranges::find_if(
        sums_, [&](const StreamSums& one) { return one.stream == stream && one.source == source; });
    return known != sums_.end() ? known->sets : sums_.emplace_back(StreamSums{stream, source}).sets;
  }

  // Describes the contents of a set at its source, which must be in this process.
  SetContents sentIn(std::uint32_t stream, std::uint64_t set) const {
    SetContents out{.stream = stream, .set = set, .seed = seed_, .epoch = epoch_};
    const ChangingWords* const words = wordsOf(stream, contents_->source(stream));
    if (words == nullptr) return out;
    out.changed = words->words(set);
    if (words->seedOf(set) != 0) out.seed = words->seedOf(set), out.epoch = 1;
    return out;
  }

  Status compareSums(const StreamSums& source, const StreamSums& sink) {
    const std::uint32_t s = sink.stream;
    if (s >= begun_.size() || source.sets.size() != sink.sets.size()) return malformed();
    const std::uint64_t there = contents_->sets(s).count;
    std::uint64_t wrong = 0;
    for (std::size_t i = 0; i < sink.sets.size(); ++i) {
      if (worker_.deviceOf(s, other(contents_->source(s))) != nullptr)
        checked_words_ += sink.sets[i].words;
      if (source.sets[i] == sink.sets[i]) continue;
      ++wrong;
      wrong_.insert({s, (ranges_[s].first + i) % there});
    }
    if (worker_.deviceOf(s, other(contents_->source(s))) == nullptr) return Ok{};
    missed_ += wrong;
    if (!schedule_.every_transfer || schedule_.refills) checks_ += sink.sets.size();
    return Ok{};
  }

  // Describes the wrong bytes of the sets that arrived here. Returns false: no further answers are
  // needed.
  Result<bool> describe(const std::vector<SetContents>& told) {
    for (const SetContents& one : told) {
      if (one.stream >= begun_.size() || one.set >= contents_->sets(one.stream).count)
        return malformed();
      if (worker_.deviceOf(one.stream, other(contents_->source(one.stream))) != nullptr)
        VIADUCT_CHECK(describe(one));
    }
    wrong_.clear();
    return false;
  }

  // Only the first wrong bytes of a row are described.
  Status describe(SetContents sent) {
    if (!mismatch_.empty()) return Ok{};
    const Role sink = other(contents_->source(sent.stream));
    if (readsStorage() && storageOf(sent.stream).isGiven()) VIADUCT_CHECK(readAgain(sent));
    // In a ping-pong, the receiving end has also changed words, for its echo.
    if (const ChangingWords* const words = wordsOf(sent.stream, sink); words && spec_.ping_pong)
      for (const ChangedWord& word : words->words(sent.set)) sent.changed.push_back(word);
    VIADUCT_TRY(const Wrong wrong, contents_->differences(endOf(sent.stream, sink), sent));
    mismatch_ = wrong.value_or("wrong bytes, which have changed since");
    return Ok{};
  }

  // Fails if the user's file has changed since the row began.
  Status readAgain(const SetContents& sent) {
    const StreamEnd stored = endOf(sent.stream, Role::kTarget);
    VIADUCT_TRY(const WordSum before, contents_->sum(stored, 0, sent.set));
    VIADUCT_CHECK(storageOf(sent.stream).load(storedSet(sent.stream, sent.set)));
    VIADUCT_TRY(const WordSum now, contents_->sum(stored, 0, sent.set));
    if (before == now) return Ok{};
    return Error{.code = Code::kDevice,
                 .operation = "--filenames",
                 .detail = "another program has written the file while it was read",
                 .remedy = "read files that nothing else writes"};
  }

  static Error malformed() {
    return {.code = Code::kProtocol,
            .operation = "bench",
            .detail = "a member sent a malformed sum of contents"};
  }

  WorkerState& worker_;
  const Spec& spec_;
  const Workload& row_;
  std::uint64_t seed_ = 0;  // of this process's contents; secret
  std::optional<StreamContents> contents_;
  std::uint64_t epoch_ = 1;  // of the sources' contents
  // The words of the initiating end and of the other end, by stream. Null: no word changes there.
  std::vector<std::array<std::unique_ptr<ChangingWords>, 2>> words_;
  Schedule schedule_;
  std::vector<Own> own_;
  Background background_;
  bool alone_ = false;                // only the first device of the scaled side moves
  std::vector<std::uint64_t> begun_;  // transfers of each stream so far
  // The last run's compared sets, by stream; this process's sums; the contents that its sources
  // have sent; and the wrong sets.
  std::vector<SetRange> ranges_{worker_.streams.size()};
  std::vector<StreamSums> sums_;
  std::vector<SetContents> sent_;
  std::set<std::pair<std::uint32_t, std::uint64_t>> wrong_;
  std::uint64_t checks_ = 0, missed_ = 0;
  std::uint64_t lane_missed_ = 0;  // found by the lanes in all runs so far
  std::uint64_t checked_words_ = 0;
  std::string mismatch_;
};

}  // namespace

std::unique_ptr<RowTransfers> streamTransfers(WorkerState& worker, const Workload& row) {
  return std::make_unique<StreamTransfers>(worker, row);
}

}  // namespace viaduct::measure
