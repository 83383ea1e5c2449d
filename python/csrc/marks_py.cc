#include <fmt/format.h>

#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <utility>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "errors.h"
#include "gil.h"
#include "marks.h"
#include "rows.h"
#include "selection.h"

namespace viaduct::python {
namespace {

std::uint32_t markOf(const char* operation, const py::object& given) {
  const std::uint64_t mark = parseUnsigned(given, "mark");
  if (mark >= kMaxMarks)
    raiseMisuse(operation, fmt::format("mark {}; a stream has at most {} marks", mark, kMaxMarks),
                "let a mark stand for more data");
  return static_cast<std::uint32_t>(mark);
}

std::unique_ptr<MarksState> openMarks(AgentState& state, const KnownPeer& peer,
                                      const py::object& number, const py::object& marks) {
  state.need("open_marks");
  MarkStreamOptions options{.number = parseUnsigned(number, "number")};
  const std::uint64_t count = parseUnsigned(marks, "marks");
  // The library refuses a number above kMaxMarks. The cast would make a large number a small one.
  options.marks = static_cast<std::uint32_t>(std::min<std::uint64_t>(count, kMaxMarks + 1));
  auto stream = unlocked([&] { return state.agent.openMarks(peer.peer, std::move(options)); });
  return std::make_unique<MarksState>(state.shared_from_this(), valueOf(std::move(stream)));
}

MarkStream& live(MarksState& marks, const char* operation) {
  marks.agent->need(operation);
  return *marks.end;
}

void waitMark(MarksState& marks, const py::object& mark, const py::object& timeout) {
  const std::uint32_t wanted = markOf("wait", mark);
  if (marks.end->has(wanted)) return;
  const MarkStream& stream = live(marks, "wait");
  waitUpTo("wait", timeout, [&](Deadline until) { return stream.wait(wanted, until); });
}

void waitCount(MarksState& marks, std::uint32_t count, const py::object& timeout) {
  if (marks.end->count() >= count) return;
  const MarkStream& stream = live(marks, "wait_count");
  waitUpTo("wait_count", timeout, [&](Deadline until) { return stream.waitCount(count, until); });
}

void sendMark(MarksState& marks, const py::object& number) {
  const std::uint32_t mark = markOf("mark", number);
  const MarkStream& stream = live(marks, "mark");
  check(unlocked([&] { return stream.mark(mark); }));
}

void endMarks(MarksState& marks, std::string why) {
  const MarkStream& stream = live(marks, "end");
  Error error{.code = Code::kCancelled, .operation = "marks", .detail = std::move(why)};
  unlocked([&] { stream.end(std::move(error)); });
}

void waitMarksOver(MarksState& marks, const py::object& timeout) {
  const MarkStream& stream = live(marks, "over");
  waitUpTo("over", timeout, [&](Deadline until) { return stream.over(until); });
}

py::object errorOf(MarksState& marks) {
  const MarkStream& stream = live(marks, "error");
  const Status ended = unlocked([&] { return stream.ended(); });
  return ended ? py::none() : exceptionOf(ended.error());
}

constexpr auto kMarkStream =
    R"(One end of a stream of marks: numbers that say which parts of the data are complete.

    marks = agent.open_marks(peer, 7, marks=32)         # the receiver; the peer may send 0 to 31
    marks.wait(5, timeout=10)                           # the data of mark 5 is there
    marks.wait_count(32, timeout=10)

    agent.open_marks(peer, 7)                           # the sender may open its end of the stream
    transfer.post(mark=(7, 5))                          # the mark follows the data of the transfer

Both ends name the same number, and use it once in a session. Marks may come before the stream is
open. Garbage collection ends the stream if marks of the peer are missing, so keep the MarkStream.)";

constexpr Doc kOpenMarks{R"(
Opens this end of the stream with that number, and returns the MarkStream. The peer may send the
marks 0 to `marks` - 1, at most 65,536 marks.)"};

constexpr Doc kWaitMark{R"(
Waits until the mark has arrived. If the stream has ended without it, raises the error that ended the
stream. TimeoutError: the mark has not arrived.)"};

constexpr Doc kWaitMarks{"Waits until that many marks have arrived, as wait() does."};

constexpr Doc kSendMark{
    "Sends a mark that follows no transfer. post(mark=...) sends one after the data of a "
    "transfer."};

constexpr Doc kEndMarks{R"(
Ends the stream at both ends. Waits for missing marks, and posts with its marks, then raise
CancelledError with this text. Running transfers go on.)"};

constexpr Doc kMarksOver{
    "After end(): waits until the peer has ended or closed its end as well, or is lost."};

}  // namespace

std::optional<Mark> postedMarkOf(const py::object& given) {
  if (given.is_none()) return std::nullopt;
  if (!isPair(given)) raiseWrongType("post", given, "give mark=(stream, number)");
  const py::tuple pair = given;
  const py::object stream = pair[0];
  const std::uint64_t number = py::isinstance<MarksState>(stream)
                                   ? stream.cast<const MarksState&>().end->number()
                                   : parseUnsigned(stream, "stream");
  return Mark{.stream = number, .number = markOf("post", pair[1])};
}

void bindMarks(py::module_& module, AgentClass& agent) {
  withAgent(py::class_<MarksState>(module, "MarkStream", kMarkStream))
      .def_property_readonly(
          "number", [](const MarksState& marks) { return marks.end->number(); },
          "The number of the stream.")
      .def_property_readonly(
          "count", [](const MarksState& marks) { return marks.end->count(); },
          "How many marks of the peer have arrived.")
      .def_property_readonly("error", errorOf,
                             "The exception that has ended the stream, or None if it goes on.")
      .def(
          "has",
          [](const MarksState& marks, const py::object& mark) {
            return marks.end->has(markOf("has", mark));
          },
          py::arg("mark"), Doc{"Returns whether the mark of the peer has arrived."})
      .def("wait", waitMark, py::arg("mark"), py::arg("timeout") = py::none(), kWaitMark)
      .def("wait_count", waitCount, py::arg("count"), py::arg("timeout") = py::none(), kWaitMarks)
      .def("mark", sendMark, py::arg("number"), kSendMark)
      .def("end", endMarks, py::arg("why"), kEndMarks)
      .def("over", waitMarksOver, py::arg("timeout") = py::none(), kMarksOver)
      .def("__repr__", [](const MarksState& marks) {
        return fmt::format("<viaduct.MarkStream {}: {} marks>", marks.end->number(),
                           marks.end->count());
      });
  agent.def("open_marks", openMarks, py::arg("peer"), py::arg("number"), py::arg("marks") = 0,
            kOpenMarks);
}

}  // namespace viaduct::python
