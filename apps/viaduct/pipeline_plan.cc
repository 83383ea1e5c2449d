// Makes the plan of `viaduct bench --pipeline` from the flags of the command.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "viaduct/bench_values.h"
#include "viaduct/flags.h"
#include "viaduct/pipeline.h"

namespace viaduct::app {
namespace {

using measure::pipeline::Chunking;
using measure::pipeline::kMostChunks;
using measure::pipeline::Pipeline;

constexpr std::uint32_t kUsualRounds = 5;
constexpr std::array<std::string_view, 30> kFlags{"asio_address",
                                                  "asio_port",
                                                  "backend",
                                                  "benchmark_group",
                                                  "config_file",
                                                  "create_source",
                                                  "device_list",
                                                  "duration",
                                                  "etcd_ca",
                                                  "etcd_cert",
                                                  "etcd_endpoints",
                                                  "etcd_key",
                                                  "etcd_password",
                                                  "etcd_user",
                                                  "help",
                                                  "json",
                                                  "meet",
                                                  "meet_timeout",
                                                  "memory",
                                                  "output",
                                                  "overwrite",
                                                  "pipeline",
                                                  "rank",
                                                  "repeat",
                                                  "require",
                                                  "runtime_type",
                                                  "secret",
                                                  "seed",
                                                  "total_buffer_size",
                                                  "use_hugepages"};
constexpr std::array<std::string_view, 7> kOfNet{"backend", "device_list", "etcd_endpoints", "meet",
                                                 "rank",    "require",     "runtime_type"};

template <std::size_t N>
bool isOneOf(const std::array<std::string_view, N>& names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

void addFlagProblems(const BenchOptions& o, std::vector<Error>& problems) {
  const bool net = o.pipeline.hasNet();
  for (const auto& [name, value] : o.given) {
    const std::string flag = spelled(name, '-');
    if (!isOneOf(kFlags, name))
      problems.push_back(badFlag(flag, "the flag has no effect on a pipeline", "omit it"));
    else if (!net && isOneOf(kOfNet, name))
      problems.push_back(badFlag(flag, "the pipeline has no net, so one process measures it",
                                 "omit the flag, or add net to --pipeline"));
  }
  if (o.spec.require != measure::requireOfTransfer(o.spec.require))
    problems.push_back(badFlag("--require proven", "a pipeline proves no path",
                               "omit proven; the column `path` names the path"));
  if (o.output && *o.output != OutputForm::kTable && *o.output != OutputForm::kJson)
    problems.push_back(badFlag("--output", "a pipeline has no such form", "use table or json"));
  if (o.storage.create_source != 0 && o.pipeline.source() == nullptr)
    problems.push_back(badFlag("--create-source", "the pipeline begins with memory",
                               "use --total-buffer-size for its size"));
  if (o.storage.create_source != 0 && o.spec.buffer_bytes > o.storage.create_source)
    problems.push_back(badFlag("--total-buffer-size and --create-source",
                               "the source is smaller than the bytes to move"));
  if (o.storage.overwrite && o.pipeline.destination() == nullptr)
    problems.push_back(badFlag("--overwrite", "the pipeline ends in memory", "omit it"));
}

void addSizeProblems(const BenchOptions& o, const Chunking& chunks, std::vector<Error>& problems) {
  const std::uint64_t most = kMostChunks * chunks.chunk_bytes;
  if (std::max(o.spec.buffer_bytes, o.storage.create_source) > most)
    problems.push_back(badFlag("--total-buffer-size and --create-source",
                               fmt::format("a transfer has at most {}, which is {} chunks of "
                                           "VIADUCT_STAGING_CHUNK",
                                           base::formatSize(most), kMostChunks)));
}

// Returns the backend of the net stage.
Result<std::string> networkOf(const BenchOptions& o, const Settings& settings) {
  std::vector<std::string> asked = o.has("backend") ? o.backends : settings.backends;
  if (!o.has("backend"))
    std::erase_if(asked, [](const std::string& name) {
      const BackendFacts* const facts = backendFacts(name);
      return facts != nullptr && facts->storage;
    });
  if (asked.empty()) return usualOverNetwork();
  if (asked.size() == 1) {
    const BackendFacts* const facts = backendFacts(backendNamed(asked.front()));
    if (facts == nullptr || !facts->storage) return asked.front();
    return badFlag("--backend",
                   fmt::format("{} reaches files or objects, not another process", asked.front()),
                   fmt::format("choose one of {}", fmt::join(offeredBackends(), ", ")));
  }
  return badFlag(o.has("backend") ? "--backend" : "VIADUCT_BACKENDS",
                 "the net stage of a pipeline uses one backend", "choose one with --backend NAME");
}

// Returns the backends that the pipeline needs. `network` carries the net stage.
Result<std::vector<std::string>> backendsOf(const Pipeline& pipeline, const std::string& network) {
  const bool stored = pipeline.source() != nullptr || pipeline.destination() != nullptr;
  std::vector<std::string> out;
  if (pipeline.hasNet()) out.push_back(network);
  bool gpus = false;
  for (const BackendFacts& backend : backendFacts()) {
    gpus = gpus || backend.gpus;
    const bool needed = (stored && backend.storage) || (pipeline.hasGpu() && backend.gpus);
    if (needed && std::find(out.begin(), out.end(), backend.name) == out.end())
      out.emplace_back(backend.name);
  }
  if (gpus || !pipeline.hasGpu()) return out;
  return badFlag("--pipeline", "this build has no backend for GPU memory", "use host");
}

// The backend of a GPU maps memory of another process on this host. So the net stage names its
// backend.
std::string requireOfNet(const BenchOptions& o, const std::string& network) {
  if (!o.pipeline.hasGpu()) return o.spec.require;
  return fmt::format("backend:{}{}{}", network, o.spec.require.empty() ? "" : ",", o.spec.require);
}

}  // namespace

PipelinePlanOrProblems planPipeline(const BenchOptions& options, const Settings& settings) {
  const Pipeline& pipeline = options.pipeline;
  PipelinePlanOrProblems out;
  const Chunking chunks{settings.staging_chunk, settings.staging_chunks};
  addFlagProblems(options, out.problems);
  addSizeProblems(options, chunks, out.problems);
  BenchOptions bench = options;
  bench.as_nixlbench = false;  // nixlbench has no pipelines, and so no defaults for them
  bench.block_sizes = {4096};  // of one row, which the work replaces
  auto network = networkOf(options, settings);
  if (!network) {
    out.problems.push_back(std::move(network).error());
    return out;
  }
  bench.backends = {*network};
  bench.given["backend"] = *network;
  bench.given["batch"] = "1";
  bench.batch = 1;
  bench.spec.buffer_bytes = 0;
  PlanOrProblems planned = planBench(bench, settings);
  std::move(planned.problems.begin(), planned.problems.end(), std::back_inserter(out.problems));
  out.plan.bench = std::move(planned.plan);
  if (!out.problems.empty()) return out;
  BenchPlan& plan = out.plan.bench;
  const std::string carrier = plan.run.spec.rows.front().backend;
  plan.command = commandText("viaduct bench", options.given);
  plan.run.spec.rows.clear();
  plan.run.spec.require.clear();  // it is for the net stage, not for the backends of storage
  plan.run.spec.layout = {.targets = pipeline.processes() - 1};
  auto backends = backendsOf(pipeline, carrier);
  if (backends)
    plan.run.settings.backends = *std::move(backends);
  else
    out.problems.push_back(std::move(backends).error());
  out.plan.request = {.pipeline = pipeline,
                      .storage = options.storage,
                      .require = requireOfNet(options, carrier),
                      .memory = {options.spec.memory, options.spec.huge_pages},
                      .settings = plan.run.settings,
                      .rounds = options.has("repeat") ? options.spec.repeat : kUsualRounds};
  if (options.has("duration")) out.plan.request.duration = options.duration;
  out.plan.request.storage.bytes = options.spec.buffer_bytes;
  out.plan.request.storage.chunks = chunks;
  out.plan.request.storage.seed = options.spec.seed;
  return out;
}

}  // namespace viaduct::app
