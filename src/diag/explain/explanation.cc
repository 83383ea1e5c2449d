#include "diag/explain/explanation.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <utility>
#include <vector>

#include "base/lists.h"
#include "base/sizes.h"
#include "base/text.h"
#include "base/words.h"

namespace viaduct::diag {
namespace {

constexpr base::Words<OnNode, 3> kOnNode{{{"found", OnNode::kFound},
                                          {"not looked at", OnNode::kNotLooked},
                                          {"not the case", OnNode::kNotTheCase}}};

// A cause, and the codes of the doctor's findings that decide about it, by the answer on this node.
struct JudgedCause {
  const TextCause* cause = nullptr;
  OnNode on_node = OnNode::kNotLooked;
  std::map<OnNode, std::vector<std::string_view>> findings = {};
};

// One finding confirms a cause. Only the absence of all findings refutes a cause.
JudgedCause judged(const TextCause& cause, const NodeRelation& relation) {
  JudgedCause out{&cause};
  if (!relation || cause.findings.empty()) return out;
  for (const std::string_view finding : cause.findings)
    out.findings[relation(finding)].push_back(finding);
  out.on_node = base::firstOf(kOnNode, [&](const auto& one) {
                  return out.findings.contains(one.value);
                })->value;
  return out;
}

// The causes of a text; those that hold on this node come first.
std::vector<JudgedCause> judgedCauses(const KnownText& text, const NodeRelation& relation) {
  std::vector<JudgedCause> out;
  out.reserve(text.causes.size());
  for (const auto& wanted : kOnNode)
    for (const TextCause& cause : text.causes)
      if (JudgedCause next = judged(cause, relation); next.on_node == wanted.value)
        out.push_back(std::move(next));
  return out;
}

// The first error of the log, if it comes before `finding`.
const LogFinding* firstErrorBefore(const LogSummary& summary, const LogFinding& finding) {
  for (const LogFinding& other : summary.findings) {
    if (&other == &finding) break;
    if (other.text->kind == TextKind::kError) return &other;
  }
  return nullptr;
}

std::string linesText(const LogFinding& finding) {
  if (finding.lines == 1) return fmt::format("Line {}:", finding.first_line);
  return fmt::format("{} lines, {} to {}:", finding.lines, finding.first_line, finding.last_line);
}

std::string onNodeText(const JudgedCause& judged_cause, const NodeRelation& relation) {
  const auto& findings = judged_cause.cause->findings;
  if (!relation) return findings.empty() ? "" : fmt::format("Check: {}", fmt::join(findings, ", "));
  if (findings.empty()) return "On this node: no check decides it";
  return fmt::format("On this node: {} ({})", base::wordOf(kOnNode, judged_cause.on_node),
                     fmt::join(judged_cause.findings.at(judged_cause.on_node), ", "));
}

std::string causesText(const KnownText& text, const NodeRelation& relation) {
  std::string out;
  std::size_t number = 0;
  for (const JudgedCause& judged_cause : judgedCauses(text, relation)) {
    out += base::paragraph(fmt::format("  {}. ", ++number), judged_cause.cause->cause);
    if (const std::string on_node = onNodeText(judged_cause, relation); !on_node.empty())
      out += base::paragraph("     ", on_node);
    out += base::paragraph("     Fix: ", judged_cause.cause->fix);
  }
  return out;
}

std::string followUpText(const LogSummary& summary, const LogFinding& finding) {
  const LogFinding* first = firstErrorBefore(summary, finding);
  if (first == nullptr)
    return "No known error comes before it in this log. Look in the logs of the other ranks.";
  return fmt::format("First error in this log: line {}, {} ({}).", first->first_line,
                     first->text->title, first->text->code);
}

std::string findingText(const LogSummary& summary, const LogFinding& finding,
                        const NodeRelation& relation) {
  const KnownText& text = *finding.text;
  std::string out = base::paragraph(base::upper(textKindName(text.kind)) + ": ",
                                    fmt::format("{} ({})", text.title, text.code));
  out += base::paragraph("  ", linesText(finding)) + base::paragraph("  > ", finding.quote);
  out += base::paragraph("  ", text.meaning);
  if (text.kind == TextKind::kFollowUp)
    out += base::paragraph("  ", followUpText(summary, finding));
  return out + causesText(text, relation);
}

// "2 errors, 1 warning". Kinds without texts are left out.
std::string countsText(const LogSummary& summary) {
  std::string out;
  for (const TextKind kind :
       {TextKind::kError, TextKind::kWarning, TextKind::kFollowUp, TextKind::kGood}) {
    const auto count = std::ranges::count_if(
        summary.findings, [&](const LogFinding& finding) { return finding.text->kind == kind; });
    if (count == 0) continue;
    const bool plural = count > 1 && kind != TextKind::kGood;
    out += fmt::format("{}{} {}{}", out.empty() ? "" : ", ", count, textKindName(kind),
                       plural ? "s" : "");
  }
  return out;
}

Json causeJson(const JudgedCause& judged_cause, const NodeRelation& relation) {
  const auto* const found = base::valueAt(judged_cause.findings, OnNode::kFound);
  Json out{{"cause", judged_cause.cause->cause}, {"findings", judged_cause.cause->findings}};
  if (relation) {
    out["on_this_node"] = judged_cause.cause->findings.empty()
                              ? "no check"
                              : base::wordOf(kOnNode, judged_cause.on_node);
    out["found"] = found == nullptr ? Json::array() : Json(*found);
  }
  out["fix"] = judged_cause.cause->fix;
  return out;
}

}  // namespace

std::string explanationText(const LogSummary& summary, const NodeRelation& relation) {
  const std::string size =
      fmt::format("{} line{}, {}", summary.lines, summary.lines == 1 ? "" : "s",
                  base::roundedSize(summary.bytes));
  if (summary.bytes == 0) return "The log is empty.\n";
  if (summary.findings.empty())
    return size + ": no known text. docs/explain.md lists the known texts.\n";
  std::string out = fmt::format("{}: {}\n", size, countsText(summary));
  for (const LogFinding& finding : summary.findings)
    out += "\n" + findingText(summary, finding, relation);
  return out;
}

Json explanationJson(const LogSummary& summary, const NodeRelation& relation) {
  Json texts = Json::array();
  for (const LogFinding& finding : summary.findings) {
    const KnownText& text = *finding.text;
    Json causes = Json::array();
    for (const JudgedCause& judged_cause : judgedCauses(text, relation))
      causes.push_back(causeJson(judged_cause, relation));
    texts.push_back({{"code", text.code},
                     {"kind", textKindName(text.kind)},
                     {"title", text.title},
                     {"lines", finding.lines},
                     {"first_line", finding.first_line},
                     {"last_line", finding.last_line},
                     {"quote", finding.quote},
                     {"meaning", text.meaning},
                     {"causes", std::move(causes)}});
    if (text.kind == TextKind::kFollowUp) {
      const LogFinding* first = firstErrorBefore(summary, finding);
      texts.back()["first_error"] = first == nullptr ? Json() : Json(first->text->code);
    }
  }
  return {{"format", "viaduct-explain/1"},
          {"bytes", summary.bytes},
          {"lines", summary.lines},
          {"texts", std::move(texts)}};
}

}  // namespace viaduct::diag
