#include <fmt/format.h>

#include <cmath>
#include <optional>
#include <string>
#include <string_view>

#include "bindings.h"
#include "errors.h"
#include "settings_of.h"

namespace viaduct::python {
namespace {

constexpr std::string_view kPrefix = "VIADUCT_";

py::list keywords() {
  py::list all;
  for (const SettingRow& row : settingRows())
    if (row.variable.starts_with(kPrefix)) all.append(settingField(row.variable));
  return all;
}

std::string micros(double seconds) { return fmt::format("{:.0f}us", seconds * 1e6); }

// Writes a Python value as the text that the environment variable would hold.
std::string textOf(py::handle value) {
  if (PyBool_Check(value.ptr()) != 0) return value.is(py::handle(Py_True)) ? "yes" : "no";
  if (py::isinstance<py::list>(value) || py::isinstance<py::tuple>(value)) {
    std::string joined;
    for (const py::handle item : value)
      joined += fmt::format("{}{}", joined.empty() ? "" : ",", textOf(item));
    return joined;
  }
  if (py::hasattr(value, "total_seconds"))
    return micros(value.attr("total_seconds")().cast<double>());
  return py::str(value).cast<std::string>();
}

// Writes a number of seconds as the text of a duration, or returns nothing for another value.
std::optional<std::string> secondsOf(py::handle value) {
  const bool number = (PyLong_Check(value.ptr()) != 0 && PyBool_Check(value.ptr()) == 0) ||
                      PyFloat_Check(value.ptr()) != 0;
  if (!number) return std::nullopt;
  const auto seconds = value.cast<double>();
  if (!std::isfinite(seconds)) return std::nullopt;
  return micros(seconds);
}

void apply(const SettingRow& row, std::string_view keyword, py::handle value, Settings& into) {
  Status parsed = row.parse(textOf(value), into);
  if (const auto seconds = secondsOf(value); !parsed && seconds)
    if (row.parse(*seconds, into)) return;
  if (parsed) return;
  raise({.code = Code::kInvalid,
         .operation = "settings",
         .detail = fmt::format("{}={} is not a valid setting", keyword,
                               py::repr(value).cast<std::string>()),
         .remedy = fmt::format("give {}", parsed.error().remedy)});
}

void applyKeyword(std::string_view keyword, py::handle value, Settings& into) {
  for (const SettingRow& row : settingRows())
    if (row.variable.starts_with(kPrefix) && settingField(row.variable) == keyword)
      return apply(row, keyword, value, into);
  const py::list near =
      py::module_::import("difflib").attr("get_close_matches")(keyword, keywords());
  raiseMisuse("settings", fmt::format("there is no setting {}", keyword),
              near.empty() ? "viaduct.settings() lists all settings"
                           : fmt::format("use {}", near[0].cast<std::string>()));
}

py::tuple rows() {
  py::list rows;
  for (const SettingRow& row : settingRows())
    if (row.variable.starts_with(kPrefix))
      rows.append(py::make_tuple(settingField(row.variable), row.variable, row.fallback, row.help));
  return py::tuple(rows);
}

}  // namespace

Settings settingsOf(const py::kwargs& given) {
  Settings settings;
  const bool environment =
      !given.contains("environment") || py::bool_(given["environment"]).cast<bool>();
  if (environment) settings = valueOf(settingsFromEnvironment());
  for (const auto& [keyword, value] : given) {
    const auto name = keyword.cast<std::string>();
    if (name != "environment" && !value.is_none()) applyKeyword(name, value, settings);
  }
  return settings;
}

void bindSettings(py::module_& module) {
  module.def("settings", rows, Doc{R"(
Returns all settings of an agent, as a tuple of rows (keyword, variable, default, meaning).

    for keyword, variable, default, meaning in viaduct.settings():
        print(f"{keyword} = {default!r}: {meaning}")
)"});
}

}  // namespace viaduct::python
