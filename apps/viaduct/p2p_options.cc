#include <fmt/format.h>
#include <viaduct/transfer.h>

#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "viaduct/cli_value.h"
#include "viaduct/p2p.h"

namespace viaduct::app {
namespace {

constexpr auto kP2pAbout =
    "Measure between two hosts.\n\n"
    "  On the first host:  viaduct p2p --mode target    --ip 192.168.1.100\n"
    "  On the second one:  viaduct p2p --mode initiator --ip 192.168.1.100\n\n"
    "Both commands name the target's address. The initiator prints the bandwidth and latency of "
    "each size, the path of the bytes and the proof of that path. The target serves one initiator "
    "after the other until Ctrl-C.";
constexpr auto kP2pMore =
    "Without a secret the target accepts every initiator that reaches its port. It exposes only "
    "the buffers of this measurement. To close the port, give both ends the same --secret or "
    "VIADUCT_SECRET. See docs/p2p.md.\n\n"
    "Exit codes:\n"
    "  0    every row was measured and is valid\n"
    "  1    a row failed or is not valid, or the target is unreachable\n"
    "  2    the command line is wrong\n"
    "  130  interrupted\n\n"
    "Examples for the initiator:\n"
    "  Choose sizes and count:\n"
    "    viaduct p2p --mode initiator --ip 192.168.1.100 \\\n"
    "        --buffer_sizes 1MB,16MB,64MB --iterations 100 --warmup 10\n"
    "  Fail unless the bytes provably go over RDMA:\n"
    "    viaduct p2p --mode initiator --ip 192.168.1.100 --require rdma,proven\n"
    "  Measure both directions at once for 10 seconds per size:\n"
    "    viaduct p2p --mode initiator --ip 192.168.1.100 --bidirectional \\\n"
    "        --duration 10s";

Error unlike(const std::string& text, const std::string& what) {
  return wrongValue(fmt::format("\"{}\" is {}", text, what), {});
}

Status intoSizesOf(const std::string& text, std::vector<NamedSize>& into) {
  VIADUCT_TRY(const std::uint64_t bytes, base::parseSize(text));
  if (bytes == 0) return unlike(text, "an empty size");
  into.push_back({text, bytes});
  return Ok{};
}

Status intoSomeTime(const std::string& text, const Result<std::chrono::nanoseconds>& time,
                    std::chrono::nanoseconds& into) {
  if (!time || *time <= std::chrono::nanoseconds(0))
    return unlike(text, "not a time like 10s or 500ms");
  into = *time;
  return Ok{};
}

Result<std::chrono::nanoseconds> timeOrSeconds(const std::string& text) {
  std::chrono::nanoseconds out{0};
  VIADUCT_CHECK(intoTime(text, out));
  return out;
}

// Adds an option whose value is a whole number in a range.
template <class T>
void addCount(CLI::App& app, const char* name, T& into, std::uint64_t least, std::uint64_t most,
              const std::string& help) {
  const auto take = [&into, least, most](const std::string& text) -> Status {
    const auto value = base::parseCount(text);
    if (!value || *value < least || *value > most)
      return unlike(text, fmt::format("not a whole number from {} to {}", least, most));
    into = static_cast<T>(*value);
    return Ok{};
  };
  addValue(app, name, "N", take, help);
}

// Adds an option whose value is one of two words.
template <class T>
void addChoice(CLI::App& app, const char* name, const base::Words<T, 2>& words, T& into,
               const std::string& help) {
  const auto take = [&into, words](const std::string& text) -> Status {
    for (const base::Word<T>& one : words)
      if (text == one.word) {
        into = one.value;
        return Ok{};
      }
    return unlike(text, fmt::format("neither {} nor {}", words[0].word, words[1].word));
  };
  addValue(app, name, fmt::format("{}|{}", words[0].word, words[1].word).c_str(), take, help);
}

void declareEnds(CLI::App& p2p, P2pOptions& options) {
  addChoice(p2p, "--mode", base::Words<bool, 2>{{{"target", true}, {"initiator", false}}},
            options.target,
            "target: listens and offers its memory; initiator: connects and measures");
  p2p.get_option("--mode")->required();
  p2p.add_option("--ip", options.ip, "Address of the target, the same at both ends")
      ->required()
      ->type_name("ADDRESS");
  addCount(p2p, "--port", options.port, 1, std::numeric_limits<std::uint16_t>::max(),
           "Port of the target, the same at both ends [5555]");
  p2p.add_option("--secret", options.secret, "Shared secret of both ends [VIADUCT_SECRET]")
      ->type_name("WORD");
}

Status intoBackend(const std::string& name, std::string& into) {
  std::string require;
  VIADUCT_CHECK(intoRequire("backend:" + name, require));
  into = require.substr(std::string_view("backend:").size());
  return Ok{};
}

Status addLinkRate(const std::string& text, std::vector<measure::LinkRate>& into) {
  VIADUCT_TRY(measure::LinkRate rate, measure::parseLinkRate(text));
  into.push_back(std::move(rate));
  return Ok{};
}

void declareLoad(CLI::App& p2p, P2pOptions& options) {
  using Text = const std::string&;
  P2pOptions& o = options;
  addValues(
      p2p, "--buffer_sizes,--buffer-sizes", "SIZE",
      [&o](Text text) { return intoSizesOf(text, o.sizes); },
      "Transfer sizes joined by commas, such as 4KB,1MB,1GiB [4KB to 64MB]");
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  addCount(p2p, "--iterations", options.iterations, 1, kMost, "Timed transfers per size [100]");
  addValue(
      p2p, "--duration", "TIME",
      [&o](Text text) { return intoSomeTime(text, base::parseDuration(text), o.duration); },
      "Measured time per size, instead of --iterations");
  addValue(
      p2p, "--backend", "NAME", [&o](Text text) { return intoBackend(text, o.backend); },
      "Backend to use: local, tcp, ofi or ucx [the first that reaches the target]");
  addChoice(p2p, "--op",
            base::Words<OpKind, 2>{{{"write", OpKind::kWrite}, {"read", OpKind::kRead}}},
            options.op, "Operation of the initiator [write]");
  p2p.add_flag("--bidirectional", options.bidirectional,
               "Move as much data in the other direction at the same time");
  addCount(p2p, "--warmup", options.warmup, 0, kMost, "Warm-up transfers per size [10]");
  p2p.add_flag("--cuda", options.cuda, "Use a GPU buffer");
  addCount(p2p, "--gpu_id,--gpu-id", options.gpu_id, 0, 1024, "Index of the GPU [0]");
  addValue(
      p2p, "--require", "PATH", [&o](Text text) { return intoRequire(text, o.require); },
      "Required path, joined by commas: rdma, same-host, not-tcp, backend:NAME, proven");
  addValues(
      p2p, "--link-rate,--link_rate", "DEV=RATE",
      [&o](Text text) { return addLinkRate(text, o.link_rates); },
      "Line rate of a device, if the system reports none or a wrong one: eth0=500Mbit, joined "
      "by commas");
  addValue(
      p2p, "--timeout", "TIME",
      [&o](Text text) { return intoSomeTime(text, timeOrSeconds(text), o.timeout); },
      "Time limit for the initiator to reach the target [10s]");
  addValue(
      p2p, "--interval,-i", "SECONDS", [&o](Text text) { return intoInterval(text, o.interval); },
      "Print the rate of each interval of a size as it is measured");
  p2p.add_flag("--csv", options.csv, "Print rows as CSV");
  p2p.add_option("--json", options.json, "Also write all results to this file")->type_name("FILE");
}

}  // namespace

void declareP2p(CLI::App& app, P2pOptions& options) {
  CLI::App& p2p = *app.add_subcommand("p2p", kP2pAbout);
  p2p.footer(kP2pMore);
  declareEnds(p2p, options);
  declareLoad(p2p, options);
}

}  // namespace viaduct::app
