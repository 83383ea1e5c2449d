// Ends a benchmark that cannot go on, for programs of several processes. Threads: any.
#pragma once

#include <viaduct/result.h>

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <utility>

// Prints the reason after the program's name. Leaves memory shared with other processes untouched.
[[noreturn]] inline void die(const std::string& why) {
  std::fprintf(stderr, "%s: %s\n", ::program_invocation_short_name, why.c_str());
  std::_Exit(1);
}

template <class T>
T must(viaduct::Result<T> result) {
  if (!result) die(result.error().text());
  return *std::move(result);
}
