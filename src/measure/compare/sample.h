// The rows of one configuration that belong together: what each run of it gave. Threads: plain
// values, over rows that outlive them.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/result/row.h"
#include "measure/stats/rank_sum.h"
#include "measure/stats/statistics.h"

namespace viaduct::measure {

class Sample {
 public:
  using Rows = std::vector<const Row*>;  // of one run, which may repeat a row

  void add(Rows of_a_run) { runs_.push_back(std::move(of_a_run)); }
  const std::vector<Rows>& runs() const { return runs_; }

  // One figure for each run: parts of one run share its luck, so that they say nothing of the noise
  // between runs. `figure`: what a row has of it, a member or a function.
  template <class Figure>
  std::vector<double> each(Figure figure) const {
    std::vector<double> out;
    for (const Rows& rows : runs_) {
      std::vector<double> repeats;
      for (const Row* row : rows)
        if (const std::optional<double> value = std::invoke(figure, *row))
          repeats.push_back(*value);
      if (!repeats.empty()) out.push_back(median(std::move(repeats)));
    }
    return out;
  }
  template <class Figure>
  std::optional<double> middle(Figure figure) const {
    const std::vector<double> values = each(figure);
    return values.empty() ? std::nullopt : std::optional(median(values));
  }
  // Of the other sample's figures to ours.
  template <class Figure>
  std::optional<RatioEstimate> ratioTo(const Sample& other, Figure figure) const {
    return ratioOf(each(figure), other.each(figure));
  }
  // "`whose` is INVALID: ..." of the first row that cannot be used; empty: all can.
  std::string complaint(const std::string& whose) const;

 private:
  std::vector<Rows> runs_;
};

// A figure of a row: one of its latencies.
template <class Quantile>
auto latency(Quantile Latency::* which) {
  return [which](const Row& row) {
    return row.latency_us ? std::optional<double>((*row.latency_us).*which) : std::nullopt;
  };
}

}  // namespace viaduct::measure
