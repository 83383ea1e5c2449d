// Takes the tables that show rows beside one another. A terminal and a page each have a sink, so
// both show the same. Threads: one at a time.
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
  // `title` is empty if the lines above say what the table has. A row's `after` has notes.
  virtual void table(const std::string& title, base::TextColumns columns,
                     const std::vector<base::TextRow>& rows) = 0;
  virtual void note(const std::string& text) = 0;  // about the table above
};

// The tables have at most `width` columns, if the figures allow.
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
