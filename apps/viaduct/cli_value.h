// Adds options to CLI11 whose values are parsed by bench_values.h. Threads: the main one.
#pragma once

#include <CLI/CLI.hpp>
#include <chrono>
#include <functional>
#include <string>
#include <vector>

#include "viaduct/bench_values.h"

namespace viaduct::app {

using TakeValue = std::function<Status(const std::string& text)>;

// Throws CLI11's error if `take` refuses the text. `flag` names the option in the error.
inline void takeValue(const std::string& flag, const TakeValue& take, const std::string& text) {
  const auto fits = take(text);
  if (fits) return;
  const Error& why = fits.error();
  throw CLI::ValidationError(flag, why.detail + (why.remedy.empty() ? "" : "; " + why.remedy));
}

// If `names` is "--a,--b", errors name "--a".
inline void addValue(CLI::App& to, const std::string& names, const char* form, TakeValue take,
                     const std::string& help) {
  const std::string flag = names.substr(0, names.find(','));
  to.add_option_function<std::string>(
        names, [flag, take](const std::string& text) { takeValue(flag, take, text); }, help)
      ->type_name(form);
}
// Adds an option whose value is a list of words joined by commas.
inline void addValues(CLI::App& to, const std::string& names, const char* form, TakeValue take,
                      const std::string& help) {
  const std::string flag = names.substr(0, names.find(','));
  to.add_option_function<std::vector<std::string>>(
        names,
        [flag, take](const std::vector<std::string>& texts) {
          for (const std::string& text : texts) takeValue(flag, take, text);
        },
        help)
      ->delimiter(',')
      ->type_name(form);
}

// Reads a time from 10 ms to an hour.
template <class Time>
Status intoPause(const std::string& text, Time& into) {
  std::chrono::nanoseconds time{0};
  if (!intoTime(text, time) || time < std::chrono::milliseconds(10) || time > std::chrono::hours(1))
    return wrongValue("\"" + text + "\" is not a duration from 10ms to 1h", {});
  into = std::chrono::duration_cast<Time>(time);
  return Ok{};
}

}  // namespace viaduct::app
