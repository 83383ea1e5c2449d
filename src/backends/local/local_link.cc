#include "backends/local/local_link.h"

#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/log.h"
#include "base/random.h"

namespace viaduct::local {

using base::SharedMemory;
using core::LinkState;

namespace {

constexpr std::size_t kMostFiles = 16384;  // most mappings for one peer

Error protocol(const char* what) {
  return {.code = Code::kProtocol, .operation = "local link", .detail = what};
}

std::uint64_t addressOf(const Token& token) {
  return reinterpret_cast<std::uintptr_t>(token.data());
}

std::string brief(const Error& error) { return error.operation + ": " + error.detail; }

}  // namespace

LocalLink::LocalLink(LocalBackend& backend, core::LinkSeed seed, core::LinkHost& host)
    : backend_(backend),
      seed_(std::move(seed)),
      host_(host),
      mapped_(hostMemory(), &backend.mapped()),
      peer_(seed_.peer) {
  backend_.enlist(this);
}

LocalLink::~LocalLink() {
  backend_.dismiss(this);
  withdrawDoor(hello_.door);
}

void LocalLink::open() {
  if (!seed_.same_process && !seed_.unix_socket) {
    fail(seed_.same_host ? "no Unix socket to the peer, so memory cannot be shared with it"
                         : "the peer is not known to be on this host");
    return;
  }
  // The peer waits for a hello. An empty hello makes the peer's link unusable as well.
  if (seed_.rights->isLimited()) {
    static_cast<void>(host_.send(encode(LocalHello{})));
    return fail(
        "the peer's Card grants a part of the memory here, and mapped memory cannot be "
        "taken back from it");
  }
  if (const Status said = sayHello(); !said) {
    static_cast<void>(host_.send(encode(LocalHello{})));
    return fail(said.error().text(), said.error().code);
  }
  for (const auto& [id, file] : backend_.files()) offerFile(id, file);
}

Status LocalLink::sayHello() {
  VIADUCT_TRY(own_, OwnGate::make(seed_.peer, seed_.epoch));
  backend_.adopt(own_);
  if (seed_.pid != 0) own_->setProcess(openPidfd(seed_.pid));
  VIADUCT_CHECK(base::fillSecret(hello_.door));
  VIADUCT_CHECK(base::fillSecret(hello_.probe));
  hello_.probe_address = addressOf(hello_.probe);
  hello_.scratch_address = addressOf(own_->scratch());
  if (seed_.same_process) {
    offerDoor(hello_.door, {own_, backend_.live()});
    return seed_.self ? heard(hello_, {}) : host_.send(encode(hello_));
  }
  const base::Fd self = openPidfd(::getpid());
  if (!self)
    return systemError(errno == EMFILE || errno == ENFILE ? Code::kExhausted : Code::kUnsupported,
                       "pidfd_open", errno);
  VIADUCT_CHECK(
      host_.send(encode(hello_), std::array{own_->fd(), backend_.live()->fd(), self.get()}));
  own_->wasSent();
  return Ok{};
}

void LocalLink::offerFile(std::uint32_t id, const LocalBackend::File& file) {
  if (!shares(file)) return;
  const Status sent = host_.send(encode(FileOffer{id, file.bytes}), std::array{file.fd.get()});
  if (sent) return;
  if (sent.error().code == Code::kExhausted) state_.exhausted = true;
  base::log(base::LogLevel::kWarning, "local: a memfd was not passed to {}: {}", seed_.peer,
            sent.error().text());
}

void LocalLink::withdrawFile(std::uint32_t id, const LocalBackend::File& file) {
  if (!shares(file)) return;
  // If the message cannot be sent, the peer keeps the file mapped until the session ends.
  static_cast<void>(host_.send(encode(FileGone{id})));
}

void LocalLink::receive(std::span<const std::byte> message, std::vector<core::Fd> fds) {
  if (closed_ || state_.phase == LinkState::Phase::kUnusable) return;
  auto decoded = decode(message);
  const Status done =
      decoded ? std::visit([&](const auto& m) { return heard(m, std::move(fds)); }, *decoded)
              : Status(std::move(decoded).error());
  if (!done) fail(brief(done.error()), done.error().code);
}

Status LocalLink::heard(const LocalHello& hello, Fds fds) {
  if (peer_.attached()) return protocol("a second hello");
  if (hello == LocalHello{} && fds.empty())
    return Error{.code = Code::kUnsupported,
                 .operation = "local link",
                 .detail =
                     "the peer shares no memory here: it grants this agent a part of its "
                     "pins, or it lacks descriptors"};
  if (seed_.same_process) {
    door_ = findDoor(hello.door);
    if (!door_) return protocol("a hello from no link of this process");
    peer_.attach(&door_->gate->gate(), door_->live.get());
    state_.text = "direct";
  } else {
    VIADUCT_CHECK(attachAcross(fds));
    const std::string refused = tryCma(hello);
    state_.text = cma_ ? "mapped, cma" : "mapped; no cma: " + refused;
  }
  state_.phase = LinkState::Phase::kReady;
  backend_.copyPool().start();
  for (const auto& [slot, pin] : pins_) show(slot, pin);
  host_.changed();
  return Ok{};
}

Status LocalLink::attachAcross(Fds& fds) {
  if (fds.size() != 3) return protocol("a hello without its three files");
  VIADUCT_TRY(gate_page_,
              SharedMemory::map(fds[0], sizeof(Gate), SharedMemory::Access::kReadWrite));
  VIADUCT_TRY(live_, LiveTable::map(fds[1]));
  peer_.attach(reinterpret_cast<Gate*>(gate_page_.data()), &*live_);
  // If the peer's pid is not visible, only the peer itself can supply its pidfd.
  if (seed_.pid == 0) own_->setProcess(std::move(fds[2]));
  return Ok{};
}

// Empty if CMA can reach the peer's memory; else the reason why not.
std::string LocalLink::tryCma(const LocalHello& hello) {
  if (seed_.pid == 0) return "the peer's process is not visible here (another PID namespace)";
  if (own_->process() < 0) return "no pidfd of the peer's process could be opened";
  const CmaTarget target{.pid = seed_.pid, .pidfd = own_->process()};
  // The probe writes into the peer's memory. While we are inside its gate, the peer knows that we
  // may still write, even if we are stopped here and it ends the session.
  const Gate::Pass pass = peer_.gate().enter();
  if (!pass) return "the peer has ended this session";
  const Status tried = probe(target, hello.probe_address, hello.scratch_address, hello.probe);
  peer_.gate().leave(pass);
  if (!tried) return brief(tried.error());
  cma_ = true;
  peer_.attachCma(target);
  return {};
}

Status LocalLink::heard(const FileOffer& offer, Fds fds) {
  if (!peer_.attached() || seed_.same_process) return protocol("a file before the hello");
  if (fds.size() != 1) return protocol("a file offer without its file");
  if (files_.contains(offer.file)) return protocol("a file offered twice");
  if (files_.size() >= kMostFiles) return protocol("too many files");
  auto mapped = mapFile(fds[0], offer.bytes);
  if (!mapped && mapped.error().code == Code::kProtocol) return std::move(mapped).error();
  if (!mapped) {  // our shortage, not the peer's fault: CMA may still reach the memory
    base::log(base::LogLevel::kWarning, "local: memory of {} was not mapped: {}", seed_.peer,
              mapped.error().text());
    return Ok{};
  }
  files_.emplace(offer.file, *std::move(mapped));
  for (const auto& [slot, pin] : pins_)
    if (pin.key.in_file && pin.key.file == offer.file) show(slot, pin);
  host_.changed();
  return Ok{};
}

// Counts the bytes against a budget, because a sparse file costs its sender nothing, but uses our
// address space.
Result<std::shared_ptr<const SharedMemory>> LocalLink::mapFile(const core::Fd& file,
                                                               std::uint64_t bytes) {
  if (!mapped_.take(bytes)) return mapped_.refusal("map", bytes, "one peer", "all peers");
  const auto access = SharedMemory::accessOfPeers(file.get());
  auto memory = access ? SharedMemory::map(file, bytes, *access) : access.error();
  if (!memory) {
    mapped_.give(bytes);
    return std::move(memory).error();
  }
  // Read-only mappings are not populated: their pages are huge and take few faults, or they are
  // rare.
  const auto populating =
      memory->writable() ? backend_.populator().add(memory->bytes(), Populator::Pages::kResident)
                         : 0;
  // Runs when the last view of the mapping is dropped.
  const auto unmap = [this, bytes, populating](const SharedMemory* mapped) {
    backend_.populator().remove(populating);
    delete mapped;
    mapped_.give(bytes);
  };
  return std::shared_ptr<const SharedMemory>(new SharedMemory(*std::move(memory)), unmap);
}

Status LocalLink::heard(const FileGone& gone, const Fds& fds) {
  if (!fds.empty()) return protocol("a file with a withdrawal");
  files_.erase(gone.file);  // views in use keep their mapping until they are dropped
  return Ok{};
}

void LocalLink::addPin(const core::RemotePin& pin) {
  if (closed_ || pin.info.kind != MemoryKind::kHost || pin.info.slot >= kSlots) return;
  const auto key = decodeKey(pin.key);
  if (!key || pin.info.bytes > kMostPinBytes) return;  // the pin is for another backend
  const KnownPin known{pin.info, *key, backend_.tick()};
  pins_.insert_or_assign(pin.info.slot, known);
  if (peer_.attached()) show(pin.info.slot, known);
}

void LocalLink::dropPin(std::uint32_t slot) {
  pins_.erase(slot);
  retire(peer_.drop(slot));
}

// Makes a registration reachable in the best way that is possible now, if there is one.
void LocalLink::show(std::uint32_t slot, const KnownPin& pin) {
  RemoteView view{.address = pin.info.address,
                  .bytes = pin.info.bytes,
                  .generation = pin.key.generation,
                  .born = pin.born};
  using Method = RemoteView::Method;
  if (cma_) view.read = view.write = Method::kCma;
  const auto file = pin.key.in_file ? files_.find(pin.key.file) : files_.end();
  if (seed_.same_process) {
    view.read = view.write = Method::kDirect;
  } else if (file != files_.end() && pin.key.offset <= file->second->size() &&
             pin.info.bytes <= file->second->size() - pin.key.offset) {
    view.read = Method::kMapped;
    if (file->second->writable()) view.write = Method::kMapped;
    view.mapping = file->second;
    view.shift =
        reinterpret_cast<std::uintptr_t>(file->second->data()) + pin.key.offset - pin.info.address;
  }
  if (view.read == Method::kNone) return;
  retire(peer_.put(slot, std::move(view)));
}

// Waits until no helper is in the middle of a chunk, where it may still use the replaced objects.
void LocalLink::retire(PeerMemory::Old old) {
  if (old) backend_.copyPool().drain();
}

std::optional<std::string_view> LocalLink::reaches(OpKind kind, std::uint32_t local_pin,
                                                   std::uint32_t remote_pin) const {
  if (!usable() || !backend_.pinned(local_pin)) return std::nullopt;
  const RemoteView* view = peer_.find(remote_pin);
  if (view == nullptr) return std::nullopt;
  switch (view->method(kind)) {
    case RemoteView::Method::kNone:
      break;
    case RemoteView::Method::kDirect:
      return "direct";
    case RemoteView::Method::kMapped:
      return "mapped";
    case RemoteView::Method::kCma:
      return "cma";
  }
  return std::nullopt;
}

bool LocalLink::servedBy(const core::Rail& rail) const {
  return usable() && &rail == backend_.rails().front().get();
}

void LocalLink::close(core::Completions& out) {
  if (closed_) return;
  closed_ = true;
  backend_.copyPool().close(peer_, out);
  if (own_) own_->fence();
  withdrawDoor(hello_.door);
  for (const auto& [slot, pin] : pins_) retire(peer_.drop(slot));
  pins_.clear();
  files_.clear();
  if (state_.phase != LinkState::Phase::kUnusable) state_ = {LinkState::Phase::kUnusable, "closed"};
}

std::function<bool()> LocalLink::settling() const {
  if (own_ == nullptr) return {};
  return [own = own_] { return own->settled(); };
}

void LocalLink::fail(std::string why, Code code) {
  state_ = {LinkState::Phase::kUnusable, std::move(why), code == Code::kExhausted};
  host_.changed();
}

}  // namespace viaduct::local
