// The description of a command. Its help, manual page and shell completion are made from it.
// Threads: plain values and pure functions.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace viaduct::app {

// A flag, an argument, or another explained word.
struct PageEntry {
  std::vector<std::string> names = {};  // "--json", or "-v" and "--verbose"
  std::string form = {};                // the form of its value: "FILE", "a|b"; empty: no value
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
  std::string about = {};    // paragraphs; indented lines are kept unwrapped
  std::vector<PageSection> sections = {};
  std::string more = {};  // like `about`; "Exit codes:" and "Examples:" are headings
  std::vector<CommandPage> commands = {};
};

// Returns the words of a form such as "write|read". Empty if the form allows other values.
std::vector<std::string> valuesOf(std::string_view form);

// Returns the name of the command's manual page, such as "viaduct-bench".
std::string pageName(const CommandPage& page);

// Returns the sections of a page for a terminal, each with its title.
std::string flagsText(const CommandPage& page);
// Returns the help text for a terminal.
std::string pageHelp(const CommandPage& page);
// Returns the manual page in the macros of man(7).
std::string manPage(const CommandPage& page);

// Return shell completions for the commands of `root` and for `others`, which are separate
// programs.
std::string bashCompletion(const CommandPage& root, std::span<const CommandPage> others);
std::string zshCompletion(const CommandPage& root, std::span<const CommandPage> others);
std::string fishCompletion(const CommandPage& root, std::span<const CommandPage> others);

}  // namespace viaduct::app
