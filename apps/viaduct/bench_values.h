// Parsers of flag values. Each parses a text into an option, or returns an error with the expected
// form. Threads: pure functions.
#pragma once

#include <fmt/format.h>
#include <viaduct/result.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/text.h"
#include "base/words.h"

namespace viaduct::app {

// Makes the error without the flag's name, which the caller adds.
Error wrongValue(std::string detail, std::string remedy);

Status intoText(std::string_view text, std::string& into);
Status intoFile(std::string_view text, std::string& into);  // a file name, not empty
Status intoYesNo(std::string_view text, bool& into);
Status intoSize(std::string_view text, std::uint64_t& into);  // 1 byte or more
Status intoSizes(std::string_view text, std::vector<std::uint64_t>& into);
Status intoCount(std::string_view text, std::uint64_t least, std::uint64_t& into);
Status intoCount(std::string_view text, std::uint32_t least, std::uint32_t& into);
// Reads a number without a unit as seconds.
Status intoTime(std::string_view text, std::chrono::nanoseconds& into);
// Reads seconds, with or without a unit, from 10 ms to a day.
Status intoInterval(std::string_view text, std::chrono::nanoseconds& into);
Status intoRate(std::string_view text, double& into);
// Reads "5%" as 0.05.
Status intoPercent(std::string_view text, double& into);
Status intoWords(std::string_view text, std::vector<std::string>& into);
// Reads a requirement such as "rdma,backend:ofi". Aliases of backends become their names, and
// unknown backends are errors.
Status intoRequire(std::string_view text, std::string& into);

// Returns the built-in backends between members: without those for tests and those of storage.
std::vector<std::string_view> offeredBackends();
// Returns a backend's name for an alias that another tool uses, such as "LIBFABRIC".
std::string backendNamed(const std::string& name);

template <class T, std::size_t N>
Status intoOneOf(std::string_view text, const base::Words<T, N>& words, T& into) {
  const auto value = base::valueOf(words, text);
  if (!value) return wrongValue(fmt::format("\"{}\" is none of {}", text, base::listOf(words)), {});
  into = *value;
  return Ok{};
}

}  // namespace viaduct::app
