#include "viaduct/command_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "viaduct/help_text.h"

namespace viaduct::app {

std::vector<std::string> valuesOf(std::string_view form) {
  std::vector<std::string> values;
  if (form.find('|') == std::string_view::npos) return values;
  for (;;) {
    const auto bar = form.find('|');
    values.emplace_back(form.substr(0, bar));
    if (bar == std::string_view::npos) return values;
    form.remove_prefix(bar + 1);
  }
}

std::string pageHelp(const CommandPage& page) {
  std::string out = fmt::format("usage: {}\n\n{}", page.usage, wrapText(page.about));
  for (const PageSection& section : page.sections) {
    out += fmt::format("\n{}:\n", section.title);
    for (const PageEntry& entry : section.entries)
      out += helpEntry(fmt::format("{}{}{}", fmt::join(entry.names, ","),
                                   entry.form.empty() ? "" : " ", entry.form),
                       entry.about);
  }
  return fmt::format("{}\n{}", out, wrapText(page.more));
}

}  // namespace viaduct::app
