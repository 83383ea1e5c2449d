#include <fmt/format.h>

#include <array>
#include <functional>
#include <optional>
#include <utility>

#include "arguments.h"
#include "bindings.h"
#include "digests.h"
#include "errors.h"
#include "gil.h"
#include "marks.h"
#include "planned_transfer.h"

namespace viaduct::python {

OpKind kindOf(const py::object& op) {
  if (PyUnicode_Check(op.ptr()) != 0) {
    if (PyUnicode_CompareWithASCIIString(op.ptr(), "write") == 0) return OpKind::kWrite;
    if (PyUnicode_CompareWithASCIIString(op.ptr(), "read") == 0) return OpKind::kRead;
  }
  raiseMisuse("plan", fmt::format("{} is no operation", py::repr(op).cast<std::string>()),
              "use \"write\" (copy to the peer) or \"read\" (copy from the peer)");
}

Priority priorityOf(const std::string& name) {
  for (std::size_t i = 0; i < kPriorities; ++i)
    if (const auto priority = static_cast<Priority>(i); name == priorityName(priority))
      return priority;
  raiseMisuse("plan", fmt::format("\"{}\" is no class of priority", name),
              "use \"urgent\", \"normal\" or \"background\"");
}

PlannedTransfer::PlannedTransfer(std::shared_ptr<AgentState> agent, OpKind kind, Side local,
                                 Side remote, Transfer planned)
    : agent_(std::move(agent)),
      kind_(kind),
      local_(std::move(local.list)),
      remote_(std::move(remote.list)),
      pins_(local_->pinsOf(*agent_)),
      transfer_(std::move(planned), "post", "the transfer is closed") {}

// Cancels a running transfer and waits for its end, because its memory may be freed afterwards.
PlannedTransfer::~PlannedTransfer() {
  if (state() != TransferState::kRunning) return;
  unlockedFromDestructor([this] { transfer_.fence(); });
}

void PlannedTransfer::refuseClosed(const char* operation) {
  raiseMisuse(operation, "the transfer is closed", "plan another transfer");
}

void PlannedTransfer::post(const PostArguments& given) {
  need("post");
  const NoteBytes bytes("post", given.note);
  PostOptions options{.note = bytes.bytes(), .with_note = bytes.given()};
  if (!given.timeout.is_none()) options.deadline = deadlineOf("post", given.timeout);
  options.mark = postedMarkOf(given.mark);
  std::vector<Digest> digests;
  if (!given.digests.is_none()) {
    digests = digestsOf("post", given.digests);
    // The library takes an empty list of digests for no check, so refuse an empty list here.
    if (digests.empty()) raiseMisuse("post", "0 digests check no block");
    options.digests = digests;
  }
  check(unlocked([&] { return transfer_.post(options); }));
}

bool PlannedTransfer::poll() {
  if (state() == TransferState::kRunning) {
    needHandle("poll");
    // Releases the GIL: otherwise a loop around poll() keeps it from other threads for 5 ms at a
    // time.
    const Unlocked unlocked;
    transfer_.poll();
  }
  if (state() == TransferState::kRunning) return false;
  if (state() != TransferState::kDone)
    check(transfer_.wait(Deadline::never()));  // the post has ended: returns its error at once
  return true;
}

void PlannedTransfer::wait(const py::object& timeout) {
  needHandle("wait");
  if (state() == TransferState::kDone) return;
  waitUpTo("wait", timeout, [&](Deadline until) { return transfer_.wait(until); });
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
    transfer_.fence();
  }
  pins_.clear();
  local_.reset();
  remote_.reset();
}

namespace {

// Every state after kRunning means that the post has ended.
static_assert(TransferState::kIdle < TransferState::kRunning);
static_assert(TransferState::kDone > TransferState::kRunning);
static_assert(TransferState::kFailed > TransferState::kRunning);
static_assert(TransferState::kCancelled > TransferState::kRunning);

// Makes the text of each state only once, because loops compare `state` often.
py::object stateText(TransferState state) {
  static const auto& kTexts =
      *new std::array<py::object, 5>{py::str("idle"), py::str("running"), py::str("done"),
                                     py::str("failed"), py::str("cancelled")};
  return kTexts[static_cast<std::size_t>(state)];
}

// A function for Python that calls a member function of Transfer without the GIL.
template <auto member>
auto ofTransfer(const PlannedTransfer& transfer) {
  return unlocked([&] { return std::invoke(member, transfer.transfer()); });
}

// Returns one list of numbers from the end of the last post, as a tuple of Python.
template <auto list>
py::tuple numbersOf(const PlannedTransfer& transfer) {
  return tupleOf(ofTransfer<&Transfer::end>(transfer).*list);
}

std::string describe(const PlannedTransfer& transfer) {
  const Unlocked released;
  return fmt::format("<viaduct.Transfer {} of {} bytes, {}>", opKindName(transfer.kind()),
                     transfer.transfer().bytes(), transferStateName(transfer.state()));
}

constexpr auto kTransfer =
    R"(A planned copy between local memory and a peer's memory. One plan may be posted many times.

    transfer = agent.plan("write", peer, local, remote)
    transfer.post(note=b"page 7", timeout=1.0)     # starts the copy and returns
    transfer.wait()                                # or: await transfer
    print(transfer.path)                           # local/mapped 1.0 MiB in 16 ops

    with agent.plan("read", peer, local, remote) as transfer:
        transfer.post()
        while not transfer.poll():                 # or poll between other work
            do_other_work()

From post() to the end of the copy, the memory belongs to the transfer. The copy ends at the latest
after the timeout of the post plus the setting `grace`. After the end, nobody touches the memory.
close(), the end of a `with` block and garbage collection cancel a running copy and wait for its
end. A transfer keeps its agent, its pins and its arrays alive.)";

constexpr Doc kPost{R"(
Starts the copy and returns the transfer, so that `await transfer.post()` works.

The peer receives `note` (bytes or str) after all data has arrived. After `timeout` seconds the copy
is cancelled and fails with TimeoutError. The default timeout is the setting `deadline`.
InvalidError: the previous post still runs.

`digests` are Digests for a read, one for each block of its local side. The read raises CorruptError
if a block has other bytes; `corrupt` then has the numbers of these blocks.

mark=(stream, number) sends this mark of a MarkStream, or of the stream with that number, after the
data.)"};

constexpr Doc kPoll{R"(
Makes progress without blocking. Returns True if the copy is done, and False while it runs. Raises
the error of a failed copy.)"};

constexpr Doc kWait{R"(
Waits for the end of the post. Raises the error of a failed copy.

After `timeout` seconds wait() raises TimeoutError, and the copy goes on: `state` is "running".
Ctrl-C raises KeyboardInterrupt, and the copy goes on as well.)"};

constexpr Doc kCancel{R"(
Asks the copy to end, and returns at once. wait() then waits until nobody touches the memory. wait()
raises CancelledError, unless the copy had finished before.)"};

constexpr Doc kClose{R"(
Cancels a running post, waits for its end, and releases the memory. A second close() does
nothing.)"};

}  // namespace

void bindTransfer(py::module_& module) {
  py::class_<PlannedTransfer>(module, "Transfer", kTransfer)
      .def(
          "post",
          [](py::object self, py::object note, py::object timeout, py::object digests,
             py::object mark) {
            self.cast<PlannedTransfer&>().post(
                {std::move(note), std::move(timeout), std::move(digests), std::move(mark)});
            return self;
          },
          py::arg("note") = py::none(), py::arg("timeout") = py::none(), py::kw_only(),
          py::arg("digests") = py::none(), py::arg("mark") = py::none(), kPost)
      .def("poll", &PlannedTransfer::poll, kPoll)
      .def("wait", &PlannedTransfer::wait, py::arg("timeout") = py::none(), kWait)
      .def("cancel", &PlannedTransfer::cancel, kCancel)
      .def("close", &PlannedTransfer::close, kClose)
      .def_property_readonly(
          "done",
          [](const PlannedTransfer& transfer) {
            return transfer.state() > TransferState::kRunning;
          },
          "Whether the last post has ended, by success or failure, as with Future.done(). Reading "
          "`done` makes no progress.")
      .def_property_readonly(
          "state", [](const PlannedTransfer& transfer) { return stateText(transfer.state()); },
          "The state of the last post: \"idle\", \"running\", \"done\", \"failed\" or "
          "\"cancelled\". Reading `state` makes no progress.")
      .def_property_readonly(
          "error",
          [](const PlannedTransfer& transfer) -> py::object {
            const TransferEnd end = ofTransfer<&Transfer::end>(transfer);
            return end.error ? exceptionOf(*end.error) : py::none();
          },
          "The exception of the last post if the post failed, or None.")
      .def_property_readonly(
          "corrupt", numbersOf<&TransferEnd::corrupt>,
          "The numbers of the local blocks with wrong digests after a CorruptError, as a tuple. "
          "Block 0 is\nthe first block of the plan's local side.")
      .def_property_readonly(
          "landed", numbersOf<&TransferEnd::landed>,
          "After a post that failed or was cancelled: the numbers of the local blocks whose bytes "
          "are certainly\nall there, as a tuple. The other blocks are unknown. Block 0 is the "
          "first "
          "block of the plan's local side.")
      .def_property_readonly(
          "path", ofTransfer<&Transfer::path>,
          "The Path of the last post: the backends and rails that moved its bytes.")
      .def_property_readonly("bytes", ofTransfer<&Transfer::bytes>,
                             "The number of bytes that one post copies.")
      .def_property_readonly(
          "ops", ofTransfer<&Transfer::ops>,
          "The number of contiguous copies in one post. Adjacent blocks count as one copy.")
      .def_property_readonly("agent", &PlannedTransfer::agent,
                             "The agent that planned the transfer.")
      .def("__enter__", [](py::object self) { return self; })
      .def("__exit__", [](PlannedTransfer& transfer, const py::args&) { transfer.close(); })
      .def(
          "__await__",
          [](const py::object& self) {
            return py::module_::import("viaduct._asyncio").attr("end_of")(self).attr("__await__")();
          })
      .def("__repr__", py::overload_cast<const PlannedTransfer&>(&describe));
}

}  // namespace viaduct::python
