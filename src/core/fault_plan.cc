#include "core/fault_plan.h"

#include <fmt/format.h>

#include <array>
#include <string>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/nearest.h"
#include "base/sizes.h"
#include "base/text.h"
#include "core/setting_name.h"

namespace viaduct::core {
namespace {

enum class Need : std::uint8_t { kNever, kMay, kMust };

// The form of one kind of fault.
struct Form {
  FaultKind kind;
  Need time, when;
  std::string_view form;
};
constexpr std::array<Form, kFaultKinds> kForms{
    {{FaultKind::kDelay, Need::kMust, Need::kMay, "delay=TIME or delay=TIME@WHEN"},
     {FaultKind::kStop, Need::kNever, Need::kMay, "stop or stop@WHEN"},
     {FaultKind::kCorrupt, Need::kNever, Need::kMay, "corrupt or corrupt@WHEN"},
     {FaultKind::kDropRail, Need::kMay, Need::kMust, "drop-rail@WHEN or drop-rail=TIME@WHEN"},
     {FaultKind::kKillPeer, Need::kNever, Need::kMust, "kill-peer@WHEN"},
     {FaultKind::kLateLease, Need::kMust, Need::kMay, "late-lease=TIME or late-lease=TIME@WHEN"}}};
constexpr auto kWhenForm = "WHEN is a chance from 0 to 1, op:NUMBER from op:1 on, or a time";

// The parts of "drop-rail=1s@op:7".
struct RuleWords {
  std::string_view name;
  std::optional<std::string_view> value, when;
};

RuleWords wordsIn(std::string_view part) {
  RuleWords out;
  if (const auto at = part.find('@'); at != std::string_view::npos) {
    out.when = part.substr(at + 1);
    part = part.substr(0, at);
  }
  if (const auto equals = part.find('='); equals != std::string_view::npos) {
    out.value = part.substr(equals + 1);
    part = part.substr(0, equals);
  }
  out.name = part;
  return out;
}

Error bad(std::string_view part, std::string why, std::string remedy) {
  return {.code = Code::kInvalid,
          .operation = "settings: faults",
          .detail = fmt::format("\"{}\": {}", part, why),
          .remedy = std::move(remedy)};
}

Error unknown(std::string_view part, std::string_view name) {
  std::vector<std::string> names{"seed"};
  for (const Form& one : kForms) names.emplace_back(faultKindName(one.kind));
  const std::string near = base::nearest(name, names);
  return bad(part, fmt::format("there is no fault \"{}\"", name),
             near.empty() ? fmt::format("name one of: {}", fmt::join(names, ", "))
                          : fmt::format("write {}", near));
}

std::optional<FaultWhen> whenIn(std::string_view text) {
  constexpr std::string_view kOp = "op:";
  if (text.starts_with(kOp)) {
    const auto number = base::parseCount(text.substr(kOp.size()));
    if (!number || *number == 0) return std::nullopt;
    return OpNumber{*number};
  }
  if (const auto chance = base::numberIn<double>(text)) {
    if (*chance < 0 || *chance > 1) return std::nullopt;
    return Chance{*chance};
  }
  if (const auto time = base::parseDuration(text)) return After{*time};
  return std::nullopt;
}

bool fits(Need need, bool given) { return given ? need != Need::kNever : need != Need::kMust; }

Result<FaultRule> ruleIn(std::string_view part, const RuleWords& words) {
  const Form* const form =
      base::firstOf(kForms, [&](const Form& one) { return faultKindName(one.kind) == words.name; });
  if (form == nullptr) return unknown(part, words.name);
  if (!fits(form->time, words.value.has_value()) || !fits(form->when, words.when.has_value()))
    return bad(part, "a part is missing or too many",
               fmt::format("write {}; {}", form->form, kWhenForm));
  FaultRule rule{.kind = form->kind};
  if (words.value) {
    const auto time = base::parseDuration(*words.value);
    if (!time || *time > std::chrono::hours(24))
      return bad(part, fmt::format("\"{}\" is no time", *words.value),
                 "write a time like 2ms or 5s, at most 24 hours");
    rule.time = *time;
  }
  if (words.when) {
    const auto when = whenIn(*words.when);
    if (!when) return bad(part, fmt::format("\"{}\" names no op", *words.when), kWhenForm);
    rule.when = *when;
  }
  return rule;
}

}  // namespace

Result<FaultPlan> parseFaults(std::string_view text) {
  FaultPlan plan;
  if (text.empty()) return plan;
  while (true) {
    const auto comma = text.find(',');
    const std::string_view part = base::trimmed(text.substr(0, comma));
    const RuleWords words = wordsIn(part);
    if (words.name == "seed") {
      const auto seed = base::parseCount(words.value.value_or(""));
      if (!seed || words.when) return bad(part, "not a whole number", "write seed=NUMBER");
      plan.seed = *seed;
    } else {
      VIADUCT_TRY(FaultRule rule, ruleIn(part, words));
      plan.rules.push_back(rule);
    }
    if (comma == std::string_view::npos) return plan;
    text = text.substr(comma + 1);
  }
}

Status checkFaults(const Settings& settings) {
  VIADUCT_TRY(const FaultPlan plan, parseFaults(settings.faults));
  if (plan.rules.empty() || settings.faults_allowed) return Ok{};
  return Error{
      .code = Code::kInvalid,
      .operation = "settings: faults",
      .detail =
          fmt::format("\"{}\" would inject faults, and they are not allowed", settings.faults),
      .cause = "faults are asked for twice, so that no leftover variable breaks a production run",
      .remedy = fmt::format("set {} to yes as well, or unset the faults",
                            settingName("faults_allowed", "VIADUCT_FAULTS_ALLOWED"))};
}

}  // namespace viaduct::core
