// The tables of KV rows: one line for all trials of a point, with the bulk rows beside the paged
// ones. A replayed trace has a table of its own. Threads: one at a time.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "base/text_table.h"
#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure {

// Shows whole points. The rows may have several of them.
void showKv(std::span<const Row> rows, TableSink& sink);

// Prints rows as they come.
class KvTable {
 public:
  explicit KvTable(std::size_t width);
  // Returns the line of a point once its last row has come, and nothing before.
  std::string add(const Row& row);

 private:
  std::string heading(const Row& row);
  std::string replayed(const Row& row);

  base::TextTable points_;
  std::vector<Row> rows_;  // of the present point
  std::string what_;       // the last heading
};

}  // namespace viaduct::measure
