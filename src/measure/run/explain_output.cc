#include <fmt/format.h>
#include <fmt/ranges.h>

#include "base/json.h"
#include "base/text.h"
#include "measure/run/explain_choice.h"

namespace viaduct::measure {
namespace {

using base::dumpJson;
using base::Json;

constexpr auto kRule =
    "Order of preference: memory of this host (10), RDMA (20 and up), TCP (30 and up), tests "
    "(90).\nA transfer uses the first backend that is open at both ends, reaches both memories and "
    "meets\n--require. The order does not depend on measured speed. A benchmark row uses only its "
    "own backend.\n";

std::string named(const std::string& backend, const std::string& text) {
  return base::paragraph(fmt::format("  {:<8}", backend), text);
}

std::string stateOf(const BackendInfo& info) {
  if (!info.open) return "not open: " + info.text;
  return fmt::format("open{}{}; rails: {}", info.text.empty() ? "" : ": ", info.text,
                     fmt::join(info.rails, ", "));
}

std::string orderText(const std::vector<ExplainedBackend>& backends) {
  std::string out;
  for (const auto& [info, link, attempts] : backends)
    out += base::paragraph(
        fmt::format("{:>4}  {:<8}", info.open ? fmt::to_string(info.preference) : "-", info.name),
        stateOf(info));
  return out;
}

bool wasTried(const Explanation& all, OpKind op) {
  for (const ExplainedBackend& one : all.backends)
    for (const Attempt& attempt : one.attempts)
      if (attempt.op == op) return true;
  return false;
}

std::string choiceText(const Explanation& all, OpKind op) {
  const ExplainedBackend* const chosen = all.chosen(op);
  std::string out =
      fmt::format("{}: {}\n", opKindName(op), chosen == nullptr ? "no backend" : chosen->info.name);
  for (const ExplainedBackend& one : all.backends) {
    for (const Attempt& attempt : one.attempts) {
      if (attempt.op != op) continue;
      const std::string role = !attempt.carried ? "no"
                               : &one == chosen ? "yes"
                                                : "possible, after " + chosen->info.name;
      out += named(one.info.name, role + ": " + attempt.text);
    }
  }
  return out;
}

std::string linksText(const std::vector<ExplainedBackend>& backends) {
  std::string out;
  for (const ExplainedBackend& one : backends)
    if (!one.link.empty()) out += named(one.info.name, one.link);
  return out;
}

std::string groupsText(const std::vector<host::NearGroup>& groups) {
  std::string out;
  for (const host::NearGroup& group : groups)
    out += fmt::format("{}{} ({})", out.empty() ? "" : ", then ", fmt::join(group.names, " and "),
                       host::textOf(group.distance));
  return out;
}

std::string servingText(const std::vector<Serving>& serving) {
  std::string out;
  for (const Serving& one : serving)
    out += named(one.backend, one.memory + ": " + groupsText(one.groups));
  return out;
}

std::string memoryText(const ExplainRequest& asked) {
  const auto of = [&](const std::optional<std::uint32_t>& gpu) {
    if (gpu) return fmt::format("VRAM {}", *gpu);
    return fmt::format("{}{}", memoryChoiceName(asked.memory.choice),
                       asked.memory.huge_pages ? ", 2 MiB pages" : "");
  };
  const std::string here = of(asked.initiator_gpu), there = of(asked.target_gpu);
  return fmt::format("memory: {}{}", here, here == there ? "" : " and " + there);
}

std::string causesText(const std::vector<causes::Cause>& causes) {
  if (causes.empty()) return "\nNo known cause of slow rows is here.\n";
  std::string out = "\nKnown causes of slow rows that are here:\n";
  for (const causes::Cause& one : causes)
    out += base::paragraph(fmt::format("  {}: ", one.name), one.what + ": " + one.remedy);
  return out;
}

Json asJson(const causes::Cause& one) {
  return {{"name", one.name}, {"what", one.what}, {"remedy", one.remedy}};
}

Json asJson(const ExplainedBackend& one) {
  Json out{{"name", one.info.name}, {"open", one.info.open}, {"text", one.info.text}};
  if (!one.info.open) return out;
  out["preference"] = one.info.preference;
  out["same_host"] = one.info.same_host;
  out["rdma"] = one.info.rdma;
  out["tcp"] = one.info.tcp;
  out["rails"] = one.info.rails;
  out["link"] = one.link;
  for (const Attempt& attempt : one.attempts)
    out[opKindName(attempt.op)] = {{"carried", attempt.carried}, {"text", attempt.text}};
  return out;
}

Json asJson(const Serving& one) {
  Json groups = Json::array();
  for (const host::NearGroup& group : one.groups)
    groups.push_back({{"devices", group.names}, {"distance", host::textOf(group.distance)}});
  return {{"backend", one.backend}, {"memory", one.memory}, {"nearest_first", std::move(groups)}};
}

Json nameOf(const ExplainedBackend* one) { return one == nullptr ? Json() : Json(one->info.name); }

}  // namespace

std::string explanationText(const Explanation& all) {
  std::string out = fmt::format("{}\n{}", kRule, orderText(all.backends));
  out += fmt::format("\nBetween {}, {}{}, one block of 4 KiB:\n",
                     all.stored ? "this process and its storage" : "two processes of this host",
                     memoryText(all.asked),
                     all.asked.require.empty() ? "" : ", --require " + all.asked.require);
  for (const OpKind op : {OpKind::kWrite, OpKind::kRead})
    if (!all.stored || wasTried(all, op)) out += choiceText(all, op);
  if (all.stored) return out + causesText(all.causes);
  if (const std::string links = linksText(all.backends); !links.empty())
    out += "\nConnections to the other process:\n" + links;
  const auto* const far = all.betweenHosts(OpKind::kWrite);
  out += fmt::format(
      "\nBetween hosts: {}\n",
      far == nullptr ? "no backend" : far->info.name + ", if its network connects them");
  if (!all.serving.empty())
    out += fmt::format("\nNICs by distance to memory; {}:\n{}",
                       all.asked.settings.rails.empty()
                           ? "a transfer uses the nearest NICs, and others only while those fail"
                           : "the named NICs serve all memory",
                       servingText(all.serving));
  return out + causesText(all.causes);
}

std::string explanationJson(const Explanation& all) {
  Json backends = Json::array(), serving = Json::array(), causes = Json::array();
  for (const ExplainedBackend& one : all.backends) backends.push_back(asJson(one));
  for (const Serving& one : all.serving) serving.push_back(asJson(one));
  for (const causes::Cause& one : all.causes) causes.push_back(asJson(one));
  return dumpJson({{"format", "viaduct-explain/1"},
                   {"memory", memoryChoiceName(all.asked.memory.choice)},
                   {"huge_pages", all.asked.memory.huge_pages},
                   {"require", all.asked.require},
                   {"backends", std::move(backends)},
                   {"chosen",
                    {{"write", nameOf(all.chosen(OpKind::kWrite))},
                     {"read", nameOf(all.chosen(OpKind::kRead))},
                     {"write_between_hosts", nameOf(all.betweenHosts(OpKind::kWrite))},
                     {"read_between_hosts", nameOf(all.betweenHosts(OpKind::kRead))}}},
                   {"nics", std::move(serving)},
                   {"causes", std::move(causes)}},
                  2);
}

}  // namespace viaduct::measure
