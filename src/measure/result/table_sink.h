// The interface through which tables of rows are printed. The terminal and the HTML page each
// implement it, so both show the same tables. Threads: one at a time.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "base/text_table.h"

namespace viaduct::measure {

class TableSink {
 public:
  virtual ~TableSink() = default;
  virtual void line(const std::string& text) = 0;
  // `title` is empty if the lines before describe the table. A row's `after` has the row's notes.
  virtual void table(const std::string& title, base::TextColumns columns,
                     const std::vector<base::TextRow>& rows) = 0;
  virtual void note(const std::string& text) = 0;  // about the table above
};

// Tables have at most `width` columns, unless the figures need more.
class TextSink final : public TableSink {
 public:
  explicit TextSink(std::size_t width) : width_(width) {}
  void line(const std::string& text) override;
  void table(const std::string& title, base::TextColumns columns,
             const std::vector<base::TextRow>& rows) override;
  void note(const std::string& text) override;
  const std::string& text() const { return text_; }

 private:
  enum class Last { kStart, kLine, kTable };
  std::size_t width_;
  std::string text_;
  Last last_ = Last::kStart;
};

}  // namespace viaduct::measure
