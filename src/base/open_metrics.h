// The OpenMetrics text format 1.0: written, read, and joined from the texts of several processes.
// Threads: pure functions; one at a time per MetricsWriter.
#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace viaduct::base {

inline constexpr std::string_view kMetricsType =
    "application/openmetrics-text; version=1.0.0; charset=utf-8";

// Servers of metrics find each other by the front of their abstract Unix sockets' names.
inline constexpr std::string_view kMetricsServers = "viaduct-metrics-";

// A metric of all its series. `name` ends with the unit, if it has one.
struct MetricFamily {
  std::string_view name;
  std::string_view type;  // "counter", "gauge", "histogram", "info"
  std::string_view unit;  // "bytes", "seconds"; empty: a number of things
  std::string_view help;  // one line
};

// In value characters that are no UTF-8 or no text become U+FFFD.
struct MetricLabel {
  std::string_view name;
  std::string_view value;
};

class MetricsWriter {
 public:
  void family(const MetricFamily& family);
  // Of the last family; `suffix`: "_total", "_bucket".
  void sample(std::string_view suffix, std::span<const MetricLabel> labels, std::uint64_t value);
  void sample(std::string_view suffix, std::span<const MetricLabel> labels, double value);
  std::string finish() &&;

 private:
  void put(std::string_view suffix, std::span<const MetricLabel> labels, std::string_view value);
  std::string text_;
  std::string_view family_;
};

// A number as OpenMetrics writes it: with a point or an exponent.
std::string metricNumber(double value);

struct MetricSample {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
  double value = 0;

  std::string_view label(std::string_view of) const;  // empty: it has no such label
};
// Nothing where a line is no sample.
std::optional<MetricSample> parseSample(std::string_view line);
// All samples of a text. Other lines are skipped.
std::vector<MetricSample> readMetrics(std::string_view text);

// One text with the families of all, each once. Left out: a text without "# EOF", which was cut
// off; lines that are no samples of their family; a series that an earlier text has.
std::string joinMetrics(std::span<const std::string> texts);

}  // namespace viaduct::base
