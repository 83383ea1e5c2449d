// Parsers of flag values. Each parses a text into an option, or returns an error with the expected
// form. Threads: pure functions.
#pragma once

#include <fmt/format.h>
#include <viaduct/result.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/words.h"
#include "measure/workload/link_rate.h"

namespace viaduct::app {

// Makes the error without the flag's name, which the caller adds.
Error wrongValue(std::string detail, std::string remedy);

Status intoText(std::string_view text, std::string& into);
Status intoFile(std::string_view text, std::string& into);  // a file name, not empty
// Reads the whole text as a list of one element.
Status intoOneText(std::string_view text, std::vector<std::string>& into);
Status intoYesNo(std::string_view text, bool& into);
Status intoSize(std::string_view text, std::uint64_t& into);  // 1 byte or more
// Reads sizes, and ranges such as 4K..1M: 4K and its doubles up to 1M.
Status intoSizes(std::string_view text, std::vector<std::uint64_t>& into);
// Reads a number without a unit as seconds.
Status intoTime(std::string_view text, std::chrono::nanoseconds& into);
Status intoSomeTime(std::string_view text, std::chrono::nanoseconds& into);  // above 0
// Reads a time from 10 ms to an hour.
Status intoPause(std::string_view text, std::chrono::nanoseconds& into);
// Reads seconds, with or without a unit, from 10 ms to a day.
Status intoInterval(std::string_view text, std::chrono::nanoseconds& into);
Status intoRate(std::string_view text, double& into);
// Reads "5%" as 0.05.
Status intoPercent(std::string_view text, double& into);
Status intoWords(std::string_view text, std::vector<std::string>& into);
Status intoLinkRates(std::string_view text, std::vector<measure::LinkRate>& into);
// Reads a requirement such as "rdma,backend:ofi". Aliases of backends become their names, and
// unknown backends are errors.
Status intoRequire(std::string_view text, std::string& into);

// Returns the built-in backends between members: without those for tests and those of storage.
std::vector<std::string_view> offeredBackends();
// Returns the built-in backends of storage.
std::vector<std::string_view> storageBackends();
// True for the name or alias of a backend of storage.
bool isStorage(const std::string& name);
// Returns the backend that carries bytes between hosts if the user names none.
std::string usualOverNetwork();
// Returns a backend's name for an alias that another tool uses, such as "LIBFABRIC".
std::string backendNamed(const std::string& name);

// Returns `first` and its doubles up to `last`.
template <class Number>
std::vector<Number> doubled(Number first, Number last) {
  std::vector<Number> out;
  for (Number one = first; one <= last; one *= 2) {
    out.push_back(one);
    if (one > last / 2) break;
  }
  return out;
}

Result<std::uint64_t> countIn(std::string_view text, std::uint64_t least, std::uint64_t most);

// Calls `add` for each word of a list, with both ends of a range such as 1..16.
Status eachInList(std::string_view text,
                  const std::function<Status(std::string_view first, std::string_view last)>& add);

// Reads whole numbers from 1 to `Most`, and ranges such as 1..16: 1, 2, 4, 8, 16.
template <std::uint32_t Most>
Status intoCounts(std::string_view text, std::vector<std::uint32_t>& into) {
  return eachInList(text, [&](std::string_view first, std::string_view last) -> Status {
    VIADUCT_TRY(const std::uint64_t from, countIn(first, 1, Most));
    VIADUCT_TRY(const std::uint64_t to, countIn(last, from, Most));
    for (const std::uint64_t one : doubled(from, to))
      into.push_back(static_cast<std::uint32_t>(one));
    return Ok{};
  });
}

// The templates below parse a flag's value into a member of `options`. The flag's row names it by a
// path of members: `set<intoSize, &BenchOptions::spec, &Spec::buffer_bytes>`. After an error the
// member has its old value.

template <auto First, auto... Rest>
auto& memberAt(auto& object) {
  if constexpr (sizeof...(Rest) == 0)
    return object.*First;
  else
    return memberAt<Rest...>(object.*First);
}

// Only declared: its result has the type of the value that `parse` sets.
template <class T>
T valueOf(Status (*parse)(std::string_view, T&));

template <auto Parse, auto... Path>
Status set(std::string_view text, auto& options) {
  decltype(valueOf(Parse)) value{};
  VIADUCT_CHECK(Parse(text, value));
  memberAt<Path...>(options) = std::move(value);
  return Ok{};
}

// Adds the parsed list to the values of the same flag further left.
template <auto Parse, auto... Path>
Status add(std::string_view text, auto& options) {
  decltype(valueOf(Parse)) more{};
  VIADUCT_CHECK(Parse(text, more));
  auto& all = memberAt<Path...>(options);
  all.insert(all.end(), more.begin(), more.end());
  return Ok{};
}

// Parses a whole number from `Least` up to the highest of the member's type, or 2^48.
template <std::uint64_t Least, auto... Path>
Status count(std::string_view text, auto& options) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 48U;
  auto member = std::optional(memberAt<Path...>(options));
  using Number = typename decltype(member)::value_type;
  VIADUCT_TRY(
      const std::uint64_t value,
      countIn(text, Least, std::min<std::uint64_t>(std::numeric_limits<Number>::max(), kMost)));
  memberAt<Path...>(options) = static_cast<Number>(value);
  return Ok{};
}

// Parses a word of a base::Words.
template <const auto& Words, auto... Path>
Status oneOf(std::string_view text, auto& options) {
  const auto found = base::valueOf(Words, text);
  if (!found) return wrongValue(fmt::format("\"{}\" is none of {}", text, base::listOf(Words)), {});
  const auto value = *found;
  memberAt<Path...>(options) = value;
  return Ok{};
}

}  // namespace viaduct::app
