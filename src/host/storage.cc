#include "host/storage.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <utility>

#include "base/lists.h"
#include "base/text.h"

namespace viaduct::host {
namespace {

// A stack with this many layers is taken for one that leads to itself.
constexpr std::size_t kMostLayers = 16;

constexpr std::array<std::string_view, 5> kMemoryTypes{"tmpfs", "ramfs", "rootfs", "devtmpfs",
                                                       "hugetlbfs"};
// Drivers whose devices are "ram0", "zram0". A null device keeps its bytes in memory, or nowhere.
constexpr std::array<std::string_view, 3> kMemoryDevices{"ram", "zram", "nullb"};

std::string lastPart(std::string_view path) {
  return std::string(path.substr(path.rfind('/') + 1));
}

// The kernel writes a blank as "\040".
std::string unescaped(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto code = text[i] == '\\' && i + 3 < text.size()
                          ? base::numberIn<unsigned>(text.substr(i + 1, 3), 8)
                          : std::nullopt;
    out += code ? static_cast<char>(*code) : text[i];
    if (code) i += 3;
  }
  return out;
}

bool isBelow(std::string_view path, std::string_view folder) {
  if (folder == "/") return true;
  return path.starts_with(folder) && (path.size() == folder.size() || path[folder.size()] == '/');
}

class Stack {
 public:
  explicit Stack(const Tree& tree) : tree_(tree), mounts_(mounts(tree)) {}

  void addFilesOf(const std::string& device) {
    const Mount* const mount = base::firstWith(mounts_, &Mount::device, device);
    if (mount != nullptr) return addFileSystem(*mount);
    addDevice(device);
  }

  void addDevice(const std::string& number) {
    const std::string folder = "/sys/dev/block/" + number;
    const std::string name = lastPart(tree_.resolve(folder));
    if (name.empty() || isTooHigh()) return;
    out_.layers.push_back(name);
    if (std::ranges::any_of(kMemoryDevices, [&](auto kind) { return name.starts_with(kind); })) {
      out_.in_memory = true;
      return;
    }
    const std::string file = tree_.line(folder + "/loop/backing_file");
    if (!file.empty()) return addFile(file);
    const std::vector<std::string> parts = tree_.list(folder + "/slaves");
    for (const std::string& part : parts) addNamed(part);
    if (parts.empty() && !base::contains(out_.devices, name)) out_.devices.push_back(name);
  }

  StorageStack take() { return std::move(out_); }

 private:
  bool isTooHigh() const { return out_.layers.size() >= kMostLayers; }

  void addNamed(const std::string& name) {
    if (const std::string number = tree_.line("/sys/class/block/" + name + "/dev"); !number.empty())
      addDevice(number);
  }

  // A later mount at one point hides the earlier one.
  void addFile(const std::string& path) {
    const Mount* found = nullptr;
    for (const Mount& one : mounts_)
      if (isBelow(path, one.point) && (found == nullptr || one.point.size() >= found->point.size()))
        found = &one;
    if (found != nullptr) addFileSystem(*found);
  }

  // A file system over several devices, such as btrfs, has a number of its own, and names one of
  // its devices as its source.
  void addFileSystem(const Mount& mount) {
    if (isTooHigh()) return;
    const bool in_memory = base::contains(kMemoryTypes, std::string_view(mount.type)),
               on_device =
                   mount.source.starts_with("/dev/") || tree_.has("/sys/dev/block/" + mount.device);
    out_.layers.push_back(in_memory || on_device || mount.source == mount.type
                              ? mount.type
                              : fmt::format("{} ({})", mount.type, mount.source));
    out_.in_memory = out_.in_memory || in_memory;
    if (in_memory) return;
    if (tree_.has("/sys/dev/block/" + mount.device)) return addDevice(mount.device);
    if (!on_device) return;
    const std::string node = tree_.resolve(mount.source);
    addNamed(lastPart(node.empty() ? mount.source : node));
  }

  const Tree& tree_;
  const std::vector<Mount> mounts_;
  StorageStack out_;
};

std::string numberOf(dev_t device) { return fmt::format("{}:{}", major(device), minor(device)); }

}  // namespace

// "36 35 98:0 / /data rw,noatime shared:1 - ext4 /dev/sda1 rw".
std::vector<Mount> mounts(const Tree& tree) {
  std::vector<Mount> out;
  for (const std::string& line : tree.lines("/proc/self/mountinfo")) {
    const auto words = base::wordsOf(line);
    const auto dash = std::ranges::find(words, "-");
    if (words.size() < 5 || words.end() - dash < 3) continue;
    out.push_back({.id = std::string(words[0]),
                   .device = std::string(words[2]),
                   .point = unescaped(words[4]),
                   .type = std::string(dash[1]),
                   .source = unescaped(dash[2])});
  }
  return out;
}

std::string StorageStack::text() const { return fmt::format("{}", fmt::join(layers, " over ")); }

StorageStack storageUnder(const std::string& path) {
  struct stat facts{};
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  if (::stat(path.c_str(), &facts) != 0 &&
      ::stat(folder.empty() ? "." : folder.c_str(), &facts) != 0)
    return {};
  return S_ISBLK(facts.st_mode) ? storageOfDevice({}, numberOf(facts.st_rdev))
                                : storageOfFiles({}, numberOf(facts.st_dev));
}

StorageStack storageOfFiles(const Tree& tree, const std::string& device) {
  Stack out(tree);
  out.addFilesOf(device);
  return out.take();
}

StorageStack storageOfDevice(const Tree& tree, const std::string& device) {
  Stack out(tree);
  out.addDevice(device);
  return out.take();
}

std::optional<DiskCount> diskCount(const Tree& tree, const std::string& device) {
  constexpr std::uint64_t kSector = 512;
  const std::string line = tree.line("/sys/class/block/" + device + "/stat");
  const auto figures = base::wordsOf(line);
  if (figures.size() < 7) return std::nullopt;
  const auto read = base::numberIn<std::uint64_t>(figures[2]),
             written = base::numberIn<std::uint64_t>(figures[6]);
  if (!read || !written) return std::nullopt;
  return DiskCount{device, {*read * kSector, *written * kSector}};
}

}  // namespace viaduct::host
