// A command described once: its help, its manual page and its completion in shells are made from
// it. Threads: plain values and pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::app {

// A flag, an argument, or another word that is explained.
struct PageEntry {
  std::vector<std::string> names = {};  // "--json", or "-v" and "--verbose"
  std::string form = {};                // what its value looks like: "FILE", "a|b"; empty: no value
  std::string about = {};
};

struct PageSection {
  std::string title = {};
  std::vector<PageEntry> entries = {};
};

struct CommandPage {
  std::string name = {};     // "viaduct bench"
  std::string usage = {};    // "viaduct bench [flags]"
  std::string summary = {};  // one sentence
  std::string about = {};    // paragraphs; indented lines stay as they are
  std::vector<PageSection> sections = {};
  std::string more = {};  // like `about`; "Exit codes:" and "Examples:" are headings
  std::vector<CommandPage> commands = {};
};

// The values of a form such as "write|read"; none where anything goes.
std::vector<std::string> valuesOf(std::string_view form);

// "viaduct-bench", the name of its manual page.
std::string pageName(const CommandPage& page);

// For a terminal.
std::string pageHelp(const CommandPage& page);
// For man, in the macros of man(7).
std::string manPage(const CommandPage& page);

// For shells: the commands of `root`, and `others`, which are programs of their own.
std::string bashCompletion(const CommandPage& root, std::span<const CommandPage> others);
std::string zshCompletion(const CommandPage& root, std::span<const CommandPage> others);
std::string fishCompletion(const CommandPage& root, std::span<const CommandPage> others);

}  // namespace viaduct::app
