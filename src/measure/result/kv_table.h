// The tables of KV rows. A point (a combination of model, tokens, blocks and batch) has one line
// for all its trials, paged and bulk. A replayed trace has its own table. Threads: one at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/text_table.h"
#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure {

// Shows the rows of one or several complete points.
void showKv(std::span<const Row> rows, TableSink& sink);

// Prints rows as they come.
class KvTable {
 public:
  explicit KvTable(std::size_t width);
  // Returns the line of a point when its last row is added, and an empty text before.
  std::string add(const Row& row);

 private:
  std::string heading(const Row& row);
  std::string replayed(const Row& row);

  base::TextTable points_;
  std::vector<Row> rows_;  // of the present point
  std::string what_;       // the last heading
};

}  // namespace viaduct::measure
