// Runs the shipped program with a lie preloaded into it.
#pragma once

#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <utility>
#include <vector>

#include "app/program.h"
#include "support/preloads.h"

namespace viaduct::testing {

inline std::size_t count(const std::string& text, const std::string& word) {
  std::size_t found = 0;
  for (auto at = text.find(word); at != std::string::npos; at = text.find(word, at + 1)) ++found;
  return found;
}

// The text as one line, because the output is broken at the terminal's width.
inline std::string flat(const std::string& text) {
  std::istringstream words(text);
  std::string out;
  for (std::string word; words >> word;) out += word + " ";
  return out;
}

// The program's output for one row: blocks of plain memory, copied between two processes.
inline std::string benchWith(const std::string& library,
                             const std::vector<std::string>& environment,
                             const std::vector<std::string>& more) {
  std::vector<std::string> words{"bench",         "--backend", "local",   "--memory", "malloc",
                                 "--block-sizes", "4KiB",      "--batch", "4"};
  words = withFlags(std::move(words), more);
  std::vector<std::string> all{"LD_PRELOAD=" + library};
  all.insert(all.end(), environment.begin(), environment.end());
  Program program(words, all);
  program.finish();
  return flat(program.out() + program.err());
}

}  // namespace viaduct::testing
