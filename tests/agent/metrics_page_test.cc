// docs/metrics.md lists the metrics of the code, in the same order and words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <span>
#include <string>
#include <vector>

#include "agent/metrics/statistics_text.h"
#include "diag/node_metrics.h"
#include "support/paths.h"

namespace viaduct::agent {
namespace {

// The rows of the page whose metric begins with this name, except those that begin with `other`.
std::vector<std::string> rowsOf(const std::string& name, const std::string& other) {
  std::ifstream page(std::string(testing::kSourceDir) + "/docs/metrics.md");
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `" + name) && !line.starts_with("| `" + other)) rows.push_back(line);
  return rows;
}

void expectRows(const std::vector<std::string>& rows,
                std::span<const base::MetricFamily> families) {
  ASSERT_EQ(rows.size(), families.size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const base::MetricFamily& family = families[i];
    EXPECT_TRUE(rows[i].starts_with(fmt::format("| `{}` | {} |", family.name, family.type)))
        << rows[i];
    EXPECT_TRUE(rows[i].ends_with(fmt::format("| {} |", family.help))) << rows[i];
  }
}

TEST(MetricsPage, HasEveryMetric) {
  expectRows(rowsOf("viaduct_", "viaduct_node"), metricFamilies());
  expectRows(rowsOf("viaduct_node", "-"), diag::nodeMetricFamilies());
}

TEST(MetricsPage, HasEveryLabelInTheRowOfItsMetric) {
  std::ifstream page(std::string(testing::kSourceDir) + "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  for (const base::MetricSample& sample : base::readMetrics(statisticsText(
           {.rails = {{.backend = "tcp", .rail = "eth0", .sockets = SocketStatistics{}}},
            .links = {{.backend = "tcp"}}},
           42)))
    for (const auto& [label, value] : sample.labels) {
      if (label == "agent" || label == "pid") continue;
      const auto family =
          std::find_if(metricFamilies().begin(), metricFamilies().end(), [&](const auto& one) {
            const std::string name(one.name);
            return sample.name == name || sample.name == name + "_total" ||
                   sample.name == name + "_info" || sample.name == name + "_bucket";
          });
      ASSERT_NE(family, metricFamilies().end()) << sample.name;
      const auto row = text.find(fmt::format("| `{}` |", family->name));
      const auto end = text.find('\n', row);
      EXPECT_NE(text.substr(row, end - row).find(fmt::format("`{}`", label)), std::string::npos)
          << sample.name << " " << label;
    }
}

}  // namespace
}  // namespace viaduct::agent
