// Prints KV rows for people: one line for all trials of a point, with the bulk rows beside the
// paged ones. Threads: one at a time.
#pragma once

#include <string>
#include <vector>

#include "base/text_table.h"
#include "measure/result/row.h"

namespace viaduct::measure {

class KvTable {
 public:
  explicit KvTable(std::size_t width);
  // Returns the line of a point once its last row has come, and nothing before.
  std::string add(const Row& row);

 private:
  std::string heading(const Row& row);
  std::string pointText();
  std::string replayed(const Row& row);

  base::TextTable points_;
  std::vector<Row> rows_;  // of the present point
  std::string what_;       // the last heading
};

}  // namespace viaduct::measure
