// A measuring program's words, its end on an error, and the tables that it prints. Threads: die()
// and must() from any, the others from one.
#pragma once

#include <fmt/format.h>
#include <viaduct/result.h>

#include <concepts>
#include <cstddef>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/text.h"
#include "base/text_table.h"
#include "harness/samples.h"

namespace viaduct::bench {

// Prints the reason after the program's name, and ends the process at once. No destructor runs, so
// memory shared with other processes stays as it is.
[[noreturn]] void die(const std::string& why);
// Does the same as die(), with the reason of a system call that has just failed.
[[noreturn]] void dieOf(const char* call);

template <class T>
T must(Result<T> result) {
  if (!result) die(result.error().text());
  return *std::move(result);
}
// The result of a system call, which is negative if the call has failed.
template <std::signed_integral T>
T must(T result, const char* call) {
  if (result < 0) dieOf(call);
  return result;
}

// The words behind the program's name. The usage "PROGRAM FILE [ROUNDS [BACKEND...]]" says which
// words are needed; if one of them is missing, or too many came, the program prints it and ends
// with 2. Makes the program's output appear line by line.
class Arguments {
 public:
  Arguments(int argc, char** argv, std::string_view usage);

  std::string text(std::size_t at, std::string otherwise = {}) const {
    return at < words_.size() ? words_[at] : std::move(otherwise);
  }
  template <class T>
  T number(std::size_t at, T otherwise) const {
    if (at >= words_.size()) return otherwise;
    const auto number = base::numberIn<T>(words_[at]);
    if (!number) refuse();
    return *number;
  }
  std::vector<std::string> from(std::size_t at, std::vector<std::string> otherwise) const {
    if (at >= words_.size()) return otherwise;
    return {words_.begin() + static_cast<std::ptrdiff_t>(at), words_.end()};
  }
  [[noreturn]] void refuse() const;

 private:
  std::string usage_;
  std::vector<std::string> words_;
};

// A column of texts, of figures, or of medians that also show the range between two quantiles.
struct Column {
  std::string_view title;
  std::size_t width;
  int digits = 0;
  double edge = 0.5;  // 0.1: from the 10th to the 90th percentile; 0.5: none
  bool left = false;
};
constexpr Column words(std::string_view title, std::size_t width) {
  return {.title = title, .width = width, .left = true};
}
constexpr Column figure(std::string_view title, int digits, std::size_t width = 8) {
  return {.title = title, .width = width, .digits = digits};
}
constexpr Column spread(std::string_view title, int digits, double edge = 0.1) {
  return {.title = title, .width = 24, .digits = digits, .edge = edge};
}

// A table whose rows appear as they are measured. A cell is a text, a number or samples.
class Table {
 public:
  explicit Table(std::vector<Column> columns);

  template <class... Cells>
  void row(const Cells&... cells) {
    std::size_t at = 0;
    print({cell(at++, cells)...});
  }

 private:
  std::string cell(std::size_t at, const Samples& samples) const;
  std::string cell(std::size_t at, double value) const {
    return fmt::format("{:.{}f}", value, columns_[at].digits);
  }
  static std::string cell(std::size_t, std::string_view text) { return std::string(text); }
  static std::string cell(std::size_t, std::integral auto number) {
    return fmt::format("{}", number);
  }
  void print(std::vector<std::string> cells);

  std::vector<Column> columns_;
  base::TextTable table_;
};

}  // namespace viaduct::bench
