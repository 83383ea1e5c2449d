#include "viaduct/remarks.h"

#include <fmt/format.h>

#include <cstdio>
#include <utility>

#include "viaduct/command_names.h"

namespace viaduct::app {
namespace {

std::string called = "viaduct";

}  // namespace

void calledAs(std::string name) { called = std::move(name); }

void remark(const std::string& text) { fmt::print(stderr, "{}: {}\n", called, asTyped(text)); }

int fail(const std::string& text, int code) {
  remark(text);
  return code;
}

int orFail(const Result<int>& code, int failure) {
  return code ? *code : fail(code.error().text(), failure);
}

int failAll(const std::vector<Error>& problems) {
  for (const Error& problem : problems) remark(problem.text());
  return kExitUsage;
}

}  // namespace viaduct::app
