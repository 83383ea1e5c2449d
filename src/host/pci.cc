#include "host/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <cstdlib>

#include "base/lists.h"
#include "base/text.h"

namespace viaduct::host {
namespace {

// Parses "32.0 GT/s PCIe". "Unknown" gives 0, and so does a number that no link has.
double gigatransfersIn(const std::string& text) {
  const double out = std::strtod(text.c_str(), nullptr);
  return out > 0 && out <= 1024 ? out : 0;
}

unsigned widthIn(const Tree& tree, const std::string& path) {
  const auto width = tree.number(path).value_or(0);
  return width <= 32 ? static_cast<unsigned>(width) : 0;  // the kernel shows 255 for unknown
}

double rate(double gigatransfers, unsigned width) {
  // 8b/10b coding up to generation 2, 128b/130b up to 5, frames of 256 bytes with 242 after that.
  const double coding = gigatransfers <= 5 ? 0.8 : gigatransfers <= 32 ? 128.0 / 130 : 242.0 / 256;
  return gigatransfers * 1e9 / 8 * coding * width;
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
  // The domain of a virtual root complex has more than four digits.
  constexpr std::string_view kLongest = "xxxxxxxx:xx:xx.x", kShortest = "xxxx:xx:xx.x";
  if (text.size() < kShortest.size() || text.size() > kLongest.size()) return false;
  return std::ranges::equal(
      text, kLongest.substr(kLongest.size() - text.size()), [](char c, char shape) {
        return shape == 'x' ? std::isxdigit(static_cast<unsigned char>(c)) != 0 : c == shape;
      });
}

std::vector<std::string> pciPathIn(std::string_view folder) {
  return base::only(base::partsOf(folder, '/'), isPciAddress);
}

Place placeAt(const Tree& tree, const std::string& folder) {
  const std::string path = tree.resolve(folder);
  Place out{.pci = pciPathIn(path)};
  if (out.pci.empty()) return out;
  // The folder of a virtio device lies below the folder of its PCI function.
  const std::string& last = out.pci.back();
  const std::string function = path.substr(0, path.rfind(last) + last.size());
  out.node = base::numberIn<int>(tree.line(function + "/numa_node")).value_or(-1);
  return out;
}

PciLink pciLink(const Tree& tree, const std::string& folder) {
  return {.gigatransfers = gigatransfersIn(tree.line(folder + "/current_link_speed")),
          .most_gigatransfers = gigatransfersIn(tree.line(folder + "/max_link_speed")),
          .width = widthIn(tree, folder + "/current_link_width"),
          .most_width = widthIn(tree, folder + "/max_link_width")};
}

double PciLink::bytesPerSecond() const { return rate(gigatransfers, width); }

double PciLink::mostBytesPerSecond() const { return rate(most_gigatransfers, most_width); }

std::optional<PciFunction> pciFunction(const Tree& tree, const std::string& address) {
  if (!isPciAddress(address)) return std::nullopt;
  PciFunction out{.address = address, .folder = tree.resolve(kPciFunctions + address)};
  if (out.folder.empty()) return std::nullopt;
  out.vendor = hexadecimal(tree, out.folder + "/vendor");
  out.device = hexadecimal(tree, out.folder + "/device");
  out.kind = hexadecimal(tree, out.folder + "/class");
  out.place = placeAt(tree, out.folder);
  out.link = pciLink(tree, out.folder);
  out.physical = physicalOf(tree, out.folder);
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

std::string physicalOf(const Tree& tree, const std::string& folder) {
  return lastOf(tree, folder + "/physfn");
}

std::vector<std::string> functionsOfClass(const Tree& tree, std::string_view kind,
                                          std::initializer_list<std::uint64_t> vendors) {
  return base::only(tree.list("/sys/bus/pci/devices"), [&](const std::string& address) {
    const std::string folder = kPciFunctions + address;
    return tree.line(folder + "/class").starts_with(kind) &&
           (vendors.size() == 0 ||
            base::contains(vendors, tree.number(folder + "/vendor").value_or(0)));
  });
}

std::vector<std::string> gpuAddresses(const Tree& tree) {
  constexpr std::string_view kDisplay = "0x03", k3d = "0x0302";
  auto out =
      base::joined(functionsOfClass(tree, k3d), functionsOfClass(tree, kDisplay, {kNvidia, kAmd}));
  std::ranges::sort(out);
  out.erase(std::unique(out.begin(), out.end()), out.end());
  return out;
}

std::string doubtOfNvidiaGpu(const Tree& tree, const std::string& address, std::string_view name) {
  if (!isPciAddress(address)) return "its driver does not tell its PCI address";
  const std::string folder = kPciFunctions + address;
  if (tree.number(folder + "/vendor").value_or(0) != kNvidia)
    return fmt::format("the kernel knows no NVIDIA device at {}", address);
  if (const std::string driver = lastOf(tree, folder + "/driver"); driver != "nvidia")
    return fmt::format("the kernel's driver of {} is {}, not nvidia", address,
                       driver.empty() ? "none" : driver);
  // Containers may hide this file.
  const std::string model = valueIn(
      tree.tryRead(fmt::format("/proc/driver/nvidia/gpus/{}/information", address)).text, "Model");
  if (!model.empty() && name.find(model) == std::string_view::npos)
    return fmt::format("the kernel's driver knows {} at {}", model, address);
  return {};
}

}  // namespace viaduct::host
