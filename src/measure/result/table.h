// Prints rows as lines for people. Threads: one at a time.
#pragma once

#include <span>
#include <string>

#include "base/text_table.h"
#include "measure/result/kv_table.h"
#include "measure/result/row.h"

namespace viaduct::measure {

// The tables of pipelines, swaps and matrices, which show rows beside one another. The tables have
// at most `width` columns, if the figures allow.
std::string tablesBesideRows(std::span<const Row> rows, std::size_t width);

class RowTable {
 public:
  // The lines have at most `width` columns, if the figures allow.
  explicit RowTable(std::size_t width);
  // Returns the row's line, and lines that explain its verdict and figures. A heading comes first
  // if backend, operation or path differ from the last heading. Empty for rows of the tables above.
  std::string add(const Row& row);

 private:
  base::TextTable rows_, patterns_;
  KvTable kv_;
  std::string what_, path_;  // of the last heading
  std::string remark_;       // of the last row
};

}  // namespace viaduct::measure
