#include "measure/run/trace_transfers.h"

#include <fmt/format.h>

#include <atomic>
#include <deque>
#include <functional>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "base/fields.h"
#include "measure/proof/lane.h"
#include "measure/workload/kv_cells.h"
#include "measure/workload/replay_plan.h"

namespace viaduct::measure {
namespace {

using namespace std::chrono_literals;

constexpr auto kPinAnnounced = 10s;
constexpr auto kReplayLook = 50ms;  // how often the replay looks for a stop request
// Times after a stop request, within kLastWords: for transfers to end, and then for the check of
// their contents.
constexpr auto kLastTransfers = 2s, kLastCheck = 2s;
// Each row has its own epoch, so that contents of an earlier row are recognised as stale.
constexpr std::uint64_t kFirstEpoch = 1;

std::uint64_t nanosecondsIn(Duration time) {
  return static_cast<std::uint64_t>(
      std::max<std::int64_t>(std::chrono::nanoseconds(time).count(), 0));
}

// Returns how many blocks a request keeps in a group. A group with a window keeps only the last
// blocks.
std::size_t keptBlocks(const KvGroup& group, const ReplayRequest& request) {
  return std::min<std::size_t>(request.source.size(), kvBlocksOf(group, request.tokens));
}

// The first `requests` requests of a plan, which the initiator has launched.
struct Launched {
  std::uint64_t requests = 0;
  // Indices of the requests whose transfers were cancelled after a stop request. Their pages may
  // have any contents.
  std::vector<std::uint64_t> cancelled = {};
};
auto fields(base::Is<Launched> auto& l) { return std::tie(l.requests, l.cancelled); }

// The pages of both pools. Each page of the source has words of its own. Each page of the
// destination must have the words of the source's page that arrived there last.
class ReplayPages {
 public:
  ReplayPages(const ReplayPlan& plan, const KvLayout& source, const KvLayout& destination,
              std::uint64_t seed, std::uint64_t epoch)
      : plan_(plan),
        epoch_(epoch),
        groups_(destination.groups),
        source_(tensorsOf(source)),
        destination_(tensorsOf(destination)) {
    Pattern pages{.seed = seed, .blocks = source.groups.front().blocks * source_.size()};
    for (const KvTensor& tensor : source_)
      pages.block_bytes = std::max(pages.block_bytes, tensor.page_bytes);
    contents_ = Contents(pages);
  }

  // Called after each block is filled or cleared.
  using Filled = std::function<void(std::uint64_t done, std::uint64_t of)>;

  Status fill(std::span<std::byte> pool, const Filled& filled) const {
    return contents_.fill(pagesOf(pool, source_, blocksOf(plan_, &ReplayRequest::source), filled));
  }
  Status clear(std::span<std::byte> pool, const Filled& filled) const {
    return Contents::clear(
        pagesOf(pool, destination_, blocksOf(plan_, &ReplayRequest::destination), filled));
  }

  struct Checked {
    std::uint64_t requests = 0, words = 0;
    Wrong wrong = {};  // the first wrong page
  };
  // Checks at least one page, and further pages until the time `until`.
  Result<Checked> verify(std::span<std::byte> pool, Verified how, const Launched& launched,
                         Clock::time_point until) const {
    std::set<std::uint64_t> requests;
    const auto arrivals = arrivalsOf(launched);
    const CellList arrived = [&](const CellVisit& visit) -> Wrong {
      for (std::size_t t = 0; t < destination_.size(); ++t)
        for (const auto& [block, from] : arrivals[destination_[t].group]) {
          if (!requests.empty() && Clock::now() > until) return std::nullopt;
          requests.insert(from.request);
          const KvTensor& tensor = destination_[t];
          if (const auto wrong = visit(page(pool, tensor, block, numberOf(from.block, t))))
            return wrong->named(fmt::format("block {} of layer {} tensor {} of request {}", block,
                                            tensor.layer, tensor.tensor, from.request));
        }
      return std::nullopt;
    };
    VIADUCT_TRY(Wrong wrong, contents_.verify(arrived, how));
    return Checked{requests.size(), contents_.checkedWords(), std::move(wrong)};
  }

 private:
  struct Arrival {
    std::uint32_t block = 0;  // of the source
    std::uint64_t request = 0;
  };
  // Returns, by group, which source block arrived in each destination block. The last request that
  // got a destination block decides. A block of a cancelled request has unknown contents, so it is
  // left out.
  std::vector<std::map<std::uint32_t, Arrival>> arrivalsOf(const Launched& launched) const {
    const std::set<std::uint64_t> cancelled(launched.cancelled.begin(), launched.cancelled.end());
    std::vector<std::map<std::uint32_t, Arrival>> out(groups_.size());
    for (std::size_t i = 0; i < std::min<std::size_t>(launched.requests, plan_.requests.size());
         ++i) {
      const ReplayRequest& request = plan_.requests[i];
      for (std::size_t g = 0; g < groups_.size(); ++g)
        for (std::size_t b = request.source.size() - keptBlocks(groups_[g], request);
             b < request.source.size(); ++b)
          if (cancelled.contains(i))
            out[g].erase(request.destination[b]);
          else
            out[g][request.destination[b]] = {request.source[b], request.number};
    }
    return out;
  }
  std::uint64_t numberOf(std::uint32_t block, std::size_t tensor) const {
    return block * source_.size() + tensor;
  }
  CellList pagesOf(std::span<std::byte> pool, const std::vector<KvTensor>& tensors,
                   const BlockIds& blocks, const Filled& filled) const {
    return [=, this, &tensors](const CellVisit& visit) {
      for (std::size_t done = 0; done < blocks.size(); filled(++done, blocks.size()))
        for (std::size_t t = 0; t < tensors.size(); ++t)
          visit(page(pool, tensors[t], blocks[done], numberOf(blocks[done], t)));
      return Wrong();
    };
  }
  Cells page(std::span<std::byte> pool, const KvTensor& tensor, std::uint32_t block,
             std::uint64_t number) const {
    return {.memory = tensor.page(pool, block), .number = number, .epoch = epoch_};
  }

  const ReplayPlan& plan_;
  const std::uint64_t epoch_;
  const std::vector<KvGroup> groups_;  // of the destination
  const std::vector<KvTensor> source_, destination_;
  Contents contents_{{}};
};

class TraceTransfers final : public RowTransfers {
 public:
  TraceTransfers(WorkerState& worker, const Workload& row)
      : worker_(worker),
        row_(row),
        push_(row.op == OpKind::kWrite),
        role_(worker.deviceOf(0, Role::kInitiator) != nullptr ? Role::kInitiator : Role::kTarget),
        plan_(planReplay(*row.trace->requests, row.kv->source.pool, row.kv->source.block,
                         row.trace->speed,
                         [&](std::uint64_t planned) {
                           if (worker.heard.preparing)
                             worker.heard.preparing("planning requests", planned,
                                                    row.trace->requests->requests.size());
                         })),
        ended_ns_(plan_.requests.size()) {
    ++worker_.rows;
  }

  const Workload& row() const override { return row_; }

  // Fills the source. The destination is written too, because the first access to a page takes
  // longer than its transfer.
  Status prepare() override {
    VIADUCT_TRY(const KvLayout from, layoutOf(*row_.kv, KvSide::kSource, 0));
    VIADUCT_TRY(const KvLayout to, layoutOf(*row_.kv, KvSide::kDestination, 0));
    pages_.emplace(plan_, from, to, worker_.spec.seed, kFirstEpoch + worker_.rows);
    worker_.agent.poll();
    const ReplayPages::Filled filled = [this](std::uint64_t done, std::uint64_t of) {
      if (worker_.heard.preparing) worker_.heard.preparing("filling the pool", done, of);
    };
    VIADUCT_CHECK(isSource() ? pages_->fill(memory().bytes(), filled)
                             : pages_->clear(memory().bytes(), filled));
    if (role_ == Role::kTarget) return Ok{};
    peer_ = worker_.peers.at(worker_.rankOf(0, Role::kTarget));
    VIADUCT_TRY(const PinInfo pin, peer_->waitPin("bench-target-0", kPinAnnounced));
    const std::uint64_t here = memory().address();
    VIADUCT_TRY(source_, layoutOf(*row_.kv, KvSide::kSource, push_ ? here : pin.address));
    VIADUCT_TRY(destination_, layoutOf(*row_.kv, KvSide::kDestination, push_ ? pin.address : here));
    VIADUCT_TRY(reshard_, KvReshard::plan(source_, destination_));
    return Ok{};
  }

  // The row has one round, with one stream.
  Schedule schedule(const WarmUp& /*warm*/) override {
    Schedule out{.repeat = {.iterations = plan_.requests.size()}};
    out.planned.of_transfers = plan_.requests.size();
    return out;
  }

  void begin() override {}

  Status move(const Goal& /*goal*/, const Moving& moving) override {
    if (role_ == Role::kTarget) return Ok{};
    start_ = Clock::now();
    for (std::size_t i = 0; i < plan_.requests.size(); ++i) {
      VIADUCT_TRY(const bool goes, waitToLaunch(i, moving));
      if (!goes) break;
      VIADUCT_CHECK(launch(i));
    }
    return landAll(moving);
  }

  std::uint64_t bytesMoved() const override { return bytes_; }

  void tell(RoundShare& round) const override {
    round.more = base::packed(launched_);
    if (role_ == Role::kInitiator)
      round.streams.push_back({.stream = 0,
                               .iterations = latencies_.size(),
                               .start_ns = nanosecondsIn(start_.time_since_epoch()),
                               .parts = {{.bytes = bytes_, .seconds = seconds_}}});
  }

  // Takes over the initiator's list of launched requests, which no other member knows.
  Status ended(const Rounds::Round& round, const Goal* /*run*/) override {
    const RoundShare& theirs = round[worker_.rankOf(0, Role::kInitiator)];
    if (base::unpack(theirs.more, launched_)) return Ok{};
    return Error{
        .code = Code::kProtocol, .operation = "bench", .detail = "a malformed list of requests"};
  }

  Status check(bool stopped) override {
    if (isSource() || worker_.spec.verify == Verified::kOff) return Ok{};
    worker_.agent.poll();  // orders the agent's writes to this memory before the check
    const auto until = stopped ? Clock::now() + kLastCheck : Clock::time_point::max();
    VIADUCT_TRY(checked_, pages_->verify(memory().bytes(), worker_.spec.verify, launched_, until));
    return Ok{};
  }

  std::vector<proof::Claim> claims() const override {
    if (role_ == Role::kTarget) return {};
    return {{.peer = worker_.rankOf(0, Role::kTarget), .op = row_.op, .path = path_}};
  }

  void tell(RowShare& row) const override {
    row.latency = latency_;
    row.prep = prep_;
    row.post = post_;
    row.transfers = latencies_.size();
    row.bytes = bytes_;
    row.ops = ops_;
    row.mismatch = checked_.wrong.value_or("");
    row.checks = checked_.requests;
    row.missed = checked_.wrong ? 1U : 0U;
    row.words = checked_.words;
    if (role_ == Role::kTarget) return;
    row.streams.push_back({.stream = 0,
                           .iterations = latencies_.size(),
                           .bytes = bytes_,
                           .latency_us = latencyOf(latency_)});
    // After an interrupted replay, the requested rate is the rate of the replayed requests.
    if (latencies_.empty() || latencies_.size() == plan_.requests.size()) return;
    const double asked_s = plan_.requests[latencies_.back().first].due_s;
    if (asked_s > 0) row.asked_per_s = static_cast<double>(latencies_.size()) / asked_s;
  }

  void complete(Composed& made) const override {
    made.row.as<KvWorkload>()->replay = replayed();
    if (const auto cancelled = launched_.cancelled.size(); cancelled != 0)
      made.row.remark +=
          fmt::format("{}{} in flight {} cancelled", made.row.remark.empty() ? "" : "; ", cancelled,
                      cancelled == 1 ? "was" : "were");
  }

 private:
  bool isSource() const { return (role_ == Role::kInitiator) == push_; }
  Buffer& memory() { return *worker_.deviceOf(0, role_)->memory; }

  struct Flight {
    std::size_t request = 0;
    std::uint64_t prep_ns = 0, post_ns = 0;
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
    const auto ended = [this, number](const TransferEnd& /*end*/) {
      ended_ns_[number].store(nanosecondsIn(Clock::now() - start_), std::memory_order_release);
    };
    VIADUCT_TRY(
        Transfer transfer,
        worker_.agent.plan(row_.op, *peer_, both.source, both.destination,
                           {.require = requireOf(row_, worker_.spec.require), .on_end = ended}));
    const auto planned = Clock::now();
    VIADUCT_CHECK(transfer.post());
    flights_.push_back({.request = number,
                        .prep_ns = nanosecondsIn(planned - begun),
                        .post_ns = nanosecondsIn(Clock::now() - planned),
                        .transfer = std::move(transfer)});
    launched_.requests = number + 1;
    return Ok{};
  }

  Clock::time_point dueOf(std::size_t number) const {
    return start_ + std::chrono::duration_cast<Duration>(
                        std::chrono::duration<double>(plan_.requests[number].due_s));
  }

  // Waits for the oldest transfer until `until`, but at most kReplayLook. Removes it from
  // `flights_` if it has ended.
  Status land(Clock::time_point until) {
    Flight& oldest = flights_.front();
    const auto look = std::min(until, Clock::now() + kReplayLook);
    auto done = oldest.transfer.wait(look);
    if (!done && done.error().code == Code::kTimeout && Clock::now() >= look) return Ok{};
    // Waits for the transfer's callback, which may still run on the agent's thread.
    while (ended_ns_[oldest.request].load(std::memory_order_acquire) == 0)
      std::this_thread::yield();
    if (!done && gave_up_ && done.error().code == Code::kCancelled)
      launched_.cancelled.push_back(oldest.request);
    else if (done)
      count(oldest);
    else
      return done;
    landed_ = std::max(landed_, oldest.request + 1);
    flights_.pop_front();
    return Ok{};
  }

  void count(const Flight& flight) {
    const std::uint64_t ended = ended_ns_[flight.request].load(std::memory_order_acquire);
    const std::uint64_t due = nanosecondsIn(dueOf(flight.request) - start_);
    const std::uint64_t latency = ended > due ? ended - due : 0;
    latency_.record(latency);
    prep_.record(flight.prep_ns);
    post_.record(flight.post_ns);
    latencies_.push_back({flight.request, latency});
    seconds_ = std::max(seconds_, static_cast<double>(ended) * 1e-9);
    bytes_ += flight.transfer.bytes();
    ops_ += flight.transfer.ops();
    path_ = carriedBy({&flight.transfer, 1}, std::move(path_));
  }

  // Waits until request `number` may be launched. Returns false once a member has asked to stop.
  Result<bool> waitToLaunch(std::size_t number, const Moving& moving) {
    for (;;) {
      VIADUCT_TRY(const Order order, orderOf(moving));
      if (order == Order::kFinish) return false;
      const auto& after = plan_.requests[number].after;
      const bool blocked = after && *after >= landed_;
      const auto now = Clock::now(), due = dueOf(number);
      if (now >= due && !blocked) return true;
      if (flights_.empty())
        std::this_thread::sleep_until(std::min(due, now + kReplayLook));
      else
        VIADUCT_CHECK(land(blocked ? Clock::time_point::max() : due));
    }
  }

  // Waits for all transfers. After a stop request, cancels transfers that take longer than
  // kLastTransfers.
  Status landAll(const Moving& moving) {
    Clock::time_point give_up = Clock::time_point::max();
    while (!flights_.empty()) {
      VIADUCT_TRY(const Order order, orderOf(moving));
      const auto now = Clock::now();
      if (order == Order::kFinish) give_up = std::min(give_up, now + kLastTransfers);
      if (now >= give_up && !std::exchange(gave_up_, true))
        for (Flight& flight : flights_) flight.transfer.cancel();
      VIADUCT_CHECK(land(Clock::time_point::max()));
    }
    return Ok{};
  }

  // Returns the present order. Fails on kCancel, because a failure of any member ends the row.
  static Result<Order> orderOf(const Moving& moving) {
    moving.look();
    const Order order = moving.orders.load();
    if (order != Order::kCancel) return order;
    return Error{.code = Code::kCancelled, .operation = "bench", .detail = "another failed"};
  }

  KvReplayed replayed() const {
    KvReplayed out{.trace = row_.trace->name,
                   .format = traceFormatName(row_.trace->requests->format),
                   .speed = row_.trace->speed,
                   .requests = latencies_.size(),
                   .left_out = plan_.left_out};
    Histogram ttft, parts;  // nanoseconds; millionths
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
    }
    if (ttft.count() != 0) {
      out.prefill_tokens_per_s = row_.trace->prefill_rate;
      out.ttft_ns = ttft.distribution();
      out.of_ttft_millionths = parts.distribution();
    }
    computeFigures(out);
    return out;
  }

  WorkerState& worker_;
  const Workload& row_;
  const bool push_;
  const Role role_;
  const ReplayPlan plan_;
  std::optional<ReplayPages> pages_;
  KvLayout source_, destination_;
  KvReshard reshard_;
  std::optional<Peer> peer_;
  // The nanoseconds from the start to the end of each transfer; 0: not ended. Declared before the
  // transfers, whose callbacks write to it.
  std::vector<std::atomic<std::uint64_t>> ended_ns_;
  std::deque<Flight> flights_;
  Launched launched_;     // the requests that the initiator launched
  bool gave_up_ = false;  // landAll() has cancelled the transfers
  Clock::time_point start_ = {};
  double seconds_ = 0;
  std::size_t landed_ = 0;  // all requests with lower indices have ended
  Histogram latency_, prep_, post_;
  std::vector<std::pair<std::size_t, std::uint64_t>> latencies_;  // index and ns of each request
  std::uint64_t bytes_ = 0, ops_ = 0;
  Path path_;
  ReplayPages::Checked checked_;
};

}  // namespace

std::unique_ptr<RowTransfers> traceTransfers(WorkerState& worker, const Workload& row) {
  return std::make_unique<TraceTransfers>(worker, row);
}

}  // namespace viaduct::measure
