#include "app/browser.h"

#include <gtest/gtest.h>

#include <array>
#include <cstdio>
#include <fstream>
#include <sstream>

namespace viaduct::testing {
namespace {

std::string outputOf(const std::string& command) {
  std::string out;
  std::FILE* pipe = ::popen(command.c_str(), "r");
  if (pipe == nullptr) return out;
  std::array<char, 4096> part{};
  for (std::size_t got = 0; (got = std::fread(part.data(), 1, part.size(), pipe)) > 0;)
    out.append(part.data(), got);
  ::pclose(pipe);
  return out;
}

}  // namespace

std::string browser() {
  std::string found = outputOf("command -v chromium || command -v chromium-browser || true");
  return found.substr(0, found.find('\n'));
}

std::pair<std::string, std::string> load(const std::string& page, const std::string& size,
                                         const std::string& folder) {
  const std::string log_file = folder + "chromium.log";
  const std::string dom =
      outputOf("timeout 90 '" + browser() +
               "' --headless --no-sandbox --disable-gpu --hide-scrollbars"
               " --user-data-dir='" +
               folder + "profile' --enable-logging=stderr --window-size=" + size +
               " --dump-dom 'file://" + page + "' 2>'" + log_file + "'");
  std::ostringstream log;
  log << std::ifstream(log_file).rdbuf();
  return {dom, log.str()};
}

std::string framed(const std::string& page, int width) {
  std::string quoted;
  for (const char c : page) quoted += c == '&' ? "&amp;" : c == '"' ? "&quot;" : std::string(1, c);
  return "<!DOCTYPE html><body><iframe width=\"" + std::to_string(width) +
         "\" height=\"800\" style=\"border:0\" srcdoc=\"" + quoted + "\"></iframe></body>";
}

std::string replaced(std::string text, const std::string& what, const std::string& by) {
  const auto at = text.find(what);
  EXPECT_NE(at, std::string::npos) << what;
  if (at != std::string::npos) text.replace(at, what.size(), by);
  return text;
}

}  // namespace viaduct::testing
