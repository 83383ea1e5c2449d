// Prints rows as lines of at most 80 columns for a terminal. Threads: one at a time.
#pragma once

#include <string>

#include "measure/result/kv_table.h"
#include "measure/result/row.h"

namespace viaduct::measure {

class TextTable {
 public:
  // Returns the row's line, and lines that explain its verdict and figures. A heading comes first
  // if backend, operation or path differ from the last heading.
  std::string add(const Row& row);

 private:
  KvTable kv_;
  std::string what_, path_;  // of the last heading
  std::string remark_;       // of the last row
};

}  // namespace viaduct::measure
