#include "viaduct/command_page.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/text.h"
#include "viaduct/help_text.h"

namespace viaduct::app {

std::vector<std::string> valuesOf(std::string_view form) {
  if (form.find('|') == std::string_view::npos) return {};
  return base::partsOf(form, '|');
}

std::string flagsText(const CommandPage& page) {
  std::string out;
  for (const PageSection& section : page.sections) {
    out += fmt::format("\n{}:\n", section.title);
    for (const PageEntry& entry : section.entries)
      out += helpEntry(entry.names[0].starts_with('-') && !entry.form.empty()
                           ? fmt::format("{} {}", fmt::join(entry.names, ","), entry.form)
                           : fmt::format("{}", fmt::join(entry.names, ",")),
                       entry.about);
  }
  return out;
}

std::string pageHelp(const CommandPage& page) {
  std::string out =
      fmt::format("usage: {}\n\n{}{}", page.usage, wrapText(page.about), flagsText(page));
  if (!page.commands.empty()) out += "\nSubcommands:\n";
  for (const CommandPage& command : page.commands)
    out += helpEntry(command.name.substr(page.name.size() + 1), command.summary);
  return fmt::format("{}\n{}", out, wrapText(page.more));
}

}  // namespace viaduct::app
