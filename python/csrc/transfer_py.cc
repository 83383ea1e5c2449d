#include <fmt/format.h>

#include <array>
#include <optional>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "planned_transfer.h"

namespace viaduct::python {

PlannedTransfer::PlannedTransfer(std::shared_ptr<AgentState> agent, OpKind kind, Side local,
                                 Side remote, Transfer planned)
    : agent_(std::move(agent)),
      kind_(kind),
      local_(std::move(local.list)),
      remote_(std::move(remote.list)),
      pins_(local_->pinsOf(*agent_)),
      transfer_(std::move(planned)) {}

// A transfer that still runs is cancelled, and ends before its memory may go.
PlannedTransfer::~PlannedTransfer() {
  if (state() != TransferState::kRunning) return;
  unlockedFromDestructor([this] {
    transfer_.cancel();
    static_cast<void>(transfer_.wait());  // that it was cancelled is no news
  });
}

void PlannedTransfer::refuseClosed(const char* operation) {
  raiseMisuse(operation, "the transfer is closed", "plan another one");
}

void PlannedTransfer::post(const py::object& note, const py::object& timeout) {
  need("post");
  const NoteBytes bytes("post", note);
  PostOptions options{.note = bytes.bytes(), .with_note = bytes.given()};
  if (!timeout.is_none()) options.deadline = deadlineOf("post", timeout);
  const Status posted = unlocked([&]() -> Status {
    const std::lock_guard one_at_a_time(posting_);
    if (over_) return Error{.operation = "post", .detail = "the transfer is closed"};
    return transfer_.post(options);
  });
  check(posted);
}

bool PlannedTransfer::advance() {
  if (state() == TransferState::kRunning) {
    needHandle("poll");
    // Others may run meanwhile: a loop around poll() would keep the GIL from them for 5 ms at a
    // time.
    const Unlocked unlocked;
    transfer_.poll();
  }
  return state() != TransferState::kRunning;
}

void PlannedTransfer::raiseFailure() {
  if (state() == TransferState::kDone) return;
  check(transfer_.wait(Deadline::never()));  // it has ended: says how, and does not wait
}

void PlannedTransfer::wait(const py::object& timeout) {
  needHandle("wait");
  if (state() == TransferState::kDone) return;
  check(waitUnlocked(deadlineOf("wait", timeout),
                     [&](Deadline until) { return transfer_.wait(until); }));
}

void PlannedTransfer::cancel() {
  if (state() != TransferState::kRunning) return;
  needHandle("cancel");
  const Unlocked unlocked;
  transfer_.cancel();
}

void PlannedTransfer::close() {
  closed_ = true;
  if (!agent_->isForked()) {  // in a child, no post of this process runs
    const Unlocked unlocked;
    {
      const std::lock_guard after_any_post(posting_);
      over_ = true;
    }
    if (state() == TransferState::kRunning) {
      transfer_.cancel();
      static_cast<void>(transfer_.wait());  // that it was cancelled is no news
    }
  }
  pins_.clear();
  local_.reset();
  remote_.reset();
}

namespace {

// A post has ended in every state after kRunning.
static_assert(TransferState::kIdle < TransferState::kRunning);
static_assert(TransferState::kDone > TransferState::kRunning);
static_assert(TransferState::kFailed > TransferState::kRunning);
static_assert(TransferState::kCancelled > TransferState::kRunning);

// One text for each state, made once: a loop compares them often.
py::object stateText(TransferState state) {
  static const auto& kTexts =
      *new std::array<py::object, 5>{py::str("idle"), py::str("running"), py::str("done"),
                                     py::str("failed"), py::str("cancelled")};
  return kTexts[static_cast<std::size_t>(state)];
}

bool poll(PlannedTransfer& transfer) {
  if (!transfer.advance()) return false;
  transfer.raiseFailure();
  return true;
}

std::string describe(const PlannedTransfer& transfer) {
  const Unlocked released;
  return fmt::format("<viaduct.Transfer {} of {} bytes, {}>", opKindName(transfer.kind()),
                     transfer.transfer().bytes(), transferStateName(transfer.state()));
}

constexpr auto kTransfer =
    R"(A planned copy between memory here and memory at a peer. Plan once, post many times.

    transfer = agent.plan("write", peer, local, remote)
    transfer.post(note=b"page 7", timeout=1.0)     # starts it and returns
    transfer.wait()                                # or: await transfer
    print(transfer.path)                           # local/mapped 1.0 MiB in 16 ops

    with agent.plan("read", peer, local, remote) as transfer:
        transfer.post()
        while not transfer.poll():                 # or look at it now and then
            do_other_work()

From post() to its end, the memory belongs to the transfer. The end comes at the latest at the
timeout of the post plus the setting `grace`; after it, nobody touches the memory. A transfer that is
closed, left by `with`, or garbage collected is cancelled and waited for. It keeps its agent, its pins
and its arrays alive.)";

constexpr auto kPost = R"(post($self, /, note=None, timeout=None)
--

Starts the copy and returns the transfer, so that `await transfer.post()` works.

The peer gets `note` (bytes or str) when all data is there. After `timeout` seconds the copy is
cancelled and fails with TimeoutError; None: the setting `deadline`. InvalidError: it still runs.)";

constexpr auto kPoll = R"(poll($self, /)
--

Moves things along without blocking. True: it is done. False: it still runs. Raises why it failed.)";

constexpr auto kWait = R"(wait($self, /, timeout=None)
--

Waits for the end of the post. Raises why it failed.

After `timeout` seconds it raises TimeoutError, and the transfer goes on: state is "running". Ctrl-C
raises KeyboardInterrupt, and the transfer goes on as well.)";

constexpr auto kCancel = R"(cancel($self, /)
--

Asks for the end. wait() returns when nobody touches the memory any more, with CancelledError, or
without an error if the copy was faster.)";

constexpr auto kClose = R"(close($self, /)
--

Cancels a running post, waits for its end, and lets go of the memory. May be called twice.)";

}  // namespace

void bindTransfer(py::module_& module) {
  py::class_<PlannedTransfer>(module, "Transfer", kTransfer)
      .def(
          "post",
          [](py::object self, const py::object& note, const py::object& timeout) {
            self.cast<PlannedTransfer&>().post(note, timeout);
            return self;
          },
          py::arg("note") = py::none(), py::arg("timeout") = py::none(), kPost)
      .def("poll", poll, kPoll)
      .def("wait", &PlannedTransfer::wait, py::arg("timeout") = py::none(), kWait)
      .def("cancel", &PlannedTransfer::cancel, kCancel)
      .def("close", &PlannedTransfer::close, kClose)
      .def_property_readonly(
          "done",
          [](const PlannedTransfer& transfer) {
            return transfer.state() > TransferState::kRunning;
          },
          "Whether the last post has ended, however: as with Future.done(). Moves nothing along.")
      .def_property_readonly(
          "state", [](const PlannedTransfer& transfer) { return stateText(transfer.state()); },
          "\"idle\", \"running\", \"done\", \"failed\" or \"cancelled\". Moves nothing along.")
      .def_property_readonly(
          "error",
          [](const PlannedTransfer& transfer) -> py::object {
            const TransferEnd end = unlocked([&] { return transfer.transfer().end(); });
            if (!end.error) return py::none();
            return exceptionOf(*end.error);
          },
          "Why the last post failed, as an exception, or None.")
      .def_property_readonly(
          "path",
          [](const PlannedTransfer& transfer) {
            return unlocked([&] { return transfer.transfer().path(); });
          },
          "What moved the bytes of the last post.")
      .def_property_readonly(
          "bytes",
          [](const PlannedTransfer& transfer) {
            return unlocked([&] { return transfer.transfer().bytes(); });
          },
          "The bytes of one post.")
      .def_property_readonly(
          "ops",
          [](const PlannedTransfer& transfer) {
            return unlocked([&] { return transfer.transfer().ops(); });
          },
          "Contiguous copies that one post makes, after neighbours were joined.")
      .def_property_readonly(
          "agent", [](const PlannedTransfer& transfer) { return transfer.agent(); },
          "The agent that planned it.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](PlannedTransfer& transfer, const py::args&) { transfer.close(); })
      .def(
          "__await__",
          [](const py::object& self) {
            return py::module_::import("viaduct._asyncio").attr("end_of")(self).attr("__await__")();
          })
      .def("__repr__", describe);
}

}  // namespace viaduct::python
