#include "measure/result/row.h"

#include <array>

namespace viaduct::measure {
namespace {

constexpr std::array kVerdicts{Verdict::kOk,         Verdict::kInvalid,     Verdict::kFallback,
                               Verdict::kSilentRail, Verdict::kNotRequired, Verdict::kCorrupt,
                               Verdict::kUnproven,   Verdict::kFailed};
constexpr std::array kProvens{Proven::kUnproven, Proven::kYes, Proven::kNo};
constexpr std::array kVerifieds{Verified::kOff, Verified::kSampled, Verified::kFull};

template <class List, class Name>
auto named(const List& all, Name name_of, std::string_view name)
    -> std::optional<typename List::value_type> {
  for (const auto value : all)
    if (name == name_of(value)) return value;
  return std::nullopt;
}

}  // namespace

const char* verdictName(Verdict verdict) {
  switch (verdict) {
    case Verdict::kOk:
      return "ok";
    case Verdict::kInvalid:
      return "invalid";
    case Verdict::kFallback:
      return "fallback";
    case Verdict::kSilentRail:
      return "silent-rail";
    case Verdict::kNotRequired:
      return "not-required";
    case Verdict::kCorrupt:
      return "corrupt";
    case Verdict::kUnproven:
      return "unproven";
    case Verdict::kFailed:
      return "failed";
  }
  return "?";
}

std::optional<Verdict> verdictNamed(std::string_view name) {
  return named(kVerdicts, verdictName, name);
}

bool isGood(Verdict verdict) { return verdict == Verdict::kOk || verdict == Verdict::kUnproven; }

const char* provenName(Proven proven) {
  switch (proven) {
    case Proven::kUnproven:
      return "unproven";
    case Proven::kYes:
      return "yes";
    case Proven::kNo:
      return "no";
  }
  return "?";
}

std::optional<Proven> provenNamed(std::string_view name) {
  return named(kProvens, provenName, name);
}

const char* verifiedName(Verified verified) {
  switch (verified) {
    case Verified::kOff:
      return "off";
    case Verified::kSampled:
      return "sampled";
    case Verified::kFull:
      return "full";
  }
  return "?";
}

std::optional<Verified> verifiedNamed(std::string_view name) {
  return named(kVerifieds, verifiedName, name);
}

std::vector<ProvenShare> unproven(const Path& path) {
  std::vector<ProvenShare> out;
  out.reserve(path.shares.size());
  for (const PathShare& s : path.shares)
    out.push_back(
        {s.backend, s.way, s.rail, s.bytes, s.ops, Proven::kUnproven, s.injected, s.batches});
  return out;
}

}  // namespace viaduct::measure
