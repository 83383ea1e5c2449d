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

// Shows rows of one kind as tables. kBesideOneAnother shows only pipelines, swaps and matrices.
// kAll also shows KV caches, traces and patterns, which a RowTable otherwise prints row by row.
enum class Kinds : std::uint8_t { kBesideOneAnother, kAll };
void showTables(std::span<const Row> rows, Kinds which, TableSink& sink);

class RowTable {
 public:
  // Lines have at most `width` columns, unless the figures need more.
  explicit RowTable(std::size_t width);
  // Returns the row's line, and lines that explain its verdict and figures. A heading comes first
  // if backend, operation or path differ from the last heading. Empty for pipelines, swaps and
  // matrices.
  std::string add(const Row& row);

 private:
  base::TextTable rows_, patterns_;
  KvTable kv_;
  std::string what_, path_;  // of the last heading
  std::string remark_;       // of the last row
};

}  // namespace viaduct::measure
