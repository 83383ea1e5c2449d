#include "measure/p2p/initiator.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <bit>
#include <chrono>
#include <optional>
#include <thread>
#include <utility>

#include "host/processors.h"
#include "measure/load/pattern.h"
#include "measure/load/workload.h"
#include "measure/p2p/target.h"
#include "measure/stats/histogram.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure::p2p {
namespace {

using namespace std::chrono_literals;
using Seconds = std::chrono::duration<double>;

constexpr auto kAnswer = 60s;  // checking a large buffer on a slow host takes its time
constexpr auto kAnnounced = 10s;
constexpr auto kBusyPause = 200ms;   // before a busy target is asked again
constexpr std::uint64_t kParts = 5;  // of the iterations; their median is the rate
constexpr std::uint64_t kSeed = 1, kWarmEpoch = 1, kTimedEpoch = 2;

void fill(const Pin& memory, std::uint64_t epoch) {
  Pattern{.seed = kSeed, .block_bytes = memory.size(), .blocks = 1, .epoch = epoch}.fill(
      memory.bytes(), 0);
}

Selection wholeOf(std::uint64_t address, std::uint64_t bytes) {
  auto blocks = Blocks::strided({.base = address, .bytes = bytes, .count = 1});
  return blocks ? Selection{*std::move(blocks), {}} : Selection{};
}

}  // namespace

// What one size gave.
struct Initiator::Timed {
  Histogram latency;  // nanoseconds
  double sum_ns = 0;
  std::uint64_t transfers = 0;
  double seconds = 0;
  std::vector<double> gb_per_s;
  CpuSeconds cpu;
  double cpu_over = 0;  // seconds during which it was used
  Path path;            // of all transfers
  std::array<proof::Observation, 2> seen;
  std::string wrong;
};

Initiator::Initiator(Agent& agent, std::vector<std::string> rails, Peer target,
                     const base::StopFlag& stop)
    : agent_(agent),
      stop_(stop),
      asker_(agent, std::move(target), stop),
      observer_(std::move(rails)) {}

Result<std::string> Initiator::ask(Request request) {
  return asker_.ask(std::move(request), kAnswer);
}

Result<Member> Initiator::greet(Deadline until, const std::function<void(const std::string&)>& busy,
                                const base::SayWaiting& waiting) {
  base::Waiting aloud(waiting, until.at());
  for (bool said = false;;) {
    auto answer = asker_.ask({.verb = Request::Verb::kGreet}, until);
    if (answer) {
      VIADUCT_TRY(const Report about, reportFromJson(*answer, "the target's greeting"));
      if (about.environment.members.size() == 1) {
        const Member& target = about.environment.members.front();
        // What stays on this host has its memory as a ceiling.
        if (target.host.boot_id == host::bootId()) observer_.measureMemory();
        return target;
      }
      return Error{.code = Code::kProtocol, .operation = "p2p", .detail = "a greeting of nobody"};
    }
    if (answer.error().code != Code::kBusy || until.passed()) return std::move(answer).error();
    if (!std::exchange(said, true)) busy(answer.error().detail);
    if (aloud.isDue()) aloud.tell(answer.error());
    std::this_thread::sleep_for(kBusyPause);
  }
}

Member Initiator::self() const {
  return {.rank = 0, .name = agent_.name(), .role = "initiator", .host = host::facts()};
}

Status Initiator::measure(const Plan& plan,
                          const std::function<void(const Row&, const std::string&)>& row) {
  for (const std::uint64_t bytes : plan.sizes) {
    conclusion_.clear();
    auto measured = measureSize(plan, bytes);
    if (!measured) return std::move(measured).error();
    row(*measured, conclusion_);
  }
  return Ok{};
}

Result<Row> Initiator::measureSize(const Plan& plan, std::uint64_t bytes) {
  auto row = prepareAndTime(plan, bytes);
  if (row) return row;
  const Error& why = row.error();
  if (stop_.load() || why.code == Code::kCancelled || why.code == Code::kPeerLost) return row;
  const proof::Judgement verdict =
      proof::judge({}, {.require = plan.require, .failure = why}, plan.link_rates);
  return Row{.block_size = bytes, .verdict = verdict.verdict, .why = verdict.why};
}

Result<Row> Initiator::prepareAndTime(const Plan& plan, std::uint64_t bytes) {
  const std::string label = fmt::format("p2p-{}", ++labels_);
  VIADUCT_CHECK(ask({.verb = Request::Verb::kPrepare, .bytes = bytes, .label = label}));
  VIADUCT_TRY(const Pin memory, agent_.allocate(bytes));
  VIADUCT_TRY(const PinInfo theirs, asker_.peer().waitPin(label, kAnnounced));
  VIADUCT_TRY(Transfer transfer,
              agent_.plan(OpKind::kWrite, asker_.peer(), wholeOf(memory.info().address, bytes),
                          wholeOf(theirs.address, bytes), {.require = requireOfTransfer(plan.require)}));
  Timed timed;
  fill(memory, kWarmEpoch);
  for (std::uint64_t i = 0; i < plan.warmup; ++i) VIADUCT_CHECK(once(transfer));
  fill(memory, kTimedEpoch);
  VIADUCT_CHECK(ask({.verb = Request::Verb::kBefore}));
  observer_.before();
  const double cpu_before = host::ownProcessorSeconds();
  const auto begun = Clock::now();
  const Path before = transfer.carried();
  VIADUCT_CHECK(time(transfer, plan, bytes, timed));
  timed.cpu.initiators = host::ownProcessorSeconds() - cpu_before;
  timed.path = transfer.carried().since(before);
  observer_.after({{.peer = 1, .path = timed.path}});
  VIADUCT_TRY(const std::string theirs_seen, ask({.verb = Request::Verb::kAfter}));
  timed.cpu_over = std::chrono::duration<double>(Clock::now() - begun).count();
  base::Reader in(std::as_bytes(std::span(theirs_seen)));
  timed.cpu.targets = std::bit_cast<double>(in.get<std::uint64_t>());
  VIADUCT_TRY(timed.seen[1], proof::decodeObservation(in.text()));
  timed.seen[0] = observer_.observation();
  VIADUCT_TRY(timed.wrong,
              ask({.verb = Request::Verb::kVerify, .seed = kSeed, .epoch = kTimedEpoch}));
  return rowOf(plan, bytes, timed);
}

Status Initiator::once(Transfer& transfer) {
  if (stop_.load(std::memory_order_relaxed))
    return Error{.code = Code::kCancelled, .operation = "p2p"};
  VIADUCT_CHECK(transfer.post());
  return transfer.wait();
}

Status Initiator::time(Transfer& transfer, const Plan& plan, std::uint64_t bytes, Timed& into) {
  const std::uint64_t parts = std::min(kParts, plan.iterations);
  for (std::uint64_t part = 0; part < parts; ++part) {
    const std::uint64_t count = plan.iterations / parts + (part < plan.iterations % parts ? 1 : 0);
    const auto start = Clock::now();
    auto before = start;
    for (std::uint64_t i = 0; i < count; ++i) {
      VIADUCT_CHECK(once(transfer));
      const auto now = Clock::now();
      const std::chrono::nanoseconds took = now - before;
      into.latency.record(static_cast<std::uint64_t>(took.count()));
      into.sum_ns += static_cast<double>(took.count());
      before = now;
    }
    const double elapsed = Seconds(before - start).count();
    into.seconds += elapsed;
    into.transfers += count;
    into.gb_per_s.push_back(static_cast<double>(bytes * count) / elapsed * 1e-9);
  }
  return Ok{};
}

Result<Row> Initiator::rowOf(const Plan& plan, std::uint64_t bytes, const Timed& timed) {
  const auto transfers = static_cast<double>(timed.transfers);
  const double gb = transfers * static_cast<double>(bytes) * 1e-9;
  Row row{.block_size = bytes, .memory = "allocate"};
  if (!timed.path.shares.empty()) row.backend = timed.path.shares.front().backend;
  row.iterations = timed.transfers;
  row.seconds = timed.seconds;
  row.gb_per_s = median(timed.gb_per_s);
  row.gb_per_s_parts = timed.gb_per_s;
  row.gb_per_s_spread = spread(timed.gb_per_s);
  const auto us = [&](double q) { return timed.latency.quantile(q) * 1e-3; };
  row.latency_us = Latency{.mean = timed.sum_ns * 1e-3 / transfers,
                           .p50 = us(0.5),
                           .p90 = us(0.9),
                           .p95 = us(0.95),
                           .p99 = us(0.99),
                           .p99_9 = us(0.999),
                           .max = static_cast<double>(timed.latency.max()) * 1e-3};
  const double cpu = timed.cpu.initiators + timed.cpu.targets;
  row.cpu_s = timed.cpu;
  row.cpu_s_per_gb = cpu / gb;
  row.completions_per_s = transfers / timed.seconds;
  row.verified = Verified::kFull;
  proof::RowFacts facts{.backend = row.backend,
                        .require = plan.require,
                        .gb_per_s = *row.gb_per_s,
                        .cores_busy = proof::coresBusy(cpu, timed.seconds, timed.cpu_over),
                        .transfer_bytes = bytes,
                        .verified = row.verified};
  if (facts.cores_busy > 0) row.cores_busy = facts.cores_busy;
  if (!timed.wrong.empty()) facts.mismatch = timed.wrong;
  proof::Judgement verdict = proof::judge(timed.seen, facts, plan.link_rates);
  row.path = std::move(verdict.path);
  row.proof = std::move(verdict.proof);
  row.ceiling = std::move(verdict.ceiling);
  row.verdict = verdict.verdict;
  row.why = std::move(verdict.why);
  conclusion_ = std::move(verdict.conclusion);
  return row;
}

}  // namespace viaduct::measure::p2p
