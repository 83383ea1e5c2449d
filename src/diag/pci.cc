#include "diag/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/lists.h"
#include "base/text.h"

namespace viaduct::diag {
namespace {

constexpr auto kFunctions = "/sys/bus/pci/devices/";

// Parses "32.0 GT/s PCIe". "Unknown" gives 0, and so does a number that no link has.
double gigatransfersIn(const std::string& text) {
  const double out = std::strtod(text.c_str(), nullptr);
  return out > 0 && out <= 1024 ? out : 0;
}

unsigned widthIn(const Tree& tree, const std::string& path) {
  const auto width = tree.number(path).value_or(0);
  return width <= 32 ? static_cast<unsigned>(width) : 0;  // the kernel shows 255 for unknown
}

PciLink linkOf(const Tree& tree, const std::string& folder) {
  return {.gigatransfers = gigatransfersIn(tree.line(folder + "/current_link_speed")),
          .most_gigatransfers = gigatransfersIn(tree.line(folder + "/max_link_speed")),
          .width = widthIn(tree, folder + "/current_link_width"),
          .most_width = widthIn(tree, folder + "/max_link_width")};
}

std::vector<std::string> addressesIn(std::string_view folder) {
  return base::only(base::partsOf(folder, '/'), isPciAddress);
}

std::uint32_t hexadecimal(const Tree& tree, const std::string& path) {
  return static_cast<std::uint32_t>(tree.number(path).value_or(0));
}

// The last part of a link's target path; empty: there is no such link.
std::string lastOf(const Tree& tree, const std::string& link) {
  const std::string path = tree.resolve(link);
  return path.substr(path.rfind('/') + 1);
}

}  // namespace

bool isPciAddress(std::string_view text) {
  // Allows up to eight digits, because the domain of a virtual root complex has more than four.
  const auto colon = text.find(':');
  if (colon == std::string_view::npos || colon < 4 || colon > 8 || text.size() != colon + 8)
    return false;
  const std::string_view rest = text.substr(colon);
  const auto hex = [](char c) { return std::isxdigit(static_cast<unsigned char>(c)) != 0; };
  return std::all_of(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(colon), hex) &&
         hex(rest[1]) && hex(rest[2]) && rest[3] == ':' && hex(rest[4]) && hex(rest[5]) &&
         rest[6] == '.' && hex(rest[7]);
}

std::optional<PciFunction> pciFunction(const Tree& tree, const std::string& address) {
  if (!isPciAddress(address)) return std::nullopt;
  PciFunction out{.address = address, .folder = tree.resolve(kFunctions + address)};
  if (out.folder.empty()) return std::nullopt;
  out.way = addressesIn(out.folder);
  out.vendor = hexadecimal(tree, out.folder + "/vendor");
  out.device = hexadecimal(tree, out.folder + "/device");
  out.kind = hexadecimal(tree, out.folder + "/class");
  out.numa = std::atoi(tree.line(out.folder + "/numa_node").c_str());
  if (tree.line(out.folder + "/numa_node").empty()) out.numa = -1;
  out.link = linkOf(tree, out.folder);
  out.physical = lastOf(tree, out.folder + "/physfn");
  out.group = lastOf(tree, out.folder + "/iommu_group");
  if (!out.group.empty())
    out.group_type = tree.line(fmt::format("/sys/kernel/iommu_groups/{}/type", out.group));
  return out;
}

std::vector<PciFunction> pciFunctions(const Tree& tree) {
  std::vector<PciFunction> out;
  for (const std::string& address : tree.list("/sys/bus/pci/devices"))
    if (auto one = pciFunction(tree, address)) out.push_back(*std::move(one));
  return out;
}

std::string pciAddressOf(const Tree& tree, const std::string& device_folder) {
  const auto way = addressesIn(tree.resolve(device_folder));
  return way.empty() ? std::string() : way.back();
}

double bytesPerSecond(double gigatransfers, unsigned width) {
  if (gigatransfers <= 0 || width == 0) return 0;
  const double coding = gigatransfers < 8 ? 0.8 : 128.0 / 130;
  return gigatransfers * 1e9 / 8 * coding * width;
}

}  // namespace viaduct::diag
