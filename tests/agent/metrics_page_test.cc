// docs/metrics.md lists the metrics of the code, in the same order and words.
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "agent/metrics/statistics_text.h"
#include "support/paths.h"

namespace viaduct::agent {
namespace {

TEST(MetricsPage, HasEveryMetric) {
  std::ifstream page(std::string(testing::kSourceDir) + "/docs/metrics.md");
  ASSERT_TRUE(page);
  std::vector<std::string> rows;
  for (std::string line; std::getline(page, line);)
    if (line.starts_with("| `viaduct_")) rows.push_back(line);
  ASSERT_EQ(rows.size(), metricFamilies().size());
  for (std::size_t i = 0; i < rows.size(); ++i) {
    const base::MetricFamily& family = metricFamilies()[i];
    EXPECT_TRUE(rows[i].starts_with(fmt::format("| `{}` | {} |", family.name, family.type)))
        << rows[i];
    EXPECT_TRUE(rows[i].ends_with(fmt::format("| {} |", family.help))) << rows[i];
  }
}

TEST(MetricsPage, HasEveryLabelInTheRowOfItsMetric) {
  std::ifstream page(std::string(testing::kSourceDir) + "/docs/metrics.md");
  const std::string text{std::istreambuf_iterator<char>(page), {}};
  for (const base::MetricSample& sample : base::readMetrics(
           statisticsText({.rails = {{.backend = "tcp", .rail = "eth0", .sockets = {{}}}},
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
