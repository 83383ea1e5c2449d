// The flags of `viaduct pipeline`, and its plan.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/backend.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <utility>

#include "base/sizes.h"
#include "measure/workload/pipeline_contents.h"
#include "measure/workload/pipeline_routes.h"
#include "viaduct/command_line.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

using namespace std::chrono_literals;
using measure::pipeline::Chunking;
using measure::pipeline::kMostChunks;
using measure::pipeline::Pipeline;

constexpr std::uint32_t kUsualRounds = 5;
constexpr auto kUsualDuration = 300ms;
using PipelineData = measure::pipeline::StorageOptions;

struct PipelineOptions : RunOptions {
  Pipeline pipeline = {};
  PipelineData data = {};
};
using PipelineFlag = Flag<PipelineOptions>;

Status intoPipeline(std::string_view text, Pipeline& into) {
  VIADUCT_TRY(into, measure::pipeline::parsePipeline(text));
  return Ok{};
}

constexpr std::array kPipelineList{
    PipelineFlag{"LIST", "LIST", "required",
                 "file:/a,host,net,host,file:/b, or a part of it; cuda0 is memory of GPU 0, and "
                 "object:BUCKET/KEY is storage, too",
                 set<intoPipeline, &PipelineOptions::pipeline>}};
constexpr std::array kPipelineFlags{
    PipelineFlag{"total_buffer_size", "SIZE", "128 MiB, or all of a smaller source",
                 "bytes of a transfer: the first bytes of the source",
                 set<intoSize, &PipelineOptions::spec, &measure::Spec::buffer_bytes>},
    PipelineFlag{"create_source", "SIZE", "", "make the source file, and remove it at the end",
                 set<intoSize, &PipelineOptions::data, &PipelineData::create_source>},
    PipelineFlag{"overwrite", "", "false",
                 "overwrite an existing destination; objects stay in the store",
                 set<intoYesNo, &PipelineOptions::data, &PipelineData::overwrite>},
    PipelineFlag{"duration", "TIME", "300ms", "time of each part of a round: 2s, 60 (seconds)",
                 set<intoSomeTime, &PipelineOptions::spec, &measure::Spec::duration>},
    PipelineFlag{"repeat", "N", "5", "rounds, after one that is not counted",
                 count<1, &PipelineOptions::spec, &measure::Spec::repeat>},
};
constexpr std::array kPipelineOutput{outputFlag<kTableOrJson>("table|json")};

FlagSheet pipelineSheet(PipelineOptions& o) {
  FlagSheet out;
  out.add<PipelineOptions>("Arguments", kPipelineList, o)
      .add<PipelineOptions>("Data", kPipelineFlags, o)
      .add("Data", runFlags(), o,
           {"backend", "require", "memory", "use_hugepages", "device_list", "seed"});
  addMeeting(out, o);
  addComparison(out, o);
  addOutput(out, o, kPipelineOutput, {"json"});
  return out;
}

void addFlagProblems(const PipelineOptions& o, std::vector<Error>& problems) {
  for (const char* name : {"backend", "device_list", "meet", "rank", "benchmark_group", "require"})
    if (o.has(name) && !o.pipeline.hasNet())
      problems.push_back(badFlag(spelled(name, '-'),
                                 "the pipeline has no net, so one process measures it",
                                 "omit the flag, or add net to LIST"));
  if (o.data.create_source != 0 && o.pipeline.source() == nullptr)
    problems.push_back(badFlag("--create-source", "the pipeline begins with memory",
                               "use --total-buffer-size for its size"));
  if (o.data.create_source != 0 && o.spec.buffer_bytes > o.data.create_source)
    problems.push_back(badFlag("--total-buffer-size and --create-source",
                               "the source is smaller than the bytes to move"));
  if (o.data.overwrite && o.pipeline.destination() == nullptr)
    problems.push_back(badFlag("--overwrite", "the pipeline ends in memory", "omit it"));
}

void addSizeProblems(const PipelineOptions& o, const Chunking& chunks,
                     std::vector<Error>& problems) {
  const std::uint64_t most = kMostChunks * chunks.chunk_bytes;
  if (std::max(o.spec.buffer_bytes, o.data.create_source) > most)
    problems.push_back(badFlag("--total-buffer-size and --create-source",
                               fmt::format("a transfer has at most {}, which is {} chunks of "
                                           "VIADUCT_STAGING_CHUNK",
                                           base::showSize(most), kMostChunks)));
}

// Returns the backend of the net stage.
Result<std::string> networkOf(const PipelineOptions& o, const Settings& settings) {
  const std::vector<std::string> asked =
      o.backends.empty() ? backendsBetweenMembers(settings) : o.backends;
  if (asked.empty()) return usualOverNetwork();
  if (asked.size() == 1) {
    if (!isStorage(asked.front())) return asked.front();
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
  return badFlag("LIST", "this build has no backend for GPU memory", "use host");
}

// The GPU backend would map memory of another process on this host, so the requirement of the net
// stage names the network's backend.
std::string requireOfNet(const PipelineOptions& o, const std::string& network) {
  std::string asked = measure::requireOfTransfer(o.spec.require);
  if (!o.pipeline.hasGpu()) return asked;
  return fmt::format("backend:{}{}{}", network, asked.empty() ? "" : ",", asked);
}

// Returns a row for each case: each stage alone, all stages at once, and one transfer through all
// stages.
std::vector<measure::Workload> rowsOf(const Pipeline& pipeline) {
  const auto cases =
      measure::pipeline::casesOf(measure::pipeline::routesOf(pipeline), pipeline.stages.size());
  std::vector<measure::Workload> out(cases.size());
  for (std::uint32_t i = 0; i < out.size(); ++i) out[i].stages = i;
  return out;
}

// Plans a run of one row over `network`. The caller replaces this row by the rows of the pipeline.
PlanOrProblems planOneRow(const PipelineOptions& o, const std::string& network,
                          const Settings& settings) {
  RunOptions run = o;
  run.backends = {network};
  run.spec.buffer_bytes = 0;
  return planRows(run, settings, {.rows = [&](const auto& backends, const auto&, bool) {
                    return app::rowsOf(run, backends, {4096}, {1});
                  }});
}

PlanOrProblems planPipeline(const PipelineOptions& options, const Settings& settings) {
  const Pipeline& pipeline = options.pipeline;
  PlanOrProblems out;
  if (pipeline.places.empty()) return out;  // the list could not be read
  const Chunking chunks{settings.staging_chunk, settings.staging_chunks};
  addFlagProblems(options, out.problems);
  addSizeProblems(options, chunks, out.problems);
  auto network = networkOf(options, settings);
  if (!network) {
    out.problems.push_back(std::move(network).error());
    return out;
  }
  PlanOrProblems planned = planOneRow(options, *network, settings);
  std::ranges::move(planned.problems, std::back_inserter(out.problems));
  if (!out.problems.empty()) return out;
  out.plan = std::move(planned.plan);
  measure::Spec& spec = out.plan.run.spec;
  auto backends = backendsOf(pipeline, spec.rows.front().backend);
  if (backends)
    out.plan.run.settings.backends = *std::move(backends);
  else
    out.problems.push_back(std::move(backends).error());
  spec.net_require = requireOfNet(options, spec.rows.front().backend);
  // Requirements other than a proven path hold for the net stage, not for the backends of storage.
  const bool proven = options.spec.require != measure::requireOfTransfer(options.spec.require);
  spec.require = proven ? measure::kProvenPath : "";
  spec.rows = rowsOf(pipeline);
  spec.layout = {.targets = pipeline.processes() - 1};
  spec.pipeline = pipeline;
  spec.pipeline_data = options.data;
  spec.pipeline_data.bytes = options.spec.buffer_bytes;
  spec.pipeline_data.chunks = chunks;
  spec.pipeline_data.seed = options.spec.seed;
  if (!options.has("repeat")) spec.repeat = kUsualRounds;
  if (!options.has("duration")) spec.duration = kUsualDuration;
  return out;
}

constexpr Workload<PipelineOptions> kPipeline{
    "viaduct pipeline",
    "Measure the stages between storage, hosts and GPUs, and name the slowest one.\n\n"
    "Measures each stage alone, all stages at the same time, and one transfer through all of "
    "them.\n",
    "  viaduct pipeline file:/nvme/model,host,net,host,file:/nvme/copy\n"
    "  viaduct pipeline file:/nvme/new,host,net,host --create-source 1GiB\n"
    "  viaduct pipeline file:/nvme/model,cuda0,net,cuda0,file:/nvme/copy\n",
    pipelineSheet, planPipeline};

}  // namespace

Command pipelineCommand() { return commandOf(kPipeline); }

}  // namespace viaduct::app
