#include "viaduct/remarks.h"

#include <fmt/format.h>

#include <cstdio>

namespace viaduct::app {
namespace {

std::string_view called = "viaduct";

}  // namespace

void calledAs(std::string_view name) { called = name; }

void remark(const std::string& text) { fmt::print(stderr, "{}: {}\n", called, text); }

int fail(const std::string& text, Exit code) {
  remark(text);
  return code;
}

int failAll(const std::vector<Error>& problems) {
  for (const Error& problem : problems) remark(problem.text());
  return kExitUsage;
}

}  // namespace viaduct::app
