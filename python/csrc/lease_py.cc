#include <fmt/format.h>
#include <pybind11/stl.h>

#include <functional>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "end_handle.h"
#include "errors.h"
#include "gil.h"
#include "planned_transfer.h"
#include "selection.h"

namespace viaduct::python {
namespace {

// The states behind the Python classes Lease and BorrowedLease.
using LentState = EndHandle<Lease>;
using BorrowedState = EndHandle<BorrowedLease>;

// Returns the duration of a lease. None: the longest possible one.
Duration durationOf(const char* operation, py::handle seconds) {
  const Deadline end = deadlineOf(operation, seconds);
  return end.at() - Clock::now();
}

std::unique_ptr<LentState> lend(AgentState& state, const KnownPeer& peer, const py::object& blocks,
                                const py::object& duration, bool write) {
  state.need("lease");
  Side side = localSideOf(blocks, state);
  const Selection lent = side.take();
  const LeaseOptions options{.access = write ? MemoryAccess::kReadWrite : MemoryAccess::kReadOnly,
                             .duration = durationOf("lease", duration)};
  auto lease = unlocked([&] { return state.agent.lease(peer.peer, lent, options); });
  return std::make_unique<LentState>(state.shared_from_this(), valueOf(std::move(lease)),
                                     side.list->pinsOf(state));
}

std::unique_ptr<BorrowedState> borrow(AgentState& state, const KnownPeer& peer,
                                      const py::object& ticket) {
  state.need("borrow");
  const NoteBytes bytes("borrow", ticket);
  auto lease = unlocked([&] { return state.agent.borrow(peer.peer, bytes.bytes()); });
  return std::make_unique<BorrowedState>(state.shared_from_this(), valueOf(std::move(lease)));
}

std::unique_ptr<PlannedTransfer> planUnder(BorrowedState& borrowed, const py::object& op,
                                           const py::object& local, const py::object& positions,
                                           std::string require, const std::string& priority) {
  AgentState& state = *borrowed.agent;
  state.need("plan");
  const OpKind kind = kindOf(op);
  TransferOptions options{.require = std::move(require), .priority = priorityOf(priority)};
  Side here = localSideOf(local, state);
  const Selection from = here.take();
  const Indices chosen = positions.is_none() ? Indices() : indicesOf(positions);
  auto planned = unlocked(
      [&] { return state.agent.plan(kind, *borrowed.end, from, chosen, std::move(options)); });
  return std::make_unique<PlannedTransfer>(state.shared_from_this(), kind, std::move(here), Side(),
                                           valueOf(std::move(planned)));
}

template <class End>
const char* stateOf(const EndHandle<End>& lease) {
  return leaseStateName(lease.end->state());
}

template <class End>
const char* waitForOutcome(EndHandle<End>& lease, const py::object& timeout) {
  return leaseStateName(
      waitUpTo("wait", timeout, [&](Deadline until) { return lease.end->wait(until); }));
}

void revoke(LentState& lease) {
  check(unlocked([&] { return lease.end->revoke(); }));
}

void giveBack(BorrowedState& lease) {
  const Unlocked unlocked;
  lease.end->giveBack();
}

constexpr auto kLeaseClass =
    R"(Pinned blocks that a peer may reach for a time. After the end of the lease, an access is an error.

    lease = agent.lease(peer, blocks[[3, 4]], duration=30)
    peer.note(lease.ticket)                       # or another way to the peer
    ...
    lease.wait(timeout=10)                        # "returned"
    lease.revoke()                                # on return, the blocks may be used again

The end of a `with` block and garbage collection revoke the lease.)";

constexpr auto kBorrowed = R"(Blocks of a peer that this agent may reach for a time.

    with agent.borrow(peer, ticket) as lease:
        transfer = lease.plan("read", memory)
        transfer.post().wait()                    # StaleError: the lease has ended

The end of a `with` block and garbage collection give the lease back, once its running transfers have
ended.)";

constexpr Doc kLend{R"(
Lends pinned blocks to the peer for `duration` seconds, and returns the Lease.

`blocks` is what plan() takes as `local`. With write=True the peer may write too, and no other lease
may have a byte of these blocks.)"};

constexpr Doc kBorrow{R"(
Takes a lease from the bytes of Lease.ticket, and returns the BorrowedLease. A ticket is taken once.
StaleError: the lease has ended.)"};

constexpr Doc kPlanUnder{R"(
Plans a copy to or from the lent blocks, and returns the Transfer. `positions` are numbers in the
list of the lent blocks; without them, all blocks in order. Agent.plan() explains the rest. A post
raises StaleError after the end of the lease.)"};

constexpr Doc kRenew{"The lease now ends `duration` seconds from now. StaleError: it has ended."};

constexpr Doc kRevoke{R"(
Ends the lease, and waits until no access of the peer touches the blocks any more. PeerLostError: the
peer was stopped inside a copy. It may still touch the blocks until its `settled` is True.)"};

constexpr Doc kWaitLease{R"(
Waits for the end of the lease, and returns its outcome: "returned", "expired", "revoked" or "peer
lost". TimeoutError: it has not ended.)"};

template <class End>
py::class_<EndHandle<End>> bindEnd(py::module_& module, const char* name, const char* text) {
  return withAgent(py::class_<EndHandle<End>>(module, name, text))
      .def_property_readonly(
          "number", [](const EndHandle<End>& lease) { return lease.end->number(); },
          "Counts the leases from the owner to this peer in a session, from 1.")
      .def_property_readonly("state", stateOf<End>,
                             "\"live\", \"ending\", or an outcome: see wait().")
      .def("wait", waitForOutcome<End>, py::arg("timeout") = py::none(), kWaitLease)
      .def("__enter__", [](py::object self) { return self; })
      .def("__repr__", [name](const EndHandle<End>& lease) {
        return fmt::format("<viaduct.{} {}, {}>", name, lease.end->number(), stateOf(lease));
      });
}

}  // namespace

void bindLeases(py::module_& module, AgentClass& agent) {
  bindEnd<Lease>(module, "Lease", kLeaseClass)
      .def_property_readonly(
          "ticket",
          [](const LentState& lease) {
            return bytesObject(unlocked([&] { return lease.end->ticket(); }));
          },
          "The bytes that the peer passes to Agent.borrow().")
      .def(
          "renew",
          [](LentState& lease, const py::object& duration) {
            const Duration given = durationOf("renew", duration);
            check(unlocked([&] { return lease.end->renew(given); }));
          },
          py::arg("duration"), kRenew)
      .def("revoke", revoke, kRevoke)
      .def("__exit__", [](LentState& lease, const py::args&) { revoke(lease); });
  bindEnd<BorrowedLease>(module, "BorrowedLease", kBorrowed)
      .def("__len__", [](const BorrowedState& lease) { return lease.end->blocks().count(); })
      .def_property_readonly(
          "write",
          [](const BorrowedState& lease) {
            return lease.end->access() == MemoryAccess::kReadWrite;
          },
          "Whether transfers may write to the blocks.")
      .def("plan", planUnder, py::arg("op"), py::arg("local"), py::arg("positions") = py::none(),
           py::kw_only(), py::arg("require") = "", py::arg("priority") = "normal", kPlanUnder)
      .def("give_back", giveBack,
           Doc{"Returns the lease, once its running transfers have ended. New posts raise "
               "StaleError."})
      .def("__exit__", [](BorrowedState& lease, const py::args&) { giveBack(lease); });
  agent
      .def("lease", lend, py::arg("peer"), py::arg("blocks"), py::kw_only(),
           py::arg("duration") = 30, py::arg("write") = false, kLend)
      .def("borrow", borrow, py::arg("peer"), py::arg("ticket"), kBorrow);
}

}  // namespace viaduct::python
