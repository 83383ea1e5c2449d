#include "diag/snapshot.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>
#include <string_view>

#include "base/text.h"
#include "diag/environ.h"
#include "diag/live.h"
#include "diag/node_card.h"
#include "diag/topics.h"
#include "diag/variable_checks.h"

namespace viaduct::diag {
namespace {

using base::Json;
using Entries = std::map<std::string, SnapshotEntry>;

constexpr std::size_t kMostConfig = 4096;  // of a PCI function's config space
constexpr int kMostLinks = 40;

// Prefixes of variables to include beside those of isTransportVariable(). They describe the pod's
// devices and the start of its job.
constexpr std::array kVariables{"PCIDEVICE_",
                                "UCC_",
                                "RDMAV_",
                                "MLX5_",
                                "IBV_",
                                "CUDA_",
                                "NVIDIA",
                                "OMPI_",
                                "SLURM_",
                                "KUBERNETES_",
                                "ETCD_",
                                "VIADUCT_",
                                "PYTORCH_",
                                "LD_LIBRARY_PATH",
                                "JOB_COMPLETION_INDEX",
                                "TRTLLM_",
                                "SGLANG_",
                                "VLLM_",
                                "DYN_"};
constexpr std::array kSecrets{"TOKEN", "SECRET", "PASSW", "CREDENTIAL", "API_KEY", "AUTH", "USER"};

constexpr auto kLeftOut = "(left out)";

bool namesSecret(std::string_view name) {
  const std::string large = base::upper(name);
  return std::ranges::any_of(
      kSecrets, [&](std::string_view one) { return large.find(one) != std::string::npos; });
}

bool isAboutTransfers(std::string_view name) {
  const bool wanted =
      isTransportVariable(name) ||
      std::ranges::any_of(kVariables, [&](std::string_view one) { return name.starts_with(one); });
  return wanted && !namesSecret(name);
}

// Whether an address contains a user and password: "http://user:word@host".
bool holdsPassword(std::string_view value) {
  const auto scheme = value.find("://");
  return scheme != std::string_view::npos && value.find('@', scheme) != std::string_view::npos;
}

// Returns the variables about transfers in the format of /proc/self/environ.
std::string environOf(const Variables& variables) {
  std::string out;
  for (const auto& [name, value] : variables)
    if (isAboutTransfers(name))
      out += name + "=" + (holdsPassword(value) ? kLeftOut : value) + '\0';
  return out;
}

// Removes secrets from "name=value" words. Installers and cloud images put tokens among the
// kernel's parameters, and the kernel logs them.
std::string withoutSecrets(std::string_view text) {
  std::string out;
  for (std::size_t from = 0; from < text.size();) {
    const auto end = std::min(text.find_first_of(" \n", from), text.size());
    const std::string_view word = text.substr(from, end - from);
    const auto name = word.substr(0, word.find('='));
    const bool secret = name.size() < word.size() && (namesSecret(name) || holdsPassword(word));
    out += secret ? fmt::format("{}={}", name, kLeftOut) : std::string(word);
    if (end < text.size()) out += text[end];
    from = end + 1;
  }
  return out;
}

class Collector {
 public:
  explicit Collector(const Tree& tree) : tree_(tree) {}

  void add(SnapshotEntry entry) {
    const std::string path = entry.path;
    entries_.emplace(path, std::move(entry));
  }
  // Adds a file or folder, and the links that lead to it.
  void addPath(std::string path, int links = 0) {
    const bool names = path.ends_with('/');
    if (names) path.pop_back();
    for (std::size_t end = 0; end != std::string::npos;) {
      end = path.find('/', end + 1);
      const std::string upto = path.substr(0, end);
      struct stat facts{};
      if (::lstat(there(upto).c_str(), &facts) != 0) return;
      if (S_ISLNK(facts.st_mode)) {
        std::string rest = path.substr(std::min(end, path.size()));
        if (names) rest += '/';
        return addLinkAndTarget(upto, rest, links);
      }
      if (end == std::string::npos) addFileOrFolder(path, facts.st_mode, names);
    }
  }
  // Files that could not be read, or were only listed: a diagnosis of the snapshot has to report
  // them as well.
  Json unread() {
    for (const std::string& path : listed_)
      if (entries_.emplace(path, SnapshotEntry{.path = path}).second)
        unread_.push_back({{"path", path}, {"reason", "not in the snapshot"}, {"denied", false}});
    return unread_;
  }
  std::vector<SnapshotEntry> take() {
    std::vector<SnapshotEntry> out;
    for (auto& [path, entry] : entries_) out.push_back(std::move(entry));
    return out;
  }

 private:
  std::string there(const std::string& path) const {
    return tree_.live() ? path : tree_.root() + path;
  }
  // Adds a link, and the path that `rest` makes of its target.
  void addLinkAndTarget(const std::string& link, const std::string& rest, int links) {
    addLink(link);
    const std::string target = tree_.resolve(link);
    if (!target.empty() && links < kMostLinks) addPath(target + rest, links + 1);
  }
  // Adds a path without links. `names`: also the names in a folder.
  void addFileOrFolder(const std::string& path, mode_t mode, bool names) {
    if (S_ISREG(mode)) return addFile(path);
    const bool folder = S_ISDIR(mode);
    add({.path = path, .kind = folder ? SnapshotEntryKind::kFolder : SnapshotEntryKind::kFile});
    if (folder && names) addNames(path);
  }
  void addLink(const std::string& path) {
    std::array<char, 4096> target{};
    const ssize_t length = ::readlink(there(path).c_str(), target.data(), target.size());
    if (length > 0)
      add({.path = path,
           .target = {target.data(), static_cast<std::size_t>(length)},
           .kind = SnapshotEntryKind::kLink});
  }
  void addFile(const std::string& path) {
    if (entries_.contains(path)) return;
    const bool config = path.ends_with("/config");
    const bool environ = path.ends_with("/environ");
    FileText text = config || environ
                        ? tree_.readBytes(path, environ ? Tree::kMostBytes : kMostConfig)
                        : tree_.tryRead(path);
    if (text && environ) text.text = environOf(variablesIn(text.text));
    if (text && path == "/proc/cmdline") text.text = withoutSecrets(text.text);
    if (text) return add({.path = path, .text = text.text + (config || environ ? "" : "\n")});
    if (text.state == FileText::State::kAbsent) return;
    add({.path = path});
    unread_.push_back({{"path", path},
                       {"reason", text.reason},
                       {"denied", text.state == FileText::State::kDenied}});
  }
  // Adds the names in a folder, so that a listing of the copy is the same. Files that no check
  // reads have no contents.
  void addNames(const std::string& folder) {
    for (const std::string& name : tree_.list(folder)) {
      const std::string path = fmt::format("{}/{}", folder, name);
      struct stat facts{};
      if (::lstat(there(path).c_str(), &facts) != 0) continue;
      if (S_ISLNK(facts.st_mode))
        addLink(path);
      else if (S_ISREG(facts.st_mode))
        listed_.insert(path);
      else  // a device: checks look only at its presence
        add({.path = path,
             .kind =
                 S_ISDIR(facts.st_mode) ? SnapshotEntryKind::kFolder : SnapshotEntryKind::kFile});
    }
  }

  const Tree& tree_;
  Entries entries_;
  std::set<std::string> listed_;
  Json unread_ = Json::array();
};

constexpr auto kLive = "/viaduct/live.json", kEnviron = "/viaduct/environ",
               kUnread = "/viaduct/unread.json";

Status readUnread(Tree& tree) {
  const FileText text = tree.tryRead(kUnread);
  if (!text) return Ok{};
  const auto json = base::parseJson(text.text);
  if (!json) return json.error();
  for (const Json& one : *json) {
    if (!one.is_object() || !one.contains("path") || !one["path"].is_string()) continue;
    tree.markUnread(one["path"].get<std::string>(),
                    one.contains("reason") && one["reason"].is_string()
                        ? one["reason"].get<std::string>()
                        : "could not be read",
                    one.contains("denied") && one["denied"] == true);
  }
  return Ok{};
}

}  // namespace

std::vector<SnapshotEntry> snapshotOf(const Node& node) {
  // The tree remembers each file that diagnose() and nodeCard() read.
  static_cast<void>(diagnose(node));
  static_cast<void>(nodeCard(node));
  Collector collector(node.tree);
  const std::vector<std::string> looked = node.tree.looked();
  for (const std::string& path : looked) collector.addPath(path);
  collector.add({.path = kUnread, .text = base::dumpJson(collector.unread(), 1)});
  Live live = node.live;
  if (live.kernel_log) live.kernel_log->text = withoutSecrets(live.kernel_log->text);
  collector.add({.path = kLive, .text = base::dumpJson(asJson(live), 1)});
  collector.add({.path = kEnviron, .text = environOf(node.variables)});
  return collector.take();
}

Result<Node> nodeIn(const std::string& folder) {
  std::string why;
  auto tree = Tree::open(folder, why);
  if (!tree)
    return Error{.code = Code::kInvalid,
                 .operation = "doctor",
                 .detail = fmt::format("{}: {}", folder, why)};
  // The running system is a node even in a container without /sys and /proc.
  if (!tree->live() && !tree->has("/sys") && !tree->has("/proc"))
    return Error{.code = Code::kInvalid,
                 .operation = "doctor",
                 .detail = fmt::format("{} has neither sys nor proc, so it is no node", folder),
                 .remedy =
                     "name a folder with a node's /sys and /proc, or a file that `viaduct "
                     "doctor snapshot` wrote"};
  Node node{.tree = *std::move(tree)};
  VIADUCT_CHECK(readUnread(node.tree));
  if (const FileText live = node.tree.tryRead(kLive)) {
    VIADUCT_TRY(const auto json, base::parseJson(live.text));
    VIADUCT_TRY(node.live, liveFromJson(json));
  }
  if (node.tree.has(kEnviron)) {
    node.variables = variablesIn(node.tree.readBytes(kEnviron, Tree::kMostBytes).text);
    node.variables_from = "the snapshot";
  }
  return node;
}

}  // namespace viaduct::diag
