#include "measure/result/baseline_log.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <span>
#include <utility>

#include "base/text.h"
#include "base/words.h"
#include "measure/result/log_line.h"

namespace viaduct::measure {
namespace {

constexpr double kMiB = 1 << 20U;

// --- Columns. Versions differ in their columns, so titles identify them.

enum class Figure : std::uint8_t {
  kBytes,
  kIterations,
  kSeconds,
  kMiBPerS,
  kMegabytesPerS,
  kGbitPerS,
  kPeak,
  kMicroseconds,  // of one message or collective
  kMin,
  kMax,
  kMedian,
  kMean,
  kP99,
  kP999,
  kAlgorithm,  // GB/s
  kBus,        // GB/s
  kWrong,
  kInPlaceTime,
  kInPlaceAlgorithm,
  kInPlaceBus,
  kInPlaceWrong,
  kPerSecond,
  kIgnored
};
using FigureColumns = std::vector<Figure>;
using FigureTitle = ColumnTitle<Figure>;
constexpr std::array kPerftestTitles{FigureTitle{"#bytes", Figure::kBytes},
                                     FigureTitle{"#iterations", Figure::kIterations},
                                     FigureTitle{"BW peak[MB/sec]", Figure::kPeak},
                                     FigureTitle{"BW average[MB/sec]", Figure::kMiBPerS},
                                     FigureTitle{"BW peak[Gb/sec]", Figure::kPeak},
                                     FigureTitle{"BW average[Gb/sec]", Figure::kGbitPerS},
                                     FigureTitle{"MsgRate[Mpps]", Figure::kIgnored},
                                     FigureTitle{"t_min[usec]", Figure::kMin},
                                     FigureTitle{"t_max[usec]", Figure::kMax},
                                     FigureTitle{"t_typical[usec]", Figure::kMedian},
                                     FigureTitle{"t_avg[usec]", Figure::kMean},
                                     FigureTitle{"t_stdev[usec]", Figure::kIgnored},
                                     FigureTitle{"99% percentile[usec]", Figure::kP99},
                                     FigureTitle{"99.9% percentile[usec]", Figure::kP999}};
constexpr std::array kFabtestsTitles{
    FigureTitle{"name", Figure::kIgnored},           FigureTitle{"bytes", Figure::kBytes},
    FigureTitle{"iters", Figure::kIterations},       FigureTitle{"#sent", Figure::kIterations},
    FigureTitle{"#ack", Figure::kIgnored},           FigureTitle{"total", Figure::kIgnored},
    FigureTitle{"time", Figure::kSeconds},           FigureTitle{"MB/sec", Figure::kMegabytesPerS},
    FigureTitle{"usec/xfer", Figure::kMicroseconds}, FigureTitle{"Mxfers/sec", Figure::kIgnored}};
// The columns of the out-of-place figures. The in-place columns follow with the same titles.
constexpr std::array kNcclTitles{
    FigureTitle{"size", Figure::kBytes},      FigureTitle{"count", Figure::kIgnored},
    FigureTitle{"type", Figure::kIgnored},    FigureTitle{"redop", Figure::kIgnored},
    FigureTitle{"root", Figure::kIgnored},    FigureTitle{"time", Figure::kMicroseconds},
    FigureTitle{"algbw", Figure::kAlgorithm}, FigureTitle{"busbw", Figure::kBus},
    FigureTitle{"#wrong", Figure::kWrong},    FigureTitle{"error", Figure::kIgnored}};
// ucx_perftest prints two lines of titles, and always the same columns.
const FigureColumns kUcxColumns{Figure::kIterations, Figure::kMedian,   Figure::kIgnored,
                                Figure::kMean,       Figure::kIgnored,  Figure::kMiBPerS,
                                Figure::kIgnored,    Figure::kPerSecond};

bool has(const FigureColumns& columns, Figure one) {
  return std::find(columns.begin(), columns.end(), one) != columns.end();
}

void markInPlace(FigureColumns& columns) {
  constexpr std::array kTwice{std::pair{Figure::kMicroseconds, Figure::kInPlaceTime},
                              std::pair{Figure::kAlgorithm, Figure::kInPlaceAlgorithm},
                              std::pair{Figure::kBus, Figure::kInPlaceBus},
                              std::pair{Figure::kWrong, Figure::kInPlaceWrong}};
  for (const auto& [first, second] : kTwice)
    if (const auto at = std::find(columns.begin(), columns.end(), first); at != columns.end())
      std::replace(at + 1, columns.end(), first, second);
}

enum class Family : std::uint8_t { kNone, kPerftest, kUcx, kFabtests, kNccl };

struct Head {
  Family family = Family::kNone;
  FigureColumns columns = {};
  bool stages = false;  // ucx_perftest prints interim lines; only its last line counts
};

Head perftestHeadIn(std::string_view line) {
  const auto at = line.find("#bytes");
  if (at == std::string_view::npos) return {};
  FigureColumns columns = columnsIn(line.substr(at), std::span<const FigureTitle>(kPerftestTitles));
  if (has(columns, Figure::kMiBPerS) || has(columns, Figure::kGbitPerS) ||
      has(columns, Figure::kMedian))
    return {Family::kPerftest, std::move(columns)};
  return {};
}

Head fabtestsHeadIn(std::string_view line) {
  if (line.find("usec/xfer") == std::string_view::npos) return {};
  const auto at = std::min(line.find("name "), line.find("bytes "));
  if (at == std::string_view::npos) return {};
  FigureColumns columns = columnsIn(line.substr(at), std::span<const FigureTitle>(kFabtestsTitles));
  if (has(columns, Figure::kBytes) && has(columns, Figure::kMegabytesPerS))
    return {Family::kFabtests, std::move(columns)};
  return {};
}

Head ncclHeadIn(std::string_view line) {
  const auto at = line.find("size ");
  if (at == std::string_view::npos || line.find("algbw") == std::string_view::npos) return {};
  FigureColumns columns = columnsIn(line.substr(at), std::span<const FigureTitle>(kNcclTitles));
  if (!has(columns, Figure::kBus)) return {};
  markInPlace(columns);
  return {Family::kNccl, std::move(columns)};
}

Head ucxHeadIn(std::string_view line) {
  if (line.find("| # iterations |") == std::string_view::npos ||
      line.find("|  overall  |") == std::string_view::npos)
    return {};
  return {Family::kUcx, kUcxColumns, line.find(" Stage ") != std::string_view::npos};
}

Head headIn(std::string_view line) {
  for (const auto& read : {perftestHeadIn, fabtestsHeadIn, ncclHeadIn, ucxHeadIn})
    if (Head head = read(line); head.family != Family::kNone) return head;
  return {};
}

// --- figures

// Parses the numbers of fabtests, such as "64k", "=10" and "0.02s". `step` is the value of k: 1,024
// for bytes, 1,000 for other figures.
std::optional<double> shortNumberIn(std::string_view text, double step) {
  if (text.starts_with('=')) text.remove_prefix(1);
  if (text.ends_with('s')) text.remove_suffix(1);
  constexpr std::string_view kSteps = "kmgt";
  const auto at = text.empty() ? std::string_view::npos : kSteps.find(text.back());
  if (at == std::string_view::npos) return figureIn(text);
  const auto value = figureIn(text.substr(0, text.size() - 1));
  return value ? std::optional(*value * std::pow(step, static_cast<double>(at + 1))) : std::nullopt;
}

using Measured = FigureMap<Figure>;

std::optional<Measured> measuredIn(std::string_view line, const Head& head) {
  return figuresIn(line, head.columns, [&](std::string_view word, Figure column) {
    return head.family == Family::kFabtests
               ? shortNumberIn(word, column == Figure::kBytes ? 1024 : 1000)
               : figureIn(word);
  });
}

// --- Text around a table.

std::optional<std::uint64_t> wholeIn(std::optional<std::string_view> text) {
  constexpr double kMost = 1e15;
  const auto words = base::wordsOf(text.value_or(""));
  return words.empty() ? std::nullopt : wholeOf(figureIn(words[0]), kMost);
}

// The facts about a run from a banner or a command line.
struct ToolFacts {
  std::string tool = {};                    // "ib_write_bw"
  std::string device = {}, kind = {};       // "mlx5_0"; "put latency"
  std::optional<std::uint64_t> bytes = {};  // message size, for ucx_perftest
  std::optional<OpKind> op = {};
  std::uint32_t streams = 1, ranks = 0;
  bool bidirectional = false;
  bool on_cpu = false;  // ranks without a GPU, as in the output of examples/torch/collectives.py
};

struct ToolRun {
  Head head = {};
  ToolFacts facts = {};
  std::string started = {};  // ISO 8601, if the lines have times
  std::vector<Row> rows = {};
};

// Returns the pod that wrote the line. ucx_perftest draws tables with "|", which log collectors
// also put after a pod's name. So only the text in front of a table is searched.
std::string podOf(std::string_view line) {
  constexpr std::array kMarks{"+---",          "|   ",          "| Test",
                              "| API",         "| Message",     "| Data layout",
                              "| Send memory", "| Recv memory", "[thread "};
  std::size_t end = line.size();
  for (const std::string_view mark : kMarks) end = std::min(end, line.find(mark));
  return sourceOf(line.substr(0, end));
}

std::string_view baseOf(std::string_view word) { return word.substr(word.rfind('/') + 1); }

bool isTool(std::string_view word) {
  const bool perftest =
      word.starts_with("ib_") && (word.ends_with("_bw") || word.ends_with("_lat"));
  const bool fabtest =
      word.starts_with("fi_") &&
      (word.ends_with("_bw") || word.ends_with("_lat") || word.ends_with("pingpong"));
  const bool nccl = word.ends_with("_perf") && word.find('-') == std::string_view::npos;
  return word == "ucx_perftest" || perftest || fabtest || nccl;
}

// True for the first line of a tool's output, and for its command line.
bool startsRun(std::string_view line) {
  constexpr std::array kFirst{" BW Test", " Latency Test", "| API:", "# nThread ",
                              "Collective test starting"};
  if (std::any_of(kFirst.begin(), kFirst.end(),
                  [&](const char* one) { return line.find(one) != std::string_view::npos; }))
    return true;
  const auto words = base::wordsOf(line);
  return std::any_of(words.begin(), words.end(),
                     [](std::string_view word) { return isTool(baseOf(word)); });
}

void readFlag(std::string_view flag, std::string_view value, ToolFacts& facts) {
  if (facts.tool == "ucx_perftest" && flag == "-t") facts.kind = value;
  if (facts.tool == "ucx_perftest" && flag == "-s") facts.bytes = wholeIn(value);
  if (facts.tool.starts_with("fi_rma") && flag == "-o")
    facts.op = value == "read" ? OpKind::kRead : OpKind::kWrite;
}

// Reads a command line such as `+ ucx_perftest 10.0.0.2 -t ucp_put_bw -s 65536`.
void readCommand(std::string_view line, ToolFacts& facts) {
  const auto words = base::wordsOf(line);
  const auto tool = std::find_if(words.begin(), words.end(),
                                 [](std::string_view word) { return isTool(baseOf(word)); });
  if (tool == words.end()) return;
  facts.tool = baseOf(*tool);
  if (facts.tool.find("read") != std::string::npos) facts.op = OpKind::kRead;
  for (auto at = tool + 1; at != words.end() && at + 1 != words.end(); ++at)
    readFlag(*at, at[1], facts);
  if (facts.kind.find("get") != std::string::npos) facts.op = OpKind::kRead;
}

// Returns the first word after the colon of a line such as "Device         : mlx5_0" or "| Message
// size: 65536    |".
std::optional<std::string_view> valueOf(std::string_view line, std::string_view label) {
  const auto at = line.find(label);
  if (at == std::string_view::npos) return std::nullopt;
  const std::string_view rest = base::trimmed(line.substr(at + label.size()));
  if (!rest.starts_with(':')) return std::nullopt;
  return base::trimmed(rest.substr(1, rest.find('|') - 1));
}

void readPerftestTitle(std::string_view line, ToolFacts& facts) {
  struct Test {
    std::string_view title, tool;
    OpKind op;
  };
  constexpr std::array kTests{Test{"RDMA_Write", "ib_write", OpKind::kWrite},
                              Test{"RDMA_Read", "ib_read", OpKind::kRead},
                              Test{"Send", "ib_send", OpKind::kWrite}};
  const bool rate = line.find(" BW Test") != std::string_view::npos;
  if (!rate && line.find(" Latency Test") == std::string_view::npos) return;
  for (const Test& one : kTests)
    if (base::trimmed(line).find(one.title) != std::string_view::npos) {
      facts.tool = fmt::format("{}_{}", one.tool, rate ? "bw" : "lat");
      facts.op = one.op;
      facts.bidirectional = line.find("Bidirectional") != std::string_view::npos;
    }
}

void readBanner(std::string_view line, ToolFacts& facts) {
  readPerftestTitle(line, facts);
  if (const auto device = valueOf(line, "Device "))
    facts.device = base::wordsOf(*device).empty() ? "" : base::wordsOf(*device)[0];
  if (const auto pairs = wholeIn(valueOf(line, "Number of qps")); pairs && *pairs < 65536)
    facts.streams = static_cast<std::uint32_t>(*pairs);
  if (const auto bytes = wholeIn(valueOf(line, "| Message size"))) facts.bytes = bytes;
  if (const auto test = valueOf(line, "| Test")) {
    facts.kind = *test;
    facts.tool = "ucx_perftest";
    facts.op = test->starts_with("get") ? OpKind::kRead : OpKind::kWrite;
  }
  if (line.find("#  Rank ") != std::string_view::npos &&
      line.find(" Pid ") != std::string_view::npos) {
    ++facts.ranks;
    facts.on_cpu = line.find(" device cpu") != std::string_view::npos;
  }
}

// --- rows

std::string nameOf(const ToolRun& run) {
  constexpr base::Words<Family, 4> kFamilies{{{"perftest", Family::kPerftest},
                                              {"ucx_perftest", Family::kUcx},
                                              {"fabtests", Family::kFabtests},
                                              {"nccl-tests", Family::kNccl}}};
  return run.facts.tool.empty() ? base::wordOf(kFamilies, run.head.family) : run.facts.tool;
}

// Computes the message size from the rates of messages and of bytes, if both have enough digits.
// Returns nothing if the size is not near a power of two.
std::optional<std::uint64_t> sizeByRates(const Measured& figures) {
  constexpr double kLeastRate = 10, kLeastMessages = 1000, kNear = 0.003;
  const double rate = figures.at(Figure::kMiBPerS), messages = figures.at(Figure::kPerSecond);
  if (rate < kLeastRate || messages < kLeastMessages) return std::nullopt;
  constexpr double kMostBytes = 1e15;
  const double bytes = rate * kMiB / messages, power = std::exp2(std::round(std::log2(bytes)));
  return bytes < kMostBytes && std::abs(bytes / power - 1) < kNear
             ? std::optional(static_cast<std::uint64_t>(power))
             : std::nullopt;
}

std::optional<double> rateOf(const Measured& figures) {
  if (const auto mib = figure(figures, Figure::kMiBPerS)) return *mib * kMiB / 1e9;
  if (const auto bits = figure(figures, Figure::kGbitPerS)) return *bits / 8;
  if (const auto megabytes = figure(figures, Figure::kMegabytesPerS)) return *megabytes / 1e3;
  return figure(figures, Figure::kBus);
}

void addLatency(const Measured& figures, const ToolRun& run, Row& row) {
  const auto p99 = figure(figures, Figure::kP99), p999 = figure(figures, Figure::kP999);
  const auto mean = figure(figures, Figure::kMean), median = figure(figures, Figure::kMedian);
  const auto most = figure(figures, Figure::kMax);
  if (run.head.family == Family::kPerftest && mean && median && p99 && p999 && most) {
    row.latency_us =
        Latency{.mean = *mean, .p50 = *median, .p99 = *p99, .p99_9 = *p999, .max = *most};
    row.remark = "Half of a round trip.";
  } else if (run.head.family == Family::kUcx && run.facts.kind.find("lat") != std::string::npos) {
    row.gb_per_s.reset();  // not useful: one message at a time, and printed with few digits
    row.remark = fmt::format("Half of a round trip: mean {} us, median {} us.", *mean, *median);
  } else if (const auto each = figure(figures, Figure::kMicroseconds)) {
    row.remark = fmt::format("{} us each.", *each);
  }
}

// The row's rate is the bus bandwidth, which the links carry. All ranks together have one figure.
void addCollective(const Measured& figures, const ToolRun& run, Row& row) {
  row.initiators = row.targets = std::max(run.facts.ranks, 1U);
  row.memory = run.facts.on_cpu ? "DRAM" : "VRAM";
  row.scheme = "collective";
  row.remark = fmt::format("Bus bandwidth, out of place. {} us each; algorithm {} GB/s",
                           figure(figures, Figure::kMicroseconds).value_or(0),
                           figure(figures, Figure::kAlgorithm).value_or(0));
  if (const auto bus = figure(figures, Figure::kInPlaceBus))
    row.remark += fmt::format("; in place {} GB/s", *bus);
  row.remark += '.';
  const auto wrong = figure(figures, Figure::kWrong);
  row.verified = wrong ? Verified::kFull : Verified::kOff;
  const double all = wrong.value_or(0) + figure(figures, Figure::kInPlaceWrong).value_or(0);
  if (all > 0) {
    row.verdict = Verdict::kCorrupt;
    row.why = fmt::format("{} values were wrong", all);
  }
}

std::optional<Row> rowOf(const Measured& figures, const ToolRun& run) {
  constexpr double kMostBytes = 1e15, kMostIterations = 1e15;
  auto bytes = run.facts.bytes;
  if (const auto column = figure(figures, Figure::kBytes))
    bytes = static_cast<std::uint64_t>(std::min(*column, kMostBytes));
  if (run.head.family == Family::kUcx && !bytes) bytes = sizeByRates(figures);
  const auto rate = rateOf(figures);
  if (!bytes || *bytes == 0) return std::nullopt;
  Row row{.backend = nameOf(run),
          .op = run.facts.op.value_or(OpKind::kWrite),
          .block_size = *bytes,
          .threads = run.facts.streams,
          .bidirectional = run.facts.bidirectional,
          .memory = "DRAM",
          .gb_per_s = rate,
          .verdict = Verdict::kUnproven,
          .why = "the tool does not check the path of the bytes"};
  row.iterations = static_cast<std::uint64_t>(
      std::min(figure(figures, Figure::kIterations).value_or(0), kMostIterations));
  row.seconds = figure(figures, Figure::kSeconds).value_or(0);
  if (!run.facts.device.empty()) row.path = {{.backend = row.backend, .device = run.facts.device}};
  if (run.head.family == Family::kNccl)
    addCollective(figures, run, row);
  else
    addLatency(figures, run, row);
  return row;
}

// --- runs

class ToolLogReader final : public TableReader<ToolRun> {
 public:
  explicit ToolLogReader(const std::string& file)
      : TableReader("read output of a raw tool", file) {}
  // True if a line of ucx_perftest was skipped because the size of its messages is unknown.
  bool isSizeless() const { return sizeless_; }

 private:
  void line(const std::string& text) override {
    ToolRun& run = open_[podOf(text)];
    if (Head head = headIn(text); head.family != Family::kNone) {
      finish(run);
      run = {std::move(head), std::move(run.facts), timeIn(text, text.size())};
      return;
    }
    const bool last = text.find("Final:") != std::string::npos;
    if (run.head.family != Family::kNone && (!run.head.stages || last))
      if (const auto figures = measuredIn(text, run.head)) return row(run, *figures);
    if (startsRun(text)) {
      finish(run);
      run = {};
    }
    readCommand(text, run.facts);
    readBanner(text, run.facts);
  }

  void row(ToolRun& run, const Measured& figures) {
    auto found = rowOf(figures, run);
    sizeless_ = sizeless_ || (!found && run.head.family == Family::kUcx);
    if (found) add(run, *std::move(found));
  }

  Report reportOf(ToolRun& run) const override {
    Report out{.version = nameOf(run), .started = run.started};
    if (!run.facts.kind.empty()) out.settings.push_back({"test", run.facts.kind});
    out.conclusion = {fmt::format(
        "Read from the output of {}, which does not check the path of the bytes.", nameOf(run))};
    return out;
  }

  bool sizeless_ = false;
};

}  // namespace

bool isBaselineLog(std::string_view text) {
  const auto lines = linesOf(text);
  return std::any_of(lines.begin(), lines.end(), [](std::string_view line) {
    return headIn(plainLine(line)).family != Family::kNone;
  });
}

Result<std::vector<Report>> reportsFromBaselineLog(std::string_view text, const std::string& name) {
  ToolLogReader reader(name);
  auto out = reader.read(text);
  if (!reader.isSizeless()) return out;
  return reader.error(
      "a line of ucx_perftest without the size of its messages",
      "put the server's output, or the command line, in front of the client's output");
}

}  // namespace viaduct::measure
