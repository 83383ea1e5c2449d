#include "viaduct/p2p.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/agent.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdio>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/p2p/initiator.h"
#include "measure/p2p/reach.h"
#include "measure/p2p/target.h"
#include "measure/result/best_rate.h"
#include "measure/result/csv.h"
#include "measure/result/text.h"
#include "measure/run/wait_ready.h"
#include "measure/workload/mirror.h"
#include "viaduct/bench_progress.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/interrupt.h"
#include "viaduct/remarks.h"
#include "viaduct/results_file.h"
#include "viaduct/run_flags.h"
#include "viaduct/version.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

namespace p2p = measure::p2p;
using measure::Report;
using measure::Row;

// After SIGINT or SIGTERM, a running transfer of the initiator has this time to end.
constexpr auto kDrainWithin = std::chrono::seconds(5);

// Flushes at once, even into a pipe, because the user types the other host's command after this
// line.
void print(const std::string& text) {
  fmt::print("{}", text);
  std::fflush(stdout);
}
void say(const std::string& line) { print(line + "\n"); }

std::optional<std::uint32_t> gpuOf(const P2pOptions& options) {
  return options.cuda ? std::optional<std::uint32_t>(options.gpu_id) : std::nullopt;
}

// Returns the spec of one pair, with a row for each size.
measure::Spec specOf(const P2pOptions& options) {
  constexpr std::uint64_t kUsualIterations = 100;
  measure::Spec spec = options.spec;
  spec.initiator_gpu = gpuOf(options);
  spec.warmup = std::chrono::nanoseconds(0);
  const std::uint64_t count = options.iterations == 0 ? kUsualIterations : options.iterations;
  for (const std::uint64_t size : options.sizes)
    spec.rows.push_back({.backend = options.backend,
                         .op = options.op,
                         .block_bytes = size,
                         .warm_iterations = options.warmup,
                         .iterations = options.has("duration") ? 0 : count});
  return spec;
}

std::string guarded(const Settings& settings) {
  return settings.secret.empty()
             ? "no secret: the target accepts every initiator, which can use the buffers of this "
               "measurement only; --secret WORD on both ends closes the port"
             : "the target accepts only initiators with the secret";
}

// Returns the command for the other host.
std::string counterpartOf(const P2pOptions& options) {
  const p2p::Where there = p2p::seenByOthers({options.ip, options.port});
  if (!options.diagnosis.empty()) return "viaduct doctor --peer " + there.text();
  return fmt::format("viaduct p2p --mode initiator --ip {} --port {}", there.ip, there.port);
}

// Pins the text so that initiators can read it. Returns nothing for an empty text.
Result<std::optional<Pin>> show(Agent& agent, const std::string& text) {
  if (text.empty()) return std::optional<Pin>();
  Segment memory = Segment::host(text.data(), text.size());
  memory.access = MemoryAccess::kReadOnly;
  VIADUCT_TRY(Pin pin, agent.pin(memory, kDiagnosisLabel));
  return std::optional(std::move(pin));
}

int runTarget(const P2pOptions& options, const Settings& settings, const base::StopFlag& stop) {
  const p2p::Where where{options.ip, options.port};
  auto agent = Agent::open(settings);
  if (!agent) return fail(p2p::cannotListen(agent.error(), where).text(), kExitFailed);
  const auto shown = show(*agent, options.diagnosis);
  if (!shown) return fail(shown.error().text(), kExitFailed);
  say(fmt::format("viaduct {} p2p target on {}", VIADUCT_VERSION, where.text()));
  say(guarded(settings));
  say(fmt::format("waiting for: {}{}", counterpartOf(options),
                  settings.secret.empty() ? "" : " --secret WORD"));
  p2p::serveP2p(*agent, settings, gpuOf(options), say, stop, thisBuild());
  const auto rest = agent->drain(kDrainWithin);
  return rest ? kExitOk : fail(rest.error().text(), kExitFailed);
}

std::string carried(const Row& row) {
  return stagesWords(row, ", ", [](const measure::ProvenShare& share) {
    const std::string device = share.device.empty() ? "" : " over " + share.device;
    return fmt::format("{}/{}{}: {}", share.backend, share.way, device,
                       share.proven == measure::Proven::kYes  ? "proven"
                       : share.proven == measure::Proven::kNo ? "DISPROVEN"
                                                              : "unproven");
  });
}

base::TextTable tableOfRows() {
  return {std::array{base::figure("size", 8), base::figure("iterations", 10),
                     base::figure("GB/s", 8), base::figure("mean us", 9), base::figure("p50 us", 9),
                     base::figure("p99 us", 9), base::figure("of max", 6), base::figure("skips", 5),
                     base::words("carried by", base::Narrow::kBelow, 32)},
          base::terminalWidth()};
}

std::string textOf(const Row& row, base::TextTable& table) {
  using measure::digits;
  const std::string size = base::showSize(row.block_size);
  const auto& us = row.latency_us;
  std::string out =
      row.gb_per_s && us
          ? table.row(base::cells(size, row.iterations, digits(row.gb_per_s), digits(us->mean),
                                  digits(us->p50), digits(p99Of(row)), measure::ofMax(row.ceiling),
                                  measure::skipsWords(row), carried(row)))
          : table.row(base::cells(size, "not measured"));
  if (!row.proof.empty()) out += measure::note("proof: " + row.proof);
  if (row.verdict != measure::Verdict::kOk && row.why != row.proof)
    out += measure::note(fmt::format("{}: {}", verdictName(row.verdict), row.why));
  return out + measure::note(row.remark);
}

std::vector<measure::Option> optionsOf(const P2pOptions& options) {
  std::vector<measure::Option> all{
      {"mode", "initiator"}, {"ip", options.ip}, {"port", std::to_string(options.port)}};
  for (measure::Option& one : optionsOf(specOf(options))) all.push_back(std::move(one));
  return all;
}

// The run of the initiator, from the connection to the last row.
class Run {
 public:
  Run(const P2pOptions& options, const Settings& settings, const base::StopFlag& stop,
      Report& report)
      : options_(options), settings_(settings), stop_(stop), report_(report) {}

  Status go() {
    VIADUCT_TRY(Agent agent, Agent::open(settings_));
    const Deadline until = options_.timeout;  // slow devices do not shorten it
    const p2p::Where where{options_.ip, options_.port};
    auto peer = agent.connect(where.text());
    if (!peer) return p2p::unreachable(peer.error(), where, !settings_.secret.empty());
    VIADUCT_CHECK(reach(*peer, where, until));
    p2p::P2pInitiator initiator(agent, settings_, *peer, stop_);
    VIADUCT_TRY(const measure::RunMember target, initiator.greet(until, say, remark));
    report_.environment.members = {initiator.self(), target};
    report_.environment.members.front().build = thisBuild();
    printHead(where, target);
    auto done = measure(initiator);
    initiator.leave();
    return done;
  }

 private:
  Status reach(const Peer& peer, const p2p::Where& where, Deadline until) const {
    return measure::waitReady(peer, until, stop_, remark, [&](const Error& error) {
      return p2p::unreachable(error, where, !settings_.secret.empty());
    });
  }

  Status measure(p2p::P2pInitiator& initiator) {
    const measure::Spec spec = specOf(options_);
    BenchProgress line(spec.rows.size(), false);
    const auto next = [&] {
      const std::size_t number = report_.rows.size();
      if (number < spec.rows.size()) line.started(number, spec.rows[number]);
    };
    next();
    return initiator.measure(spec,
                             [&](const measure::Composed& measured) {
                               const Row& row = measured.row;
                               line.finished(row);
                               show(row);
                               report_.rows.push_back(row);
                               const auto best = measure::bestRow(report_.rows);
                               if (best && *best == row) report_.conclusion = {measured.conclusion};
                               next();
                             },
                             {.tick = [&](double gb_per_s) { line.tick(gb_per_s); },
                              .interval =
                                  [&](const measure::RateInterval& interval) {
                                    line.interval(interval, options_.csv ? stderr : stdout);
                                  }});
  }

  void printHead(const p2p::Where& where, const measure::RunMember& target) const {
    if (options_.csv) return print(measure::csvHead());
    say(fmt::format("viaduct {} p2p initiator: {} is {} on {}", VIADUCT_VERSION, where.text(),
                    target.name, target.host.hostname));
    say(settings_.secret.empty() ? "no secret: the target accepts everyone"
                                 : "both ends know the secret");
    say(fmt::format(
        "{}{}: {}, the same block for each transfer\n", opKindName(options_.op),
        options_.spec.bidirectional ? " both ways" : "",
        options_.cuda ? fmt::format("memory of GPU {}", options_.gpu_id) : "host memory"));
    print(table_.head());
  }

  void show(const Row& row) {
    if (options_.csv) return print(measure::csvLine(row));
    showMemory(row);
    print(textOf(row, table_));
  }

  // Each end chooses its own memory, so only a finished row names the memory of both ends.
  void showMemory(const Row& row) const {
    const bool shown = !report_.rows.empty() && report_.rows.back().memory == row.memory;
    if (usesGpu(row) && !shown) say(fmt::format("memory of initiator/target: {}", row.memory));
  }

  const P2pOptions& options_;
  const Settings& settings_;
  const base::StopFlag& stop_;
  Report& report_;
  base::TextTable table_ = tableOfRows();
};

int exitOf(const Report& report) {
  const bool good = std::all_of(report.rows.begin(), report.rows.end(),
                                [](const Row& row) { return isGood(row.verdict); });
  return good ? kExitOk : fail("not every row is valid: see above", kExitFailed);
}

int runInitiator(const P2pOptions& options, const Settings& settings, const base::StopFlag& stop) {
  auto file = ResultsFile::open(options.out.json);
  if (!file) return fail(file.error().text(), kExitUsage);
  Report report = measure::startReport(VIADUCT_VERSION, settings);
  report.command = commandText(options.command, options.given);
  report.settings = optionsOf(options);
  const auto done = Run(options, settings, stop, report).go();
  if (!options.csv)
    for (const std::string& line : report.conclusion) say(line);
  if (!done) report.end = stop.load() ? "interrupted" : done.error().text();
  measure::nameRun(report.rows);
  if (!report.rows.empty())
    if (const auto written = file->write(report); !written)
      return fail(written.error().text(), kExitFailed);
  if (!done && stop.load())
    return fail(
        fmt::format("interrupted; {} measured", measure::counted(report.rows.size(), "row")),
        kExitInterrupted);
  return done ? exitOf(report) : fail(done.error().text(), kExitFailed);
}

}  // namespace

Settings settingsFor(const P2pOptions& options, Settings settings) {
  if (!options.secret.empty()) settings.secret = options.secret;
  if (settings.secret.empty()) settings.insecure = true;
  settings.meet.clear();  // the address is known, so no directory is needed
  settings.listen.clear();
  if (options.target) settings.listen.push_back(p2p::Where{options.ip, options.port}.text());
  return settings;
}

int runP2p(const P2pOptions& given) {
  P2pOptions options = given;
  if (options.sizes.empty()) options.sizes = {4'000, 64'000, 1'000'000, 16'000'000, 64'000'000};
  const auto environment = measuringSettings();
  if (!environment) return fail(environment.error().text(), kExitUsage);
  const Settings settings = settingsFor(options, *environment);
  if (const auto gpu = gpuOf(options))
    if (const auto usable = measure::gpuOf(settings, measure::Mode::kMg, *gpu, 0); !usable)
      return fail("--cuda: " + usable.error().text(), kExitFailed);
  const base::StopFlag& stop = stopOnSignals();
  return options.target ? runTarget(options, settings, stop)
                        : runInitiator(options, settings, stop);
}

namespace {

constexpr base::Words<bool, 2> kP2pModes{{{"target", true}, {"initiator", false}}};

Status intoBackend(std::string_view name, std::string& into) {
  constexpr std::string_view kBackend = "backend:";
  VIADUCT_CHECK(intoRequire(fmt::format("{}{}", kBackend, name), into));
  into.erase(0, kBackend.size());
  return Ok{};
}

using P2pFlag = Flag<P2pOptions>;
constexpr std::array kP2pFlags{
    P2pFlag{"mode", "target|initiator", "required",
            "target: listens and offers its memory; initiator: connects and measures",
            oneOf<kP2pModes, &P2pOptions::target>},
    P2pFlag{"ip", "ADDRESS", "required", "address of the target, the same at both ends",
            set<intoText, &P2pOptions::ip>},
    P2pFlag{"port", "N", "5555", "port of the target, the same at both ends",
            count<1, &P2pOptions::port>},
    P2pFlag{"secret", "WORD", "VIADUCT_SECRET", "shared secret of both ends",
            set<intoText, &P2pOptions::secret>},
    P2pFlag{"buffer_sizes", "SIZE ...", "4KB to 64MB",
            "transfer sizes joined by commas, such as 4KB,1MB,1GiB",
            add<intoSizes, &P2pOptions::sizes>},
    P2pFlag{"iterations", "N", "100", "timed transfers per size",
            count<1, &P2pOptions::iterations>},
    P2pFlag{"backend", "NAME", "the first that reaches the target",
            "backend to use: local, tcp, ofi or ucx", set<intoBackend, &P2pOptions::backend>},
    P2pFlag{"warmup", "N", "10", "warm-up transfers per size", count<0, &P2pOptions::warmup>},
    P2pFlag{"cuda", "", "", "use memory of a GPU at this end", set<intoYesNo, &P2pOptions::cuda>},
    P2pFlag{"gpu_id", "N", "0", "index of the GPU", count<0, &P2pOptions::gpu_id>},
    P2pFlag{"timeout", "TIME", "10s", "time limit for the initiator to reach the target",
            set<intoSomeTime, &P2pOptions::timeout>},
    P2pFlag{"csv", "", "", "print rows as CSV", set<intoYesNo, &P2pOptions::csv>},
};

FlagSheet p2pSheet(P2pOptions& options) {
  FlagSheet out;
  return out.add<P2pOptions>("Flags", kP2pFlags, options)
      .add("Flags", runFlags(), options,
           {"op", "duration", "bidirectional", "require", "link_rate", "interval", "json"})
      .addHelp("Flags");
}

constexpr auto kP2pName = "viaduct p2p";
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

// Returns the two commands, with an address of this host.
std::string twoCommands() {
  const std::string ip = p2p::seenByOthers({"0.0.0.0", P2pOptions{}.port}).ip;
  return fmt::format(
      "type one command on each host\n"
      "  on this host:       viaduct p2p --mode target --ip {0}\n"
      "  on the other host:  viaduct p2p --mode initiator --ip {0}",
      ip);
}

CommandPage p2pPage() {
  P2pOptions usual;
  return pageOf(kP2pName, kP2pAbout, kP2pMore, p2pSheet(usual));
}

int readAndRun(const CommandWords& words) {
  P2pOptions options;
  options.command = kP2pName;
  const FlagSheet sheet = p2pSheet(options);
  SheetRead read = sheet.read(words, Repeats::kRefused);
  requireFlags(sheet, twoCommands(), read);
  if (const auto code = endedBy(read, kP2pName, p2pPage, kExitUsage)) return *code;
  record(sheet, read, options);
  return runP2p(options);
}

}  // namespace

Command p2pCommand() { return {kP2pName, p2pPage, readAndRun}; }

}  // namespace viaduct::app
