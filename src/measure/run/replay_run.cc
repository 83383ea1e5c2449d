#include "measure/run/replay_run.h"

#include <fmt/format.h>

#include <atomic>
#include <cstring>
#include <deque>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/random.h"
#include "measure/kv/replay_plan.h"
#include "measure/load/kv_point.h"
#include "measure/load/pattern.h"
#include "measure/run/cpu_watch.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kPinAnnounced = 10s;
constexpr auto kReplayLook = 50ms;  // how often the replay looks for a request to stop
// Each row has another epoch, so that contents of an earlier row are recognised as stale.
constexpr std::uint64_t kFirstEpoch = 1;

std::uint64_t nanosecondsIn(Duration time) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(std::chrono::nanoseconds(time).count(), 0));
}

// The blocks that a request keeps in a group. A window needs only the last ones.
std::size_t keptBlocks(const KvGroup& group, const ReplayRequest& request) {
  return std::min<std::size_t>(request.source.size(), kvBlocksOf(group, request.tokens));
}

// The contents of both pools: each page of the source has words of its own, and each page of the
// destination those of the page that arrived there last.
class ReplayContents {
 public:
  ReplayContents(const ReplayPlan& plan, const KvLayout& source, const KvLayout& destination,
                 std::uint64_t seed, std::uint64_t epoch)
      : plan_(plan), seed_(seed) {
    source_ = placesOf(source);
    destination_ = placesOf(destination);
    for (const KvGroup& group : destination.groups) {
      auto& arrived = arrivals_.emplace_back();
      for (const ReplayRequest& request : plan.requests)
        for (std::size_t b = request.source.size() - keptBlocks(group, request);
             b < request.source.size(); ++b)
          arrived[request.destination[b]] = {request.source[b], request.number};
    }
    std::uint64_t most = 1;
    for (const Place& place : source_) most = std::max(most, place.bytes);
    pattern_ = {.seed = seed,
                .block_bytes = most,
                .blocks = source.groups.front().blocks * source_.size(),
                .epoch = epoch % kEpochs};
  }

  void fill(std::span<std::byte> pool) const {
    std::set<std::uint32_t> blocks;
    for (const ReplayRequest& request : plan_.requests)
      blocks.insert(request.source.begin(), request.source.end());
    for (const std::uint32_t block : blocks)
      for (std::size_t p = 0; p < source_.size(); ++p)
        pattern_.fill(pageAt(pool, source_[p], block), numberOf(block, p));
  }
  void clear(std::span<std::byte> pool) const {
    for (const ReplayRequest& request : plan_.requests)
      for (const std::uint32_t block : request.destination)
        for (const Place& place : destination_) {
          const auto page = pageAt(pool, place, block);
          std::memset(page.data(), 0, page.size());
        }
  }

  struct Found {
    std::uint64_t requests = 0, words = 0;  // that were checked
    std::string wrong = {};                 // the first wrong page
  };
  Found verify(std::span<std::byte> pool, Verified how) const {
    Found out;
    std::set<std::uint64_t> requests;
    for (std::size_t p = 0; p < destination_.size(); ++p)
      for (const auto& [block, from] : arrivals_[destination_[p].group]) {
        requests.insert(from.request);
        const auto wrong =
            check(pageAt(pool, destination_[p], block), numberOf(from.block, p), how, out.words);
        if (wrong.empty()) continue;
        out.wrong = fmt::format("block {} place {} of request {} is wrong {}", block, p,
                                from.request, wrong);
        return out;
      }
    out.requests = requests.size();
    return out;
  }

 private:
  struct Place {
    std::size_t group = 0;
    std::uint64_t at = 0, stride = 0, bytes = 0;
  };
  struct Arrival {
    std::uint32_t block = 0;  // of the source
    std::uint64_t request = 0;
  };
  static std::vector<Place> placesOf(const KvLayout& layout) {
    std::vector<Place> out;
    for (std::size_t g = 0; g < layout.groups.size(); ++g) {
      const KvGroup& group = layout.groups[g];
      std::size_t number = 0;
      for (const KvCache& cache : group.caches)
        for (std::size_t i = 0; i < cache.layers.size() * cache.tensors; ++i) {
          const KvPlace& place = group.places[number++];
          out.push_back({g, place.address, place.stride, kvPageBytes(layout, group, cache)});
        }
    }
    return out;
  }
  static std::span<std::byte> pageAt(std::span<std::byte> pool, const Place& place,
                                     std::uint32_t block) {
    return pool.subspan(place.at + block * place.stride, place.bytes);
  }
  std::uint64_t numberOf(std::uint32_t block, std::size_t place) const {
    return block * source_.size() + place;
  }
  std::string check(std::span<const std::byte> page, std::uint64_t number, Verified how,
                    std::uint64_t& words) const {
    if (how == Verified::kFull) {
      words += page.size() / kWordBytes;
      const auto wrong = pattern_.verify(page, number);
      return wrong ? fmt::format("from offset {}: {}", wrong->offset, wrong->text) : "";
    }
    base::Random random(seed_ ^ number);
    const std::uint64_t last = (page.size() - 1) / kWordBytes * kWordBytes;
    for (const std::uint64_t offset :
         {std::uint64_t{0}, last, random.below(last / kWordBytes + 1) * kWordBytes}) {
      ++words;
      const std::uint64_t word = pattern_.word(number, offset);
      const auto found = page.subspan(offset);
      if (std::memcmp(found.data(), &word, std::min<std::size_t>(found.size(), kWordBytes)) != 0)
        return fmt::format("at offset {}: {}", offset, pattern_.describe(found, number, offset));
    }
    return {};
  }

  const ReplayPlan& plan_;
  const std::uint64_t seed_;
  std::vector<Place> source_, destination_;
  // By group: what the blocks of the destination have at the end. The last request that got a block
  // decides it.
  std::vector<std::map<std::uint32_t, Arrival>> arrivals_;
  Pattern pattern_;
};

class ReplayRun {
 public:
  ReplayRun(WorkerState& worker, const Workload& row)
      : worker_(worker),
        row_(row),
        push_(row.op == OpKind::kWrite),
        role_(worker.deviceOf(0, Role::kInitiator) != nullptr ? Role::kInitiator : Role::kTarget),
        plan_(planReplay(*row.trace->requests, row.kv->source.pool, row.kv->source.block,
                         row.trace->speed)),
        ended_ns_(plan_.requests.size()) {
    ++worker_.rows;
  }

  Result<Composed> run() {
    keep(prepare());
    VIADUCT_TRY(bool well, allWell());
    if (well) {
      worker_.observer.before();
      VIADUCT_TRY(well, allWell());
      const CpuWatch cpu;
      if (role_ == Role::kInitiator) keep(replay());
      VIADUCT_TRY(well, allWell());
      cpu_.add(cpu.used());
      claim();
      if (well) verify();
    }
    if (!well && !failure_)
      failure_ = Error{.code = Code::kCancelled, .operation = "bench", .detail = "another failed"};
    return finish();
  }

 private:
  void keep(const Status& done) {
    if (!done && !failure_) failure_ = done.error();
  }
  Result<bool> allWell() {
    VIADUCT_TRY(const auto all, worker_.gather(encode(failure_)));
    return areWell(all);
  }
  bool isSource() const { return (role_ == Role::kInitiator) == push_; }
  Buffer& memory() { return *worker_.deviceOf(0, role_)->memory; }

  // Fills the source. The destination is written too, because the first access to a page takes
  // longer than its transfer.
  Status prepare() {
    VIADUCT_TRY(const KvLayout from, layoutOf(*row_.kv, KvSide::kSource, 0));
    VIADUCT_TRY(const KvLayout to, layoutOf(*row_.kv, KvSide::kDestination, 0));
    contents_.emplace(plan_, from, to, worker_.spec.seed, kFirstEpoch + worker_.rows);
    worker_.agent.poll();
    if (isSource())
      contents_->fill(memory().bytes());
    else
      contents_->clear(memory().bytes());
    if (role_ == Role::kTarget) return Ok{};
    peer_ = worker_.peers.at(worker_.rankOf(0, Role::kTarget));
    VIADUCT_TRY(const PinInfo pin, peer_->waitPin("bench-target-0", kPinAnnounced));
    const std::uint64_t here = memory().address();
    VIADUCT_TRY(source_, layoutOf(*row_.kv, KvSide::kSource, push_ ? here : pin.address));
    VIADUCT_TRY(destination_, layoutOf(*row_.kv, KvSide::kDestination, push_ ? pin.address : here));
    VIADUCT_TRY(reshard_, KvReshard::plan(source_, destination_));
    return Ok{};
  }

  struct Flight {
    std::size_t request = 0;
    Transfer transfer;
  };

  // Returns the blocks of a request for each group.
  std::vector<KvBlocks> blocksOf(const ReplayRequest& request) const {
    std::vector<KvBlocks> out;
    for (const KvGroup& group : source_.groups) {
      const std::size_t kept = keptBlocks(group, request);
      const auto last = [&](const BlockIds& ids) { return Indices(std::span(ids).last(kept)); };
      out.push_back({.source = last(request.source),
                     .destination = last(request.destination),
                     .first_token = (request.source.size() - kept) * group.block_tokens});
    }
    return out;
  }

  Status launch(std::size_t number) {
    const auto begun = Clock::now();
    VIADUCT_TRY(KvSelections both, reshard_.select(blocksOf(plan_.requests[number])));
    if (!push_) std::swap(both.source, both.destination);
    std::string require = row_.backend.empty() ? "" : "backend:" + row_.backend;
    if (const auto more = requireOfTransfer(worker_.spec.require); !more.empty())
      require += (require.empty() ? "" : ",") + more;
    const auto ended = [this, number](const TransferEnd& /*end*/) {
      ended_ns_[number].store(nanosecondsIn(Clock::now() - start_), std::memory_order_release);
    };
    VIADUCT_TRY(
        Transfer transfer,
        worker_.agent.plan(row_.op, *peer_, std::move(both.source), std::move(both.destination),
                           {.require = std::move(require), .on_end = ended}));
    const auto planned = Clock::now();
    prep_.record(nanosecondsIn(planned - begun));
    VIADUCT_CHECK(transfer.post());
    post_.record(nanosecondsIn(Clock::now() - planned));
    flights_.push_back({number, std::move(transfer)});
    return Ok{};
  }

  Clock::time_point dueOf(std::size_t number) const {
    return start_ + std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double>(plan_.requests[number].due_s));
  }

  // Waits for the oldest transfer until this time, and takes it out if it has ended.
  Status land(Clock::time_point until) {
    Flight& oldest = flights_.front();
    const auto look = std::min(until, Clock::now() + kReplayLook);
    const auto done = oldest.transfer.wait(look);
    if (!done && done.error().code == Code::kTimeout && Clock::now() >= look) return Ok{};
    VIADUCT_CHECK(done);
    // The callback may still run on the agent's thread.
    while (ended_ns_[oldest.request].load(std::memory_order_acquire) == 0)
      std::this_thread::yield();
    const std::uint64_t ended = ended_ns_[oldest.request].load(std::memory_order_acquire);
    const std::uint64_t due = nanosecondsIn(dueOf(oldest.request) - start_);
    const std::uint64_t latency = ended > due ? ended - due : 0;
    latency_.record(latency);
    latencies_.push_back({oldest.request, latency});
    bytes_ += oldest.transfer.bytes();
    ops_ += oldest.transfer.ops();
    for (PathShare& share : oldest.transfer.carried().shares) path_.add(std::move(share));
    landed_ = std::max(landed_, oldest.request + 1);
    flights_.pop_front();
    return Ok{};
  }

  Status goOn() const {
    if (!worker_.stop.load() && !worker_.group.stopRequestedBy() && !worker_.group.trouble())
      return Ok{};
    return Error{.code = Code::kCancelled, .operation = "bench", .detail = "interrupted"};
  }

  Status replay() {
    start_ = Clock::now();
    for (std::size_t i = 0; i < plan_.requests.size(); ++i) {
      for (;;) {
        VIADUCT_CHECK(goOn());
        tick();
        const auto& after = plan_.requests[i].after;
        const bool blocked = after && *after >= landed_;
        const auto now = Clock::now();
        if (now >= dueOf(i) && !blocked) break;
        if (flights_.empty()) {
          std::this_thread::sleep_until(std::min(dueOf(i), now + kReplayLook));
          continue;
        }
        VIADUCT_CHECK(land(blocked ? Clock::time_point::max() : dueOf(i)));
      }
      VIADUCT_CHECK(launch(i));
    }
    while (!flights_.empty()) {
      VIADUCT_CHECK(goOn());
      VIADUCT_CHECK(land(Clock::time_point::max()));
      tick();
    }
    seconds_ = std::chrono::duration<double>(Clock::now() - start_).count();
    return Ok{};
  }

  void tick() const {
    const double seconds = std::chrono::duration<double>(Clock::now() - start_).count();
    if (worker_.heard.tick && seconds > 0)
      worker_.heard.tick(static_cast<double>(bytes_) * 1e-9 / seconds);
  }

  void claim() {
    std::vector<proof::Claim> claims;
    if (role_ == Role::kInitiator && !failure_)
      claims.push_back({.peer = worker_.rankOf(0, Role::kTarget), .op = row_.op, .path = path_});
    worker_.observer.after(std::move(claims));
  }

  void verify() {
    if (isSource() || worker_.spec.verify == Verified::kOff) return;
    worker_.agent.poll();  // orders the agent's writes to this memory before the check
    const auto found = contents_->verify(memory().bytes(), worker_.spec.verify);
    checks_ = found.requests;
    words_ = found.words;
    mismatch_ = found.wrong;
  }

  RowShare share() const {
    RowShare out{.failure = failure_,
                 .latency = latency_,
                 .prep = prep_,
                 .post = post_,
                 .transfers = latencies_.size(),
                 .bytes = bytes_,
                 .ops = ops_,
                 .cpu = cpu_,
                 .mismatch = mismatch_,
                 .checks = checks_,
                 .missed = mismatch_.empty() ? 0U : 1U,
                 .words = words_};
    if (role_ == Role::kInitiator)
      out.streams.push_back(
          {.stream = 0, .iterations = latencies_.size(), .latency_us = latencyOf(latency_)});
    out.observation = worker_.observer.encoded();
    return out;
  }

  // One round with one stream.
  Rounds rounds() const {
    RoundShare round;
    round.streams.push_back({.stream = 0,
                             .iterations = latencies_.size(),
                             .start_ns = nanosecondsIn(start_.time_since_epoch()),
                             .parts = {{.bytes = bytes_, .seconds = seconds_}}});
    Rounds out;
    out.each.push_back({round, RoundShare{}});
    return out;
  }

  Result<Composed> finish() {
    VIADUCT_TRY(const auto all, worker_.gather(encode(share())));
    if (worker_.rank != 0) return Composed{};
    std::vector<RowShare> shares;
    for (const std::string& one : all) {
      VIADUCT_TRY(RowShare decoded, decodeShare(one));
      shares.push_back(std::move(decoded));
    }
    VIADUCT_TRY(Composed made, compose(worker_.spec, row_, shares, rounds()));
    made.row.replay = replayed();
    return made;
  }

  KvReplayed replayed() const {
    KvReplayed out{.trace = row_.trace->name,
                   .speed = row_.trace->speed,
                   .requests = latencies_.size(),
                   .left_out = plan_.left_out};
    Histogram ttft, parts;  // nanoseconds; millionths
    double sum = 0;
    for (const auto& [number, latency] : latencies_) {
      const ReplayRequest& request = plan_.requests[number];
      out.hash_ids += request.ids;
      out.hit_ids += request.hit_ids;
      out.tokens += request.tokens;
      out.hit_tokens += request.hit_tokens;
      if (row_.trace->prefill_rate <= 0) continue;
      const double prefill = (request.tokens - request.hit_tokens) / row_.trace->prefill_rate * 1e9;
      const double whole = prefill + static_cast<double>(latency);
      const double part = whole > 0 ? static_cast<double>(latency) / whole : 0;
      ttft.record(static_cast<std::uint64_t>(whole));
      parts.record(static_cast<std::uint64_t>(part * 1e6));
      sum += part;
    }
    if (out.hash_ids != 0)
      out.hit_rate = static_cast<double>(out.hit_ids) / static_cast<double>(out.hash_ids);
    if (ttft.count() == 0) return out;
    out.prefill_tokens_per_s = row_.trace->prefill_rate;
    out.ttft_us = latencyOf(ttft);
    out.of_ttft = sum / static_cast<double>(latencies_.size());
    out.of_ttft_p99 = parts.quantile(0.99) * 1e-6;
    return out;
  }

  WorkerState& worker_;
  const Workload& row_;
  const bool push_;
  const Role role_;
  const ReplayPlan plan_;
  std::optional<ReplayContents> contents_;
  KvLayout source_, destination_;
  KvReshard reshard_;
  std::optional<Peer> peer_;
  // When each transfer ended, after the start; 0: it has not. Declared before the transfers, whose
  // callbacks write to it.
  std::vector<std::atomic<std::uint64_t>> ended_ns_;
  std::deque<Flight> flights_;
  Clock::time_point start_ = {};
  double seconds_ = 0;
  std::size_t landed_ = 0;  // the requests before this one are over
  Histogram latency_, prep_, post_;
  std::vector<std::pair<std::size_t, std::uint64_t>> latencies_;  // of each request
  std::uint64_t bytes_ = 0, ops_ = 0;
  Path path_;
  CpuUse cpu_;
  std::uint64_t checks_ = 0, words_ = 0;
  std::string mismatch_;
  Failure failure_;
};

}  // namespace

Result<Composed> runReplay(WorkerState& worker, const Workload& row) {
  return ReplayRun(worker, row).run();
}

}  // namespace viaduct::measure
