// The cost of several ways to wake a sleeping process, to compare notes with. Each way has its own
// sleeping receiver; the ways take turns, one message every 2 ms.
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/agent.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

namespace {

using namespace viaduct;
using namespace std::chrono_literals;

constexpr std::size_t kNoteBytes = 48;
constexpr int kWarmUp = 50;

double nowNs() {
  return std::chrono::duration<double, std::nano>(Clock::now().time_since_epoch()).count();
}

template <class T>
T must(Result<T> got) {
  if (!got) {
    std::fprintf(stderr, "wake_floor: %s\n", got.error().text().c_str());
    std::exit(1);
  }
  return *std::move(got);
}
void must(Status got) {
  if (!got) {
    std::fprintf(stderr, "wake_floor: %s\n", got.error().text().c_str());
    std::exit(1);
  }
}
[[noreturn]] void die(const char* what) {
  std::perror(what);
  std::exit(1);
}

// Shared by a receiver and the sender.
struct Board {
  alignas(64) std::atomic<double> seen{0};
  alignas(64) std::atomic<bool> ready{false};
  alignas(64) std::atomic<std::uint32_t> written{0};
  char slot[kNoteBytes] = {};
  std::atomic<std::size_t> card_bytes{0};
  std::byte card[4096] = {};
};
Board& newBoard() {
  void* page =
      ::mmap(nullptr, sizeof(Board), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) die("mmap");
  return *new (page) Board;
}

// One way to wake. Its receiver is a process that lives until `stop`.
struct Way {
  std::string name;
  Board* board = nullptr;
  std::function<void()> send = {};
  int child = 0;
  std::vector<double> times = {};
};

template <class F>
Way way(std::string name, Board& board, std::function<void()> send, F receive) {
  Way out{.name = std::move(name), .board = &board, .send = std::move(send)};
  out.child = ::fork();
  if (out.child < 0) die("fork");
  if (out.child == 0) {
    receive();
    std::_Exit(0);
  }
  return out;
}

void readEvent(int event) {
  std::uint64_t count = 0;
  if (::read(event, &count, sizeof count) != sizeof count) die("eventfd");
}
void writeEvent(int event) {
  const std::uint64_t one = 1;
  if (::write(event, &one, sizeof one) != sizeof one) die("eventfd");
}
int watching(int fd, std::uint32_t events) {
  const int epoll = ::epoll_create1(0);
  epoll_event event{};
  event.events = events;
  event.data.fd = fd;
  if (epoll < 0 || ::epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event) != 0) die("epoll");
  return epoll;
}
void await(int epoll) {
  epoll_event event{};
  while (::epoll_wait(epoll, &event, 1, -1) != 1)
    if (errno != EINTR) die("epoll_wait");
}

Way bareEvent() {
  Board& board = newBoard();
  const int event = ::eventfd(0, 0);
  return way(
      "eventfd, read", board, [=] { writeEvent(event); },
      [event, &board] {
        for (board.ready = true;;) {
          readEvent(event);
          board.seen = nowNs();
        }
      });
}

Way eventInEpoll() {
  Board& board = newBoard();
  const int event = ::eventfd(0, 0);
  return way(
      "eventfd, epoll", board, [=] { writeEvent(event); },
      [event, &board] {
        const int epoll = watching(event, EPOLLIN);
        for (board.ready = true;;) {
          await(epoll);
          readEvent(event);
          board.seen = nowNs();
        }
      });
}

Way unixInEpoll() {
  Board& board = newBoard();
  int ends[2] = {};
  if (::socketpair(AF_UNIX, SOCK_STREAM, 0, ends) != 0) die("socketpair");
  const auto send = [end = ends[0]] {
    const char note[kNoteBytes] = {};
    if (::send(end, note, sizeof note, 0) != sizeof note) die("send");
  };
  return way("Unix socket, epoll", board, send, [end = ends[1], &board] {
    const int epoll = watching(end, EPOLLIN);
    for (board.ready = true;;) {
      await(epoll);
      char note[kNoteBytes];
      if (::recv(end, note, sizeof note, 0) != sizeof note) die("recv");
      board.seen = nowNs();
    }
  });
}

// The least work of a note through a ring in shared memory: copy the bytes in, and copy them out
// into a new note, each under that end's lock. An edge-triggered eventfd carries only the wake-up.
Way ring(std::string name, void (*receive)(int event, Board& board)) {
  Board& board = newBoard();
  const int event = ::eventfd(0, 0);
  const auto send = [event, &board] {
    static std::mutex here;
    const char note[kNoteBytes] = {};
    const std::lock_guard hold(here);
    std::memcpy(board.slot, note, sizeof note);
    board.written.fetch_add(1, std::memory_order_release);
    writeEvent(event);
  };
  return way(std::move(name), board, send, [=, &board] { receive(event, board); });
}

// The newest note, or empty if there is none.
std::vector<char> take(const Board& board, std::uint32_t& taken) {
  const auto written = board.written.load(std::memory_order_acquire);
  if (std::exchange(taken, written) == written) return {};
  return {board.slot, board.slot + sizeof board.slot};
}

void receiveAlone(int event, Board& board) {
  const int inside = watching(event, EPOLLIN | EPOLLET);
  std::mutex here;
  std::uint32_t taken = 0;
  for (board.ready = true;;) {
    await(inside);
    std::unique_lock hold(here);
    const auto note = take(board, taken);
    hold.unlock();
    if (!note.empty()) board.seen = nowNs();
  }
}

// The same, with a second thread that serves messages while the caller handles its note. It sleeps
// in an epoll around the first one, which the caller arms when it leaves and disarms before it
// sleeps.
void receiveStoodBy(int event, Board& board) {
  const int inside = watching(event, EPOLLIN | EPOLLET), outside = watching(inside, 0);
  const auto arm = [=](std::uint32_t events) {
    epoll_event change{};
    change.events = events;
    if (::epoll_ctl(outside, EPOLL_CTL_MOD, inside, &change) != 0) die("epoll_ctl");
  };
  std::mutex here;
  std::uint32_t taken = 0;
  std::thread second([&] {
    for (;;) {
      await(outside);
      const std::lock_guard hold(here);
      if (!take(board, taken).empty()) board.seen = nowNs();
    }
  });
  for (board.ready = true;;) {
    await(inside);
    std::unique_lock hold(here);
    const auto note = take(board, taken);
    arm(EPOLLIN | EPOLLONESHOT);
    hold.unlock();
    if (!note.empty()) board.seen = nowNs();
    hold.lock();
    arm(0);
  }
}

Settings onThisHost(const char* name) {
  Settings settings;
  settings.name = name;
  settings.secret = "of wake_floor alone";
  settings.listen = {};
  return settings;
}

Way viaductNote() {
  Board& board = newBoard();
  static std::optional<Agent> agent;
  static std::optional<Peer> peer;
  Way out = way(
      "viaduct note, waitNote", board, [] { must(peer->note("")); },
      [&board] {
        auto receiver = must(Agent::open(onThisHost("receiver")));
        const auto card = receiver.exportCard();
        std::copy(card.begin(), card.end(), board.card);
        board.card_bytes = card.size();
        for (board.ready = true;;)
          if (auto note = receiver.waitNote(1h)) board.seen = nowNs();
      });
  while (board.card_bytes == 0) ::usleep(1000);
  agent.emplace(must(Agent::open(onThisHost("sender"))));
  peer = must(agent->importCard({board.card, board.card_bytes.load()}));
  must(peer->ready(5s));
  return out;
}

void turn(Way& way, bool counted) {
  ::usleep(2000);  // until the receiver sleeps again
  way.board->seen = 0;
  const double start = nowNs();
  way.send();
  while (way.board->seen.load(std::memory_order_relaxed) == 0) {
  }
  if (counted) way.times.push_back(way.board->seen - start);
}

double quantile(std::vector<double>& sorted, double q) {
  return sorted[static_cast<std::size_t>(q * static_cast<double>(sorted.size() - 1))];
}

}  // namespace

// wake_floor [turns]
int main(int argc, char** argv) {
  const int turns = argc > 1 ? std::max(1, std::atoi(argv[1])) : 1000;
  std::vector<Way> ways;
  ways.push_back(bareEvent());
  ways.push_back(eventInEpoll());
  ways.push_back(unixInEpoll());
  ways.push_back(ring("ring and eventfd, epoll", receiveAlone));
  ways.push_back(ring("the same, a thread by", receiveStoodBy));
  ways.push_back(viaductNote());
  for (const Way& way : ways)
    while (!way.board->ready) ::usleep(1000);
  for (int i = 0; i < kWarmUp + turns; ++i)
    for (Way& way : ways) turn(way, i >= kWarmUp);
  for (Way& way : ways) std::sort(way.times.begin(), way.times.end());
  const double bare = quantile(ways.front().times, 0.5);
  std::printf("%-26s %8s %8s %8s %8s\n", "us, send to seen", "p10", "p50", "p90", "x bare");
  for (Way& way : ways)
    std::printf("%-26s %8.2f %8.2f %8.2f %8.2f\n", way.name.c_str(),
                quantile(way.times, 0.1) / 1000, quantile(way.times, 0.5) / 1000,
                quantile(way.times, 0.9) / 1000, quantile(way.times, 0.5) / bare);
  for (const Way& way : ways) {
    ::kill(way.child, SIGKILL);
    ::waitpid(way.child, nullptr, 0);
  }
  return 0;
}
