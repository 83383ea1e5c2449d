// The UCP context of a rail: its devices, and the memory that peers reach through them. Threads:
// under the agent's lock.
#pragma once

#include <viaduct/result.h>

#include <memory>
#include <string>
#include <vector>

#include "backends/ucx/library.h"
#include "backends/ucx/reachable.h"
#include "backends/ucx/transports.h"
#include "base/checked_copy.h"
#include "move/endpoint.h"

namespace viaduct::ucx {

// Changes in our own copy of UCX's settings. An empty text leaves the user's setting.
struct ContextOptions {
  std::string transports = {};  // UCX_TLS
  std::string devices = {};     // UCX_NET_DEVICES
  bool by_messages = false;     // use messages instead of puts and gets
  bool rdma_only = false;       // refuse a connection for which UCX chooses TCP
};

class Context final : public move::Domain {
 public:
  static Result<std::unique_ptr<Context>> open(const UcxLibrary& ucx, const ContextOptions& choice);
  ~Context() override;
  Context(const Context&) = delete;
  Context& operator=(const Context&) = delete;
  Result<std::unique_ptr<move::Endpoint>> open() const override;
  Result<std::unique_ptr<move::Registration>> add(const move::MemoryRange& range) const override;

  const UcxLibrary& ucx() const { return ucx_; }
  ucp_context_h handle() const { return handle_; }
  const std::vector<Transport>& resources() const { return resources_; }
  // The kinds of memory that UCX can reach: UCS_BIT() of each ucs_memory_type_t.
  std::uint64_t memoryTypes() const;
  bool rdmaOnly() const { return rdma_only_; }
  const base::CheckedCopy& copy() const { return copy_; }  // copies the data of messages

 private:
  Context(const UcxLibrary& ucx, const ContextOptions& choice)
      : ucx_(ucx), rdma_only_(choice.rdma_only) {
    if (choice.by_messages) reachable_ = std::make_unique<Reachable>();
  }

  const UcxLibrary& ucx_;
  const bool rdma_only_;
  ucp_context_h handle_ = nullptr;
  std::vector<Transport> resources_;
  std::unique_ptr<Reachable> reachable_;  // set for messages; null for puts and gets
  base::CheckedCopy copy_;                // used with messages
};

}  // namespace viaduct::ucx
