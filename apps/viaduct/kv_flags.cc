// The flags of `viaduct bench --kv` and `viaduct kv bench`.
#include <array>
#include <memory>
#include <utility>

#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using O = BenchOptions;

constexpr std::uint64_t kMostInList = std::uint64_t{1} << 24U;

Status intoCounts(std::string_view text, std::vector<std::uint32_t>& into) {
  std::vector<std::string> words;
  VIADUCT_CHECK(intoWords(text, words));
  for (const std::string& word : words) {
    VIADUCT_TRY(const std::uint64_t value, countIn(word, 1, kMostInList));
    into.push_back(static_cast<std::uint32_t>(value));
  }
  return Ok{};
}

Status intoTrace(std::string_view text, measure::KvTrace& into) {
  into.name = text;
  VIADUCT_TRY(auto trace, measure::readTrace(into.name));
  into.requests = std::make_shared<const measure::Trace>(std::move(trace));
  return Ok{};
}

// The limit keeps the replayed times above the clock's resolution.
Status intoSpeed(std::string_view text, double& into) {
  VIADUCT_CHECK(intoRate(text, into));
  if (into <= 1e6) return Ok{};
  return wrongValue(fmt::format("\"{}\" is above 1000000", text), {});
}

constexpr std::array kKvFlags{
    BenchFlag{
        "kv", "MODEL", "",
        "move the KV cache of a model's requests in place of --block-sizes; each paged row has "
        "a bulk row beside it",
        set<intoText, &O::kv, &KvOptions::model>},
    BenchFlag{"tokens", "N,...", "8192", "tokens of a request",
              set<intoCounts, &O::kv, &KvOptions::tokens>},
    BenchFlag{"block", "N,...", "16, or those that the model prescribes", "tokens of a block",
              set<intoCounts, &O::kv, &KvOptions::blocks>},
    BenchFlag{"block_to", "N", "as --block", "tokens of a block at the destination",
              count<1, &O::kv, &KvOptions::block_to>},
    BenchFlag{"requests", "N,...", "1", "requests of a burst, which are posted together",
              set<intoCounts, &O::kv, &KvOptions::requests>},
    BenchFlag{"tp", "N", "1", "ranks of tensor parallelism; one rank of each end takes part",
              count<1, &O::kv, &KvOptions::tp>},
    BenchFlag{"tp_to", "N", "as --tp", "ranks of tensor parallelism at the destination",
              count<1, &O::kv, &KvOptions::tp_to>},
    BenchFlag{"order", "nhd|hnd", "nhd; hnd if --tp-to differs",
              "order in a page: token by token, or head by head",
              oneOf<measure::kKvOrders, &O::kv, &KvOptions::order>},
    BenchFlag{"arrangement", "apart|together|rows",
              "apart; rows if the model prescribes its blocks",
              "pools: for each tensor of each layer, for each layer, or rows of all layers",
              oneOf<measure::kKvArrangements, &O::kv, &KvOptions::arrangement>},
    BenchFlag{"pool_budget", "SIZE",
              "64 GiB, or 4 GiB for a trace; less if this host has less memory",
              "most memory of a pool; larger points are left out, with a note",
              set<intoSize, &O::kv, &KvOptions::pool_budget>},
    BenchFlag{"trace", "FILE", "",
              "replay the requests of a trace in Mooncake's format, at their times, in place of "
              "--tokens",
              set<intoTrace, &O::kv, &KvOptions::trace>},
    BenchFlag{"speed", "X", "1", "divide the times of a trace by X",
              set<intoSpeed, &O::kv, &KvOptions::speed>},
    BenchFlag{"prefill_rate", "N", "",
              "tokens a second that prefill computes, for the time to the "
              "first token",
              count<1, &O::kv, &KvOptions::prefill_rate>},
};

}  // namespace

std::span<const BenchFlag> kvFlags() { return kKvFlags; }

}  // namespace viaduct::app
