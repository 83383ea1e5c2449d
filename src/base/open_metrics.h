// The OpenMetrics text format 1.0: writes it, reads it, and joins the texts of several processes.
// Threads: pure functions; one at a time per MetricsWriter.
#pragma once

#include <array>
#include <cstddef>
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

// The prefix of the abstract Unix sockets' names by which metrics servers find each other.
inline constexpr std::string_view kMetricsServers = "viaduct-metrics-";

// A metric with all its series. `name` ends with the unit, if there is one.
struct MetricFamily {
  std::string_view name;
  std::string_view type;  // "counter", "gauge", "histogram", "info"
  std::string_view unit;  // "bytes", "seconds"; empty: a plain number
  std::string_view help;  // one line of text
};

// Bytes of a value that are not UTF-8 or not printable become U+FFFD.
struct MetricLabel {
  std::string_view name;
  std::string_view value;
};
using MetricLabels = std::vector<MetricLabel>;

class MetricsWriter {
 public:
  void family(const MetricFamily& family);
  // Adds a sample to the last family. `suffix`: "_total", "_bucket".
  void sample(std::string_view suffix, std::span<const MetricLabel> labels, std::uint64_t value);
  void sample(std::string_view suffix, std::span<const MetricLabel> labels, double value);
  std::string finish() &&;

 private:
  void put(std::string_view suffix, std::span<const MetricLabel> labels, std::string_view value);
  std::string text_;
  std::string_view family_;
};

// A metric family and the function that writes its samples. `labels` are those that all samples
// have.
template <class From>
struct FamilyWriter {
  MetricFamily family;
  void (*write)(const From& from, MetricLabels labels, MetricsWriter& out);
};

template <class From, std::size_t N>
constexpr std::array<MetricFamily, N> familiesOf(const std::array<FamilyWriter<From>, N>& rows) {
  std::array<MetricFamily, N> out{};
  for (std::size_t i = 0; i < N; ++i) out[i] = rows[i].family;
  return out;
}

template <class From, std::size_t N>
std::string metricsText(const std::array<FamilyWriter<From>, N>& rows, const From& from,
                        const MetricLabels& labels) {
  MetricsWriter out;
  for (const FamilyWriter<From>& row : rows) {
    out.family(row.family);
    row.write(from, labels, out);
  }
  return std::move(out).finish();
}

// A number in OpenMetrics form: with a point or an exponent.
std::string metricNumber(double value);

struct MetricSample {
  std::string name = {};
  std::vector<std::pair<std::string, std::string>> labels = {};
  double value = 0;

  std::string_view label(std::string_view of) const;  // empty: there is no such label
};
// Returns nothing if the line is not a sample.
std::optional<MetricSample> parseSample(std::string_view line);
// All samples of a text; skips other lines.
std::vector<MetricSample> readMetrics(std::string_view text);

// Joins texts into one, with each family once. Skips a text without "# EOF", because it was cut
// off. Skips lines that are not samples of their family, and series that an earlier text has.
std::string joinMetrics(std::span<const std::string> texts);

}  // namespace viaduct::base
