// How the choice between backends is made, and how it comes out between two processes of this
// machine: without measuring. Threads: one; explainChoice() forks, so its caller has no thread and
// no agent yet.
#pragma once

#include <viaduct/backend.h>
#include <viaduct/settings.h>
#include <viaduct/transfer.h>

#include <string>
#include <vector>

#include "host/nearness.h"
#include "measure/load/buffer.h"

namespace viaduct::measure {

struct ExplainRequest {
  Settings settings = {};  // of the agents; backends that are named and do not open are told of
  Buffer::Kind memory = {};
  std::string require = {};  // as TransferOptions::require
};

// One block by one backend.
struct Attempt {
  OpKind op = OpKind::kWrite;
  bool carried = false;
  std::string text = {};  // the path, or why not
};

struct ExplainedBackend {
  BackendInfo info = {};
  // Of one that is open:
  std::string link = {};  // to the other process: "mapped, cma", or why there is none
  std::vector<Attempt> attempts = {};
  bool carries(OpKind op) const;
};

// The NICs that rails of a backend use, and memory that they serve.
struct Serving {
  std::string backend = {};
  std::string memory = {};                   // "this memory", "node 1", "GPU 0000:18:00.0"
  std::vector<host::NearGroup> groups = {};  // nearest first
};

struct Explanation {
  std::vector<ExplainedBackend> backends = {};  // in the order in which they are tried
  ExplainRequest asked = {};
  std::vector<Serving> serving = {};

  // The first that carries it; null: none does.
  const ExplainedBackend* chosen(OpKind op) const;
  // The first but for those that move bytes within one host: what carries it between hosts, where
  // it reaches there.
  const ExplainedBackend* betweenHosts(OpKind op) const;
};

Result<Explanation> explainChoice(const ExplainRequest& request);

std::string explanationText(const Explanation& explanation);
std::string explanationJson(const Explanation& explanation);

// Which NIC a rail is, of those there are: by name, by address, or as a part of its name ("eth0#1",
// "rdmap0s31-rdm"). Empty: the kernel chooses.
struct NamedNic {
  std::string name = {};
  std::vector<std::string> addresses = {};
};
std::string nicOfRail(const std::string& rail, const std::vector<NamedNic>& nics);

}  // namespace viaduct::measure
