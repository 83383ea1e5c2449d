// A process of another user with a limited card, which uses every means to reach memory beyond its
// grant. It obeys one command a line on stdin, and answers each on stdout with "ok [text]" or
// "error text":
//   connect CARD              opens a session with the card, in hex
//   move                      reads and writes the granted pin "a/1"
//   grab CARD PIN TICKET PID  tries each means at that pin: the owner's own message about it, in
//                             hex, a lease's ticket for another peer, and the owner's process.
//                             Answers the number of attempts, and each that reached a byte
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <grp.h>
#include <sys/uio.h>
#include <unistd.h>
#include <viaduct/viaduct.h>

#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agent/agent_impl.h"
#include "agent/peers/peer_impl.h"
#include "agent/session/grants.h"
#include "agent/session/messages.h"
#include "move/fabric_message.h"
#include "move/staging/staging_message.h"
#include "process/words.h"
#include "support/agent_of_a_clock.h"
#include "support/bytes.h"
#include "support/lying_peer.h"

namespace viaduct::testing {
namespace {

using namespace std::chrono_literals;
using agent::FrameType;

constexpr std::byte kOurs{0xa5};

Selection whole(const PinInfo& pin) {
  return {*Blocks::strided({.base = pin.address, .bytes = pin.bytes, .count = 1}), {}};
}

class Holder {
 public:
  Status open() {
    VIADUCT_TRY(impl_, agent::AgentImpl::open({.name = "holder", .deadline = 3s}, nullptr));
    agent_.emplace(agent::AgentOfAClock::of(impl_));
    return Ok{};
  }
  Result<std::string> obey(const std::vector<std::string>& in) {
    if (in.at(0) == "connect") return connect(fromHex(in.at(1)));
    if (in.at(0) == "move") return move();
    VIADUCT_TRY(const Card card, Card::decode(fromHex(in.at(1))));
    VIADUCT_TRY(const auto pin, base::decode<agent::PinMessage>(fromHex(in.at(2))));
    tried_ = 0;
    reached_.clear();
    byTransfers(pin);
    byTicket(fromHex(in.at(3)));
    byKernel(std::stoi(in.at(4)), pin.info);
    for (const std::string& where : {card.addresses.at(0), "unix:@" + card.unix_name})
      byHand(where, card, pin);
    return fmt::format("{} tried; reached:{}", tried_, fmt::join(reached_, ""));
  }

 private:
  Result<std::string> connect(const std::vector<std::byte>& card) {
    VIADUCT_TRY(here_, agent_->allocate(64 << 10));
    fillWith(here_->bytes(), kOurs);
    VIADUCT_TRY(owner_, agent_->importCard(card));
    VIADUCT_CHECK(owner_->ready(20s));
    return std::string();
  }
  Result<std::string> move() {
    VIADUCT_TRY(const PinInfo pin, owner_->waitPin("a/1", 20s));
    std::string path;
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
      VIADUCT_TRY(auto transfer, agent_->plan(kind, *owner_, whole(here_->info()), whole(pin)));
      VIADUCT_CHECK(transfer.post());
      VIADUCT_CHECK(transfer.wait(20s));
      path = transfer.path().text();
      granted_.push_back(std::move(transfer));
    }
    return path;
  }

  // Counts an attempt. `reached`: it ended without an error.
  void tried(const std::string& what, bool reached) {
    ++tried_;
    if (!allAre(here_->bytes(), kOurs)) reached = true;
    fillWith(here_->bytes(), kOurs);
    if (reached) reached_.push_back(" [" + what + "]");
  }

  // Makes this process's own agent believe that it may read and write the pin.
  Status believe(const agent::PinMessage& message) {
    VIADUCT_CHECK(owner_->ready(20s));
    const auto held = impl_->hold();
    const agent::Still still(impl_->rails());
    const auto peer = impl_->peers().find("owner");
    VIADUCT_CHECK(const_cast<agent::AnnouncedPins&>(peer->pins()).add(message));
    for (const auto& slot : peer->links())
      for (const auto& key : message.keys)
        if (impl_->backend(slot->backend()).can().name == key.backend)
          slot->link->addPin({message.info, key.bytes});
    return Ok{};
  }
  Status post(Result<Transfer> transfer, bool writes) {
    if (!transfer) return transfer.error();
    PostOptions options;
    if (writes) options = {.note = std::as_bytes(std::span("written")), .mark = Mark{7, 1}};
    VIADUCT_CHECK(transfer->post(options));
    return transfer->wait(20s);
  }
  void byTransfers(const agent::PinMessage& message) {
    std::vector<std::string> ways{"", "packed"};
    for (const BackendInfo& one : agent_->backends()) ways.push_back("backend:" + one.name);
    for (const std::string& way : ways)
      for (const OpKind kind : {OpKind::kWrite, OpKind::kRead}) {
        const Status lied = believe(message);
        const Status moved = lied ? post(agent_->plan(kind, *owner_, whole(here_->info()),
                                                      whole(message.info), {.require = way}),
                                         kind == OpKind::kWrite)
                                  : lied;
        tried(fmt::format("{} {}", opKindName(kind), way), moved.has_value());
      }
    for (Transfer& transfer : granted_)
      if (!owner_->ready(1s))  // its grant is over
        tried("a plan from before", transfer.post() && transfer.wait(20s));
  }
  void byTicket(const std::vector<std::byte>& ticket) {
    auto borrowed = agent_->borrow(*owner_, ticket);
    tried("a ticket of another", borrowed.has_value());
    if (!borrowed) return;
    for (const OpKind kind : {OpKind::kWrite, OpKind::kRead})
      tried("a lease of another",
            post(agent_->plan(kind, *borrowed, whole(here_->info())), false).has_value());
  }
  // Attempts without Viaduct: the kernel protects users from one another, as the page on security
  // says.
  void byKernel(pid_t owner, const PinInfo& pin) {
    const iovec mine{here_->bytes().data(), 8};
    const iovec theirs{reinterpret_cast<void*>(pin.address), 8};
    tried("process_vm_readv", ::process_vm_readv(owner, &mine, 1, &theirs, 1, 0) >= 0);
    tried("process_vm_writev", ::process_vm_writev(owner, &mine, 1, &theirs, 1, 0) >= 0);
    const std::string process = fmt::format("/proc/{}/", owner);
    const base::Fd memory(::open((process + "mem").c_str(), O_RDWR | O_CLOEXEC));
    tried("/proc/PID/mem", static_cast<bool>(memory));
    std::error_code denied;
    const std::filesystem::directory_iterator files(process + "fd", denied);
    tried("/proc/PID/fd", !denied);
  }

  // ---- A session of its own, with messages made by hand.

  static void tell(LyingPeer& liar, std::string_view backend, const base::Bytes& bytes) {
    liar.send(FrameType::kBackend,
              base::encode(agent::BackendMessage{.backend = backend, .bytes = bytes}));
  }
  // The owner's next message to that backend, as `decode` reads it. If memory files come in
  // between, they count as an attempt that reached the pin.
  template <class Message>
  std::optional<Message> answer(LyingPeer& liar, std::string_view backend, auto decode) {
    for (;;) {
      const auto frame = liar.next();
      if (!frame) return std::nullopt;
      if (agent::typeOf(*frame) != FrameType::kBackend) continue;
      const auto message = base::decode<agent::BackendMessage>(frame->payload);
      if (!message || message->backend != backend) continue;
      const auto decoded = decode(message->bytes);
      if (!decoded) continue;
      if (const Message* const found = std::get_if<Message>(&*decoded)) return *found;
    }
  }
  void byHand(const std::string& where, const Card& card, const agent::PinMessage& pin) {
    auto liar = LyingPeer::meet(where, card.secret, "holder-by-hand", agent::claimOf(card.grants));
    if (!liar) return tried("a session at " + where, false);
    liar->sync();
    for (const BackendInfo& one : agent_->backends()) byKeyRequest(*liar, one.name, pin);
    byStaging(*liar, pin);
    byNews(*liar, pin);
  }
  void byKeyRequest(LyingPeer& liar, const std::string& backend, const agent::PinMessage& pin) {
    for (const auto& key : pin.keys) {
      const auto generation =
          key.backend == backend ? move::decodePinKey(key.bytes) : Result<std::uint32_t>(Error{});
      if (!generation || (backend != "ofi" && backend != "ucx")) continue;
      tell(liar, backend,
           move::encode(move::KeyRequest{.slot = pin.info.slot, .generation = *generation}));
      const auto got = answer<move::KeyAnswer>(
          liar, backend, [](std::span<const std::byte> bytes) { return move::decode(bytes); });
      tried("a key of " + backend, got && !got->keys.empty());
    }
  }
  void byStaging(LyingPeer& liar, const agent::PinMessage& pin) {
    const auto ask = [&](const move::StagingMessage& message) {
      tell(liar, "staged", move::encode(message));
    };
    const auto read = [](std::span<const std::byte> bytes) { return move::decodeStaging(bytes); };
    ask(move::RingRequest{});
    if (!answer<move::RingAnswer>(liar, "staged", read)) return tried("a ring", false);
    for (const bool store : {false, true}) {
      ask(move::StorageRequest{.store = store,
                               .pieces = {{.pin = pin.info.slot,
                                           .address = pin.info.address,
                                           .bytes = 4096,
                                           .generation = pin.generation}}});
      const auto said = answer<move::StorageAnswer>(liar, "staged", read);
      tried(store ? "a staged write" : "a staged read", said && !said->error);
    }
  }
  // The liar has no right to send any of these frames. The owner's test checks what they change.
  void byNews(LyingPeer& liar, const agent::PinMessage& pin) {
    liar.send(FrameType::kMark, base::encode(agent::MarkMessage{{.stream = 7, .number = 1}}));
    liar.send(FrameType::kUnpin, base::encode(agent::UnpinMessage{pin.info.slot}));
    liar.send(FrameType::kDraining, base::encode(agent::DrainingMessage{1}));
    liar.send(FrameType::kLeaseEnded, base::encode(agent::LeaseEndedMessage{.number = 1}));
    liar.send(FrameType::kLeaseReturned, base::encode(agent::LeaseMessage{1}));
    tried("the return of a lease of another", !liar.isExpelled());
  }

  std::shared_ptr<agent::AgentImpl> impl_;
  std::optional<Agent> agent_;
  std::optional<Pin> here_;
  std::optional<Peer> owner_;
  std::vector<Transfer> granted_;
  int tried_ = 0;
  std::vector<std::string> reached_;
};

// True: this process is now one of that user, without rights of root.
bool become(uid_t user) {
  return ::setgroups(0, nullptr) == 0 && ::setresgid(user, user, user) == 0 &&
         ::setresuid(user, user, user) == 0 && ::setuid(0) != 0;
}

int run(uid_t user) {
  if (!become(user)) return 1;
  Holder holder;
  const Status opened = holder.open();
  for (std::string line; std::getline(std::cin, line);) {
    const auto done = opened ? holder.obey(words(line)) : Result<std::string>(opened.error());
    std::cout << (done ? "ok " + *done : "error " + done.error().text()) << std::endl;
  }
  return 0;
}

}  // namespace
}  // namespace viaduct::testing

int main(int, char** argv) { return viaduct::testing::run(static_cast<uid_t>(std::stoi(argv[1]))); }
