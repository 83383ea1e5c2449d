#include "base/open_metrics.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <set>

#include "base/lists.h"
#include "base/text.h"
#include "base/utf8.h"

namespace viaduct::base {
namespace {

constexpr std::string_view kEnd = "# EOF";

bool isControl(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte < 0x20 || byte == 0x7f;
}

void appendEscaped(std::string_view text, std::string& out) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t size = characterSize(text, at);
    const char c = text[at];
    if (c == '\n')
      out += "\\n";
    else if (c == '\\' || c == '"')
      (out += '\\') += c;
    else if (size == 0 || isControl(c))
      out += kReplacement;
    else
      out += text.substr(at, size);
    at += std::max<std::size_t>(size, 1);
  }
}

bool isText(std::string_view line) {
  for (std::size_t at = 0; at < line.size();) {
    const std::size_t size = characterSize(line, at);
    if (size == 0 || isControl(line[at])) return false;
    at += size;
  }
  return true;
}

bool isLetter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; }
bool isDigit(char c) { return c >= '0' && c <= '9'; }

// Takes a name off the front of `rest`; empty: there is none.
std::string_view takeName(std::string_view& rest) {
  std::size_t size = 0;
  while (size < rest.size() && (isLetter(rest[size]) || (size > 0 && isDigit(rest[size])))) ++size;
  const std::string_view name = rest.substr(0, size);
  rest.remove_prefix(size);
  return name;
}

bool take(std::string_view& rest, std::string_view front) {
  if (!rest.starts_with(front)) return false;
  rest.remove_prefix(front.size());
  return true;
}

// Takes a value from behind its opening quote up to the closing one.
std::optional<std::string> takeQuoted(std::string_view& rest) {
  std::string out;
  while (!rest.empty()) {
    const char c = rest.front();
    rest.remove_prefix(1);
    if (c == '"') return out;
    if (c != '\\') {
      out += c;
      continue;
    }
    if (rest.empty()) return std::nullopt;
    const char escaped = rest.front();
    rest.remove_prefix(1);
    if (escaped != 'n' && escaped != '"' && escaped != '\\') return std::nullopt;
    out += escaped == 'n' ? '\n' : escaped;
  }
  return std::nullopt;
}

// Takes labels from behind the opening brace up to the closing one.
bool takeLabels(std::string_view& rest, MetricSample& into) {
  while (!take(rest, "}")) {
    if (!into.labels.empty() && !take(rest, ",")) return false;
    const std::string_view name = takeName(rest);
    if (name.empty() || !take(rest, "=\"")) return false;
    auto value = takeQuoted(rest);
    if (!value) return false;
    into.labels.emplace_back(name, *std::move(value));
  }
  return true;
}

// Calls `each` with each line, without its end. The last line may lack its end.
template <class Each>
void eachLine(std::string_view text, Each each) {
  while (!text.empty()) {
    const std::size_t end = text.find('\n');
    each(text.substr(0, end));
    text.remove_prefix(end == std::string_view::npos ? text.size() : end + 1);
  }
}

bool isWhole(std::string_view text) { return text == "# EOF\n" || text.ends_with("\n# EOF\n"); }

// The families of several texts, in the order of their first appearance.
class Families {
 public:
  void add(std::string_view text) {
    Family* current = nullptr;
    eachLine(text, [&](std::string_view line) {
      if (!isText(line)) return;
      if (line.starts_with("# "))
        current = describe(line, current);
      else if (current != nullptr)
        addSample(line, *current);
    });
  }

  std::string text() const {
    std::string out;
    for (const Family& family : families_) (out += family.head) += family.samples;
    return (out += kEnd) += '\n';
  }

 private:
  struct Family {
    std::string name, head, samples;
    bool described = false;  // earlier lines have given its head
  };

  // Returns the family to which the lines after this one belong.
  Family* describe(std::string_view line, Family* current) {
    std::string_view rest = line.substr(2);
    const std::string_view word = takeName(rest);
    if (word != "TYPE" && word != "UNIT" && word != "HELP") return nullptr;
    if (!take(rest, " ")) return nullptr;
    const std::string_view name = takeName(rest);
    if (name.empty() || !rest.starts_with(" ")) return nullptr;
    if (current == nullptr || current->name != name) current = familyOf(name);
    if (!current->described) (current->head += line) += '\n';
    return current;
  }

  Family* familyOf(std::string_view name) {
    if (Family* const found = firstWith(families_, &Family::name, name)) {
      found->described = true;
      return found;
    }
    return &families_.emplace_back(Family{.name = std::string(name), .head = {}, .samples = {}});
  }

  void addSample(std::string_view line, Family& family) {
    if (!line.starts_with(family.name)) return;
    const char next = line.size() == family.name.size() ? '\0' : line[family.name.size()];
    if ((next != '_' && next != '{' && next != ' ') || !parseSample(line)) return;
    // The value contains no space, so the last space ends the series.
    if (!series_.emplace(line.substr(0, line.rfind(' '))).second) return;
    (family.samples += line) += '\n';
  }

  std::vector<Family> families_;
  std::set<std::string, std::less<>> series_;
};

}  // namespace

std::string metricNumber(double value) {
  if (std::isnan(value)) return "NaN";
  if (std::isinf(value)) return value > 0 ? "+Inf" : "-Inf";
  std::string out = fmt::format("{}", value);
  if (out.find_first_of(".e") == std::string::npos) out += ".0";
  return out;
}

void MetricsWriter::family(const MetricFamily& family) {
  family_ = family.name;
  text_ += fmt::format("# TYPE {} {}\n", family.name, family.type);
  if (!family.unit.empty()) text_ += fmt::format("# UNIT {} {}\n", family.name, family.unit);
  text_ += fmt::format("# HELP {} ", family.name);
  appendEscaped(family.help, text_);
  text_ += '\n';
}

void MetricsWriter::sample(std::string_view suffix, std::span<const MetricLabel> labels,
                           std::uint64_t value) {
  put(suffix, labels, fmt::format_int(value).c_str());
}

void MetricsWriter::sample(std::string_view suffix, std::span<const MetricLabel> labels,
                           double value) {
  put(suffix, labels, metricNumber(value));
}

void MetricsWriter::put(std::string_view suffix, std::span<const MetricLabel> labels,
                        std::string_view value) {
  (text_ += family_) += suffix;
  char before = '{';
  for (const MetricLabel& label : labels) {
    ((text_ += before) += label.name) += "=\"";
    appendEscaped(label.value, text_);
    text_ += '"';
    before = ',';
  }
  text_ += labels.empty() ? " " : "} ";
  (text_ += value) += '\n';
}

std::string MetricsWriter::finish() && { return std::move((text_ += kEnd) += '\n'); }

std::string_view MetricSample::label(std::string_view of) const {
  const auto* const found = firstWith(labels, &std::pair<std::string, std::string>::first, of);
  return found == nullptr ? std::string_view{} : found->second;
}

std::optional<MetricSample> parseSample(std::string_view line) {
  MetricSample out;
  out.name = takeName(line);
  if (out.name.empty()) return std::nullopt;
  if (take(line, "{") && !takeLabels(line, out)) return std::nullopt;
  if (!take(line, " ") || line.empty()) return std::nullopt;
  if (line == "+Inf" || line == "-Inf" || line == "NaN") {
    out.value = line == "NaN" ? std::nan("") : line == "+Inf" ? HUGE_VAL : -HUGE_VAL;
    return out;
  }
  const auto value = numberIn<double>(line);
  if (!value) return std::nullopt;
  out.value = *value;
  return out;
}

std::vector<MetricSample> readMetrics(std::string_view text) {
  std::vector<MetricSample> out;
  eachLine(text, [&](std::string_view line) {
    if (auto sample = parseSample(line)) out.push_back(*std::move(sample));
  });
  return out;
}

std::string joinMetrics(std::span<const std::string> texts) {
  Families families;
  for (const std::string& text : texts)
    if (isWhole(text)) families.add(text);
  return families.text();
}

}  // namespace viaduct::base
