#include "measure/result/table_sink.h"

#include "measure/result/text.h"

namespace viaduct::measure {

void TextSink::line(const std::string& text) {
  if (last_ == Last::kTable) text_ += "\n";
  text_ += text + "\n";
  last_ = Last::kLine;
}

void TextSink::table(const std::string& title, base::TextColumns columns,
                     const std::vector<base::TextRow>& rows) {
  if (last_ == Last::kTable || (last_ == Last::kLine && title.empty())) text_ += "\n";
  if (!title.empty()) text_ += title + "\n";
  text_ += base::tableText(columns, rows, width_);
  last_ = Last::kTable;
}

void TextSink::note(const std::string& text) { text_ += measure::note(text); }

}  // namespace viaduct::measure
