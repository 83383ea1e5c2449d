// Makes a plan from the options: the spec of the run, the meeting place, and the output. Threads:
// plain values; plans read facts about this machine.
#pragma once

#include <viaduct/memory.h>
#include <viaduct/settings.h>

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "measure/run/matrix.h"
#include "measure/run/run.h"
#include "viaduct/bench_options.h"

namespace viaduct::app {

struct BenchPlan {
  measure::RunRequest run = {};
  OutputForm output = OutputForm::kTable;
  std::string json = {};                  // the file for the results; empty: none
  std::vector<std::string> remarks = {};  // what the user should know before the run
  std::string command = {};               // the command line, for people
  bool chose_local = false;               // the user knows that all workers run here
  std::optional<measure::matrix::MatrixRequest> matrix = {};  // its cells have the rows of `run`
  std::vector<measure::Option> banner = {};                   // of nixlbench's output
};

// The plan, or all problems of the options. Problems that may only follow from an unreadable flag
// are left out.
template <class Plan>
struct OrProblems {
  Plan plan = {};
  std::vector<Error> problems = {};
};
using PlanOrProblems = OrProblems<BenchPlan>;

// The storage of a run, and what it means for the agents.
struct StoragePlan {
  measure::StorageChoice choice = {};
  std::vector<std::string> settings = {};  // VARIABLE=value, for the agents
  std::vector<std::string> remarks = {};   // for the user
};

struct PlannedRows {
  std::vector<measure::Workload> rows = {};
  std::vector<std::string> remarks = {};
};

// The parts of a plan that depend on the kind of workload.
struct RowMaker {
  std::vector<Error> found = {};  // problems of this workload's options
  // Empty: one initiator and one target.
  std::function<Result<measure::Layout>(bool stored)> layout = {};
  // `local`: all workers run here.
  std::function<Result<PlannedRows>(const std::vector<std::string>& backends,
                                    const measure::Layout& layout, bool local)>
      rows = {};
  // `kind` is the storage that the backends reach, if any. An empty function: no backend may have
  // storage.
  std::function<Result<StoragePlan>(std::optional<MemoryKind> kind)> storage = {};
};
PlanOrProblems planRows(const RunOptions& options, const Settings& settings, RowMaker maker);

// Returns a row for each backend, block size and batch size. No batch size: the usual one of the
// block size.
Result<PlannedRows> rowsOf(const RunOptions& options, const std::vector<std::string>& backends,
                           const std::vector<std::uint64_t>& blocks,
                           const std::vector<std::uint32_t>& batches);

PlanOrProblems planBench(const BenchOptions& options, const Settings& settings);
// Plans like planBench(). `found` are problems that the caller has found before.
PlanOrProblems planBenchAfter(std::vector<Error> found, const BenchOptions& options,
                              const Settings& settings);

// Rounds a number of transfers of all threads up, as nixlbench does.
std::uint64_t roundedForThreads(const BenchOptions& options, std::uint64_t count);

// Returns the backends of `settings` that have no storage.
std::vector<std::string> backendsBetweenMembers(const Settings& settings);

// Adds an error for each pair of flags that contradict each other. The error names both flags.
void addContradictions(const RunOptions& options, std::vector<Error>& problems);
// Adds errors for contradicting flags that only `viaduct bench` and nixlbench have.
void addBenchContradictions(const BenchOptions& options, std::vector<Error>& problems);

}  // namespace viaduct::app
