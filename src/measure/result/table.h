// Prints rows as lines for people. Threads: one at a time.
#pragma once

#include <string>

#include "base/text_table.h"
#include "measure/result/kv_table.h"
#include "measure/result/row.h"

namespace viaduct::measure {

class RowTable {
 public:
  // The lines have at most `width` columns, if the figures allow.
  explicit RowTable(std::size_t width);
  // Returns the row's line, and lines that explain its verdict and figures. A heading comes first
  // if backend, operation or path differ from the last heading.
  std::string add(const Row& row);

 private:
  base::TextTable rows_, patterns_;
  KvTable kv_;
  std::string what_, path_;  // of the last heading
  std::string remark_;       // of the last row
};

}  // namespace viaduct::measure
