#include <endian.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <pybind11/operators.h>

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

#include "agent_state.h"
#include "arguments.h"
#include "bindings.h"
#include "digests.h"
#include "errors.h"
#include "gil.h"
#include "memory_of.h"
#include "rows.h"
#include "selection.h"

namespace viaduct::python {
namespace {

constexpr std::size_t kRowBytes = sizeof(DigestRow);
constexpr auto kDigestsAre =
    "give Digests, an array of bytes of the shape (n, 16), or a list of bytes of length 16";

DigestRow rowOf(const Digest& digest) {
  return std::bit_cast<DigestRow>(std::array{htobe64(digest.high), htobe64(digest.low)});
}

Digest digestOfRow(const void* row) {
  std::array<std::uint64_t, 2> halves{};
  std::memcpy(halves.data(), row, kRowBytes);
  return {.low = be64toh(halves[1]), .high = be64toh(halves[0])};
}

std::vector<Digest> digestsOfArray(const char* operation, const py::buffer& array) {
  const py::buffer_info view = array.request();
  const bool rows = view.itemsize == 1 && view.ndim == 2 && view.shape[1] == kRowBytes;
  if (!rows || view.strides[1] != 1)
    raiseMisuse(operation,
                fmt::format("digests in an array of the shape ({}) with items of {} bytes",
                            fmt::join(view.shape, ", "), view.itemsize),
                view.ndim == 1 ? "decode the bytes of a note with Digests.decode()" : kDigestsAre);
  std::vector<Digest> digests(static_cast<std::size_t>(view.shape[0]));
  const auto* row = static_cast<const std::byte*>(view.ptr);
  for (Digest& digest : digests) {
    digest = digestOfRow(row);
    row += view.strides[0];
  }
  return digests;
}

std::vector<Digest> digestsOfList(const char* operation, const py::sequence& list) {
  std::vector<Digest> digests;
  digests.reserve(list.size());
  for (const py::handle item : list) {
    const NoteBytes bytes(operation, item);
    if (bytes.bytes().size() != kRowBytes)
      raiseMisuse(operation, fmt::format("a digest of {} bytes", bytes.bytes().size()),
                  kDigestsAre);
    digests.push_back(digestOfRow(bytes.bytes().data()));
  }
  return digests;
}

py::bytes rowAt(const DigestRows& digests, py::ssize_t number) {
  const auto count = static_cast<py::ssize_t>(digests.rows.size());
  const py::ssize_t place = number < 0 ? number + count : number;
  if (place < 0 || place >= count)
    throw py::index_error(fmt::format("there is no digest {} in a list of {}", number, count));
  return bytesObject(digests.rows[static_cast<std::size_t>(place)]);
}

py::bytes encode(const py::object& digests) {
  return bytesObject(encodeDigests(digestsOf("encode", digests)));
}

DigestRows decode(const py::object& data) {
  const NoteBytes bytes("decode", data);
  return rowsOf(valueOf(decodeDigests(bytes.bytes())));
}

py::buffer_info viewOf(DigestRows& digests) {
  constexpr auto kRow = static_cast<py::ssize_t>(kRowBytes);
  return {digests.rows.data(),
          1,
          py::format_descriptor<std::uint8_t>::format(),
          2,
          {static_cast<py::ssize_t>(digests.rows.size()), kRow},
          {kRow, py::ssize_t{1}},
          true};
}

// The bytes of an object. They are valid while `memory` lives.
std::span<const std::byte> hostBytes(const char* operation, const ObjectMemory& memory) {
  if (memory.gpu)
    raise({.code = Code::kUnsupported,
           .operation = operation,
           .detail = "the bytes lie in memory of a GPU",
           .remedy = "pin the memory, and call Agent.digest_blocks()"});
  return {reinterpret_cast<const std::byte*>(static_cast<std::uintptr_t>(memory.address)),
          static_cast<std::size_t>(memory.bytes())};
}

py::bytes digestOfObject(const py::object& data) {
  const ObjectMemory memory = denseMemoryOf("digest_of", data);
  const auto bytes = hostBytes("digest_of", memory);
  return bytesObject(rowOf(unlocked([&] { return digestOf(bytes); })));
}

// Computes the sums of the piece in an object of its own, because other threads may use `block`
// while the GIL is released.
void addPiece(BlockDigest& block, const py::object& offset, const py::object& piece) {
  const std::uint64_t at = parseUnsigned(offset, "offset");
  const ObjectMemory memory = denseMemoryOf("add", piece);
  const auto bytes = hostBytes("add", memory);
  BlockDigest sums;
  check(unlocked([&] { return sums.add(at, bytes); }));
  block.add(sums);
}

// Runs `call` on the blocks without the GIL. Keeps their pins meanwhile.
template <class Call>
auto withBlocks(const py::object& blocks, const AgentState& agent, const Call& call) {
  Side side = localSideOf(blocks, agent);
  const auto pins = side.list->pinsOf(agent);
  const Selection selection = side.take();
  return valueOf(unlocked([&] { return call(selection); }));
}

DigestRows digestBlocks(AgentState& state, const py::object& blocks) {
  state.need("digest_blocks");
  return rowsOf(withBlocks(blocks, state, [&](const Selection& selected) {
    return state.agent.digestBlocks(selected);
  }));
}

void checkBlocks(AgentState& state, const py::object& blocks, const py::object& digests) {
  state.need("check_blocks");
  const auto expected = digestsOf("check_blocks", digests);
  withBlocks(blocks, state, [&](const Selection& selected) {
    return state.agent.checkBlocks(selected, expected);
  });
}

constexpr auto kDigestsClass = R"(The digests of blocks, in the order of the blocks: 16 bytes each.

    digests = owner.digest_blocks(blocks[[3, 1, 7]])
    peer.note(digests.encode())                       # or in a message of the program

    digests = viaduct.Digests.decode(note.data)
    agent.plan("read", peer, local, remote).post(digests=digests).wait()   # CorruptError

digests[i] is the bytes of a digest, and digests[i].hex() the text in an error. numpy.asarray(digests)
is an array of bytes of the shape (n, 16). Digests(rows) takes such an array, or a list of bytes.)";

constexpr Doc kDecode{
    "Returns the Digests from the bytes of encode(). InvalidError: the bytes are damaged."};

constexpr Doc kEncode{
    "Returns bytes for a note: 16 for each digest and 24 more. C++ and Python decode them."};

constexpr auto kBlockDigest = R"(The digest of a block whose bytes come in pieces.

    block = viaduct.BlockDigest()
    block.add(0, first)             # in any order, from any thread
    block.add(len(first), second)
    block.digest                    # the same as viaduct.digest_of(first + second)
)";

constexpr Doc kAddPiece{R"(
Adds a piece that starts at byte `offset` of the block: a buffer, array or tensor in host memory.

`offset` is a multiple of 8. All pieces but the last one of the block have a multiple of 8 bytes.)"};

constexpr Doc kAddPart{
    "Adds all pieces of another BlockDigest, which has another part of the same block."};

constexpr Doc kDigestOf{
    "Returns the digest of the bytes of a buffer, array or tensor in host memory: 16 bytes."};

constexpr Doc kDigestBlocks{R"(
Returns the Digests of pinned blocks. `blocks` is what plan() takes as `local`.

The memory must stay pinned and unchanged during the call. It may be memory of a GPU.)"};

constexpr Doc kCheckBlocks{R"(
Checks pinned blocks, for example after a peer has written them. `digests` has one digest for each
block. CorruptError: a block has other bytes. The error names the first such block.)"};

}  // namespace

DigestRows rowsOf(const std::vector<Digest>& digests) {
  DigestRows rows{.rows = std::vector<DigestRow>(digests.size())};
  std::transform(digests.begin(), digests.end(), rows.rows.begin(), rowOf);
  return rows;
}

std::vector<Digest> digestsOf(const char* operation, const py::object& given) {
  if (PyList_Check(given.ptr()) != 0 || PyTuple_Check(given.ptr()) != 0)
    return digestsOfList(operation, py::reinterpret_borrow<py::sequence>(given));
  if (PyObject_CheckBuffer(given.ptr()) == 0) raiseWrongType(operation, given, kDigestsAre);
  return digestsOfArray(operation, py::reinterpret_borrow<py::buffer>(given));
}

void bindDigests(py::module_& module, AgentClass& agent) {
  py::class_<DigestRows>(module, "Digests", py::buffer_protocol(), kDigestsClass)
      .def(py::init([](const py::object& rows) { return rowsOf(digestsOf("Digests", rows)); }),
           py::arg("rows"), Doc{})
      .def_static("decode", decode, py::arg("data"), kDecode)
      .def("encode", encode, kEncode)
      .def("__len__", [](const DigestRows& digests) { return digests.rows.size(); })
      .def("__getitem__", rowAt)
      .def_buffer(viewOf)
      .def(py::self == py::self)
      .def("__repr__", [](const DigestRows& digests) {
        return fmt::format("<viaduct.Digests of {} blocks>", digests.rows.size());
      });
  py::class_<BlockDigest>(module, "BlockDigest", kBlockDigest)
      .def(py::init<>(), Doc{})
      .def("add", addPiece, py::arg("offset"), py::arg("piece"), kAddPiece)
      .def(
          "add_part", [](BlockDigest& block, const BlockDigest& other) { block.add(other); },
          py::arg("other"), kAddPart)
      .def_property_readonly(
          "digest", [](const BlockDigest& block) { return bytesObject(rowOf(block.digest())); },
          "The digest of a block that consists of the added pieces: 16 bytes.");
  module.def("digest_of", digestOfObject, py::arg("data"), kDigestOf);
  agent.def("digest_blocks", digestBlocks, py::arg("blocks"), kDigestBlocks)
      .def("check_blocks", checkBlocks, py::arg("blocks"), py::arg("digests"), kCheckBlocks);
}

}  // namespace viaduct::python
