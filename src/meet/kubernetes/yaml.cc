#include "meet/kubernetes/yaml.h"

#include <fmt/format.h>

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/text.h"

namespace viaduct::meet::kubernetes {
namespace {

using base::Json;

constexpr int kDeepest = 32;

class YamlReader {
 public:
  explicit YamlReader(std::string_view text);
  Result<Json> all();

 private:
  struct Line {
    std::size_t number = 0, indent = 0;
    std::string_view text = {};

    bool isItem() const { return text == "-" || text.starts_with("- "); }
  };
  bool more() const { return at_ < lines_.size(); }
  Error wrong(const char* what) const;
  Result<Json> block(int depth);
  Result<Json> list(int depth);
  Result<Json> mapping(int depth);
  // The lines below a key or a dash without a value.
  Result<Json> nested(std::size_t indent, bool list_may_align, int depth);
  Result<Json> scalar(std::string_view text) const;

  std::vector<Line> lines_;
  std::size_t at_ = 0;
  bool tabs_ = false;
};

// The text without its comment, which begins with " #" outside of quotes.
std::string_view withoutComment(std::string_view text) {
  char quote = 0;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const bool first = i == 0 || text[i - 1] == ' ';
    if (quote != 0 && c == '\\' && quote == '"')
      ++i;
    else if (quote != 0)
      quote = c == quote ? '\0' : quote;
    else if ((c == '"' || c == '\'') && first)
      quote = c;
    else if (c == '#' && first)
      return base::trimmed(text.substr(0, i));
  }
  return base::trimmed(text);
}

// The key and the value of a line, or nothing if it has no key.
std::optional<std::pair<std::string_view, std::string_view>> keyAndValue(std::string_view text) {
  std::size_t end = text.find(": ");
  if (end == std::string_view::npos && text.ends_with(':')) end = text.size() - 1;
  if (end == std::string_view::npos || end == 0) return std::nullopt;
  std::string_view key = text.substr(0, end);
  if (key.front() == '"' || key.front() == '\'') {
    if (key.size() < 2 || key.back() != key.front()) return std::nullopt;
    key = key.substr(1, key.size() - 2);
  }
  return std::pair(key, base::trimmed(text.substr(end + 1)));
}

YamlReader::YamlReader(std::string_view text) {
  for (std::size_t number = 1; !text.empty(); ++number) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    const std::string_view whole = text.substr(0, end);
    text.remove_prefix(std::min(end + 1, text.size()));
    const std::size_t indent = std::min(whole.find_first_not_of(' '), whole.size());
    const std::string_view line = withoutComment(whole.substr(indent));
    if (line.empty() || (line == "---" && lines_.empty())) continue;
    if (whole[indent] == '\t') tabs_ = true;
    lines_.push_back({number, indent, line});
  }
}

Error YamlReader::wrong(const char* what) const {
  const std::size_t line = lines_.empty() ? 1 : lines_[std::min(at_, lines_.size() - 1)].number;
  return {.code = Code::kInvalid,
          .operation = "YAML",
          .detail = fmt::format("line {}: {}", line, what)};
}

Result<Json> YamlReader::all() {
  if (!more()) return wrong("the text is empty");
  if (tabs_) return wrong("a tab indents a line");
  VIADUCT_TRY(Json out, block(0));
  if (more()) return wrong("the indentation fits nothing above");
  return out;
}

Result<Json> YamlReader::block(int depth) {
  if (depth > kDeepest) return wrong("is nested too deeply");
  if (lines_[at_].isItem()) return list(depth);
  if (keyAndValue(lines_[at_].text)) return mapping(depth);
  VIADUCT_TRY(Json out, scalar(lines_[at_].text));
  ++at_;
  return out;
}

Result<Json> YamlReader::list(int depth) {
  const std::size_t indent = lines_[at_].indent;
  Json out = Json::array();
  while (more() && lines_[at_].indent == indent && lines_[at_].isItem()) {
    Line& line = lines_[at_];
    const std::size_t begin = line.text.find_first_not_of(' ', 1);
    if (begin == std::string_view::npos) {
      ++at_;
      VIADUCT_TRY(Json item, nested(indent, false, depth));
      out.push_back(std::move(item));
      continue;
    }
    // The rest of the line is the first line of a block.
    line.indent += begin;
    line.text.remove_prefix(begin);
    VIADUCT_TRY(Json item, block(depth + 1));
    out.push_back(std::move(item));
  }
  return out;
}

Result<Json> YamlReader::mapping(int depth) {
  const std::size_t indent = lines_[at_].indent;
  Json out = Json::object();
  while (more() && lines_[at_].indent == indent && !lines_[at_].isItem()) {
    const auto pair = keyAndValue(lines_[at_].text);
    if (!pair) return wrong("a key and a colon are missing");
    auto value = pair->second.empty() ? Json() : scalar(pair->second);
    if (!value) return std::move(value).error();
    ++at_;
    if (pair->second.empty()) {
      VIADUCT_TRY(Json below, nested(indent, true, depth));
      value = std::move(below);
    }
    out[std::string(pair->first)] = *std::move(value);
  }
  return out;
}

Result<Json> YamlReader::nested(std::size_t indent, bool list_may_align, int depth) {
  if (!more()) return Json();
  const Line& next = lines_[at_];
  const bool aligned = list_may_align && next.indent == indent && next.isItem();
  if (next.indent <= indent && !aligned) return Json();
  return block(depth + 1);
}

Result<Json> YamlReader::scalar(std::string_view text) const {
  if (text == "true" || text == "false") return Json(text == "true");
  if (text == "null" || text == "~") return Json();
  switch (text.front()) {
    case '"':
    case '{':
    case '[': {
      auto json = base::parseJson(text);
      if (!json) return wrong("a quoted text, list or mapping is not in the form of JSON");
      return json;
    }
    case '\'': {
      if (text.size() < 2 || text.back() != '\'') return wrong("a quote is missing");
      std::string out;
      for (std::size_t i = 1; i + 1 < text.size(); ++i) {
        out += text[i];
        if (text[i] == '\'') ++i;  // two quotes stand for one
      }
      return Json(out);
    }
    case '&':
    case '*':
    case '!':
    case '|':
    case '>':
    case '%':
    case '@':
    case '`':
      return wrong("anchors, aliases, tags and texts of several lines are not supported");
    default:
      return Json(std::string(text));
  }
}

}  // namespace

Result<Json> parseYaml(std::string_view text) {
  if (base::trimmed(text).starts_with('{')) return base::parseJson(text);
  return YamlReader(text).all();
}

}  // namespace viaduct::meet::kubernetes
