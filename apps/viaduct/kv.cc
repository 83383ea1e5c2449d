// `viaduct kv size`: the size of a request in the KV cache of a known model.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/kv_models.h>

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/json.h"
#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/workload/generate_trace.h"
#include "measure/workload/trace_format.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/commands.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"

namespace viaduct::app {
namespace {

constexpr std::uint32_t kMostTokens = 1U << 28U, kMostRanks = 1U << 12U;

struct KvSizeOptions {
  std::string model = {};
  std::uint32_t tokens = 8192;
  std::uint32_t tp = 1;
  std::optional<std::uint32_t> block = {};
  bool json = false;
};

// The size of one group of KV caches on one rank.
struct GroupSize {
  std::uint64_t tensors = 0;  // of all layers; a tensor has one page of each block
  std::uint64_t block_bytes = 0;
  std::uint64_t blocks = 0;  // of the request

  std::uint64_t pages() const { return blocks * tensors; }
  std::uint64_t bytes() const { return blocks * block_bytes; }
};

GroupSize sizeOf(const KvLayout& layout, const KvGroup& group, std::uint32_t tokens) {
  GroupSize out{.blocks = kvBlocksOf(group, tokens)};
  for (const KvCache& cache : group.caches) {
    const std::uint64_t tensors = cache.layers.size() * cache.tensors;
    out.tensors += tensors;
    out.block_bytes += tensors * kvPageBytes(layout, group, cache);
  }
  return out;
}

// The size of a request's KV cache on one rank.
struct RequestSize {
  std::vector<GroupSize> groups = {};
  std::uint64_t bytes = 0, blocks = 0, pages = 0;
};

RequestSize sizeOf(const KvLayout& layout, std::uint32_t tokens) {
  RequestSize out;
  for (const KvGroup& group : layout.groups) {
    const GroupSize& size = out.groups.emplace_back(sizeOf(layout, group, tokens));
    out.bytes += size.bytes();
    out.blocks += size.blocks;
    out.pages += size.pages();
  }
  return out;
}

double bytesOfToken(const KvGroup& group, const GroupSize& size) {
  return static_cast<double>(size.block_bytes) / group.block_tokens;
}

std::string namesOf(const KvGroup& group) {
  return fmt::format("{}", fmt::join(base::mapped(group.caches, &KvCache::name), "+"));
}

std::string exactSize(std::uint64_t bytes) {
  return fmt::format("{} ({} bytes)", base::roundedSize(bytes), bytes);
}

std::string textOf(const KvSizeOptions& asked, const KvModel& model, const RequestSize& size,
                   std::size_t width) {
  std::string out = fmt::format("{}: a request of {} tokens on one rank, TP {}\n\n", model.name,
                                asked.tokens, asked.tp);
  std::vector<base::TextRow> rows;
  for (std::size_t i = 0; i < size.groups.size(); ++i) {
    const KvGroup& group = model.layout.groups[i];
    const GroupSize& one = size.groups[i];
    rows.push_back({base::cells(
        one.tensors, group.block_tokens, group.window == 0 ? "all" : fmt::to_string(group.window),
        bytesOfToken(group, one), one.block_bytes, one.blocks, one.pages(), namesOf(group))});
  }
  out += base::tableText(
      std::array{base::figure("tensors"), base::figure("block"), base::figure("window"),
                 base::figure("bytes/token"), base::figure("bytes/block"), base::figure("blocks"),
                 base::figure("pages"), base::words("caches", base::Narrow::kBelow)},
      rows, width);
  out += fmt::format("\none rank:    {}\n", exactSize(size.bytes));
  out += fmt::format("all ranks:   {}\n", exactSize(size.bytes * asked.tp));
  out += fmt::format("descriptors: {} of one rank if each page is one, {} if each block is a row\n",
                     size.pages, size.blocks);
  return out;
}

base::Json jsonOf(const KvGroup& group, const GroupSize& size, const KvLayout& layout) {
  base::Json out{{"block_tokens", group.block_tokens},
                 {"window", group.window},
                 {"bytes_per_token", bytesOfToken(group, size)},
                 {"bytes_per_block", size.block_bytes},
                 {"blocks", size.blocks},
                 {"pages", size.pages()},
                 {"bytes", size.bytes()}};
  out["caches"] = base::Json::array();
  for (const KvCache& cache : group.caches)
    out["caches"].push_back({{"name", cache.name},
                             {"layers", cache.layers.size()},
                             {"tensors", cache.tensors},
                             {"kv_heads", cache.kv_heads},
                             {"head_size", cache.head_size},
                             {"element_bytes", cache.element_bytes},
                             {"entry_tokens", cache.entry_tokens},
                             {"page_bytes", kvPageBytes(layout, group, cache)}});
  return out;
}

base::Json jsonOf(const KvSizeOptions& asked, const KvModel& model, const RequestSize& size) {
  base::Json out{{"format", "viaduct-kv-size/1"}, {"model", model.name},
                 {"tokens", asked.tokens},        {"tp", asked.tp},
                 {"bytes", size.bytes},           {"blocks", size.blocks},
                 {"pages", size.pages},           {"bytes_of_all_ranks", size.bytes * asked.tp}};
  out["groups"] = base::Json::array();
  for (std::size_t i = 0; i < size.groups.size(); ++i)
    out["groups"].push_back(jsonOf(model.layout.groups[i], size.groups[i], model.layout));
  return out;
}

// The model with the ranks and blocks that the user asks for.
Result<KvModel> modelOf(const KvSizeOptions& asked) {
  VIADUCT_TRY(KvModel model, kvModel(asked.model));
  if (asked.block && model.own_blocks)
    return badFlag("--block", fmt::format("{} prescribes its blocks", model.name), "leave it out");
  model.layout.tp = asked.tp;
  for (KvGroup& group : model.layout.groups)
    if (asked.block) group.block_tokens = *asked.block;
  // A layout can only be checked with a pool, for which one block is enough.
  VIADUCT_CHECK(arrangeKv(model.layout, KvArrangement::kRows, 0, 1));
  return model;
}

int runKvSize(const KvSizeOptions& asked) {
  const auto model = modelOf(asked);
  if (!model) return fail(model.error().text(), kExitUsage);
  const RequestSize size = sizeOf(model->layout, asked.tokens);
  fmt::print("{}", asked.json ? base::dumpJson(jsonOf(asked, *model, size), 2) + "\n"
                              : textOf(asked, *model, size, base::terminalWidth()));
  return kExitOk;
}

// Reads a whole number from 1 to `Most` into a member.
template <std::uint32_t Most, auto Member>
Status intoCount(std::string_view text, KvSizeOptions& options) {
  VIADUCT_TRY(const std::uint64_t value, countIn(text, 1, Most));
  options.*Member = static_cast<std::uint32_t>(value);
  return Ok{};
}

using KvSizeFlag = Flag<KvSizeOptions>;
constexpr std::array kKvSizeFlags{
    KvSizeFlag{"MODEL", "MODEL", "required", "its name, such as Llama-3.1-8B",
               set<intoText, &KvSizeOptions::model>},
    KvSizeFlag{"tokens", "N", "8192", "tokens of the request",
               intoCount<kMostTokens, &KvSizeOptions::tokens>},
    KvSizeFlag{"tp", "N", "1", "ranks of tensor parallelism",
               intoCount<kMostRanks, &KvSizeOptions::tp>},
    KvSizeFlag{"block", "N", "16", "tokens of a block; some models prescribe it",
               intoCount<kMostTokens, &KvSizeOptions::block>},
    KvSizeFlag{"json", "", "", "print JSON", set<intoYesNo, &KvSizeOptions::json>},
};
constexpr auto kKvSizeAbout =
    "Print the bytes, blocks and descriptors of a request in a model's KV cache.\n\n"
    "A group of caches shares a block table. A page is one block of one tensor of one layer. The "
    "cache has elements of bf16, unless the model prescribes other ones. A latent row (MLA) is the "
    "same on each rank, so more ranks do not make it smaller.";

std::string kvSizeMore() {
  return fmt::format(
      "Models: {}. A name may begin with its owner, as in meta-llama/Llama-3.1-8B.\n\n"
      "Exit codes: 0 if the size was printed; 2 if the command line is wrong or the model is not "
      "known.\n\n"
      "Examples:\n"
      "  viaduct kv size Llama-3.1-70B --tokens 32768 --tp 8\n"
      "  viaduct kv size DeepSeek-V3 --block 64 --json",
      fmt::join(kvModelNames(), ", "));
}

struct KvGenerateOptions {
  measure::TraceRecipe recipe = {};
  measure::TraceFormat format = measure::TraceFormat::kMooncake;
  std::string file = {};
};

int runKvGenerate(const KvGenerateOptions& asked) {
  const measure::Trace trace = inFormat(generateTrace(asked.recipe), asked.format);
  if (asked.file.empty()) {
    fmt::print("{}", textOf(trace));
    return kExitOk;
  }
  auto file = ResultsFile::open(asked.file);
  if (!file) return fail(file.error().text(), kExitUsage);
  if (auto written = file->write(textOf(trace)); !written)
    return fail(written.error().text(), kExitFailed);
  const measure::TraceStatistics all = statisticsOf(trace);
  fmt::print(
      "{} requests in {:.0f} s, {:.2f} a second\n"
      "input:  mean {:.0f}, p50 {:.0f}, p90 {:.0f}, p99 {:.0f}, max {:.0f} tokens\n"
      "output: mean {:.0f} tokens\n"
      "{}\n",
      all.requests, all.seconds, all.requests_per_s, all.input_mean, all.input_p50, all.input_p90,
      all.input_p99, all.input_max, all.output_mean,
      all.hash_ids == 0
          ? "no hash ids in this format"
          : fmt::format("hash ids: {}, {} unique; prefix hits with an unbounded cache: {:.1f} %",
                        all.hash_ids, all.unique, all.prefix_hits * 100));
  return kExitOk;
}

using KvGenerateFlag = Flag<KvGenerateOptions>;
using measure::TraceRecipe;
constexpr std::array kKvGenerateFlags{
    KvGenerateFlag{"shape", "conversation|synthetic", "conversation",
                   "published trace whose statistics the new one has",
                   oneOf<measure::kTraceShapes, &KvGenerateOptions::recipe, &TraceRecipe::shape>},
    KvGenerateFlag{"format", "mooncake|bailian|azure|burstgpt", "mooncake",
                   "owner of the traces whose format the new one has",
                   oneOf<measure::kTraceFormats, &KvGenerateOptions::format>},
    KvGenerateFlag{"requests", "N", "1000", "number of requests",
                   count<1, &KvGenerateOptions::recipe, &TraceRecipe::requests>},
    KvGenerateFlag{"seed", "N", "1", "random seed",
                   count<0, &KvGenerateOptions::recipe, &TraceRecipe::seed>},
    KvGenerateFlag{"divide", "N", "1", "divide all lengths by N, for hosts with little memory",
                   count<1, &KvGenerateOptions::recipe, &TraceRecipe::divide>},
    KvGenerateFlag{"output", "FILE", "standard output", "file to write; its statistics are printed",
                   set<intoFile, &KvGenerateOptions::file>},
};

struct NoKvOptions {};

int runKv(const NoKvOptions&) {
  fmt::print(stderr, "{}", pageHelp(kvCommand().page()));
  return kExitUsage;
}

}  // namespace

Command kvCommand() {
  static const std::string more = kvSizeMore();
  const Command size = commandOf<KvSizeOptions>({.name = "viaduct kv size",
                                                 .about = kKvSizeAbout,
                                                 .more = more.c_str(),
                                                 .flags = kKvSizeFlags,
                                                 .run = runKvSize});
  const Command generate = commandOf<KvGenerateOptions>(
      {.name = "viaduct kv generate",
       .about = "Write a trace of requests with the statistics of a published one.\n\n"
                "Each line is a JSON object in Mooncake's format, or a line of the format that "
                "--format names. Equal hash ids are equal prefix blocks of 512 tokens. The same "
                "seed gives the same trace.",
       .more = "Exit codes: 0 if the trace was written; 1 if it could not be written; 2 if the "
               "command line is wrong.\n\nExamples:\n"
               "  viaduct kv generate --requests 500 --output trace.jsonl\n"
               "  viaduct kv generate --format azure --output trace.csv\n"
               "  viaduct kv trace trace.jsonl Qwen3-30B-A3B --speed 10",
       .flags = kKvGenerateFlags,
       .run = runKvGenerate});
  return commandOf<NoKvOptions>({.name = "viaduct kv",
                                 .about = "Move and compute the KV caches of language models.",
                                 .run = runKv,
                                 .nested = {kvBenchCommand(), kvTraceCommand(), generate, size}});
}

}  // namespace viaduct::app
