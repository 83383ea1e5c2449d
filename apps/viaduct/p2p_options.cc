#include <viaduct/transfer.h>

#include <CLI/CLI.hpp>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "viaduct/bench_values.h"
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

std::string reason(const Error& error) { return error.detail + "; " + error.remedy; }

NamedSize size(const std::string& text) {
  const auto bytes = base::parseSize(text);
  if (!bytes) throw CLI::ValidationError("--buffer_sizes", reason(bytes.error()));
  if (*bytes == 0)
    throw CLI::ValidationError("--buffer_sizes", "\"" + text + "\" is an empty size");
  return {text, *bytes};
}

std::uint64_t count(const char* option, const std::string& text, std::uint64_t least,
                    std::uint64_t most) {
  const auto value = base::parseCount(text);
  if (!value || *value < least || *value > most)
    throw CLI::ValidationError(option, "\"" + text + "\" is not a whole number from " +
                                           std::to_string(least) + " to " + std::to_string(most));
  return *value;
}

// An option whose value is a whole number in a range.
template <class T>
void addCount(CLI::App& app, const char* name, T& into, std::uint64_t least, std::uint64_t most,
              const std::string& help) {
  app.add_option_function<std::string>(
         name,
         [name, &into, least, most](const std::string& text) {
           into = static_cast<T>(count(name, text, least, most));
         },
         help)
      ->type_name("N");
}

void declareEnds(CLI::App& p2p, P2pOptions& options) {
  p2p.add_option_function<std::string>(
         "--mode",
         [&options](const std::string& word) {
           if (word != "target" && word != "initiator")
             throw CLI::ValidationError("--mode",
                                        "\"" + word + "\" is neither target nor initiator");
           options.target = word == "target";
         },
         "target: listens and offers its memory; initiator: connects and measures")
      ->required()
      ->type_name("target|initiator");
  p2p.add_option("--ip", options.ip, "Address of the target, the same at both ends")
      ->required()
      ->type_name("ADDRESS");
  addCount(p2p, "--port", options.port, 1, std::numeric_limits<std::uint16_t>::max(),
           "Port of the target, the same at both ends [5555]");
  p2p.add_option("--secret", options.secret, "Shared secret of both ends [VIADUCT_SECRET]")
      ->type_name("WORD");
}

void declareLoad(CLI::App& p2p, P2pOptions& options) {
  p2p.add_option_function<std::vector<std::string>>(
         "--buffer_sizes,--buffer-sizes",
         [&options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) options.sizes.push_back(size(text));
         },
         "Transfer sizes joined by commas, such as 4KB,1MB,1GiB [4KB to 64MB]")
      ->delimiter(',')
      ->type_name("SIZE");
  constexpr std::uint64_t kMost = std::numeric_limits<std::uint32_t>::max();
  addCount(p2p, "--iterations", options.iterations, 1, kMost, "Timed transfers per size [100]");
  p2p.add_option_function<std::string>(
         "--duration",
         [&options](const std::string& text) {
           const auto time = base::parseDuration(text);
           if (!time || *time <= std::chrono::nanoseconds(0))
             throw CLI::ValidationError("--duration",
                                        "\"" + text + "\" is not a time like 10s or 500ms");
           options.duration = *time;
         },
         "Measured time per size, instead of --iterations")
      ->type_name("TIME");
  p2p.add_option_function<std::string>(
         "--backend",
         [&options](const std::string& name) {
           std::string require;
           if (const auto can = intoRequire("backend:" + name, require); !can)
             throw CLI::ValidationError("--backend", reason(can.error()));
           options.backend = require.substr(std::string_view("backend:").size());
         },
         "Backend to use: local, tcp, ofi or ucx [the first that reaches the target]")
      ->type_name("NAME");
  p2p.add_option_function<std::string>(
         "--op",
         [&options](const std::string& word) {
           if (word != "write" && word != "read")
             throw CLI::ValidationError("--op", "\"" + word + "\" is neither write nor read");
           options.op = word == "read" ? OpKind::kRead : OpKind::kWrite;
         },
         "Operation of the initiator [write]")
      ->type_name("write|read");
  p2p.add_flag("--bidirectional", options.bidirectional,
               "Move as much data in the other direction at the same time");
  addCount(p2p, "--warmup", options.warmup, 0, kMost, "Warm-up transfers per size [10]");
  p2p.add_flag("--cuda", options.cuda, "Use a GPU buffer");
  addCount(p2p, "--gpu_id,--gpu-id", options.gpu_id, 0, 1024, "Index of the GPU [0]");
  p2p.add_option_function<std::string>(
         "--require",
         [&options](const std::string& words) {
           if (const auto can = intoRequire(words, options.require); !can)
             throw CLI::ValidationError("--require", reason(can.error()));
         },
         "Required path, joined by commas: rdma, same-host, not-tcp, backend:NAME, proven")
      ->type_name("PATH");
  p2p.add_option_function<std::vector<std::string>>(
         "--link-rate,--link_rate",
         [&options](const std::vector<std::string>& texts) {
           for (const std::string& text : texts) {
             auto rate = measure::parseLinkRate(text);
             if (!rate) throw CLI::ValidationError("--link-rate", reason(rate.error()));
             options.link_rates.push_back(*std::move(rate));
           }
         },
         "Line rate of a device, if the system reports none or a wrong one: eth0=500Mbit, joined "
         "by commas")
      ->delimiter(',')
      ->type_name("DEV=RATE");
  p2p.add_option_function<std::string>(
         "--timeout",
         [&options](const std::string& text) {
           std::chrono::nanoseconds time{0};
           if (!intoTime(text, time) || time <= std::chrono::nanoseconds(0))
             throw CLI::ValidationError("--timeout",
                                        "\"" + text + "\" is not a time like 10s or 500ms");
           options.timeout = time;
         },
         "Time limit for the initiator to reach the target [10s]")
      ->type_name("TIME");
  p2p.add_option_function<std::string>(
         "-i,--interval",
         [&options](const std::string& text) {
           if (const auto can = intoInterval(text, options.interval); !can)
             throw CLI::ValidationError("--interval", reason(can.error()));
         },
         "Print the rate of each interval of a size as it is measured")
      ->type_name("SECONDS");
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
