// The TOML reader costs seconds to compile: this is the only file that includes it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <fstream>
#include <optional>
#include <sstream>
#include <utility>

#define TOML_EXCEPTIONS 0
#define TOML_HEADER_ONLY 1
#include <toml++/toml.h>

#include "viaduct/flags.h"

namespace viaduct::app {
namespace {

Error bad(const std::string& file, std::uint32_t line, std::string detail,
          std::string remedy = {}) {
  return {.code = Code::kInvalid,
          .operation = "--config_file",
          .detail = line == 0 ? std::move(detail) : fmt::format("line {}: {}", line, detail),
          .device = file,
          .remedy = std::move(remedy)};
}

std::optional<std::string> scalar(const toml::node& node) {
  if (const auto* text = node.as_string()) return text->get();
  if (const auto* number = node.as_integer()) return fmt::format("{}", number->get());
  if (const auto* number = node.as_floating_point()) return fmt::format("{}", number->get());
  if (const auto* flag = node.as_boolean()) return flag->get() ? "true" : "false";
  return std::nullopt;
}

std::optional<std::string> valueText(const toml::node& node) {
  const auto* list = node.as_array();
  if (list == nullptr) return scalar(node);
  std::vector<std::string> parts;
  for (const toml::node& part : *list) {
    auto text = scalar(part);
    if (!text) return std::nullopt;
    parts.push_back(*std::move(text));
  }
  return fmt::format("{}", fmt::join(parts, ","));
}

Result<Given> giveOne(const std::string& file, std::string name, std::uint32_t line,
                      const toml::node& node, std::span<const FlagName> known) {
  if (node.is_table())
    return bad(file, line, fmt::format("\"{}\" is a table", name),
               "write flag = value lines, without a [table]");
  std::replace(name.begin(), name.end(), '-', '_');
  const auto flag =
      std::find_if(known.begin(), known.end(), [&](const FlagName& f) { return f.name == name; });
  if (flag == known.end())
    return bad(file, line, fmt::format("unknown key \"{}\"", name), nearestFlags(name, known));
  auto text = valueText(node);
  if (!text)
    return bad(file, line, fmt::format("\"{}\" is no text, number, boolean or list of them", name));
  return Given{name, *std::move(text), fmt::format("{} line {}: {}", file, line, name)};
}

}  // namespace

Result<std::vector<Given>> readFlagFile(const std::string& file, std::span<const FlagName> known) {
  std::ifstream in(file);
  std::ostringstream text;
  // A folder opens, and only reading it fails.
  if (!in || !(text << in.rdbuf())) {
    Error error = systemError(Code::kNotFound, "--config_file", errno);
    error.device = file;
    return error;
  }
  const toml::parse_result parsed = toml::parse(text.str(), file);
  if (!parsed)
    return bad(file, parsed.error().source().begin.line, std::string(parsed.error().description()));
  std::vector<Given> given;
  for (const auto& [key, node] : parsed.table()) {
    VIADUCT_TRY(Given one,
                giveOne(file, std::string(key.str()), key.source().begin.line, node, known));
    given.push_back(std::move(one));
  }
  return given;
}

}  // namespace viaduct::app
