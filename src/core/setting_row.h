// Rows of the table of settings: one function for each kind of value. A row parses, checks and
// shows one field of Settings. Threads: pure functions.
#pragma once

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <viaduct/settings.h>

#include <chrono>
#include <cstdint>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "base/sizes.h"

namespace viaduct::core {

// The error of a row's parser. The caller adds the variable and the value.
Error expectedForm(std::string form);

Status parseText(std::string_view text, std::string& into);
Status parseFlag(std::string_view text, bool& into);
Status parseToggle(std::string_view text, Toggle& into);
Status parsePorts(std::string_view text, PortRange& into);
Status parsePrivacy(std::string_view text, Privacy& into);
// Splits words at commas. `form` is the error's remedy if a word is empty.
Status parseList(std::string_view text, const char* form, std::vector<std::string>& into);
Status parseWords(std::string_view text, std::vector<std::string>& into);
Status parseCount(std::string_view text, std::uint64_t least, std::uint64_t most,
                  std::uint32_t& into);
Status parseSize(std::string_view text, std::uint64_t least, std::uint64_t most,
                 std::uint64_t& into);
Status checkCount(std::uint64_t value, std::uint64_t least, std::uint64_t most);
Status checkSize(std::uint64_t bytes, std::uint64_t least, std::uint64_t most);
template <class Time>
Status parseDuration(std::string_view text, Time least, Time most, Time& into);
template <class Time>
Status checkDuration(Time time, Time least, Time most);

inline std::string showText(const std::string& value) { return value; }
inline std::string showFlag(bool value) { return value ? "true" : "false"; }
std::string showToggle(Toggle value);
std::string showPorts(const PortRange& value);
inline std::string showPrivacy(Privacy value) { return privacyName(value); }
inline std::string showList(const std::vector<std::string>& value) {
  return fmt::format("{}", fmt::join(value, ","));
}

// A backend's setting without a field of its own: a text in Settings::others, which is parsed when
// it is set, when the agent opens, and when the backend reads it.
template <class T>
struct OtherSetting {
  std::string_view variable, fallback;
  Status (*parse)(std::string_view text, T& into);

  std::string text(const Settings& settings) const {
    const auto at = settings.others.find(variable);
    return at == settings.others.end() ? std::string(fallback) : at->second;
  }
  Status check(std::string_view text) const {
    T ignored{};
    Status parsed = parse(text, ignored);
    if (parsed) return parsed;
    Error error = std::move(parsed).error();
    error.detail = fmt::format("\"{}\" cannot be read", text);
    return error;
  }
  // The value in settings that check() has accepted.
  T of(const Settings& settings) const {
    T out{};
    static_cast<void>(parse(text(settings), out));
    return out;
  }
  // Stores the text in Settings::others if it is not the default.
  Status keep(std::string_view text, Settings& into) const {
    VIADUCT_CHECK(check(text));
    into.others.erase(std::string(variable));
    if (text != fallback) into.others.emplace(variable, text);
    return Ok{};
  }
};
using OtherText = OtherSetting<std::string>;

template <const auto& Setting>
constexpr SettingRow otherRow(std::string_view help) {
  return {.variable = Setting.variable,
          .fallback = Setting.fallback,
          .help = help,
          .parse = [](std::string_view text, Settings& s) { return Setting.keep(text, s); },
          .check = [](const Settings& s) { return Setting.check(Setting.text(s)); },
          .show = [](const Settings& s) { return Setting.text(s); }};
}
// Another system's variable for the same setting, read if the setting's own is unset.
template <const auto& Setting>
constexpr SettingRow aliasRow(std::string_view alias, std::string_view help) {
  return {.variable = alias,
          .fallback = "",
          .help = help,
          .parse = [](std::string_view text, Settings& s) { return Setting.keep(text, s); },
          .instead_of = Setting.variable};
}

// Makes a row from a field's own parser and printer.
template <auto Field, auto Parse, auto Show>
constexpr SettingRow settingRow(std::string_view variable, std::string_view fallback,
                                std::string_view help) {
  return {.variable = variable,
          .fallback = fallback,
          .help = help,
          .parse = [](std::string_view text, Settings& s) { return Parse(text, s.*Field); },
          .show = [](const Settings& s) { return Show(s.*Field); }};
}

template <auto Field>
constexpr SettingRow textSetting(std::string_view variable, std::string_view help) {
  return settingRow<Field, parseText, showText>(variable, "", help);
}
template <auto Field>
constexpr SettingRow toggleSetting(std::string_view variable, std::string_view help) {
  return settingRow<Field, parseToggle, showToggle>(variable, "auto", help);
}
template <auto Field>
constexpr SettingRow listSetting(std::string_view variable, std::string_view help) {
  return settingRow<Field, parseWords, showList>(variable, "", help);
}

// Makes a row for a number. The range includes both bounds.
template <auto Field, std::uint64_t Least, std::uint64_t Most>
constexpr SettingRow countSetting(std::string_view variable, std::string_view fallback,
                                  std::string_view help) {
  return {.variable = variable,
          .fallback = fallback,
          .help = help,
          .parse = [](std::string_view text,
                      Settings& s) { return parseCount(text, Least, Most, s.*Field); },
          .check = [](const Settings& s) { return checkCount(s.*Field, Least, Most); },
          .show = [](const Settings& s) { return std::to_string(s.*Field); }};
}
template <auto Field, std::uint64_t Least, std::uint64_t Most>
constexpr SettingRow sizeSetting(std::string_view variable, std::string_view fallback,
                                 std::string_view help) {
  return {.variable = variable,
          .fallback = fallback,
          .help = help,
          .parse = [](std::string_view text,
                      Settings& s) { return parseSize(text, Least, Most, s.*Field); },
          .check = [](const Settings& s) { return checkSize(s.*Field, Least, Most); },
          .show = [](const Settings& s) { return base::formatSize(s.*Field); }};
}
// `Least` and `Most` are in the unit of the field.
template <auto Field, std::int64_t Least, std::int64_t Most>
constexpr SettingRow durationSetting(std::string_view variable, std::string_view fallback,
                                     std::string_view help) {
  using Time = std::remove_cvref_t<decltype(std::declval<Settings>().*Field)>;
  return {
      .variable = variable,
      .fallback = fallback,
      .help = help,
      .parse = [](std::string_view text,
                  Settings& s) { return parseDuration(text, Time(Least), Time(Most), s.*Field); },
      .check = [](const Settings& s) { return checkDuration(s.*Field, Time(Least), Time(Most)); },
      .show = [](const Settings& s) { return base::formatDuration(s.*Field); }};
}

constexpr SettingRow unrecorded(SettingRow row) {
  row.show = nullptr;
  return row;
}
constexpr SettingRow ofHost(SettingRow row) {
  row.of_host = true;
  return row;
}

}  // namespace viaduct::core
