// The end of a benchmark that cannot go on, for programs of several processes. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

// Says why, under the program's name. Leaves what the other processes share as it is.
[[noreturn]] inline void die(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_short_name, why.c_str());
  std::_Exit(1);
}

template <class T>
T must(viaduct::Result<T> result) {
  if (!result) die(result.error().text());
  return *std::move(result);
}
