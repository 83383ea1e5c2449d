#include <fmt/format.h>
#include <fmt/ranges.h>

#include <set>

#include "measure/result/text.h"
#include "viaduct/command_line.h"
#include "viaduct/generated_files.h"
#include "viaduct/nixlbench.h"

namespace viaduct::app {
namespace {

// Escapes bars, which end a table cell even inside of `code`.
std::string forTable(const std::string& text) { return measure::replaceAll(text, "|", "\\|"); }

std::string codeOf(const PageEntry& entry) {
  return fmt::format("`{}{}{}`", fmt::join(entry.names, ", "), entry.form.empty() ? "" : " ",
                     forTable(entry.form));
}

// Writes the flags of a command. A flag that an earlier command has, too, gets no row again.
class Section {
 public:
  explicit Section(std::set<std::string>& written) : written_(written) {}

  std::string of(const CommandPage& page) {
    std::string out = fmt::format("\n## `{}`\n", page.name);
    for (const PageSection& section : page.sections) {
      std::string rows;
      for (const PageEntry& entry : section.entries) rows += rowOf(entry);
      if (!rows.empty())
        out += fmt::format("\n### {}\n\n| flag | meaning, default |\n|---|---|\n{}", section.title,
                           rows);
    }
    if (!again_.empty()) out += fmt::format("\nAs above: {}.\n", fmt::join(again_, ", "));
    return out;
  }

 private:
  std::string rowOf(const PageEntry& entry) {
    const std::string key = measure::replaceAll(codeOf(entry), "_", "-") + entry.about;
    if (written_.insert(key).second)
      return fmt::format("| {} | {} |\n", codeOf(entry), entry.about);
    again_.push_back(fmt::format("`{}`", entry.names.back()));
    return {};
  }

  std::set<std::string>& written_;
  std::vector<std::string> again_;
};

}  // namespace

std::string flagsPage() {
  std::string out =
      "# Flags of the commands that measure\n\n"
      "<!-- Generated: viaduct bench --help=markdown > docs/bench-flags.md -->\n\n"
      "[bench.md](bench.md) has examples. The default of a flag stands in brackets. Each flag has "
      "one value, and is given once. `nixlbench` takes the last value of a repeated flag.\n";
  std::set<std::string> written;
  for (const CommandPage& page :
       {benchCommand().page(), kvBenchCommand().page(), kvTraceCommand().page(),
        patternCommand().page(), pipelineCommand().page(), swapCommand().page(),
        matrixCommand().page(), nixlbenchPage()})
    out += Section(written).of(page);
  return out;
}

}  // namespace viaduct::app
