// The flags of `viaduct bench --kv` and `viaduct kv bench`.
#include <array>

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
    BenchFlag{"pool_budget", "SIZE", "64 GiB, or less if this host has less memory",
              "most memory of a pool; larger points are left out, with a note",
              set<intoSize, &O::kv, &KvOptions::pool_budget>},
};

}  // namespace

std::span<const BenchFlag> kvFlags() { return kKvFlags; }

}  // namespace viaduct::app
