#include "viaduct/completion_words.h"

#include <viaduct/backend.h>
#include <viaduct/kv_models.h>

#include <algorithm>
#include <array>
#include <string_view>

#include "diag/topics.h"
#include "viaduct/bench_values.h"
#include "viaduct/command_line.h"
#include "viaduct/suite_tests.h"

namespace viaduct::app {
namespace {

using Words = std::vector<std::string>;

template <class Range, class Text>
Words textsOf(const Range& range, Text&& text) {
  Words out;
  for (const auto& one : range) out.emplace_back(text(one));
  return out;
}

// nixlbench has its own names for backends beside ours.
Words backendWords(const CommandPage& page) {
  Words out;
  for (const auto& names : {offeredBackends(), storageBackends()})
    for (const std::string_view name : names) {
      out.emplace_back(name);
      if (page.name == "nixlbench")
        for (const std::string_view alias : backendFacts(name)->aliases) out.emplace_back(alias);
    }
  return out;
}
Words topicWords(const CommandPage&) {
  return textsOf(diag::topics(), [](const diag::Topic& one) { return one.name; });
}
Words testWords(const CommandPage&) {
  return textsOf(optimisationEntries(), [](const PageEntry& one) { return one.names.front(); });
}
Words modelWords(const CommandPage&) {
  return textsOf(kvModelNames(), [](const auto& one) { return one; });
}
Words commandWords(const CommandPage& page) {
  const CommandPage root = viaductCommand().page();
  return page.name == "viaduct help" ? textsOf(root.commands,
                                               [&](const CommandPage& one) {
                                                 return one.name.substr(root.name.size() + 1);
                                               })
                                     : Words{};
}

struct Row {
  std::string_view name;
  Words (*words)(const CommandPage& page);
};
constexpr std::array kRows{Row{"--backend", &backendWords}, Row{"--only", &topicWords},
                           Row{"--tests", &testWords},      Row{"--model", &modelWords},
                           Row{"MODEL", &modelWords},       Row{"COMMAND", &commandWords}};

}  // namespace

std::vector<std::string> wordsOf(const CommandPage& page, const PageEntry& entry) {
  Words listed = valuesOf(entry.form);
  if (!listed.empty()) return listed;
  for (const Row& row : kRows)
    if (std::find(entry.names.begin(), entry.names.end(), row.name) != entry.names.end())
      return row.words(page);
  return {};
}

}  // namespace viaduct::app
