#include "diag/peer_memory.h"

#include <algorithm>
#include <cctype>
#include <string_view>

#include "base/text.h"
#include "diag/process_facts.h"

namespace viaduct::diag {
namespace {

std::string loadedPeerModule(const Tree& tree) {
  for (const char* name : {"nvidia_peermem", "nv_peer_mem", "efa_nv_peermem"})
    if (tree.has(std::string("/sys/module/") + name)) return name;
  return tree.has("/sys/kernel/mm/memory_peers/nv_mem/version") ? "nv_mem" : "";
}

bool efaBringsIt(const Tree& tree, const RdmaDevice& nic) {
  return nic.efa() && tree.line(nic.folder + "/device/p2p").starts_with("NVIDIA");
}

}  // namespace

GpuPeerMemory peerMemory(const Node& node, const std::vector<RdmaDevice>& nics) {
  GpuPeerMemory out{.driver = node.tree.line(kDriverVersion),
                    .module = loadedPeerModule(node.tree),
                    .new_kernel = {}};
  out.open = out.driver.find("Open Kernel Module") != std::string::npos;
  if (const auto version = kernelVersion(node)) out.new_kernel = *version >= VersionNumbers{5, 12};
  out.efa = !nics.empty() && std::ranges::all_of(nics, [&](const RdmaDevice& nic) {
    return efaBringsIt(node.tree, nic);
  });
  return out;
}

std::string driverVersion(const std::string& line) {
  for (const std::string_view word : base::wordsOf(line))
    if (std::isdigit(static_cast<unsigned char>(word[0])) != 0 &&
        word.find('.') != std::string_view::npos &&
        word.find_first_not_of("0123456789.") == std::string_view::npos)
      return std::string(word);
  return {};
}

}  // namespace viaduct::diag
