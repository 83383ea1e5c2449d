// Prints rows as lines for people. Threads: one at a time.
#pragma once

#include <cstdint>
#include <span>
#include <string>

#include "base/text_table.h"
#include "measure/result/kv_table.h"
#include "measure/result/row.h"
#include "measure/result/table_sink.h"

namespace viaduct::measure {

// Shows the tables of those kinds of rows that have tables of their own: pipelines, swaps and
// matrices. kAll adds KV caches, traces and patterns, whose rows a RowTable prints as they come.
// All `rows` must be of one kind.
enum class Kinds : std::uint8_t { kBesideOneAnother, kAll };
void showTables(std::span<const Row> rows, Kinds which, TableSink& sink);

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
