#include <CLI/CLI.hpp>
#include <cstdint>
#include <limits>
#include <string>
#include <vector>

#include "base/sizes.h"
#include "viaduct/commands.h"

namespace viaduct::app {
namespace {

using measure::MemoryChoice;

constexpr auto kAbout =
    "Measure transfers between two processes on this machine.\n\n"
    "Starts two worker processes, moves blocks between them over each backend, checks every byte\n"
    "that arrived, and prints a line for each block size: rate, latency of one transfer from post\n"
    "to its end, CPU time of both processes, and the path the bytes really took. Without options:\n"
    "4 KiB to 64 MiB over local and tcp, in less than a minute.";
constexpr auto kMore =
    "Ends with 0 when all was measured and arrived right, 1 when something was not, 2 for a wrong\n"
    "command line, 3 when a worker was killed, 130 when interrupted; rows measured until then are\n"
    "kept. Settings of the agents come from VIADUCT_* variables: see `viaduct settings`.";

std::uint64_t size(const std::string& text) {
  const auto bytes = base::parseSize(text);
  if (!bytes)
    throw CLI::ValidationError("--block-sizes", bytes.error().detail + "; " + bytes.error().remedy);
  return *bytes;
}

std::uint64_t count(const char* option, const std::string& text, std::uint64_t most) {
  const auto value = base::parseCount(text);
  if (!value || *value == 0 || *value > most)
    throw CLI::ValidationError(
        option, "\"" + text + "\" is not a whole number from 1 to " + std::to_string(most));
  return *value;
}

// Which of two words it is: false for the first.
bool oneOf(const char* option, const std::string& word, const char* first, const char* second) {
  if (word != first && word != second)
    throw CLI::ValidationError(option, "\"" + word + "\" is neither " + first + " nor " + second);
  return word == second;
}

void declareShape(CLI::App& bench, measure::Sweep& sweep) {
  bench
      .add_option_function<std::vector<std::string>>(
          "--block-sizes",
          [&sweep](const std::vector<std::string>& texts) {
            for (const std::string& text : texts) sweep.block_sizes.push_back(size(text));
          },
          "Block sizes joined by commas: 4096, 64K, 1MiB, 1MB [4K to 64M]")
      ->delimiter(',')
      ->type_name("SIZE");
  bench
      .add_option_function<std::string>(
          "--batch",
          [&sweep](const std::string& text) {
            sweep.batch = static_cast<std::uint32_t>(
                count("--batch", text, std::numeric_limits<std::uint32_t>::max()));
          },
          "Blocks in one transfer [64, or fewer to stay at 64 MiB]")
      ->type_name("N");
  bench
      .add_option_function<std::string>(
          "--iterations",
          [&sweep](const std::string& text) {
            sweep.iterations =
                count("--iterations", text, std::numeric_limits<std::uint32_t>::max());
          },
          "Transfers timed for each row [as many as fit in 0.4 s]")
      ->type_name("N");
}

}  // namespace

void declareBench(CLI::App& app, BenchOptions& options) {
  CLI::App& bench = *app.add_subcommand("bench", kAbout);
  bench.footer(kMore);
  measure::Sweep& sweep = options.sweep;
  bench.add_option("--backend", sweep.backends, "Backends joined by commas [local,tcp]")
      ->delimiter(',')
      ->type_name("NAME");
  declareShape(bench, sweep);
  bench
      .add_option_function<std::string>(
          "--op",
          [&sweep](const std::string& word) {
            const bool read = oneOf("--op", word, "write", "read");
            sweep.op = read ? OpKind::kRead : OpKind::kWrite;
          },
          "Which way the initiator moves the bytes: write or read [write]")
      ->type_name("OP");
  bench
      .add_option_function<std::string>(
          "--memory",
          [&sweep](const std::string& word) {
            const bool plain = oneOf("--memory", word, "allocate", "malloc");
            sweep.memory = plain ? MemoryChoice::kMalloc : MemoryChoice::kAllocate;
          },
          "allocate: from the agent, so that peers can map it; malloc: plain memory [allocate]")
      ->type_name("KIND");
  bench.add_option("--json", options.json, "Also write all results to this file")
      ->type_name("FILE");
}

}  // namespace viaduct::app
