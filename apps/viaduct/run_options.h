// The options that commands share if they measure between processes. Each command adds its own.
// Threads: plain values.
#pragma once

#include <viaduct/transfer.h>

#include <chrono>
#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "measure/result/rank_sum.h"
#include "measure/workload/spec.h"
#include "meet/place_options.h"

namespace viaduct::app {

struct GivenFlag {
  std::string text = {};         // as it was given
  std::optional<bool> yes = {};  // of a yes-or-no flag
};
using GivenFlags = std::map<std::string, GivenFlag, std::less<>>;
// Returns a command line that can be typed again, such as "viaduct bench --backend tcp". It leaves
// out secrets and the meeting place.
std::string commandText(std::string program, const GivenFlags& given);

enum class OutputForm : std::uint8_t { kTable, kNixlbench, kJson, kCsv };

// The options by which the workers of a run find each other.
struct MeetingOptions {
  std::string where = {};  // see meet::choosePlace(); empty: all workers run here
  std::string secret = {};
  std::optional<std::uint32_t> rank = {};
  std::string group = "default";
  std::chrono::nanoseconds timeout = std::chrono::minutes(3);
};

// Side B of a comparison, and how the sides are compared.
struct AgainstOptions {
  std::string settings = {};
  std::uint32_t rounds = 5;
  std::optional<double> slower = {};  // 0.05: fail if B is more than 5 % slower
  double least_effect = measure::kLeastEffect;
  std::string junit = {};  // the file of its tests
};

struct OutputOptions {
  std::optional<OutputForm> form = {};
  std::string json = {};
  bool explain = false;  // explain the choice of backends instead of measuring
};

struct RunOptions {
  std::string command = {};  // "viaduct bench"
  // The flags of the command line and their values. Result files record them, so secret values are
  // replaced.
  GivenFlags given = {};
  std::vector<std::string> unread = {};  // flags with a wrong value; they keep their defaults

  // Options that the plan takes over unchanged.
  measure::Spec spec = {};
  std::vector<std::string> backends = {};  // empty: those of the environment, or the usual ones
  OpKind op = OpKind::kWrite;
  std::vector<std::string> device_list = {};
  std::string initiator_seg_type = "DRAM", target_seg_type = "DRAM";
  bool cold = false;  // transfers cycle through more memory than the caches hold
  std::uint64_t working_set = 0;
  std::uint64_t iterations = 0;

  MeetingOptions meeting = {};
  AgainstOptions against = {};
  OutputOptions out = {};

  bool has(std::string_view flag) const { return given.find(flag) != given.end(); }
  // True if the flag has an effect: it was given, and a yes-or-no flag says yes.
  bool means(std::string_view flag) const {
    const auto at = given.find(flag);
    return at != given.end() && at->second.yes.value_or(true);
  }
  // The text of a flag, as it was given.
  std::string textOf(std::string_view flag, const std::string& otherwise) const {
    const auto at = given.find(flag);
    return at == given.end() ? otherwise : at->second.text;
  }
};

}  // namespace viaduct::app
