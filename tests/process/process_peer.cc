// A process with an agent that obeys commands, one per line on stdin. It answers each on stdout
// with a line "ok [value]" or "error CODE text", and ends with its stdin.
#include <fcntl.h>
#include <malloc.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <algorithm>
#include <charconv>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/fd.h"
#include "base/unseen_order.h"
#include "core/setting_row.h"
#include "device/driver_memory.h"
#include "process/eight_layers.h"
#include "process/storm.h"
#include "process/words.h"
#include "support/bytes.h"

namespace {

using namespace viaduct;
using Words = std::vector<std::string>;
using Answer = Result<std::string>;
using viaduct::testing::DriverMemory;
using viaduct::testing::Storm;

// Members are destroyed in reverse order: storms before their transfers, the agent last.
struct State {
  std::vector<viaduct::base::Fd> taken;
  std::optional<Agent> agent;
  std::map<std::string, std::vector<std::byte>> heap;
  std::string cuda_library;
  std::map<std::string, std::unique_ptr<DriverMemory>> driver_memory;
  std::map<std::string, Pin> pins;
  std::map<std::string, Lease> leases;
  std::map<std::string, BorrowedLease> borrowed;
  std::map<std::string, Transfer> transfers;
  std::map<std::string, std::unique_ptr<Storm>> storms;
  std::map<std::string, PublishedParcel> parcels;
  std::map<std::string, ParcelFetch> fetches;
};

std::uint64_t number(const std::string& text) { return std::stoull(text); }
Deadline within(const std::string& ms) { return std::chrono::milliseconds(number(ms)); }
Answer done(const Status& status, std::string value = {}) {
  if (!status) return status.error();
  return value;
}

std::vector<std::string> split(const std::string& text) {
  std::string spaced = text;
  std::replace(spaced.begin(), spaced.end(), ',', ' ');
  return viaduct::testing::words(spaced);
}

// open KEY=VALUE...: answers the card
Answer open(State& state, const Words& in) {
  Settings settings;
  for (std::size_t i = 1; i < in.size(); ++i) {
    const auto at = in[i].find('=');
    const std::string key = in[i].substr(0, at);
    const std::string value = in[i].substr(at + 1);
    if (key == "name") settings.name = value;
    if (key == "backends") settings.backends = split(value);
    if (key == "listen") settings.listen = split(value);
    if (key == "rails") settings.rails = split(value);
    if (key == "secret") settings.secret = value;
    if (key == "meet") settings.meet = value;
    if (key == "provider") settings.ofi_provider = value;
    if (key == "privacy") {
      VIADUCT_CHECK(viaduct::core::parsePrivacy(value, settings.privacy));
    }
    if (key == "faults") settings.faults = value;
    if (key == "faults") settings.faults_allowed = true;
    if (key.starts_with("VIADUCT_")) settings.others[key] = value;
    if (key == "detect") settings.detect = std::chrono::milliseconds(number(value));
  }
  state.cuda_library = settings.others["VIADUCT_CUDA_LIBRARY"];
  auto agent = Agent::open(settings);
  if (!agent) return agent.error();
  state.agent.emplace(std::move(*agent));
  return viaduct::testing::toHex(state.agent->exportCard());
}

// memory LABEL BYTES [heap]
Answer memory(State& state, const Words& in) {
  const std::uint64_t bytes = number(in.at(2));
  if (in.size() == 3) {
    VIADUCT_TRY(auto pin, state.agent->allocate(bytes, {.label = in[1]}));
    state.pins.insert_or_assign(in[1], std::move(pin));
    return std::string();
  }
  auto& block = state.heap[in[1]];
  block.resize(bytes);
  VIADUCT_TRY(auto pin, state.agent->pin(Segment::host(block.data(), bytes), in[1]));
  state.pins.insert_or_assign(in[1], std::move(pin));
  return std::string();
}

// file LABEL PATH BYTES: makes and pins a file
Answer file(State& state, const Words& in) {
  VIADUCT_TRY(auto pin,
              state.agent->pin(Segment::file(in.at(2), {.bytes = number(in.at(3)), .create = true}),
                               in[1]));
  state.pins.insert_or_assign(in[1], std::move(pin));
  return std::string();
}

int protection(const std::string& name) {
  return name == "none" ? PROT_NONE : name == "read" ? PROT_READ : PROT_READ | PROT_WRITE;
}

// gpu LABEL BYTES DEVICE: allocates memory of a GPU
Answer gpu(State& state, const Words& in) {
  const auto device = static_cast<std::uint32_t>(number(in.at(3)));
  VIADUCT_TRY(auto pin,
              state.agent->allocate(number(in.at(2)), {.label = in[1], .device = device}));
  state.pins.insert_or_assign(in[1], std::move(pin));
  return std::string();
}

// drivergpu LABEL BYTES KIND: allocates memory of GPU 0 by the driver, and pins it. KIND is the
// number of a cuda::MemoryClass.
Answer driverGpu(State& state, const Words& in) {
  const std::uint64_t bytes = number(in.at(2));
  const auto kind = static_cast<viaduct::cuda::MemoryClass>(number(in.at(3)));
  VIADUCT_TRY(auto memory, DriverMemory::make(state.cuda_library, kind, bytes));
  const std::uint64_t address = memory->address();
  state.driver_memory.insert_or_assign(in[1], std::move(memory));
  VIADUCT_TRY(auto pin, state.agent->pin(Segment::gpu(0, address, bytes), in[1]));
  state.pins.insert_or_assign(in[1], std::move(pin));
  return std::string();
}

// drivergone LABEL: frees memory of `drivergpu`, which stays pinned
Answer driverGone(State& state, const Words& in) {
  return done(state.driver_memory.at(in.at(1))->free());
}

// pages LABEL BYTES read|write: pins a separate mapping full of 1s, with that protection
Answer pages(State& state, const Words& in) {
  const std::uint64_t bytes = number(in.at(2));
  void* const start =
      ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (start == MAP_FAILED) return systemError(Code::kExhausted, "mmap", errno);
  std::memset(start, 1, bytes);
  ::mprotect(start, bytes, protection(in.at(3)));
  VIADUCT_TRY(auto pin, state.agent->pin(Segment::host(start, bytes), in[1]));
  state.pins.insert_or_assign(in[1], std::move(pin));
  return std::string();
}

// protect LABEL none|read|write|gone: protects or unmaps the pinned memory LABEL
Answer protect(State& state, const Words& in) {
  const Pin& pin = state.pins.at(in.at(1));
  const int changed = in.at(2) == "gone" ? ::munmap(pin.data(), pin.size())
                                         : ::mprotect(pin.data(), pin.size(), protection(in[2]));
  if (changed != 0) return systemError(Code::kDevice, in[2], errno);
  return std::string();
}

// fill LABEL BYTE
Answer fill(State& state, const Words& in) {
  const Pin& pin = state.pins.at(in.at(1));
  const viaduct::base::UnseenOrder ignored;
  std::memset(pin.data(), static_cast<int>(number(in.at(2))), pin.size());
  return std::string();
}

// differ LABEL BYTE: answers the number of bytes with another value
Answer differ(State& state, const Words& in) {
  const viaduct::base::UnseenOrder ignored;
  return std::to_string(viaduct::testing::countOther(state.pins.at(in.at(1)).bytes(),
                                                     static_cast<std::byte>(number(in.at(2)))));
}

Answer release(State& state, const Words& in) { return done(state.pins.at(in.at(1)).release()); }

// import CARD: answers the peer's name
Answer import(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->importCard(viaduct::testing::fromHex(in.at(1))));
  return peer.name();
}

// ready PEER MS: answers the epoch
Answer ready(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(1)));
  const Status ready = peer.ready(within(in.at(2)));
  return done(ready, std::to_string(peer.epoch()));
}

// over PEER EPOCH MS
Answer over(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(1)));
  return done(peer.over(number(in.at(2)), within(in.at(3))));
}

Answer settled(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(1)));
  return std::string(peer.settled() ? "1" : "0");
}

// ways PEER: answers how its backends reach the peer
Answer ways(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(1)));
  std::string text;
  for (const PeerWay& way : peer.ways())
    text += way.backend + (way.usable ? ": " : " (not usable): ") + way.text + "; ";
  return text;
}

// All blocks of a pin in reverse order, so that neighbours do not merge.
Result<Selection> backwards(const PinInfo& pin, std::uint64_t block) {
  VIADUCT_TRY(auto blocks,
              Blocks::strided({.base = pin.address, .bytes = block, .count = pin.bytes / block}));
  std::vector<std::uint32_t> indices(blocks.count());
  for (std::size_t i = 0; i < indices.size(); ++i)
    indices[i] = static_cast<std::uint32_t>(indices.size() - 1 - i);
  return Selection{std::move(blocks), std::move(indices)};
}

// plan ID write|read PEER|self LOCAL REMOTE BLOCK [REQUIRE]
Answer plan(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, in.at(3) == "self" ? state.agent->self() : state.agent->peer(in[3]));
  VIADUCT_TRY(auto there, peer.waitPin(in.at(5), std::chrono::seconds(10)));
  VIADUCT_TRY(auto local, backwards(state.pins.at(in.at(4)).info(), number(in.at(6))));
  VIADUCT_TRY(auto remote, backwards(there, number(in.at(6))));
  const OpKind kind = in.at(2) == "write" ? OpKind::kWrite : OpKind::kRead;
  VIADUCT_TRY(auto transfer, state.agent->plan(kind, peer, local, remote,
                                               {.require = in.size() > 7 ? in[7] : ""}));
  state.transfers.insert_or_assign(in.at(1), std::move(transfer));
  return std::string();
}

// publish NAME LABEL BLOCK: publishes all of the memory LABEL as one part
Answer publish(State& state, const Words& in) {
  VIADUCT_TRY(auto blocks, backwards(state.pins.at(in.at(2)).info(), number(in.at(3))));
  VIADUCT_TRY(auto parcel,
              state.agent->publish(in.at(1), {.version = 1, .ready = {{{}, std::move(blocks)}}}));
  state.parcels.insert_or_assign(in[1], std::move(parcel));
  return std::string();
}

// fetch NAME PEER LABEL BLOCK: begins to fetch a parcel of one part into the memory LABEL
Answer fetch(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(2)));
  VIADUCT_TRY(auto blocks, backwards(state.pins.at(in.at(3)).info(), number(in.at(4))));
  FetchOptions options{.version = 1, .exact = true, .into = {{{}, std::move(blocks)}}};
  VIADUCT_TRY(auto fetch, state.agent->fetch(peer, in.at(1), std::move(options)));
  state.fetches.insert_or_assign(in[1], std::move(fetch));
  return std::string();
}

// fetched NAME MS: waits for the end of the fetch, and answers the outcome
Answer fetched(State& state, const Words& in) {
  const ParcelFetch& fetch = state.fetches.at(in.at(1));
  static_cast<void>(fetch.wait(within(in.at(2))));
  const auto end = fetch.end();
  return std::string(end ? parcelOutcomeName(end->outcome) : "running");
}

// lend ID PEER LABEL BLOCK read|write MS: answers the ticket
Answer lend(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(2)));
  VIADUCT_TRY(auto blocks, backwards(state.pins.at(in.at(3)).info(), number(in.at(4))));
  const auto access = in.at(5) == "write" ? MemoryAccess::kReadWrite : MemoryAccess::kReadOnly;
  const LeaseOptions options{.access = access,
                             .duration = std::chrono::milliseconds(number(in.at(6)))};
  VIADUCT_TRY(auto lease, state.agent->lease(peer, blocks, options));
  const auto ticket = lease.ticket();
  state.leases.insert_or_assign(in.at(1), std::move(lease));
  return viaduct::testing::toHex(ticket);
}

// borrow ID PEER LABEL TICKET: first waits for the pin LABEL, which the ticket may have overtaken
Answer borrow(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(2)));
  VIADUCT_CHECK(peer.waitPin(in.at(3), std::chrono::seconds(10)));
  VIADUCT_TRY(auto lease, state.agent->borrow(peer, viaduct::testing::fromHex(in.at(4))));
  state.borrowed.insert_or_assign(in.at(1), std::move(lease));
  return std::string();
}

// planunder ID write|read LEASE LOCAL BLOCK: plans a transfer under a borrowed lease
Answer planUnder(State& state, const Words& in) {
  VIADUCT_TRY(auto local, backwards(state.pins.at(in.at(4)).info(), number(in.at(5))));
  const OpKind kind = in.at(2) == "write" ? OpKind::kWrite : OpKind::kRead;
  VIADUCT_TRY(auto transfer, state.agent->plan(kind, state.borrowed.at(in.at(3)), local));
  state.transfers.insert_or_assign(in.at(1), std::move(transfer));
  return std::string();
}

// outcome LEASE MS: waits for the outcome of a lease that is lent or borrowed
Answer outcome(State& state, const Words& in) {
  const auto lent = state.leases.find(in.at(1));
  const auto until = within(in.at(2));
  VIADUCT_TRY(const LeaseState ended, lent != state.leases.end()
                                          ? lent->second.wait(until)
                                          : state.borrowed.at(in[1]).wait(until));
  return std::string(leaseStateName(ended));
}

// post ID [NOTE]
Answer post(State& state, const Words& in) {
  PostOptions options;
  if (in.size() > 2) options.note = std::as_bytes(std::span(in[2]));
  return done(state.transfers.at(in.at(1)).post(options));
}

// mark ID STREAM COUNT: posts the transfer for each of the marks 0 to COUNT - 1, one after another
Answer mark(State& state, const Words& in) {
  Transfer& transfer = state.transfers.at(in.at(1));
  for (std::uint32_t i = 0; i < number(in.at(3)); ++i) {
    VIADUCT_CHECK(transfer.post({.mark = Mark{.stream = number(in.at(2)), .number = i}}));
    VIADUCT_CHECK(transfer.wait(std::chrono::seconds(30)));
  }
  return std::string();
}

// layers NAME LABEL COUNT: publishes the memory LABEL as eight layers, COUNT of which are ready
Answer layers(State& state, const Words& in) {
  const auto layout = viaduct::testing::eightLayers(state.pins.at(in.at(2)).info().address);
  VIADUCT_TRY(auto parts, kvParts(layout));
  VIADUCT_TRY(auto ready, kvPages(layout, viaduct::testing::kTwoBlocks));
  ready.resize(number(in.at(3)));
  VIADUCT_TRY(auto parcel,
              state.agent->publish(
                  in.at(1), {.version = 1, .parts = std::move(parts), .ready = std::move(ready)}));
  state.parcels.insert_or_assign(in[1], std::move(parcel));
  return std::string();
}

// wait ID MS: answers the path
Answer wait(State& state, const Words& in) {
  Transfer& transfer = state.transfers.at(in.at(1));
  const Status ended = transfer.wait(within(in.at(2)));
  return done(ended, transfer.path().text());
}

Answer cancel(State& state, const Words& in) {
  state.transfers.at(in.at(1)).cancel();
  return std::string();
}

// storm ID: posts the transfer over and over; answers when the first two posts are done
Answer storm(State& state, const Words& in) {
  auto& storm = state.storms[in.at(1)];
  storm = std::make_unique<Storm>(state.transfers.at(in.at(1)));
  if (storm->finished(2)) return std::string();
  return *storm->failure(std::chrono::seconds(0));
}

// calm ID MS: waits for the error that ends the storm, and answers its code
Answer calm(State& state, const Words& in) {
  const auto error = state.storms.at(in.at(1))->failure(within(in.at(2)));
  if (!error) return Error{.code = Code::kTimeout, .operation = "calm", .detail = "still blowing"};
  return codeName(error->code) + (" " + error->text());
}

// note PEER TEXT
Answer note(State& state, const Words& in) {
  VIADUCT_TRY(auto peer, state.agent->peer(in.at(1)));
  return done(peer.note(in.at(2)));
}

// takenote MS: answers sender and text
Answer takeNote(State& state, const Words& in) {
  VIADUCT_TRY(auto note, state.agent->waitNote(within(in.at(1))));
  return note.from + " " + std::string(note.text());
}

// takenotes MS: takes notes until none comes for that time, and answers their number
Answer takeNotes(State& state, const Words& in) {
  std::uint64_t taken = 0;
  while (state.agent->waitNote(within(in.at(1)))) ++taken;
  return std::to_string(taken);
}

// usage: answers CPU microseconds, voluntary context switches of all threads, resident KiB
Answer usage(State&, const Words&) {
  rusage self{};
  ::getrusage(RUSAGE_SELF, &self);
  const auto micro = [](const timeval& t) { return t.tv_sec * 1'000'000 + t.tv_usec; };
  std::ifstream statm("/proc/self/statm");
  long size = 0;
  long resident = 0;
  statm >> size >> resident;
  return std::to_string(micro(self.ru_utime) + micro(self.ru_stime)) + " " +
         std::to_string(self.ru_nvcsw) + " " +
         std::to_string(resident * (::sysconf(_SC_PAGESIZE) / 1024));
}

// limit files|memory N: sets a limit of this process
Answer limit(State&, const Words& in) {
  const auto which = in.at(1) == "files" ? RLIMIT_NOFILE : RLIMIT_AS;
  rlimit to{};
  ::getrlimit(which, &to);
  to.rlim_cur = number(in.at(2));
  if (::setrlimit(which, &to) != 0) return systemError(Code::kDevice, "setrlimit", errno);
  return std::string();
}

// shortage N: opens descriptors until only N more can be opened
Answer shortage(State& state, const Words& in) {
  auto& taken = state.taken;
  while (taken.emplace_back(::fcntl(0, F_DUPFD_CLOEXEC, 0))) continue;
  taken.pop_back();
  if (taken.size() < number(in.at(1))) return systemError(Code::kExhausted, "shortage", EMFILE);
  taken.resize(taken.size() - number(in[1]));
  return std::string();
}

// plenty: ends the shortage
Answer plenty(State& state, const Words&) {
  state.taken.clear();
  return std::string();
}

// trim: gives the system what malloc keeps of freed memory, so that `usage` shows what the agent
// keeps
Answer trim(State&, const Words&) {
  ::malloc_trim(0);
  return std::string();
}

// close: ends the agent, with a goodbye
Answer close(State& state, const Words&) {
  state.storms.clear();
  state.transfers.clear();
  state.borrowed.clear();
  state.leases.clear();
  state.pins.clear();
  state.agent.reset();
  return std::string();
}

// drain MS: answers the number of peers that were cut off
Answer drain(State& state, const Words& in) {
  VIADUCT_TRY(const auto rest, state.agent->drain(within(in.at(1))));
  return std::to_string(rest.size());
}

struct Command {
  std::string_view name;
  Answer (*run)(State& state, const Words& in);
};
constexpr Command kCommands[] = {
    {"open", open},
    {"memory", memory},
    {"fill", fill},
    {"differ", differ},
    {"post", post},
    {"release", release},
    {"import", import},
    {"ready", ready},
    {"over", over},
    {"settled", settled},
    {"ways", ways},
    {"plan", plan},
    {"mark", mark},
    {"lend", lend},
    {"borrow", borrow},
    {"planunder", planUnder},
    {"outcome", outcome},
    {"wait", wait},
    {"layers", layers},
    {"cancel", cancel},
    {"storm", storm},
    {"calm", calm},
    {"note", note},
    {"usage", usage},
    {"takenote", takeNote},
    {"limit", limit},
    {"close", close},
    {"pages", pages},
    {"protect", protect},
    {"shortage", shortage},
    {"plenty", plenty},
    {"file", file},
    {"gpu", gpu},
    {"drivergpu", driverGpu},
    {"drivergone", driverGone},
    {"takenotes", takeNotes},
    {"trim", trim},
    {"drain", drain},
    {"publish", publish},
    {"fetch", fetch},
    {"fetched", fetched},
};

// Shows TSan the order of this thread and the agent's threads, by a call that takes the agent's
// lock. The true order comes from lines exchanged with another process, which TSan cannot see.
void handOver(const State& state) {
  if (state.agent) static_cast<void>(state.agent->peers());
}

Answer obey(State& state, const Words& in) {
  for (const Command& command : kCommands) {
    if (in.empty() || command.name != in[0]) continue;
    handOver(state);
    Answer answer = command.run(state, in);
    handOver(state);
    return answer;
  }
  return Error{.operation = "obey", .detail = "no such command"};
}

}  // namespace

int main() {
  State state;
  for (std::string line; std::getline(std::cin, line);) {
    const Answer answer = obey(state, viaduct::testing::words(line));
    if (answer)
      std::cout << "ok " << *answer << std::endl;
    else
      std::cout << "error " << codeName(answer.error().code) << " " << answer.error().text()
                << std::endl;
  }
  return 0;
}
