#include "measure/report/series.h"

#include <gtest/gtest.h>

namespace viaduct::measure {
namespace {

Row row(const char* backend, std::uint64_t block, double gb = 1, std::uint32_t batch = 1) {
  return {.backend = backend, .block_size = block, .batch_size = batch, .gb_per_s = gb};
}

std::vector<std::string> labels(const std::vector<Series>& series) {
  std::vector<std::string> out;
  for (const Series& s : series) out.push_back(s.label);
  return out;
}
using Labels = std::vector<std::string>;

TEST(SeriesOf, LabelsNameTheDifferences) {
  Report report{.rows = {row("tcp", 2), row("tcp", 1), row("local", 1)}};
  EXPECT_EQ(labels(seriesOf({{"a", report}})), (Labels{"tcp", "local"}));
  EXPECT_EQ(labels(seriesOf({{"a", report}, {"b", report}})),
            (Labels{"tcp, a", "local, a", "tcp, b", "local, b"}));
  report.rows[0].op = OpKind::kRead;
  report.rows[2].initiators = 4;
  EXPECT_EQ(labels(seriesOf({{"a", report}})),
            (Labels{"tcp, read, 1→1", "tcp, write, 1→1", "local, write, 4→1"}));
}

TEST(SeriesOf, RowsAreByBlockSizeAndRepeatsAreOne) {
  const std::vector<Source> sources{{"a",
                                     {.rows = {row("tcp", 4, 7), row("tcp", 2, 3), row("tcp", 2, 1),
                                               row("tcp", 2, 2), row("tcp", 0, 9)}}}};
  const auto series = seriesOf(sources);
  ASSERT_EQ(series.size(), 1U);
  ASSERT_EQ(series[0].rows.size(), 2U) << "a block of nothing has no place";
  EXPECT_EQ(series[0].rows[0].gb_per_s, 2) << "the middle one";
  EXPECT_EQ(rowAt(series[0], 4)->gb_per_s, 7);
  EXPECT_EQ(rowAt(series[0], 3), nullptr);
  EXPECT_EQ(sizesOf(series), (std::vector<std::uint64_t>{2, 4}));
}

TEST(SeriesOf, ABatchIsASeriesOnlyWhereABlockHasSeveral) {
  const Report falling{.rows = {row("tcp", 1, 1, 64), row("tcp", 2, 1, 16)}};
  EXPECT_EQ(seriesOf({{"a", falling}}).size(), 1U);
  const Report grid{.rows = {row("tcp", 1, 1, 1), row("tcp", 1, 1, 2), row("tcp", 2, 1, 1)}};
  EXPECT_EQ(labels(seriesOf({{"a", grid}})), (Labels{"tcp, batch 1", "tcp, batch 2"}));
}

TEST(SourcesOf, NamesAreAsShortAsTheyCanBe) {
  const auto names = [](const std::vector<std::string>& files,
                        std::vector<std::vector<Report>> reports) {
    std::vector<std::string> out;
    for (const Source& s : sourcesOf(files, std::move(reports))) out.push_back(s.name);
    return out;
  };
  const std::vector<Report> one(1), two(2);
  EXPECT_EQ(names({"x/a.json", "y/b.log"}, {one, two}), (Labels{"a.json", "b.log #1", "b.log #2"}));
  EXPECT_EQ(names({"x/a.json", "y/a.json"}, {one, one}), (Labels{"x/a.json", "y/a.json"}));
}

}  // namespace
}  // namespace viaduct::measure
