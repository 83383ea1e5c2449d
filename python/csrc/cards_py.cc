#include <fmt/format.h>

#include <chrono>
#include <cmath>
#include <optional>
#include <utility>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "cards.h"
#include "errors.h"
#include "gil.h"

namespace viaduct::python {
namespace {

CardAccess accessOf(const char* operation, const std::string& text) {
  if (text == "read") return CardAccess::kRead;
  if (text == "write") return CardAccess::kWrite;
  if (text != "both")
    raiseMisuse(operation, fmt::format("access={:?}", text),
                "give \"read\", \"write\" or \"both\"");
  return CardAccess::kBoth;
}

std::optional<std::chrono::system_clock::time_point> momentOf(const char* operation,
                                                              const py::object& until) {
  if (until.is_none()) return std::nullopt;
  const py::object number =
      py::hasattr(until, "timestamp") ? until.attr("timestamp")() : py::object(until);
  const double seconds = PyFloat_AsDouble(number.ptr());
  if (seconds == -1.0 && PyErr_Occurred() != nullptr) throw py::error_already_set();
  if (!std::isfinite(seconds) || std::abs(seconds) > 9e9)
    raiseMisuse(operation, fmt::format("until is {} seconds since 1970", seconds),
                "give a datetime, seconds as of time.time(), or None");
  return std::chrono::system_clock::time_point(
      std::chrono::duration_cast<std::chrono::system_clock::duration>(
          std::chrono::duration<double>(seconds)));
}

Card cardOf(const char* operation, const py::object& card) {
  const NoteBytes given(operation, card);
  return valueOf(Card::decode(given.bytes()));
}

py::bytes exportCard(AgentState& state, const std::string& pins, const std::string& access,
                     const py::object& until, const std::string& name) {
  state.need("export_card");
  Grant grant = grantOf("export_card", pins, access, until, name);
  return bytesObject(valueOf(unlocked([&] { return state.agent.exportCard(std::move(grant)); })));
}

void revokeCard(AgentState& state, const py::object& card_or_id) {
  state.need("revoke_card");
  if (PyUnicode_Check(card_or_id.ptr()) != 0) {
    const CardId id = valueOf(cardIdFrom(card_or_id.cast<std::string>()));
    return check(unlocked([&] { return state.agent.revokeCard(id); }));
  }
  const Card card = cardOf("revoke_card", card_or_id);
  check(unlocked([&] { return state.agent.revokeCard(card); }));
}

constexpr Doc kExportCard{R"(
Returns the bytes of a card that grants no more than this: the pins whose labels match `pins` ('*'
stands for any text), for access "read", "write" or "both", until a datetime or seconds as of
time.time(), to the agent of that name (empty: any).)"};

constexpr Doc kRevokeCard{R"(
Makes a card of export_card() void, and all that were narrowed from it. Their sessions have ended on
return. Pass the card, or its id as a text.)"};

constexpr Doc kNarrowCard{R"(
Returns a card that grants less than `card`, with an id of its own. Asks nobody. The arguments are
those of Agent.export_card().)"};

}  // namespace

Grant grantOf(const char* operation, const std::string& pins, const std::string& access,
              const py::object& until, const std::string& name) {
  return {.pins = pins,
          .access = accessOf(operation, access),
          .until = momentOf(operation, until),
          .name = name};
}

void bindCards(py::module_& module, AgentClass& agent) {
  module.def(
      "narrow_card",
      [](const py::object& card, const std::string& pins, const std::string& access,
         const py::object& until, const std::string& name) {
        const Card wide = cardOf("narrow_card", card);
        return bytesObject(
            valueOf(wide.narrow(grantOf("narrow_card", pins, access, until, name))).encode());
      },
      py::arg("card"), py::kw_only(), py::arg("pins") = "*", py::arg("access") = "both",
      py::arg("until") = py::none(), py::arg("name") = "", kNarrowCard);
  module.def(
      "card_id",
      [](const py::object& card) -> std::optional<std::string> {
        const auto id = cardOf("card_id", card).id();
        if (!id) return std::nullopt;
        return cardIdText(*id);
      },
      py::arg("card"), Doc{"Returns the id of a card with a grant, or None if it grants all."});
  module.def(
      "card_grants", [](const py::object& card) { return cardOf("card_grants", card).grantText(); },
      py::arg("card"), Doc{"Returns what the card grants, in words."});
  agent
      .def("export_card", exportCard, py::kw_only(), py::arg("pins") = "*",
           py::arg("access") = "both", py::arg("until") = py::none(), py::arg("name") = "",
           kExportCard)
      .def("revoke_card", revokeCard, py::arg("card_or_id"), kRevokeCard)
      .def(
          "revoke_cards",
          [](AgentState& state) { check(ask(state, "revoke_cards", &Agent::revokeCards)); },
          Doc{"Makes all cards of export_card() void. `card` stays valid."});
}

}  // namespace viaduct::python
