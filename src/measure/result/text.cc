#include "measure/result/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>
#include <vector>

#include "base/text.h"

namespace viaduct::measure {
namespace {

constexpr std::size_t kMostDevices = 2;  // more devices are only counted

void addOnce(std::vector<std::string>& to, const std::string& text) {
  if (!text.empty() && std::find(to.begin(), to.end(), text) == to.end()) to.push_back(text);
}

std::string proofWords(const Row& row) {
  const auto all = [&](Proven proven) {
    return std::all_of(row.path.begin(), row.path.end(),
                       [&](const ProvenShare& s) { return s.proven == proven; });
  };
  const auto is_no = [](const ProvenShare& s) { return s.proven == Proven::kNo; };
  if (all(Proven::kYes)) return "proven";
  if (std::any_of(row.path.begin(), row.path.end(), is_no)) return "DISPROVEN";
  return all(Proven::kUnproven) ? "unproven" : "partly proven";
}

}  // namespace

std::string digits(std::optional<double> value) {
  if (!value || !std::isfinite(*value)) return "-";
  const double v = *value;
  if (v == 0 || v >= 100) return fmt::format("{:.0f}", v);
  if (v >= 10) return fmt::format("{:.1f}", v);
  if (v >= 1) return fmt::format("{:.2f}", v);
  if (v >= 0.1) return fmt::format("{:.3f}", v);
  return v >= 0.001 ? fmt::format("{:.4f}", v) : fmt::format("{:.2g}", v);
}

std::vector<std::string_view> linesOf(std::string_view text) {
  std::vector<std::string_view> out;
  for (std::size_t from = 0; from < text.size(); from += out.back().size() + 1)
    out.push_back(text.substr(from, text.find('\n', from) - from));
  return out;
}

std::string replaceAll(std::string text, std::string_view from, std::string_view to) {
  for (std::size_t at = 0; (at = text.find(from, at)) != std::string::npos; at += to.size())
    text.replace(at, from.size(), to);
  return text;
}

std::string wrapped(std::string text, std::size_t indent) {
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\r' || c == '\t'; }, ' ');
  return text.empty() ? text : base::paragraph(std::string(indent, ' '), text);
}

std::string note(std::string text) { return wrapped(std::move(text), 9); }

std::string percent(std::optional<double> part) {
  return part ? fmt::format("{:.0f}%", *part * 100) : "-";
}

std::string ofMax(const std::optional<Ceiling>& ceiling) {
  return ceiling ? fmt::format("{:.0f}%", ceiling->percent) : "-";
}

std::string counted(std::size_t count, std::string_view one) {
  return fmt::format("{} {}{}", count, one, count == 1 ? "" : "s");
}

std::string stagesWords(const Row& row, std::string_view separator,
                        const std::function<std::string(const ProvenShare&)>& words) {
  std::map<std::uint32_t, std::vector<std::string>> stages;
  for (const ProvenShare& share : row.path) addOnce(stages[share.stage], words(share));
  std::string out;
  for (const auto& [stage, all] : stages)
    out += fmt::format("{}{}",
                       out.empty() ? ""
                       : stage > 1 ? " -> host -> "
                                   : ", ",
                       fmt::join(all, separator));
  return out;
}

std::string pathWords(const Row& row) {
  if (row.path.empty()) return {};
  std::vector<std::string> devices;
  for (const ProvenShare& s : row.path) addOnce(devices, s.device);
  std::string out = stagesWords(row, "+", [](const ProvenShare& s) {
    return s.way.empty() ? s.backend : s.backend + "/" + s.way;
  });
  if (devices.size() > kMostDevices)
    out += fmt::format(" on {} devices", devices.size());
  else if (!devices.empty())
    out += fmt::format(" on {}", fmt::join(devices, "+"));
  return out + ", " + proofWords(row);
}

std::string skipsWords(const Row& row) {
  if (!row.checks) return "-";
  if (row.checks->smallest_caught == 0) return "none";
  return fmt::format("<{:.0f}%", std::ceil(row.checks->smallest_caught * 100));
}

std::vector<std::string> deviceLines(const Row& row) {
  std::vector<std::string> out;
  out.reserve(row.devices.size() + 1);
  for (const DeviceResult& one : row.devices)
    out.push_back(
        fmt::format("{} {}, {}: {} GB/s", one.side, one.number, one.gpu, digits(one.gb_per_s)));
  if (!row.scaling) return out;
  const Scaling& scaling = *row.scaling;
  std::string sum = fmt::format("the slowest device has {:.0f} % of the fastest one's rate",
                                scaling.slowest_of_fastest * 100);
  if (scaling.alone_gb_per_s && scaling.of_linear)
    sum = fmt::format("{:.0f} % of {} x {} GB/s, the rate of the first device alone; ",
                      *scaling.of_linear * 100, scaling.devices, digits(scaling.alone_gb_per_s)) +
          sum;
  out.push_back("scaling: " + sum);
  return out;
}

std::string unprovenWords(std::span<const Row> rows) {
  const auto is_unproven = [](const Row& row) { return row.verdict == Verdict::kUnproven; };
  const auto first = std::ranges::find_if(rows, is_unproven);
  if (first == rows.end()) return {};
  return fmt::format("{} of {} unproven: {}", std::ranges::count_if(rows, is_unproven),
                     counted(rows.size(), "row"), first->why);
}

std::string loudName(Verdict verdict) { return base::upper(verdictName(verdict)); }

}  // namespace viaduct::measure
