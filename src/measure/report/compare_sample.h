// The rows of one configuration, by run. Threads: plain values that point to rows, which must live
// longer.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "measure/result/rank_sum.h"
#include "measure/result/row.h"
#include "measure/result/statistics.h"

namespace viaduct::measure {

class Sample {
 public:
  using Rows = std::vector<const Row*>;  // the rows of one run, which may repeat a row

  void add(Rows of_a_run) { runs_.push_back(std::move(of_a_run)); }
  const std::vector<Rows>& runs() const { return runs_; }

  // Returns one figure for each run. Parts of one run share its conditions, so they do not show the
  // noise between runs. `figure` is a member of Row, or a function of a row.
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
  // Returns the ratio of the other sample's figures to the figures of this sample.
  template <class Figure>
  std::optional<RatioEstimate> ratioTo(const Sample& other, Figure figure) const {
    return ratioOf(each(figure), other.each(figure));
  }
  // Returns "`whose` is invalid: ..." with the verdict of the first row that cannot be used, or an
  // empty text.
  std::string complaint(const std::string& whose) const;

 private:
  std::vector<Rows> runs_;
};

// Returns a function that reads one quantile of a row's latency.
template <class Quantile>
auto latency(Quantile Latency::* which) {
  return [which](const Row& row) {
    return row.latency_us ? std::optional<double>((*row.latency_us).*which) : std::nullopt;
  };
}

}  // namespace viaduct::measure
