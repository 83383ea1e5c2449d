#include "viaduct/top_rows.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <cmath>
#include <string_view>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text_table.h"
#include "measure/result/text.h"

namespace viaduct::app {
namespace {

using base::MetricSample;
using Samples = std::vector<MetricSample>;

// Replaces control characters. Other users choose the names of their agents, and could send
// commands to the terminal.
std::string printable(std::string_view text) {
  std::string out(text);
  std::replace_if(
      out.begin(), out.end(), [](unsigned char c) { return std::iscntrl(c) != 0; }, '?');
  return out;
}

std::uint64_t whole(double value) {
  constexpr double kMost = 9e18;
  return value > 0 ? static_cast<std::uint64_t>(std::min(value, kMost)) : 0;
}

// Returns the sum of a metric's series, or of those whose `label` has the value.
double sumOf(const Samples& samples, std::string_view name, std::string_view label = {},
             std::string_view value = {}) {
  double sum = 0;
  for (const MetricSample& sample : samples)
    if (sample.name == name && (label.empty() || sample.label(label) == value)) sum += sample.value;
  return sum;
}

// Maps the upper bound of each histogram bucket, in seconds, to the number of faster transfers.
std::map<double, double> bucketsOf(const Samples& samples) {
  std::map<double, double> out;
  for (const MetricSample& sample : samples) {
    if (sample.name != "viaduct_transfer_seconds_bucket") continue;
    const auto bound = base::parseSample(fmt::format("le {}", sample.label("le")));
    if (bound) out[bound->value] = sample.value;
  }
  return out;
}

// Returns the time within which this part of the transfers ended. Assumes that values are spread
// evenly within a bucket.
std::optional<double> quantile(const Samples& before, const Samples& after, double part) {
  const auto old = bucketsOf(before), now = bucketsOf(after);
  const auto since = [&](const auto& bucket) {
    const auto found = old.find(bucket.first);
    return bucket.second - (found == old.end() ? 0 : found->second);
  };
  const double all = now.empty() ? 0 : since(*now.rbegin());
  if (all <= 0) return std::nullopt;
  double lower = 0, below = 0;
  for (const auto& bucket : now) {
    const double here = since(bucket);
    if (here >= part * all && here > below) {
      if (std::isinf(bucket.first)) return lower;
      return lower + (bucket.first - lower) * (part * all - below) / (here - below);
    }
    lower = bucket.first;
    below = here;
  }
  return std::nullopt;
}

std::optional<double> perSecond(double before, double after, std::chrono::duration<double> time) {
  if (time.count() <= 0) return std::nullopt;
  return std::max(after - before, 0.0) / time.count();
}

double bytesOf(const Samples& samples, const TopRail& rail) {
  double sum = 0;
  for (const MetricSample& sample : samples)
    if (sample.name == "viaduct_moved_bytes_total" && sample.label("backend") == rail.backend &&
        sample.label("rail") == rail.rail)
      sum += sample.value;
  return sum;
}

// Adds the rail's queues of all priority classes together.
void addQueue(const Samples& samples, TopRail& rail) {
  for (const MetricSample& sample : samples) {
    if (sample.label("backend") != rail.backend || sample.label("rail") != rail.rail) continue;
    if (sample.name == "viaduct_rail_works") rail.works += whole(sample.value);
    if (sample.name == "viaduct_rail_oldest_seconds")
      rail.oldest_s = std::max(rail.oldest_s, sample.value);
  }
}

std::vector<TopRail> railsOf(const Samples* before, const Samples& after,
                             std::chrono::duration<double> between) {
  std::vector<TopRail> out;
  for (const MetricSample& sample : after) {
    if (sample.name != "viaduct_moved_bytes_total" || sample.value <= 0) continue;
    TopRail rail{.backend = std::string(sample.label("backend")),
                 .rail = std::string(sample.label("rail"))};
    if (before != nullptr)
      if (const auto rate = perSecond(bytesOf(*before, rail), sample.value, between))
        rail.gb_per_s = *rate / 1e9;
    addQueue(after, rail);
    out.push_back(std::move(rail));
  }
  return out;
}

void addRates(const Samples& before, const Samples& after, std::chrono::duration<double> between,
              TopRow& row) {
  const auto bytes = perSecond(sumOf(before, "viaduct_moved_bytes_total"),
                               sumOf(after, "viaduct_moved_bytes_total"), between);
  if (bytes) row.gb_per_s = *bytes / 1e9;
  row.transfers_per_s = perSecond(sumOf(before, "viaduct_transfers_ended_total"),
                                  sumOf(after, "viaduct_transfers_ended_total"), between);
  row.p50_s = quantile(before, after, 0.5);
  row.p99_s = quantile(before, after, 0.99);
}

std::string timeText(std::optional<double> seconds) {
  if (!seconds) return "-";
  if (*seconds < 1e-3) return measure::digits(*seconds * 1e6) + " us";
  if (*seconds < 1) return measure::digits(*seconds * 1e3) + " ms";
  return measure::digits(seconds) + " s";
}

std::string railsText(const std::vector<TopRail>& rails) {
  std::string out;
  for (const TopRail& rail : rails)
    out +=
        fmt::format("{}{}/{} {}", out.empty() ? "" : ", ", printable(rail.backend),
                    printable(rail.rail), measure::digits(rail.gb_per_s)) +
        (rail.works == 0 ? ""
                         : fmt::format(" ({} waiting, {})", rail.works, timeText(rail.oldest_s)));
  return out.empty() ? "-" : out;
}

using base::Narrow;
constexpr std::array kColumns{base::words("PID"),
                              base::words("AGENT", Narrow::kCut, 12),
                              base::figure("PEERS", Narrow::kGoes),
                              base::figure("PINS", Narrow::kGoes),
                              base::figure("PINNED", Narrow::kGoes),
                              base::figure("GB/s"),
                              base::figure("XFER/s"),
                              base::figure("P50"),
                              base::figure("P99"),
                              base::figure("ERRORS"),
                              base::words("RAILS, GB/s", Narrow::kBelow)};

}  // namespace

AgentSamples samplesOf(const std::vector<std::string>& texts) {
  AgentSamples out;
  for (const std::string& text : texts)
    for (MetricSample& sample : base::readMetrics(text)) {
      const auto pid = base::parseCount(sample.label("pid"));
      if (pid) out[{*pid, std::string(sample.label("agent"))}].push_back(std::move(sample));
    }
  return out;
}

std::vector<TopRow> topRows(const AgentSamples& before, const AgentSamples& after,
                            std::chrono::duration<double> between) {
  std::vector<TopRow> out;
  for (const auto& [agent, samples] : after) {
    TopRow row{
        .pid = agent.first,
        .agent = agent.second,
        .ready_peers = whole(sumOf(samples, "viaduct_peers", "state", "ready")),
        .peers = whole(sumOf(samples, "viaduct_peers")),
        .pins = whole(sumOf(samples, "viaduct_pins")),
        .pinned_bytes = whole(sumOf(samples, "viaduct_pinned_bytes")),
        .errors = whole(sumOf(samples, "viaduct_errors_total")),
    };
    const auto old = before.find(agent);
    const Samples* const earlier = old == before.end() ? nullptr : &old->second;
    if (earlier != nullptr) addRates(*earlier, samples, between, row);
    row.rails = railsOf(earlier, samples, between);
    out.push_back(std::move(row));
  }
  return out;
}

std::string topTable(const std::vector<TopRow>& rows, std::size_t width) {
  return base::tableText(
      kColumns,
      base::mapped(
          rows,
          [](const TopRow& row) {
            return base::TextRow{base::cells(
                row.pid, printable(row.agent),
                row.ready_peers == row.peers ? fmt::to_string(row.peers)
                                             : fmt::format("{} of {}", row.ready_peers, row.peers),
                row.pins, base::roundedSize(row.pinned_bytes), measure::digits(row.gb_per_s),
                measure::digits(row.transfers_per_s), timeText(row.p50_s), timeText(row.p99_s),
                row.errors, railsText(row.rails))};
          }),
      width);
}

base::Json topJson(const std::vector<TopRow>& rows, std::chrono::duration<double> between) {
  const auto put = [](base::Json& into, const char* key, std::optional<double> value) {
    if (value) into[key] = *value;
  };
  base::Json out{{"format", "viaduct-top/1"}, {"seconds", between.count()}};
  out["agents"] = base::Json::array();
  for (const TopRow& row : rows) {
    base::Json one{{"pid", row.pid},      {"agent", row.agent},
                   {"peers", row.peers},  {"ready_peers", row.ready_peers},
                   {"pins", row.pins},    {"pinned_bytes", row.pinned_bytes},
                   {"errors", row.errors}};
    put(one, "gb_per_s", row.gb_per_s);
    put(one, "transfers_per_s", row.transfers_per_s);
    put(one, "p50_s", row.p50_s);
    put(one, "p99_s", row.p99_s);
    one["rails"] = base::Json::array();
    for (const TopRail& rail : row.rails) {
      base::Json each{{"backend", rail.backend}, {"rail", rail.rail}};
      put(each, "gb_per_s", rail.gb_per_s);
      each["works"] = rail.works;
      each["oldest_s"] = rail.oldest_s;
      one["rails"].push_back(std::move(each));
    }
    out["agents"].push_back(std::move(one));
  }
  return out;
}

}  // namespace viaduct::app
