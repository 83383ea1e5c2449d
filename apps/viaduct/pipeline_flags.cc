// The flags of `viaduct bench --pipeline`.
#include <array>

#include "viaduct/bench_options.h"
#include "viaduct/bench_values.h"

namespace viaduct::app {
namespace {

using O = BenchOptions;
using measure::pipeline::StorageOptions;

Status intoPipeline(std::string_view text, measure::pipeline::Pipeline& into) {
  VIADUCT_TRY(into, measure::pipeline::parsePipeline(text));
  return Ok{};
}

constexpr std::array kPipelineFlags{
    BenchFlag{"pipeline", "LIST", "",
              "measure the stages of file:/a,host,net,host,file:/b, or of a part of it, instead of "
              "rows; cuda0 is memory of GPU 0, and object:BUCKET/KEY is storage, too",
              set<intoPipeline, &O::pipeline>},
    BenchFlag{"create_source", "SIZE", "",
              "make the source file of a pipeline, and remove it at the end",
              set<intoSize, &O::storage, &StorageOptions::create_source>},
    BenchFlag{
        "overwrite", "", "false",
        "overwrite an existing destination of a pipeline, or existing --filenames of a write; "
        "objects of a pipeline stay in the store",
        set<intoYesNo, &O::storage, &StorageOptions::overwrite>},
};

}  // namespace

std::span<const BenchFlag> pipelineFlags() { return kPipelineFlags; }

}  // namespace viaduct::app
