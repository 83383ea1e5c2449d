#include "meet/kubernetes/names.h"

#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "base/net/crypto.h"
#include "base/printable.h"
#include "meet/meeting.h"
#include "meet/records.h"

namespace viaduct::meet::kubernetes {
namespace {

constexpr std::size_t kMostLabel = 63;
constexpr std::size_t kHashDigits = 40;
constexpr std::string_view kHashed = "x-";

bool isLabel(std::string_view text) {
  const auto plain = [](char c) { return (c >= 'a' && c <= 'z') || (c >= '0' && c <= '9'); };
  return !text.empty() && text.size() <= kMostLabel && plain(text.front()) && plain(text.back()) &&
         std::ranges::all_of(text, [&](char c) { return plain(c) || c == '-'; });
}

Error malformed(std::string_view where, std::string detail) {
  return {.operation = fmt::format("meeting place \"kubernetes:{}\"", base::printable(where)),
          .detail = std::move(detail),
          .remedy = "write kubernetes:GROUP, or kubernetes:NAMESPACE/GROUP"};
}

}  // namespace

Result<PlaceName> parsePlaceName(std::string_view where) {
  PlaceName out;
  std::string_view rest = where;
  if (const std::size_t slash = rest.find('/'); slash != std::string_view::npos) {
    out.kube_namespace = rest.substr(0, slash);
    rest.remove_prefix(slash + 1);
    if (!isLabel(out.kube_namespace))
      return malformed(where, "a namespace of Kubernetes has 1 to 63 of a-z, 0-9 and -");
  }
  if (rest.empty() || rest.size() > kMaxNameBytes || !base::isPrintable(rest) ||
      rest.find('/') != std::string_view::npos)
    return malformed(where,
                     fmt::format("a group has 1 to {} printable bytes without /", kMaxNameBytes));
  out.group = rest;
  return out;
}

std::string labelOf(std::string_view text) {
  if (isLabel(text) && !text.starts_with(kHashed)) return std::string(text);
  base::Sha256 hash;
  hash.add(std::as_bytes(std::span(text)));
  return std::string(kHashed) + base::hexText(hash.digest()).substr(0, kHashDigits);
}

LeaseTitle titleOf(std::string_view names, std::string_view key) {
  if (!key.starts_with(names))
    return {.agent = std::string(key), .label = labelOf(fmt::format("\n{}", key))};
  std::string name = unescaped(key.substr(names.size()));
  return {.agent = name, .label = labelOf(name)};
}

std::string groupLabel(std::string_view name_space, std::string_view group) {
  while (name_space.ends_with('/')) name_space.remove_suffix(1);
  if (name_space.empty() || name_space == "/viaduct") return labelOf(group);
  return labelOf(fmt::format("{}\n{}", name_space, group));
}

std::string leaseName(std::string_view group_label, std::string_view name_label) {
  return fmt::format("viaduct.{}.{}", group_label, name_label);
}

std::string selectorOf(std::string_view group_label, const std::vector<std::string>& name_labels) {
  std::string labels = fmt::format("{}={}", kGroupLabel, group_label);
  if (name_labels.size() > 1 && name_labels.size() <= kMostSelected)
    labels += fmt::format(",{} in ({})", kNameLabel, fmt::join(name_labels, ","));
  std::string out = "labelSelector=" + escaped(labels);
  // Selects a single Lease by its name too, so that the API server need not look at all others.
  if (name_labels.size() == 1)
    out +=
        "&fieldSelector=" + escaped("metadata.name=" + leaseName(group_label, name_labels.front()));
  return out;
}

std::string escaped(std::string_view text) {
  std::string out;
  for (const char c : text) {
    const bool plain = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                       c == '-' || c == '_' || c == '.' || c == '~';
    if (plain)
      out += c;
    else
      out += fmt::format("%{:02X}", static_cast<unsigned char>(c));
  }
  return out;
}

}  // namespace viaduct::meet::kubernetes
