// `viaduct pattern`: the traffic of collectives between members.
#include <fmt/format.h>
#include <viaduct/backend.h>

#include <array>
#include <cerrno>

#include "base/sizes.h"
#include "measure/workload/collective.h"
#include "meet/groups/group.h"
#include "viaduct/command_line.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

using measure::Layout;
using measure::Scheme;

struct PatternOptions : RunOptions {
  std::vector<std::uint64_t> block_sizes = {};  // of an operation
  std::uint32_t members = 0;                    // 0: not given
};
using PatternFlag = Flag<PatternOptions>;

Status intoPattern(std::string_view text, PatternOptions& into) {
  Layout& layout = into.spec.layout;
  if (const auto named = base::valueOf(measure::kPatterns, text)) {
    layout.scheme = *named;
    return Ok{};
  }
  auto matrix = measure::readTraffic(std::string(text));
  if (!matrix && matrix.error().os_errno == ENOENT)
    return wrongValue(
        fmt::format("\"{}\" is none of {}, and no file", text, base::listOf(measure::kPatterns)),
        {});
  if (!matrix) return std::move(matrix).error();
  layout.scheme = Scheme::kMatrix;
  layout.matrix = *std::move(matrix);
  return Ok{};
}

// Each member sends and receives, so both ends of a pair have the same memory.
Status intoSegment(std::string_view text, PatternOptions& into) {
  VIADUCT_CHECK((oneOf<kSegments, &PatternOptions::initiator_seg_type>(text, into)));
  into.target_seg_type = into.initiator_seg_type;
  return Ok{};
}

constexpr std::array kPatternName{
    PatternFlag{"NAME", "allgather|alltoall|allreduce-traffic|broadcast|sendrecv|FILE", "required",
                "the pattern, or a file with a matrix of sizes", intoPattern}};
constexpr std::array kPatternFlags{
    PatternFlag{"members", "N", "the rows of FILE, else 2", "number of members",
                count<2, &PatternOptions::members>},
    PatternFlag{"block_sizes", "SIZE,...", "4K, 16K, 64K and so on to 64M",
                "sizes of an operation: 64K, 65536, 1MiB (1MB is 10^6); 4K..1M doubles",
                set<intoSizes, &PatternOptions::block_sizes>},
    PatternFlag{"seg_type", "DRAM|VRAM", "DRAM",
                "memory of the members: host memory, or that of GPUs (member i uses GPU i)",
                intoSegment},
    PatternFlag{"pipeline_depth", "N", "1", "operations in flight",
                count<1, &PatternOptions::spec, &measure::Spec::depth>},
};
constexpr std::array kPatternOutput{outputFlag<kRowForms>("table|json|csv")};

FlagSheet patternSheet(PatternOptions& o) {
  FlagSheet out;
  out.add<PatternOptions>("Arguments", kPatternName, o)
      .add<PatternOptions>("Data", kPatternFlags, o);
  addBlocks(out, o);
  out.add("Data", runFlags(), o, {"recreate_xfer"});
  addDuration(out, o);
  addChecks(out, o);
  addMeeting(out, o);
  addComparison(out, o);
  addOutput(out, o, kPatternOutput, {"interval", "json", "explain"});
  return out;
}

Result<Layout> layoutOf(const PatternOptions& o) {
  Layout layout = o.spec.layout;
  const bool matrix = layout.scheme == Scheme::kMatrix;
  const std::uint32_t usual = matrix ? layout.matrix.members : 2;
  layout.initiators = layout.targets = o.members == 0 ? usual : o.members;
  if (matrix && layout.initiators != usual)
    return badFlag("NAME",
                   fmt::format("{} has {} members, and the run has {}", o.textOf("NAME", "FILE"),
                               usual, layout.initiators),
                   fmt::format("give --members {}, or another file", usual));
  if (layout.initiators > meet::kMaxMembers)
    return badFlag("--members", "the limit is 65536 members");
  layout.reads = o.op == OpKind::kRead;
  return layout;
}

// Returns the bytes of a block, which is one piece of an operation of `size` bytes.
Result<std::uint64_t> blockOf(const Layout& layout, std::uint64_t size) {
  const std::uint32_t cuts = piecesOf(layout.scheme, layout.initiators).cuts;
  if (const std::uint64_t piece = measure::pieceBytes(size, cuts); piece != 0) return piece;
  return badFlag("--block_sizes",
                 fmt::format("{} cannot be cut into a piece for each of {} members",
                             base::showSize(size), layout.initiators),
                 fmt::format("use {} or more", base::showSize(cuts)));
}

Result<PlannedRows> patternRows(const PatternOptions& o, const std::vector<std::string>& backends,
                                const Layout& layout) {
  std::vector<std::uint64_t> sizes = o.block_sizes;
  if (layout.scheme == Scheme::kMatrix) {
    if (!sizes.empty()) return badFlag("--block_sizes", "the file has the sizes of all transfers");
    sizes = {std::ranges::max(layout.matrix.bytes)};
  }
  if (sizes.empty()) sizes = measure::usualBlockSizes();
  std::vector<std::uint64_t> blocks;
  for (const std::uint64_t size : sizes) {
    VIADUCT_TRY(blocks.emplace_back(), blockOf(layout, size));
  }
  const std::uint64_t moved = piecesOf(layout.scheme, layout.initiators).moved;
  return rowsOf(o, backends, blocks, {static_cast<std::uint32_t>(moved)});
}

PlanOrProblems planPattern(const PatternOptions& o, const Settings& settings) {
  if (!o.spec.layout.pattern()) return {};  // requireFlags() reports the missing pattern
  PlanOrProblems out = planRows(o, settings,
                                {.layout = [&](bool) { return layoutOf(o); },
                                 .rows = [&](const auto& backends, const Layout& layout,
                                             bool) { return patternRows(o, backends, layout); }});
  out.plan.chose_local = o.members != 0;
  return out;
}

constexpr Workload<PatternOptions> kPattern{
    "viaduct pattern",
    "Measure the traffic of a collective between members that all send and receive.\n\n"
    "Moves what a collective of NCCL would move, or a matrix of sizes, and prints the columns of "
    "nccl-tests. Nothing is computed, and no step waits for an earlier one.\n",
    "  viaduct pattern allreduce-traffic --members 4 --backend tcp\n"
    "  viaduct pattern matrix.txt --duration 2s --json matrix.json\n"
    "  viaduct pattern alltoall --members 2 --meet node0:7000 --secret WORD --rank 0\n",
    patternSheet, planPattern};

}  // namespace

Command patternCommand() { return commandOf(kPattern); }

}  // namespace viaduct::app
