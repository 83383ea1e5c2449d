// Explains the choice between backends for two processes of this machine, without measuring.
// Threads: one; explainChoice() forks, so its caller must have no thread and no agent yet.
#pragma once

#include <viaduct/backend.h>
#include <viaduct/settings.h>
#include <viaduct/transfer.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "causes/causes.h"
#include "host/nearness.h"
#include "measure/workload/buffer.h"
#include "measure/workload/spec.h"

namespace viaduct::measure {

struct ExplainRequest {
  Settings settings = {};  // the explanation includes named backends that fail to open
  Buffer::Kind memory = {};
  std::optional<std::uint32_t> initiator_gpu = {}, target_gpu = {};  // as in Spec
  std::string require = {};   // a requirement as in TransferOptions::require
  std::uint32_t threads = 2;  // threads on this machine that need a processor at the same time
};

// An attempt to move one block by one backend.
struct Attempt {
  OpKind op = OpKind::kWrite;
  bool carried = false;
  bool staged = false;    // the bytes are staged through host memory of both ends
  std::string text = {};  // the path, or the reason of the failure
};

struct ExplainedBackend {
  BackendInfo info = {};
  // The next two fields are only filled for an open backend.
  std::string link = {};  // the link to the other process: "mapped, cma", or the error
  std::vector<Attempt> attempts = {};
  bool carries(OpKind op, bool staged) const;
};

// The NICs that a backend's rails use, ordered by distance from some memory.
struct Serving {
  std::string backend = {};
  std::string memory = {};                   // "this memory", "node 1", "GPU 0000:18:00.0"
  std::vector<host::NearGroup> groups = {};  // nearest first
};

struct Explanation {
  std::vector<ExplainedBackend> backends = {};  // in the order in which the agent tries them
  ExplainRequest asked = {};
  std::vector<Serving> serving = {};
  bool stored = false;                     // the other end is storage and not a process
  std::vector<causes::Cause> causes = {};  // causes that may slow rows on this machine

  // Returns the first backend that carries `op`, or null.
  const ExplainedBackend* chosen(OpKind op) const;
  // Returns the first backend that carries `op` and can move bytes between hosts, or null. Between
  // two hosts, the agent chooses this backend if it reaches the peer.
  const ExplainedBackend* betweenHosts(OpKind op) const;
};

Result<Explanation> explainChoice(const ExplainRequest& request);
// Moves one block between this process and the storage of `spec`, in the direction of its rows.
Result<Explanation> explainStorage(const ExplainRequest& request, Spec spec);

std::string explanationText(const Explanation& explanation);
std::string explanationJson(const Explanation& explanation);

// Returns the name of a rail's NIC. The rail has the NIC's name or address, perhaps with a suffix
// ("eth0#1", "rdmap0s31-rdm"). Empty: no NIC matches, so the kernel chooses.
struct NamedNic {
  std::string name = {};
  std::vector<std::string> addresses = {};
};
std::string nicOfRail(const std::string& rail, const std::vector<NamedNic>& nics);

}  // namespace viaduct::measure
