// Measures a post and a check through NIXL's C library, in turns with the C++ calls that they make.
// Both move 8 bytes between two agents of this process. Each row is the median of several runs.
#include <nixl_capi.h>

#include <array>
#include <cstdlib>

#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

// Short runs, which the kernel seldom interrupts on a busy machine.
constexpr std::size_t kTimes = 1000;

void good(nixl_capi_status_t status) {
  if (status < 0) die(fmt::format("a call of NIXL's C library gave {}", static_cast<int>(status)));
}

// An agent with 8 registered bytes.
struct CAgent {
  explicit CAgent(const char* name) {
    nixl_capi_params_t params = nullptr;
    nixl_capi_backend_t backend = nullptr;
    nixl_capi_reg_dlist_t memory = nullptr;
    good(nixl_capi_create_agent(name, &agent));
    good(nixl_capi_create_params(&params));
    good(nixl_capi_create_backend(agent, "UCX", params, &backend));
    good(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &memory));
    good(nixl_capi_reg_dlist_add_desc(memory, address(), sizeof bytes, 0, nullptr, 0));
    good(nixl_capi_register_mem(agent, memory, nullptr));
  }
  std::uintptr_t address() const { return reinterpret_cast<std::uintptr_t>(&bytes); }
  nixl_capi_xfer_dlist_t list() const {
    nixl_capi_xfer_dlist_t out = nullptr;
    good(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &out));
    good(nixl_capi_xfer_dlist_add_desc(out, address(), sizeof bytes, 0));
    return out;
  }

  nixl_capi_agent_t agent = nullptr;
  std::uint64_t bytes = 0;
};

nixl_capi_xfer_req_t requestTo(const CAgent& from, const CAgent& to, const char* name) {
  void* blob = nullptr;
  std::size_t length = 0;
  char* loaded = nullptr;
  nixl_capi_xfer_req_t request = nullptr;
  good(nixl_capi_get_local_md(to.agent, &blob, &length));
  good(nixl_capi_load_remote_md(from.agent, blob, length, &loaded));
  good(nixl_capi_agent_make_connection(from.agent, name, nullptr));
  good(nixl_capi_create_xfer_req(from.agent, NIXL_CAPI_XFER_OP_WRITE, from.list(), to.list(), name,
                                 &request, nullptr));
  return request;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "nixl_c_bench");
  const auto segment = [](const std::uint64_t& bytes) {
    return Segment{.address = reinterpret_cast<std::uintptr_t>(&bytes), .bytes = sizeof bytes};
  };
  const std::uint64_t from = 0, into = 0;
  const Target target({.name = "target"}, segment(into));
  Source source({.name = "source"}, segment(from), target.agent.exportCard());
  Transfer transfer = source.plan(OpKind::kWrite, {.bytes = 8, .count = 1});
  const CAgent one("one"), other("other");
  nixl_capi_xfer_req_t const request = requestTo(one, other, "other");
  const auto in_cpp = [&](int) {
    return 1e9 * secondsPerCall(kTimes, [&] { postAndPoll(transfer); });
  };
  const auto in_c = [&](int) {
    return 1e9 * secondsPerCall(kTimes, [&] {
             good(nixl_capi_post_xfer_req(one.agent, request, nullptr));
             while (nixl_capi_get_xfer_status(one.agent, request) != NIXL_CAPI_SUCCESS) continue;
           });
  };
  const auto times = inTurns({201}, {in_cpp, in_c});
  Table table({words("", 48), figure("ns", 0)});
  table.row("post and poll of 8 bytes, in C++", times[0]);
  table.row("post and check of 8 bytes, in C", times[1]);
}
