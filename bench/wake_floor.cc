// The cost of several ways to wake a sleeping process, to compare notes with. Each way has its own
// sleeping receiver; the ways take turns, one message every 2 ms.   wake_floor [TURNS]
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <memory>
#include <mutex>
#include <optional>
#include <thread>

#include "harness/agents.h"

namespace {

using namespace viaduct;
using namespace viaduct::bench;

constexpr std::size_t kNoteBytes = 48;
constexpr int kWarmUp = 50;

// Shared by a receiver and the sender.
struct Board {
  alignas(64) Sighting seen;
  alignas(64) std::atomic<std::uint32_t> written{0};
  char slot[kNoteBytes] = {};
};

// One way to wake. Its receiver is a process that waits for messages until it is killed. It greets
// the sender when it begins to wait.
struct Waker {
  template <class Receive>
  Waker(const char* its_name, std::function<void(Board&)> its_send, const Receive& receive)
      : name(its_name),
        send(std::move(its_send)),
        receiver(std::make_unique<Child>([&](Channel& sender) { receive(board, sender); })),
        greeting(receiver->receive()) {}

  const char* name;
  Board& board = shared<Board>();
  std::function<void(Board&)> send;
  std::unique_ptr<Child> receiver;
  std::vector<std::byte> greeting;
  Samples us = {};
};

void greet(const Channel& sender) { sender.sendValue(true); }

void readEvent(int event) {
  std::uint64_t count = 0;
  must(::read(event, &count, sizeof count), "eventfd");
}
void writeEvent(int event) {
  const std::uint64_t one = 1;
  must(::write(event, &one, sizeof one), "eventfd");
}
int watching(int fd, std::uint32_t events) {
  const int epoll = must(::epoll_create1(0), "epoll");
  epoll_event event{.events = events, .data = {.fd = fd}};
  must(::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event), "epoll");
  return epoll;
}
void await(int epoll) {
  epoll_event event{};
  while (::epoll_wait(epoll, &event, 1, -1) != 1)
    if (errno != EINTR) dieOf("epoll_wait");
}

Waker bareEvent() {
  const int event = ::eventfd(0, 0);
  return {"eventfd, read", [=](Board&) { writeEvent(event); },
          [=](Board& board, const Channel& sender) {
            for (greet(sender);;) {
              readEvent(event);
              board.seen.see();
            }
          }};
}

Waker eventInEpoll() {
  const int event = ::eventfd(0, 0);
  return {"eventfd, epoll", [=](Board&) { writeEvent(event); },
          [=](Board& board, const Channel& sender) {
            const int epoll = watching(event, EPOLLIN);
            for (greet(sender);;) {
              await(epoll);
              readEvent(event);
              board.seen.see();
            }
          }};
}

Waker unixInEpoll() {
  std::array<int, 2> ends{};
  must(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends.data()), "socketpair");
  return {"Unix socket, epoll",
          [=](Board&) {
            const char note[kNoteBytes] = {};
            must(::send(ends[0], note, sizeof note, 0), "send");
          },
          [=](Board& board, const Channel& sender) {
            const int epoll = watching(ends[1], EPOLLIN);
            for (greet(sender);;) {
              await(epoll);
              char note[kNoteBytes];
              must(::recv(ends[1], note, sizeof note, 0), "recv");
              board.seen.see();
            }
          }};
}

// The least work of a note through a ring in shared memory: copy the bytes in, and copy them out
// into a new note, each under that end's lock. An edge-triggered eventfd carries only the wake-up.
Waker ring(const char* name, void (*receive)(int event, Board& board, const Channel& sender)) {
  const int event = ::eventfd(0, 0);
  return {name,
          [event](Board& board) {
            static std::mutex here;
            const char note[kNoteBytes] = {};
            const std::lock_guard hold(here);
            std::memcpy(board.slot, note, sizeof note);
            board.written.fetch_add(1, std::memory_order_release);
            writeEvent(event);
          },
          [=](Board& board, const Channel& sender) { receive(event, board, sender); }};
}

// The newest note, or empty if there is none.
std::vector<char> take(const Board& board, std::uint32_t& taken) {
  const auto written = board.written.load(std::memory_order_acquire);
  if (std::exchange(taken, written) == written) return {};
  return {board.slot, board.slot + sizeof board.slot};
}

void receiveAlone(int event, Board& board, const Channel& sender) {
  const int inside = watching(event, EPOLLIN | EPOLLET);
  std::mutex here;
  std::uint32_t taken = 0;
  for (greet(sender);;) {
    await(inside);
    std::unique_lock hold(here);
    const auto note = take(board, taken);
    hold.unlock();
    if (!note.empty()) board.seen.see();
  }
}

// Also receives notes, with a second thread that serves messages while the first handles its note.
// The second thread sleeps in the epoll `outside`. The first thread arms `outside` once it has
// taken its note, and disarms it before it sleeps.
void receiveStoodBy(int event, Board& board, const Channel& sender) {
  const int inside = watching(event, EPOLLIN | EPOLLET), outside = watching(inside, 0);
  const auto arm = [=](std::uint32_t events) {
    epoll_event change{};
    change.events = events;
    must(::epoll_ctl(outside, EPOLL_CTL_MOD, inside, &change), "epoll_ctl");
  };
  std::mutex here;
  std::uint32_t taken = 0;
  std::thread second([&] {
    for (;;) {
      await(outside);
      const std::lock_guard hold(here);
      if (!take(board, taken).empty()) board.seen.see();
    }
  });
  for (greet(sender);;) {
    await(inside);
    std::unique_lock hold(here);
    const auto note = take(board, taken);
    arm(EPOLLIN | EPOLLONESHOT);
    hold.unlock();
    if (!note.empty()) board.seen.see();
    hold.lock();
    arm(0);
  }
}

Settings onThisHost(const char* name) {
  return {.name = name, .listen = {}, .secret = "of wake_floor alone"};
}

Waker viaductNote() {
  static std::optional<Agent> agent;
  static std::optional<Peer> peer;
  Waker out = {"viaduct note, waitNote", [](Board&) { must(peer->note("")); },
               [](Board& board, const Channel& sender) {
                 Agent receiver = must(Agent::open(onThisHost("receiver")));
                 for (sender.send(receiver.exportCard());;)
                   if (receiver.waitNote(kLong)) board.seen.see();
               }};
  agent = must(Agent::open(onThisHost("sender")));
  peer = must(agent->importCard(out.greeting));
  must(peer->ready(kLong));
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const Arguments given(argc, argv, "wake_floor [TURNS]");
  std::vector<Waker> ways;
  ways.push_back(bareEvent());
  ways.push_back(eventInEpoll());
  ways.push_back(unixInEpoll());
  ways.push_back(ring("ring and eventfd, epoll", receiveAlone));
  ways.push_back(ring("the same, a thread by", receiveStoodBy));
  ways.push_back(viaductNote());
  inTurns({given.number(0, 1000), kWarmUp}, ways, [](Waker& way, int round) {
    ::usleep(2000);  // until the receiver sleeps again
    way.board.seen.forget();
    const auto start = Clock::now();
    way.send(way.board);
    const double us = 1e6 * secondsBetween(start, way.board.seen.take());
    if (round >= 0) way.us.add(us);
  });
  Table table({words("us, send to seen", 26), figure("p10", 2), figure("p50", 2), figure("p90", 2),
               figure("x bare", 2)});
  for (const Waker& way : ways) {
    table.row(way.name, way.us.quantile(0.1), way.us, way.us.quantile(0.9),
              way.us.median() / ways.front().us.median());
    way.receiver->kill();
  }
}
