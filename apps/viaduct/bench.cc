#include <fmt/format.h>
#include <signal.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <memory>

#include "base/sizes.h"
#include "measure/result/report.h"
#include "measure/result/table.h"
#include "measure/run/workers.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

using measure::Report;
using measure::Row;
using measure::RunEnd;
using measure::RunOutcome;

measure::StopFlag interrupted{false};

void stopOnSignals() {
  struct sigaction act{};
  act.sa_handler = [](int) { interrupted.store(true); };
  ::sigaction(SIGINT, &act, nullptr);
  ::sigaction(SIGTERM, &act, nullptr);
}

int fail(const std::string& text, Exit code) {
  fmt::print(stderr, "viaduct bench: {}\n", text);
  return code;
}

struct CloseFile {
  void operator()(std::FILE* file) const { std::fclose(file); }
};
using File = std::unique_ptr<std::FILE, CloseFile>;

// Opened before anything is measured: a name that cannot be written must not cost a run. What it
// held is only replaced by results.
Result<File> openResults(const std::string& name) {
  if (name.empty()) return File{};
  if (File file{std::fopen(name.c_str(), "ae")}) return file;
  Error error = systemError(Code::kDevice, "--json", errno);
  error.device = name;
  return error;
}

Status writeResults(File file, const std::string& name, const Report& report) {
  if (!file) return Ok{};
  const std::string text = toJson(report);
  const bool written = ::ftruncate(::fileno(file.get()), 0) == 0 &&
                       std::fwrite(text.data(), 1, text.size(), file.get()) == text.size() &&
                       std::fflush(file.get()) == 0;
  if (written) return Ok{};
  Error error = systemError(Code::kDevice, "--json", errno);
  error.device = name;
  return error;
}

// A line that the next one overwrites, on a terminal; nothing elsewhere.
class ProgressLine {
 public:
  void show(std::size_t number, std::size_t total, const measure::Workload& w) const {
    if (!terminal_) return;
    fmt::print(stderr, "\r\033[K[{}/{}] {} {} {} x {}", number + 1, total, w.backend,
               opKindName(w.op), w.batch, base::showSize(w.block_bytes));
    std::fflush(stderr);
  }
  void clear() const {
    if (terminal_) fmt::print(stderr, "\r\033[K");
  }

 private:
  bool terminal_ = ::isatty(STDERR_FILENO) == 1;
};

void printHead(const Report& report, const measure::Sweep& sweep) {
  const auto& host = report.environment.members.front().host;
  fmt::print("viaduct {} on {}: {}, {} cores\n", report.version, host.hostname,
             host.cpu_model.empty() ? "unknown CPU" : host.cpu_model, host.cores);
  fmt::print("two processes, memory from {}, one transfer in flight, every byte checked\n\n{}",
             memoryChoiceName(sweep.memory), measure::tableHead());
  std::fflush(stdout);
}

RunOutcome measureAndPrint(const Settings& settings,
                           const std::vector<measure::Workload>& workloads) {
  const ProgressLine line;
  const measure::Progress progress{
      .started = [&](std::size_t number,
                     const measure::Workload& w) { line.show(number, workloads.size(), w); },
      .finished =
          [&](const Row& row) {
            line.clear();
            fmt::print("{}", measure::tableLine(row));
            std::fflush(stdout);
          }};
  RunOutcome outcome = measure::measureWithTwoWorkers(settings, workloads, progress, interrupted);
  line.clear();
  return outcome;
}

int verdictOf(const RunOutcome& outcome) {
  switch (outcome.end) {
    case RunEnd::kComplete:
      break;
    case RunEnd::kInterrupted:
      return fail(fmt::format("{}; {} rows were measured", outcome.problem, outcome.rows.size()),
                  kExitInterrupted);
    case RunEnd::kWorkerDied:
      return fail(outcome.problem, kExitWorkerDied);
    case RunEnd::kFailed:
      return fail(outcome.problem, kExitFailed);
  }
  for (const Row& row : outcome.rows)
    if (!isGood(row.verdict))
      return fail("not everything could be measured, see the table", kExitFailed);
  return kExitOk;
}

std::vector<measure::Member> membersHere() {
  const auto facts = host::facts();
  return {{.rank = 0, .role = "initiator", .host = facts},
          {.rank = 1, .role = "target", .host = facts}};
}

std::string endName(const RunOutcome& outcome) {
  return outcome.end == RunEnd::kComplete ? "complete" : outcome.problem;
}

}  // namespace

int runBench(const BenchOptions& options) {
  const auto workloads = measure::workloads(options.sweep);
  if (!workloads) return fail(workloads.error().text(), kExitUsage);
  const auto settings = settingsFromEnvironment();
  if (!settings) return fail(settings.error().text(), kExitUsage);
  auto results = openResults(options.json);
  if (!results) return fail(results.error().text(), kExitUsage);

  stopOnSignals();
  Report report = measure::startReport(VIADUCT_VERSION, *settings);
  report.environment.members = membersHere();
  printHead(report, options.sweep);
  RunOutcome outcome = measureAndPrint(*settings, *workloads);
  report.rows = outcome.rows;
  report.end = endName(outcome);
  if (const auto written = writeResults(*std::move(results), options.json, report); !written)
    return fail(written.error().text(), kExitFailed);
  return verdictOf(outcome);
}

}  // namespace viaduct::app
