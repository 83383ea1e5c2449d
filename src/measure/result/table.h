// Rows as lines for a terminal, none longer than 80 columns. Threads: one at a time.
#pragma once

#include <string>

#include "measure/result/row.h"

namespace viaduct::measure {

class TextTable {
 public:
  // The row's line, and lines that say why it cannot be used, or what to know besides. Before it
  // stands a heading, where what moved the bytes, or how, is not what the rows before it had.
  std::string add(const Row& row);

 private:
  std::string what_, path_;  // of the last heading
};

}  // namespace viaduct::measure
