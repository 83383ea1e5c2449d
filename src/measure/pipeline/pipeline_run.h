// One member's part in the measurement of a pipeline. All members call runMember(), and rank 0 gets
// the rates. Threads: one, besides the threads that it starts for flows.
#pragma once

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "measure/load/buffer.h"
#include "measure/pipeline/pipeline.h"
#include "measure/pipeline/rates.h"
#include "measure/pipeline/storage.h"
#include "measure/run/run.h"

namespace viaduct::measure::pipeline {

// All members have the same request, besides the settings.
struct PipelineRequest {
  Pipeline pipeline = {};
  StorageOptions storage = {};
  std::string require = {};  // of the path between the processes, as TransferOptions has it
  Buffer::Kind memory = {};  // of host memory at an end of the pipeline
  Settings settings = {};    // name the library of the GPUs' driver
  std::uint32_t rounds = 5;  // after one round that is not counted
  // How long each part of a round takes. A part has at least one transfer.
  std::chrono::nanoseconds duration = std::chrono::milliseconds(300);
};
// The request as options that the members compare.
std::vector<Option> optionsOf(const PipelineRequest& request);

// Returns the number of steps that Progress::step counts.
std::size_t stepsOf(const PipelineRequest& request);

struct PipelineResult {
  std::uint64_t bytes = 0;   // of each transfer
  std::uint32_t rounds = 0;  // whole rounds
  PipelineRates rates = {};
  std::uint64_t checked = 0;  // transfers whose delivered bytes were all checked
};

// Measures. `result` has all whole rounds also after an error.
Status runMember(const PipelineRequest& request, const MemberScene& scene, PipelineResult& result);

}  // namespace viaduct::measure::pipeline
