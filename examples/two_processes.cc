// A server that offers memory, and a client that fills it and reports that with a note.
//   two_processes server FILE    writes its card to FILE and waits for one note
//   two_processes client FILE    waits for the card, writes, and waits for the answer
#include <viaduct/viaduct.h>

#include <cstdio>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <string_view>
#include <thread>

using namespace std::chrono_literals;
using viaduct::Agent;
using viaduct::Blocks;
using viaduct::Error;
using viaduct::Ok;
using viaduct::Status;

namespace {

constexpr std::uint64_t kBytes = std::uint64_t{1} << 20U;

// A card is a secret, so only its owner may read the file. The rename publishes a complete file.
Status saveCard(const std::vector<std::byte>& card, const std::filesystem::path& file) {
  const auto part = std::filesystem::path(file) += ".part";
  std::ofstream out(part, std::ios::binary);
  std::filesystem::permissions(
      part, std::filesystem::perms::owner_read | std::filesystem::perms::owner_write);
  out.write(reinterpret_cast<const char*>(card.data()), static_cast<std::streamsize>(card.size()));
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(part, file, failed);
  if (!out || failed) return Error{.operation = "write", .detail = file.string()};
  return Ok{};
}

viaduct::Result<std::vector<std::byte>> loadCard(const std::filesystem::path& file) {
  const auto end = viaduct::Clock::now() + 10s;
  while (!std::filesystem::exists(file)) {
    if (viaduct::Clock::now() > end)
      return Error{.code = viaduct::Code::kTimeout, .operation = "open", .detail = file.string()};
    std::this_thread::sleep_for(10ms);
  }
  std::ifstream in(file, std::ios::binary);
  std::vector<std::byte> card;
  for (std::istreambuf_iterator<char> it(in), none; it != none; ++it)
    card.push_back(static_cast<std::byte>(*it));
  return card;
}

Status serve(const char* file) {
  VIADUCT_TRY(auto agent, Agent::open({.name = "server"}));
  VIADUCT_TRY(auto memory, agent.allocate(kBytes, {.label = "inbox"}));
  VIADUCT_CHECK(saveCard(agent.exportCard(), file));

  // The note arrives after the data, so the server need not wait for the data itself.
  VIADUCT_TRY(auto note, agent.waitNote(30s));
  std::printf("server: %s says \"%.*s\", and the first byte is '%c'\n", note.from.c_str(),
              static_cast<int>(note.text().size()), note.text().data(),
              std::to_integer<char>(memory.bytes()[0]));
  VIADUCT_TRY(auto client, agent.peer(note.from));
  VIADUCT_CHECK(client.note("thank you"));
  // Waits until the client leaves, because the end of this agent could cut off the answer.
  return client.over(client.epoch(), 30s);
}

Status visit(const char* file) {
  VIADUCT_TRY(auto card, loadCard(file));
  VIADUCT_TRY(auto agent, Agent::open({.name = "client"}));
  VIADUCT_TRY(auto memory, agent.allocate(kBytes));
  std::memset(memory.data(), 'x', memory.size());

  VIADUCT_TRY(auto server, agent.importCard(card));
  VIADUCT_CHECK(server.ready(10s));
  VIADUCT_TRY(auto inbox, server.waitPin("inbox", 10s));
  VIADUCT_TRY(auto here,
              Blocks::strided({.base = memory.info().address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto there, Blocks::strided({.base = inbox.address, .bytes = kBytes, .count = 1}));
  VIADUCT_TRY(auto transfer, agent.plan(viaduct::OpKind::kWrite, server, {here}, {there}));
  VIADUCT_CHECK(transfer.post({.note = std::as_bytes(std::span("it is full", 10))}));
  VIADUCT_CHECK(transfer.wait(10s));

  VIADUCT_TRY(auto answer, agent.waitNote(10s));
  std::printf("client: %s; answer: %.*s\n", transfer.path().text().c_str(),
              static_cast<int>(answer.text().size()), answer.text().data());
  return Ok{};
}

}  // namespace

int main(int argc, char** argv) {
  const std::string_view role = argc == 3 ? argv[1] : "";
  if (role != "server" && role != "client") {
    std::fprintf(stderr, "usage: two_processes server|client CARD-FILE\n");
    return 2;
  }
  if (const Status done = role == "server" ? serve(argv[2]) : visit(argv[2]); !done) {
    std::fprintf(stderr, "%s\n", done.error().text().c_str());
    return 1;
  }
  return 0;
}
