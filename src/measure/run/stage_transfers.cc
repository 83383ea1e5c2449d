#include "measure/run/stage_transfers.h"

#include <algorithm>
#include <utility>

#include "base/fields.h"

namespace viaduct::measure::pipeline {
namespace {

double inSeconds(std::uint64_t ns) { return static_cast<double>(ns) * 1e-9; }

class StageTransfers final : public RowTransfers {
 public:
  StageTransfers(WorkerState& worker, const Workload& row, std::shared_ptr<PipelineFlows> flows)
      : spec_(worker.spec),
        row_(row),
        flows_(std::move(flows)),
        case_(flows_->caseOf(*row.stages)) {
    row_.block_bytes = flows_->bytes();
  }

  const Workload& row() const override { return row_; }
  std::string name() const override { return case_.name; }
  Status prepare() override { return flows_->fill(case_); }
  std::vector<Goal> warmUp() const override { return {{.iterations = 1, .time = spec_.duration}}; }

  Schedule schedule(const WarmUp& /*warm*/) override {
    Schedule out{.repeat = {.iterations = 1, .time = spec_.duration}, .repeats = spec_.repeat};
    out.planned.of_seconds = std::chrono::duration<double>(spec_.duration).count() * spec_.repeat;
    return out;
  }

  void begin() override { claims_.clear(); }
  Status fill(const Goal& /*goal*/) override { return flows_->fill(case_); }

  Status move(const Goal& goal, const Moving& moving) override {
    reports_.clear();
    VIADUCT_CHECK(flows_->run(case_, goal, moving));
    reports_ = flows_->reports(case_);
    return Ok{};
  }

  std::uint64_t bytesMoved() const override { return flows_->bytesMoved(); }

  void tell(RoundShare& round) const override {
    round.more = base::packed(reports_);
    for (const FlowReport& flow : reports_)
      if (isRated(flow))
        round.streams.push_back({.stream = 0,
                                 .iterations = flow.times,
                                 .start_ns = flow.start_ns,
                                 .parts = {{flow.bytes, inSeconds(flow.ns)}}});
  }

  Status ended(const Rounds::Round& round, const Goal* run) override {
    if (run == nullptr) return Ok{};
    count();
    VIADUCT_CHECK(keep(round));
    // After a stop request there is no time for a check, because it may read a file.
    if (std::ranges::any_of(round, [](const RoundShare& one) { return one.stop_by.has_value(); }))
      return Ok{};
    VIADUCT_TRY(const PipelineFlows::Checked checked, flows_->check(case_));
    checked_.transfers += checked.transfers;
    if (!checked.wrong.empty() && missed_++ == 0) checked_.wrong = checked.wrong;
    return Ok{};
  }

  std::vector<proof::Claim> claims() const override { return claims_; }

  void tell(RowShare& row) const override {
    row.mismatch = checked_.wrong;
    row.checks = checked_.transfers;
    row.missed = missed_;
    row.transfers = times_;
    row.bytes = bytes_;
    if (rated_times_ != 0)
      row.streams.push_back({.stream = 0, .iterations = rated_times_, .bytes = rated_bytes_});
  }

  void complete(Composed& made) const override {
    const Pipeline& pipeline = flows_->pipeline();
    PipelineRow out{.pipeline = pipeline.text,
                    .run = runOf(),
                    .rows = static_cast<std::uint32_t>(flows_->cases()),
                    .stages = stages_};
    for (std::size_t i = 0; i < out.stages.size(); ++i) {
      const std::size_t stage = out.stages.size() == 1 ? *row_.stages : i;
      out.stages[i].name = pipeline.stages[stage];
      out.stages[i].route = pipeline.routeOf(stage);
      computeFigures(out.stages[i]);
    }
    made.row.kind = std::move(out);
    made.row.scheme = "pipeline";
    made.row.heat.clear();
  }

 private:
  // True if the flow's rate counts. In a chain, only the rate of the last flow counts.
  bool isRated(const FlowReport& flow) const {
    return !case_.chain || flow.route == case_.routes.back();
  }

  StagesRun runOf() const {
    if (case_.chain) return StagesRun::kWhole;
    return case_.routes.size() == 1 ? StagesRun::kAlone : StagesRun::kTogether;
  }

  // Adds this member's flows of the round.
  void count() {
    for (const FlowReport& flow : reports_) {
      times_ += flow.times;
      bytes_ += flow.bytes;
      if (!isRated(flow)) continue;
      rated_times_ += flow.times;
      rated_bytes_ += flow.bytes;
    }
    const std::vector<proof::Claim> round = flows_->claims(case_);
    if (claims_.empty())
      claims_ = round;
    else
      for (std::size_t i = 0; i < round.size(); ++i)
        for (const PathShare& share : round[i].path.shares) claims_[i].path.add(share);
  }

  // Keeps the figures of each stage.
  Status keep(const Rounds::Round& round) {
    std::vector<FlowReport> flows;  // in the order of the routes
    for (const RoundShare& share : round) {
      std::vector<FlowReport> theirs;
      if (!base::unpack(share.more, theirs))
        return Error{.code = Code::kProtocol,
                     .operation = "pipeline",
                     .detail = "a member sent malformed flows"};
      flows.insert(flows.end(), theirs.begin(), theirs.end());
    }
    std::ranges::sort(flows, {}, &FlowReport::route);
    case_.chain ? keepWhole(flows) : keepStages(flows);
    return Ok{};
  }

  void keepStages(const std::vector<FlowReport>& flows) {
    stages_.resize(flows.size());
    for (std::size_t i = 0; i < flows.size(); ++i) {
      stages_[i].path = flows[i].way;
      stages_[i].moved.push_back({flows[i].bytes, inSeconds(flows[i].ns)});
    }
  }

  void keepWhole(const std::vector<FlowReport>& legs) {
    std::uint64_t ns = 0;
    std::vector<std::uint64_t> busy;
    for (const FlowReport& leg : legs) {
      ns = std::max(ns, leg.ns);
      busy.insert(busy.end(), leg.busy_ns.begin(), leg.busy_ns.end());
    }
    stages_.resize(flows_->pipeline().stages.size());
    if (busy.size() != stages_.size()) return;
    for (std::size_t i = 0; i < busy.size(); ++i)
      stages_[i].worked.push_back({inSeconds(busy[i]), inSeconds(ns)});
  }

  const Spec& spec_;
  Workload row_;
  const std::shared_ptr<PipelineFlows> flows_;
  const Case& case_;
  std::vector<FlowReport> reports_ = {};  // of the last round
  std::vector<StageResult> stages_ = {};  // of all rounds
  std::vector<proof::Claim> claims_ = {};
  std::uint64_t times_ = 0, bytes_ = 0, rated_times_ = 0, rated_bytes_ = 0, missed_ = 0;
  PipelineFlows::Checked checked_ = {};
};

}  // namespace

std::unique_ptr<RowTransfers> stageTransfers(WorkerState& worker, const Workload& row,
                                             std::shared_ptr<PipelineFlows> flows) {
  return std::make_unique<StageTransfers>(worker, row, std::move(flows));
}

}  // namespace viaduct::measure::pipeline
