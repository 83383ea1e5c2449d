// The results of swapping as text and as JSON. Threads: pure functions.
#pragma once

#include <string>
#include <vector>

#include "measure/result/report.h"
#include "measure/swap/swap.h"

namespace viaduct::measure::swap {

struct SwapReport {
  std::string version = {};
  std::string started = {};
  std::string command = {};
  std::string end = {};  // "complete", or the reason of an early end
  std::vector<RunMember> members = {};
  std::uint32_t blocks = 0;
  std::uint32_t rounds = 0;
  SwapResult result = {};
};

// The table has at most `width` columns, if the figures allow.
std::string swapText(const SwapReport& report, std::size_t width);
std::string swapJson(const SwapReport& report);

}  // namespace viaduct::measure::swap
