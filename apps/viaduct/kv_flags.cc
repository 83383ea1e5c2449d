// The commands `viaduct kv bench` and `viaduct kv trace`, and their flags.
#include <array>
#include <utility>

#include "viaduct/bench_kv.h"
#include "viaduct/command_line.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

using Kv = KvOptions;
using measure::Spec;
using KvFlag = Flag<Kv>;
using measure::KvTrace;
using measure::TraceReading;

// The limit keeps the replayed times above the clock's resolution.
Status intoSpeed(std::string_view text, double& into) {
  VIADUCT_CHECK(intoRate(text, into));
  if (into <= 1e6) return Ok{};
  return wrongValue(fmt::format("\"{}\" is above 1000000", text), {});
}

constexpr std::uint32_t kMostInList = 1U << 24U;

constexpr std::array kKvCache{
    KvFlag{"tokens", "N,...", "8192", "tokens of a request",
           set<intoCounts<kMostInList>, &Kv::tokens>},
    KvFlag{"requests", "N,...", "1", "requests of a burst, which are posted together",
           set<intoCounts<kMostInList>, &Kv::requests>},
    KvFlag{"block", "N,...", "16, or those that the model prescribes", "tokens of a block",
           set<intoCounts<kMostInList>, &Kv::blocks>},
    KvFlag{"block_to", "N", "as --block", "tokens of a block at the destination",
           count<1, &Kv::block_to>},
    KvFlag{"tp", "N", "1", "ranks of tensor parallelism; one rank of each end takes part",
           count<1, &Kv::tp>},
    KvFlag{"tp_to", "N", "as --tp", "ranks of tensor parallelism at the destination",
           count<1, &Kv::tp_to>},
    KvFlag{"order", "nhd|hnd", "nhd; hnd if --tp-to differs",
           "order in a page: token by token, or head by head",
           oneOf<measure::kKvOrders, &Kv::order>},
    KvFlag{"arrangement", "apart|together|rows", "apart; rows if the model prescribes its blocks",
           "pools: for each tensor of each layer, for each layer, or rows of all layers",
           oneOf<measure::kKvArrangements, &Kv::arrangement>},
    KvFlag{"pool_budget", "SIZE", "a part of the memory, 64 GiB at most; 4 GiB for a trace",
           "most memory of a pool; larger points are left out, with a note",
           set<intoSize, &Kv::pool_budget>},
};
constexpr std::array kKvBursts{
    KvFlag{"iterations", "N", "8", "timed bursts of a trial", count<1, &Kv::iterations>},
    KvFlag{"duration", "TIME", "", "time each trial for this long: 2s, 500ms, 60 (seconds)",
           set<intoSomeTime, &Kv::spec, &Spec::duration>},
    KvFlag{"warmup", "TIME", "2 bursts", "warm-up time before each trial",
           set<intoTime, &Kv::spec, &Spec::warmup>},
    KvFlag{"repeat", "N", "3", "trials of each row", count<1, &Kv::spec, &Spec::repeat>},
};
constexpr std::array kKvReplay{
    KvFlag{"speed", "X", "1", "divide the times of the trace by X",
           set<intoSpeed, &Kv::trace, &KvTrace::speed>},
    KvFlag{"prefill_rate", "N", "",
           "tokens a second that prefill computes, for the time to the first token",
           count<1, &Kv::prefill_rate>},
    KvFlag{"requests", "N", "all", "replay only the first N requests of the file",
           count<1, &Kv::reading, &TraceReading::requests>},
    KvFlag{"hash_tokens", "N", "512; 16 in Bailian's format", "tokens that a hash id stands for",
           count<1, &Kv::reading, &TraceReading::id_tokens>},
};
constexpr std::array kKvFile{KvFlag{"FILE", "FILE", "required",
                                    "trace of Mooncake, Alibaba Bailian, Azure or BurstGPT",
                                    set<intoFile, &Kv::trace_file>}};
constexpr std::array kKvModel{KvFlag{"MODEL", "MODEL", "required",
                                     "name of a model, such as Llama-3.1-8B",
                                     set<intoText, &Kv::model>}};
constexpr std::array kKvOutput{outputFlag<kRowForms>("table|json|csv")};

void addKvEnd(FlagSheet& out, Kv& o, std::initializer_list<std::string_view> output) {
  addChecks(out, o);
  addMeeting(out, o);
  addComparison(out, o);
  addOutput(out, o, kKvOutput, output);
}

FlagSheet burstSheet(Kv& o) {
  FlagSheet out;
  out.add<Kv>("Arguments", kKvModel, o)
      .add<Kv>("KV cache", kKvCache, o)
      .add("Data", runFlags(), o,
           {"backend", "op", "memory", "initiator_seg_type", "target_seg_type", "use_hugepages",
            "device_list", "seed", "recreate_xfer"})
      .add<Kv>("Duration", kKvBursts, o);
  addKvEnd(out, o, {"interval", "json", "explain"});
  return out;
}

FlagSheet traceSheet(Kv& o) {
  FlagSheet out;
  out.add<Kv>("Arguments", kKvFile, o)
      .add<Kv>("Arguments", kKvModel, o)
      .add<Kv>("Replay", kKvReplay, o)
      .add<Kv>("KV cache", kKvCache, o, {"block", "tp", "order", "arrangement", "pool_budget"})
      .add("Data", runFlags(), o,
           {"backend", "op", "memory", "use_hugepages", "device_list", "seed"});
  addKvEnd(out, o, {"json", "explain"});
  return out;
}

constexpr Workload<Kv> kBursting{
    "viaduct kv bench",
    "Measure how fast the KV cache of a model's requests moves.\n\n"
    "Measures bursts of requests between two processes, a prefill and a decode worker. The blocks "
    "of a request lie at random places of two pools. Each paged row stands beside a bulk row, "
    "which moves the same bytes in one piece: the ceiling of the wire.\n",
    "  viaduct kv bench Llama-3.1-8B --backend tcp\n"
    "  viaduct kv bench Llama-3.1-8B --tp 4 --tp-to 8 --block-to 64 --op pull\n"
    "  viaduct kv bench DeepSeek-V4-Pro --tokens 8192,131072 --json kv.json\n"
    "  viaduct kv bench Llama-3.1-8B --meet node0:7000 --secret WORD --rank 0\n",
    burstSheet, planKv};
constexpr Workload<Kv> kReplaying{
    "viaduct kv trace",
    "Replay a trace of requests, as transfers from prefill to decode.\n\n"
    "Replays a trace between two processes. Each request starts at its time, whether or not "
    "earlier ones have ended. Prefill keeps the blocks of prefixes in a pool, and the least "
    "recently used leave first. All blocks of a request move to the pool of decode.\n\n"
    "The file has one JSON object in each line, as the traces of Mooncake and of Alibaba Bailian, "
    "or it is a CSV table, as those of Azure and of BurstGPT. The names of the fields decide. "
    "Requests of a table have no hash ids, so they have no hits.\n",
    "  viaduct kv generate --requests 500 --output trace.jsonl\n"
    "  viaduct kv trace trace.jsonl Qwen3-30B-A3B --speed 10 --prefill-rate 20000\n"
    "  viaduct kv trace AzureLLMInferenceTrace_conv.csv Llama-3.1-8B --requests 1000\n",
    traceSheet, planKvTrace};

}  // namespace

Command kvBenchCommand() { return commandOf(kBursting); }
Command kvTraceCommand() { return commandOf(kReplaying); }

}  // namespace viaduct::app
