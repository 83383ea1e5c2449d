// A small suite with invented figures, for tests.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "measure/report/suite.h"

namespace viaduct::measure {

inline constexpr std::uint64_t kSmall = 256, kLarge = 65536;

inline Row rowOf(std::uint64_t size, double gb_per_s, double p50) {
  return {.backend = "fake",
          .block_size = size,
          .iterations = 100,
          .seconds = 2,
          .gb_per_s = gb_per_s,
          .latency_us = Latency{.mean = p50,
                                .p50 = p50,
                                .p90 = p50 * 1.1,
                                .p95 = p50 * 1.2,
                                .p99 = p50 * 1.5,
                                .p99_9 = p50 * 2,
                                .max = p50 * 3},
          .cores_busy = 1.5,
          .completions_per_s = 50,
          .path = {{"fake", "memory", "a", size, 1, Proven::kYes},
                   {"fake", "memory", "b", size, 1, Proven::kYes}}};
}

// Returns a suite with the tests "baseline", "better" (a fifth faster at all sizes), "same" and
// "absent". Each round has noise of its own, which differs by test.
inline Suite someSuite(std::uint32_t rounds) {
  Suite out{
      .version = "1",
      .started = "2026-01-02T03:04:05Z",
      .environment = {.members = {{.rank = 0, .host = {.hostname = "one"}}}, .fingerprint = "0123"},
      .settings = {{"backend", "fake"}, {"duration", "200ms"}},
      .agent = {{"sockets", "1"}},
      .tests = {{.name = "baseline",
                 .settings = {{"VIADUCT_SPIN", "20us"}},
                 .sizes = {kSmall, kLarge}},
                {.name = "better",
                 .settings = {{"VIADUCT_SPIN", "0"}},
                 .sizes = {kSmall, kLarge},
                 .expected = "nothing at all"},
                {.name = "same", .sizes = {kLarge}},
                {.name = "absent", .sizes = {kLarge}, .absent = "not built in"}},
      .rounds = rounds,
      .rounds_done = rounds};
  constexpr std::array kLuck{1.0, 0.98, 1.03, 1.01, 0.99, 1.02, 0.97};
  for (std::uint32_t round = 0; round < rounds; ++round)
    for (std::size_t test = 0; test < 3; ++test) {
      const double luck = kLuck[(round * 3 + test * 2) % kLuck.size()];
      const double speed = test == 1 ? 1.2 * luck : luck;
      SuiteRun& run = out.runs.emplace_back(SuiteRun{.round = round, .test = test});
      for (const std::uint64_t size : out.tests[test].sizes)
        run.rows.push_back(rowOf(size, 10 * speed, 100 / speed));
    }
  return out;
}

}  // namespace viaduct::measure
