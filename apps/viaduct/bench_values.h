// Values of flags: each reads a text into an option, or says what it has to look like. Threads:
// pure functions.
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

// The flag's name is added where it is known.
Error wrongValue(std::string detail, std::string remedy);

Status intoText(std::string_view text, std::string& into);
Status intoFile(std::string_view text, std::string& into);  // a name, which is not empty
Status intoYesNo(std::string_view text, bool& into);
Status intoSize(std::string_view text, std::uint64_t& into);  // 1 byte or more
Status intoSizes(std::string_view text, std::vector<std::uint64_t>& into);
Status intoCount(std::string_view text, std::uint64_t least, std::uint64_t& into);
Status intoCount(std::string_view text, std::uint32_t least, std::uint32_t& into);
// A bare number is seconds.
Status intoTime(std::string_view text, std::chrono::nanoseconds& into);
// Seconds, with or without a unit: from 10 ms to a day.
Status intoInterval(std::string_view text, std::chrono::nanoseconds& into);
Status intoRate(std::string_view text, double& into);
// "5%" is 0.05.
Status intoPercent(std::string_view text, double& into);
Status intoWords(std::string_view text, std::vector<std::string>& into);
// "rdma,backend:ofi": only of backends that are built in, under their names here.
Status intoRequire(std::string_view text, std::string& into);

// The built-in backends that are not for tests.
std::vector<std::string_view> offeredBackends();
// A backend under its name here: another tool's name for it, such as "LIBFABRIC", is an alias.
std::string backendNamed(const std::string& name);

template <class T, std::size_t N>
Status intoOneOf(std::string_view text, const base::Words<T, N>& words, T& into) {
  const auto value = base::valueOf(words, text);
  if (!value) return wrongValue(fmt::format("\"{}\" is none of {}", text, base::listOf(words)), {});
  into = *value;
  return Ok{};
}

}  // namespace viaduct::app
