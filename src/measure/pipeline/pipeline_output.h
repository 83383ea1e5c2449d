// The results of `viaduct bench --pipeline`, for people and for programs. Threads: pure functions
// and plain values.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "measure/pipeline/rates.h"
#include "measure/result/report.h"

namespace viaduct::measure::pipeline {

struct PipelineReport {
  std::string version = {}, started = {}, command = {};
  std::string end = "complete";  // or the reason of an early end
  std::string pipeline = {};     // the list of memories
  std::vector<RunMember> members = {};
  std::uint64_t bytes = 0;    // of each transfer
  std::uint32_t rounds = 0;   // whole rounds
  std::uint64_t checked = 0;  // transfers, all of whose bytes were checked
  PipelineRates rates = {};
};

// The lines under the table: the bottleneck, the efficiency and the number of checked transfers.
// Empty without a whole round.
std::string pipelineConclusions(const PipelineReport& report);
// The table and the conclusions. The table has at most `width` columns, if the figures allow.
std::string pipelineText(const PipelineReport& report, std::size_t width);
// The format viaduct-pipeline/1 (docs/pipeline.md).
std::string pipelineJson(const PipelineReport& report);
bool isPipelineJson(std::string_view text);
// `name` names the file in errors.
Result<PipelineReport> pipelineFromJson(std::string_view text, const std::string& name);

}  // namespace viaduct::measure::pipeline
