#include "viaduct/workload.h"

#include <fmt/format.h>

namespace viaduct::app {

CommandPage workloadPage(const WorkloadTexts& texts, const FlagSheet& sheet) {
  const std::string about = texts.about;
  CommandPage page{.name = texts.name,
                   .usage = fmt::format("{} [flags]", texts.name),
                   .summary = about.substr(0, about.find('\n')),
                   .about = about,
                   .more = texts.more};
  for (const FlagName& flag : sheet.names())
    if (isArgument(flag.name))
      page.usage += flag.required ? fmt::format(" {}", flag.name) : fmt::format(" [{}]", flag.name);
  addSections(sheet, page);
  if (texts.extend != nullptr) texts.extend(page);
  return page;
}

}  // namespace viaduct::app
