#include "harness/program.h"

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include "base/lists.h"

namespace viaduct::bench {

void die(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_short_name, why.c_str());
  std::_Exit(1);
}

void dieOf(const char* call) { die(fmt::format("{}: {}", call, std::strerror(errno))); }

Arguments::Arguments(int argc, char** argv, std::string_view usage)
    : usage_(usage), words_(argv + 1, argv + argc) {
  static_cast<void>(std::setvbuf(stdout, nullptr, _IOLBF, 0));
  std::size_t needed = 0, known = 0;
  for (std::size_t at = usage.find(' '); at != std::string::npos; at = usage.find(' ', at + 1)) {
    ++known;
    if (usage[at + 1] != '[') ++needed;
  }
  const bool many = usage.find("...") != std::string::npos;
  if (words_.size() < needed || (words_.size() > known && !many)) refuse();
}

void Arguments::refuse() const {
  fmt::print(stderr, "usage: {}\n", usage_);
  std::_Exit(2);
}

Table::Table(std::vector<Column> columns)
    : columns_(std::move(columns)),
      table_(base::mapped(columns_,
                          [](const Column& column) {
                            return base::TextColumn{
                                .title = column.title, .left = column.left, .least = column.width};
                          }),
             base::terminalWidth()) {
  fmt::print("{}", table_.head());
}

std::string Table::cell(std::size_t at, const Samples& samples) const {
  const auto& [title, width, digits, edge, left] = columns_[at];
  if (edge == 0.5) return cell(at, samples.median());
  return fmt::format("{:.{}f} ({:.{}f}..{:.{}f})", samples.median(), digits, samples.quantile(edge),
                     digits, samples.quantile(1 - edge), digits);
}

void Table::print(std::vector<std::string> cells) {
  fmt::print("{}", table_.row(std::move(cells)));
}

}  // namespace viaduct::bench
