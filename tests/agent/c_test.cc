// Tests the C interface as C, Rust and Go call it: each function works, and refuses wrong
// arguments.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <poll.h>
#include <sys/wait.h>
#include <unistd.h>
#include <viaduct/c.h>

#include <array>
#include <atomic>
#include <cstddef>
#include <cstring>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <vector>

#include "support/temporary_folder.h"

namespace {

constexpr std::int64_t kSoon = 10'000'000'000;
constexpr std::uint64_t kBytes = std::uint64_t{64} << 10U;

// The agents a and b, a's memory "here", b's memory "there", and b as a's peer: all as handles.
class CInterface : public ::testing::Test {
 protected:
  void SetUp() override {
    a_ = open("a");
    b_ = open("b");
    ok(viaduct_memory_allocate(a_, kBytes, "here", 0, &here_, &error_));
    ok(viaduct_memory_allocate(b_, kBytes, "there", 0, &there_, &error_));
    const std::string card = cardOf(b_);
    ok(viaduct_card_import(a_, card.data(), card.size(), &peer_, &error_));
    ok(viaduct_peer_wait_ready(peer_, kSoon, &error_));
    ok(viaduct_peer_wait_pin(peer_, "there", kSoon, &remote_, &error_));
    ok(viaduct_pin_describe(here_, &local_, &error_));
  }
  void TearDown() override {
    for (const viaduct_transfer one : transfers_) ok(viaduct_transfer_close(one, &error_));
    for (const viaduct_blocks one : blocks_) ok(viaduct_blocks_close(one, &error_));
    if (peer_.id != 0) ok(viaduct_peer_close(peer_, &error_));
    for (const viaduct_pin one : {here_, there_})
      if (one.id != 0) ok(viaduct_pin_close(one, &error_));
    for (const viaduct_agent one : {a_, b_})
      if (one.id != 0) ok(viaduct_agent_close(one, &error_));
  }

  void ok(viaduct_code code) {
    EXPECT_EQ(code, VIADUCT_OK) << error_.text;
    EXPECT_EQ(error_.code, VIADUCT_OK);
    EXPECT_STREQ(error_.text, "");
  }
  // Expects that the call failed with this code, and that its error contains `word`.
  void refused(viaduct_code code, viaduct_code expected, std::string_view word) {
    EXPECT_EQ(code, expected) << error_.text << " instead of: " << word;
    EXPECT_EQ(error_.code, expected);
    EXPECT_NE(std::string_view(error_.text).find(word), std::string_view::npos) << error_.text;
  }
  void invalid(viaduct_code code, std::string_view word) { refused(code, VIADUCT_INVALID, word); }

  viaduct_agent open(const char* name, const char* backends = "local,tcp",
                     const char* faults = "") {
    const std::array<viaduct_setting, 4> settings{{{"VIADUCT_NAME", name},
                                                   {"VIADUCT_BACKENDS", backends},
                                                   {"VIADUCT_FAULTS", faults},
                                                   {"VIADUCT_FAULTS_ALLOWED", "yes"}}};
    viaduct_agent agent{};
    ok(viaduct_agent_open(settings.data(), settings.size(), 0, &agent, &error_));
    return agent;
  }
  std::string cardOf(viaduct_agent agent) {
    std::uint64_t length = 0;
    refused(viaduct_card_export(agent, nullptr, 0, &length, &error_), VIADUCT_EXHAUSTED, "needed");
    std::string card(length, '\0');
    ok(viaduct_card_export(agent, card.data(), card.size(), &length, &error_));
    return card;
  }
  viaduct_blocks blocksOf(std::uint64_t base, std::uint64_t count) {
    const viaduct_run run{.base = base, .stride = 8192, .bytes = 4096, .count = count};
    viaduct_blocks blocks{};
    ok(viaduct_blocks_of_runs(&run, 1, &blocks, &error_));
    blocks_.push_back(blocks);
    return blocks;
  }
  viaduct_transfer planned() {
    viaduct_transfer transfer{};
    ok(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, blocksOf(local_.address, 4), nullptr, 0,
                             blocksOf(remote_.address, 4), nullptr, 0, nullptr, VIADUCT_NORMAL,
                             &transfer, &error_));
    transfers_.push_back(transfer);
    return transfer;
  }
  static viaduct_part_blocks partOf(viaduct_parcel_part part, viaduct_blocks blocks,
                                    std::span<const std::uint32_t> indices = {}) {
    return {.part = part,
            .blocks = blocks,
            .indices = indices.data(),
            .index_count = indices.size(),
            .slice = {0},
            .have = nullptr,
            .have_count = 0};
  }
  char* memoryOf(const viaduct_pin_info& pin) { return reinterpret_cast<char*>(pin.address); }

  viaduct_agent a_{}, b_{};
  viaduct_pin here_{}, there_{};
  viaduct_peer peer_{};
  viaduct_pin_info local_ = VIADUCT_INIT(viaduct_pin_info),
                   remote_ = VIADUCT_INIT(viaduct_pin_info);
  viaduct_error error_ = VIADUCT_INIT(viaduct_error);
  std::vector<viaduct_transfer> transfers_;
  std::vector<viaduct_blocks> blocks_;
};

TEST_F(CInterface, DrainsWhileATransferRuns) {
  // The transfer's one op never begins, so it runs until it is cancelled.
  const viaduct_agent stuck = open("stuck", "tcp", "stop@op:1");
  viaduct_peer peer{};
  const std::string card = cardOf(b_);
  ok(viaduct_card_import(stuck, card.data(), card.size(), &peer, &error_));
  ok(viaduct_peer_wait_ready(peer, kSoon, &error_));
  viaduct_pin_info there = VIADUCT_INIT(viaduct_pin_info);
  ok(viaduct_peer_wait_pin(peer, "there", kSoon, &there, &error_));
  viaduct_pin memory{};
  ok(viaduct_memory_allocate(stuck, kBytes, "memory", 0, &memory, &error_));
  viaduct_pin_info local = VIADUCT_INIT(viaduct_pin_info);
  ok(viaduct_pin_describe(memory, &local, &error_));
  viaduct_transfer transfer{};
  ok(viaduct_transfer_plan(stuck, VIADUCT_WRITE, peer, blocksOf(local.address, 1), nullptr, 0,
                           blocksOf(there.address, 1), nullptr, 0, nullptr, VIADUCT_NORMAL,
                           &transfer, &error_));
  ok(viaduct_transfer_post(transfer, VIADUCT_DEFAULT_DEADLINE, nullptr, 0, &error_));
  std::uint64_t cut_off = 7;
  viaduct_error drain_error = VIADUCT_INIT(viaduct_error);
  std::thread drain([&] { viaduct_agent_drain(stuck, VIADUCT_FOREVER, &cut_off, &drain_error); });
  std::array<viaduct_drain_left, 2> left{};
  left[0].size = left[1].size = sizeof left[0];
  for (std::uint64_t count = 0; count == 0 || left[0].answered == 0;)
    ok(viaduct_agent_drain_left(stuck, left.data(), left.size(), &count, &error_));
  EXPECT_STREQ(left[0].peer, "b");
  EXPECT_EQ(left[0].transfers, 1U);
  EXPECT_EQ(left[0].bytes, 4096U);
  EXPECT_EQ(left[0].their_transfers, 0U);
  std::int32_t state = 0;
  ok(viaduct_peer_state(peer, &state, nullptr, &error_));
  EXPECT_EQ(state, VIADUCT_PEER_IS_DRAINING);
  invalid(viaduct_agent_drain(stuck, 0, nullptr, &error_), "drains already");
  refused(viaduct_peer_connect(stuck, "127.0.0.1:1", &peer, &error_), VIADUCT_DRAINING, "drains");
  ok(viaduct_agent_undrain(stuck, &error_));
  drain.join();
  EXPECT_EQ(drain_error.code, VIADUCT_CANCELLED) << drain_error.text;
  invalid(viaduct_agent_undrain(stuck, &error_), "no drain runs");
  ok(viaduct_agent_drain(stuck, 1'000'000, &cut_off, &error_));
  EXPECT_EQ(cut_off, 1U);
  ok(viaduct_transfer_close(transfer, &error_));
  ok(viaduct_pin_close(memory, &error_));
  ok(viaduct_peer_close(peer, &error_));
  ok(viaduct_agent_close(stuck, &error_));
}

TEST_F(CInterface, NamesItsCodesAndVersions) {
  EXPECT_EQ(viaduct_abi_version(), std::uint32_t{VIADUCT_ABI_VERSION});
  EXPECT_TRUE(std::string_view(viaduct_version()).starts_with("0."));
  EXPECT_STREQ(viaduct_code_name(VIADUCT_OK), "ok");
  for (viaduct_code code = VIADUCT_INVALID; code <= VIADUCT_DRAINING; ++code)
    EXPECT_STRNE(viaduct_code_name(code), "unknown code") << code;
  for (const viaduct_code code : {-1, VIADUCT_DRAINING + 1, INT32_MIN, INT32_MAX})
    EXPECT_STREQ(viaduct_code_name(code), "unknown code");
}

TEST_F(CInterface, MovesStridedBlocksAndANoteAfterThem) {
  std::memset(memoryOf(local_), 'x', kBytes);
  const viaduct_transfer transfer = planned();
  ok(viaduct_transfer_post(transfer, VIADUCT_DEFAULT_DEADLINE, "full", 4, &error_));
  std::array<char, 16> note{};
  viaduct_note_info info = VIADUCT_INIT(viaduct_note_info);
  ok(viaduct_note_receive(b_, kSoon, &info, note.data(), note.size(), &error_));
  EXPECT_EQ(std::string_view(note.data(), info.bytes), "full");
  EXPECT_STREQ(info.from, "a");
  const char* there = memoryOf(remote_);
  for (std::size_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(there[i], i % 8192 < 4096 && i < 4 * 8192 ? 'x' : '\0') << i;
  ok(viaduct_transfer_wait(transfer, kSoon, &error_));
  std::int32_t state = -1;
  ok(viaduct_transfer_poll(transfer, &state, &error_));
  EXPECT_EQ(state, VIADUCT_TRANSFER_DONE);
  std::array<char, 128> path{};
  std::uint64_t length = 0;
  ok(viaduct_transfer_path(transfer, path.data(), path.size(), &length, &error_));
  EXPECT_NE(std::string_view(path.data(), length).find("16.0 KiB"), std::string_view::npos)
      << path.data();
  EXPECT_EQ(std::strlen(path.data()), length);
}

TEST_F(CInterface, ReadsTheBlocksThatIndicesName) {
  char* there = memoryOf(remote_);
  for (int block = 0; block < 4; ++block) std::memset(there + block * 8192, 'a' + block, 4096);
  std::vector<viaduct_extent> extents;
  for (std::uint64_t i = 0; i < 4; ++i) extents.push_back({local_.address + i * 4096, 4096});
  viaduct_blocks local{};
  ok(viaduct_blocks_of_extents(extents.data(), extents.size(), &local, &error_));
  blocks_.push_back(local);
  const std::array<std::uint32_t, 2> from{3, 1}, into{0, 2};
  viaduct_transfer transfer{};
  ok(viaduct_transfer_plan(a_, VIADUCT_READ, peer_, local, into.data(), into.size(),
                           blocksOf(remote_.address, 4), from.data(), from.size(), "same-host",
                           VIADUCT_NORMAL, &transfer, &error_));
  transfers_.push_back(transfer);
  ok(viaduct_transfer_post(transfer, kSoon, nullptr, 0, &error_));
  ok(viaduct_transfer_wait(transfer, VIADUCT_FOREVER, &error_));
  const char* here = memoryOf(local_);
  EXPECT_EQ(here[0], 'd');
  EXPECT_EQ(here[4096], '\0');
  EXPECT_EQ(here[2 * 4096], 'b');
}

TEST_F(CInterface, PinsTheCallersMemory) {
  alignas(4096) static std::array<char, 4096> memory{};
  viaduct_pin pin{};
  ok(viaduct_memory_pin(b_, memory.data(), memory.size(), "mine", &pin, &error_));
  viaduct_pin_info info = VIADUCT_INIT(viaduct_pin_info);
  ok(viaduct_peer_wait_pin(peer_, "mine", kSoon, &info, &error_));
  EXPECT_EQ(info.address, reinterpret_cast<std::uintptr_t>(memory.data()));
  EXPECT_EQ(info.bytes, memory.size());
  EXPECT_EQ(info.kind, VIADUCT_MEMORY_HOST);
  EXPECT_EQ(info.access, VIADUCT_READ_WRITE);
  ok(viaduct_pin_close(pin, &error_));
  invalid(viaduct_memory_pin(b_, nullptr, 4096, "mine", &pin, &error_), "");
  invalid(viaduct_memory_pin(b_, memory.data(), 0, "mine", &pin, &error_), "");
}

TEST_F(CInterface, KeepsANoteForWhichTheBufferIsTooSmall) {
  ok(viaduct_note_send(peer_, "first", 5, &error_));
  ok(viaduct_note_send(peer_, "second", 6, &error_));
  ok(viaduct_note_send(peer_, nullptr, 0, &error_));
  std::array<char, 8> note{};
  viaduct_note_info info = VIADUCT_INIT(viaduct_note_info);
  const auto receive = [&](std::uint64_t capacity) {
    return viaduct_note_receive(b_, kSoon, &info, note.data(), capacity, &error_);
  };
  for (const std::uint64_t capacity : {0U, 4U}) {
    refused(receive(capacity), VIADUCT_EXHAUSTED, "5 are needed");
    EXPECT_EQ(info.bytes, 5U);
  }
  ok(receive(5));
  EXPECT_EQ(std::string_view(note.data(), info.bytes), "first");
  ok(receive(note.size()));
  EXPECT_EQ(std::string_view(note.data(), info.bytes), "second");
  ok(receive(0));
  EXPECT_EQ(info.bytes, 0U);
  refused(viaduct_note_receive(b_, 0, &info, note.data(), 8, &error_), VIADUCT_TIMEOUT, "no note");
  invalid(viaduct_note_send(peer_, nullptr, 1, &error_), "NULL");
  const std::vector<char> long_note(VIADUCT_NOTE_MOST_BYTES + 1);
  invalid(viaduct_note_send(peer_, long_note.data(), long_note.size(), &error_), "1048577");
}

TEST_F(CInterface, WakesAnEventLoop) {
  std::int32_t fd = -1, moved = -1;
  ok(viaduct_agent_event_fd(b_, &fd, &error_));
  ok(viaduct_agent_poll(b_, &moved, &error_));
  EXPECT_TRUE(moved == 0 || moved == 1);
  ok(viaduct_note_send(peer_, "hello", 5, &error_));
  viaduct_note_info info = VIADUCT_INIT(viaduct_note_info);
  std::array<char, 8> note{};
  viaduct_code received = VIADUCT_TIMEOUT;
  while (received == VIADUCT_TIMEOUT) {
    pollfd watched{.fd = fd, .events = POLLIN, .revents = 0};
    ASSERT_EQ(::poll(&watched, 1, 10'000), 1);
    ok(viaduct_agent_poll(b_, nullptr, &error_));
    received = viaduct_note_receive(b_, 0, &info, note.data(), note.size(), nullptr);
  }
  EXPECT_EQ(received, VIADUCT_OK);
  EXPECT_EQ(std::string_view(note.data(), info.bytes), "hello");
}

TEST_F(CInterface, MovesBlocksOfAFile) {
  const viaduct::testing::TemporaryFolder folder;
  const std::string path = folder.path() + "/slab";
  const viaduct_agent agent = open("files", "local,file");
  viaduct_peer self{};
  ok(viaduct_peer_self(agent, &self, &error_));
  ok(viaduct_peer_wait_ready(self, kSoon, &error_));
  viaduct_part part = VIADUCT_INIT(viaduct_part);
  part.bytes = kBytes;
  part.flags = VIADUCT_CREATE;
  viaduct_pin slab{}, memory{};
  ok(viaduct_file_pin(agent, path.c_str(), -1, &part, "slab", &slab, &error_));
  ok(viaduct_memory_allocate(agent, kBytes, nullptr, 0, &memory, &error_));
  viaduct_pin_info there = VIADUCT_INIT(viaduct_pin_info), here = VIADUCT_INIT(viaduct_pin_info);
  ok(viaduct_peer_wait_pin(self, "slab", kSoon, &there, &error_));
  ok(viaduct_pin_describe(memory, &here, &error_));
  EXPECT_EQ(there.kind, VIADUCT_MEMORY_FILE);
  EXPECT_EQ(there.bytes, kBytes);
  std::memset(memoryOf(here), 'x', kBytes);
  viaduct_transfer transfer{};
  ok(viaduct_transfer_plan(agent, VIADUCT_WRITE, self, blocksOf(here.address, 4), nullptr, 0,
                           blocksOf(there.address, 4), nullptr, 0, nullptr, VIADUCT_NORMAL,
                           &transfer, &error_));
  transfers_.push_back(transfer);
  ok(viaduct_transfer_post(transfer, VIADUCT_DEFAULT_DEADLINE, nullptr, 0, &error_));
  ok(viaduct_transfer_wait(transfer, kSoon, &error_));

  std::string held(kBytes, '?');
  const int fd = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(::pread(fd, held.data(), kBytes, 0), static_cast<ssize_t>(kBytes));
  for (std::size_t i = 0; i < kBytes; ++i)
    ASSERT_EQ(held[i], i % 8192 < 4096 && i < 4 * 8192 ? 'x' : '\0') << i;
  // The second pin is of a descriptor that is open only for reading.
  viaduct_pin second{};
  ok(viaduct_file_pin(agent, nullptr, fd, nullptr, nullptr, &second, &error_));
  ok(viaduct_pin_describe(second, &there, &error_));
  EXPECT_EQ(there.bytes, kBytes);
  EXPECT_EQ(there.access, VIADUCT_READ_ONLY);
  ::close(fd);
  for (const viaduct_pin one : {slab, memory, second}) ok(viaduct_pin_close(one, &error_));
  ok(viaduct_peer_close(self, &error_));
  ok(viaduct_agent_close(agent, &error_));
}

TEST_F(CInterface, RefusesFilesThatItCannotPin) {
  const viaduct_agent agent = open("files", "local,file");
  viaduct_part part = VIADUCT_INIT(viaduct_part);
  viaduct_pin pin{};
  refused(viaduct_file_pin(agent, "/no/such/file", -1, &part, nullptr, &pin, &error_),
          VIADUCT_NOT_FOUND, "/no/such/file");
  EXPECT_STREQ(error_.file, "/no/such/file");
  EXPECT_NE(viaduct_file_pin(agent, nullptr, -1, &part, nullptr, &pin, &error_), VIADUCT_OK);
  part.flags = 8;
  invalid(viaduct_file_pin(agent, "/", -1, &part, nullptr, &pin, &error_), "0x8");
  part.flags = VIADUCT_ONLY_READ;
  invalid(viaduct_file_pin(agent, "/", -1, &part, nullptr, &pin, &error_), "folder");
  part.size = 8;
  invalid(viaduct_file_pin(agent, "/", -1, &part, nullptr, &pin, &error_), "VIADUCT_INIT");
  invalid(viaduct_file_pin(agent, "/", -1, nullptr, nullptr, nullptr, &error_), "pin is NULL");
  invalid(viaduct_object_pin(agent, nullptr, nullptr, nullptr, &pin, &error_), "url is NULL");
  refused(viaduct_object_pin(agent, "s3://b/k", nullptr, nullptr, &pin, &error_),
          VIADUCT_UNSUPPORTED, "object");
  EXPECT_EQ(pin.id, 0U);
  ok(viaduct_agent_close(agent, &error_));
}

TEST_F(CInterface, ListsItsPeers) {
  std::array<char, 8> name{};
  std::uint64_t length = 99, epoch = 0;
  ok(viaduct_agent_name(b_, name.data(), name.size(), &length, &error_));
  EXPECT_STREQ(name.data(), "b");
  ok(viaduct_peer_name(peer_, name.data(), 2, &length, &error_));
  EXPECT_EQ(length, 1U);
  refused(viaduct_peer_name(peer_, name.data(), 1, &length, &error_), VIADUCT_EXHAUSTED, "2 are");
  std::int32_t state = -1, settled = -1;
  ok(viaduct_peer_state(peer_, &state, &epoch, &error_));
  EXPECT_EQ(state, VIADUCT_PEER_IS_READY);
  EXPECT_EQ(epoch, 1U);
  ok(viaduct_peer_settled(peer_, &settled, &error_));
  EXPECT_EQ(settled, 1);
  viaduct_peer known{};
  ok(viaduct_peer_known(b_, "a", &known, &error_));
  refused(viaduct_peer_wait_over(known, 1, 0, &error_), VIADUCT_TIMEOUT, "epoch 1");
  ok(viaduct_peer_forget(peer_, &error_));
  ok(viaduct_peer_wait_over(known, 1, kSoon, &error_));
  ok(viaduct_peer_close(known, &error_));
  refused(viaduct_peer_known(b_, "nobody", &known, &error_), VIADUCT_NOT_FOUND, "nobody");
  invalid(viaduct_peer_connect(a_, "no address", &known, &error_), "");
  invalid(viaduct_peer_find(a_, "b", 0, &known, &error_), "VIADUCT_MEET");
}

TEST_F(CInterface, RefusesSettingsByName) {
  viaduct_agent agent{};
  const auto openWith = [&](const char* name, const char* value) {
    const viaduct_setting setting{name, value};
    return viaduct_agent_open(&setting, 1, 0, &agent, &error_);
  };
  invalid(openWith("VIADUCT_LISTENS", "none"), "use VIADUCT_LISTEN");
  invalid(openWith("", ""), "no setting");
  invalid(openWith("VIADUCT_SOCKETS", "many"), "VIADUCT_SOCKETS=many cannot be read");
  EXPECT_STRNE(error_.remedy, "");
  invalid(openWith("VIADUCT_SOCKETS", nullptr), "NULL");
  invalid(openWith(nullptr, "1"), "NULL");
  invalid(viaduct_agent_open(nullptr, 1, 0, &agent, &error_), "settings is NULL");
  invalid(viaduct_agent_open(nullptr, 0, 4, &agent, &error_), "0x4");
  invalid(viaduct_agent_open(nullptr, 0, 0, nullptr, &error_), "agent is NULL");
  EXPECT_EQ(agent.id, 0U) << "an output of a call that failed";
  ::setenv("VIADUCT_NAME", "from-the-environment", 1);
  ok(viaduct_agent_open(nullptr, 0, VIADUCT_READ_ENVIRONMENT, &agent, &error_));
  ::unsetenv("VIADUCT_NAME");
  std::array<char, 32> name{};
  std::uint64_t length = 0;
  ok(viaduct_agent_name(agent, name.data(), name.size(), &length, &error_));
  EXPECT_STREQ(name.data(), "from-the-environment");
  ok(viaduct_agent_close(agent, &error_));
}

TEST_F(CInterface, FetchesAParcelAndBothEndsKnow) {
  std::memset(memoryOf(remote_), 'p', kBytes);
  const viaduct_parcel_part one{.rank = 3, .component = 1}, two{.rank = 3, .component = 2};
  const std::array<viaduct_parcel_part, 2> parts{one, two};
  viaduct_publish_options options = VIADUCT_INIT(viaduct_publish_options);
  options.version = 7;
  options.parts = parts.data();
  options.part_count = 2;
  options.takers = 1;
  options.digests = 1;
  const std::array<std::uint32_t, 2> indices{2, 0};
  const viaduct_blocks there = blocksOf(remote_.address, 4), here = blocksOf(local_.address, 4);
  const viaduct_part_blocks first = partOf(one, there, indices);
  viaduct_parcel parcel{};
  ok(viaduct_parcel_publish(b_, "weights", &options, &first, 1, &parcel, &error_));
  std::array<viaduct_parcel_part, 2> missing{};
  std::uint64_t count = 0;
  ok(viaduct_parcel_missing(parcel, missing.data(), 2, &count, &error_));
  EXPECT_EQ(count, 1U);
  EXPECT_EQ(missing[0].component, 2U);

  const std::array<std::uint32_t, 1> last{3};
  const std::array<viaduct_part_blocks, 2> into{partOf(one, here, indices),
                                                partOf(two, here, last)};
  viaduct_fetch_options wanted = VIADUCT_INIT(viaduct_fetch_options);
  wanted.version = 7;
  wanted.exact = 1;
  viaduct_fetch fetch{};
  ok(viaduct_fetch_begin(a_, peer_, "weights", &wanted, into.data(), 2, &fetch, &error_));
  ok(viaduct_fetch_wait_part(fetch, one, kSoon, &error_));
  ok(viaduct_fetch_missing(fetch, nullptr, 0, &count, &error_));
  EXPECT_EQ(count, 1U);
  viaduct_parcel_end end = VIADUCT_INIT(viaduct_parcel_end);
  refused(viaduct_fetch_end(fetch, &end, &error_), VIADUCT_BUSY, "has not ended");
  refused(viaduct_fetch_wait(fetch, 0, &error_), VIADUCT_TIMEOUT, "has not arrived");
  const viaduct_part_blocks second = partOf(two, there, last);
  ok(viaduct_parcel_ready(parcel, &second, &error_));
  ok(viaduct_fetch_wait(fetch, kSoon, &error_));
  ok(viaduct_fetch_end(fetch, &end, &error_));
  EXPECT_EQ(end.outcome, VIADUCT_PARCEL_WHOLE);
  EXPECT_EQ(end.version, 7U);
  EXPECT_EQ(end.ranks, 1U);
  EXPECT_STREQ(end.why, "");
  for (const std::size_t block : {0U, 2U, 3U}) EXPECT_EQ(memoryOf(local_)[block * 8192], 'p');
  EXPECT_EQ(memoryOf(local_)[8192], 0);
  ok(viaduct_parcel_wait(parcel, kSoon, &end, &error_));
  EXPECT_EQ(end.outcome, VIADUCT_PARCEL_WHOLE);
  ok(viaduct_fetch_close(fetch, &error_));
  ok(viaduct_parcel_close(parcel, &error_));
}

TEST_F(CInterface, ReadsOnlyTheBlocksOfAPartThatDiffer) {
  std::memset(memoryOf(remote_), 'p', kBytes);
  std::memset(memoryOf(local_), 'p', kBytes);
  const viaduct_parcel_part one{.rank = 0, .component = 0};
  const viaduct_blocks there = blocksOf(remote_.address, 4), here = blocksOf(local_.address, 4);
  viaduct_publish_options options = VIADUCT_INIT(viaduct_publish_options);
  options.digests = 1;
  options.takers = 1;
  const viaduct_part_blocks ready = partOf(one, there);
  viaduct_parcel parcel{};
  ok(viaduct_parcel_publish(b_, "weights", &options, &ready, 1, &parcel, &error_));
  std::array<viaduct_digest, 4> digests{};
  refused(viaduct_blocks_digests(a_, here, nullptr, 0, digests.data(), 3, &error_), VIADUCT_INVALID,
          "3 digests of 4 blocks");
  ok(viaduct_blocks_digests(a_, here, nullptr, 0, digests.data(), 4, &error_));
  // The fetch skips a block whose given digest equals the owner's, even if it has changed here.
  std::memset(memoryOf(local_), 'x', kBytes);
  digests[2].low ^= 1U;
  viaduct_part_blocks into = partOf(one, here);
  into.have = digests.data();
  into.have_count = 4;
  viaduct_fetch fetch{};
  ok(viaduct_fetch_begin(a_, peer_, "weights", nullptr, &into, 1, &fetch, &error_));
  ok(viaduct_fetch_wait(fetch, kSoon, &error_));
  for (const std::size_t block : {0U, 1U, 3U}) EXPECT_EQ(memoryOf(local_)[block * 8192], 'x');
  EXPECT_EQ(memoryOf(local_)[2 * 8192], 'p');
  ok(viaduct_fetch_close(fetch, &error_));
  ok(viaduct_parcel_wait(parcel, kSoon, nullptr, &error_));
  std::uint64_t taken = 0;
  ok(viaduct_parcel_taken(parcel, &taken, &error_));
  EXPECT_EQ(taken, 1U);
  into.have_count = 3;
  refused(viaduct_fetch_begin(a_, peer_, "weights", nullptr, &into, 1, &fetch, &error_),
          VIADUCT_INVALID, "3 digests");
  refused(viaduct_fetch_begin(a_, {0}, "weights", nullptr, nullptr, 0, &fetch, &error_),
          VIADUCT_INVALID, "no memory");
  ok(viaduct_parcel_close(parcel, &error_));
}

TEST_F(CInterface, AParcelThatIsWithdrawnOrCancelledEndsTheFetch) {
  const viaduct_parcel_part one{.rank = 0, .component = 0};
  viaduct_publish_options options = VIADUCT_INIT(viaduct_publish_options);
  options.parts = &one;
  options.part_count = 1;
  viaduct_parcel parcel{};
  ok(viaduct_parcel_publish(b_, "kv", &options, nullptr, 0, &parcel, &error_));
  const viaduct_part_blocks into = partOf(one, blocksOf(local_.address, 1));
  viaduct_fetch fetch{}, other{};
  ok(viaduct_fetch_begin(a_, peer_, "kv", nullptr, &into, 1, &fetch, &error_));
  ok(viaduct_fetch_begin(a_, peer_, "kv", nullptr, &into, 1, &other, &error_));
  ok(viaduct_fetch_cancel(other, "no room", &error_));
  refused(viaduct_fetch_wait(other, kSoon, &error_), VIADUCT_CANCELLED, "no room");
  ok(viaduct_fetch_close(other, &error_));
  ok(viaduct_parcel_withdraw(parcel, &error_));
  refused(viaduct_fetch_wait(fetch, kSoon, &error_), VIADUCT_CANCELLED, "withdrawn");
  viaduct_parcel_end end = VIADUCT_INIT(viaduct_parcel_end);
  ok(viaduct_fetch_end(fetch, &end, &error_));
  EXPECT_EQ(end.outcome, VIADUCT_PARCEL_CANCELLED);
  EXPECT_NE(std::string_view(end.why).find("withdrawn"), std::string_view::npos) << end.why;
  ok(viaduct_parcel_wait(parcel, 0, &end, &error_));
  EXPECT_EQ(end.outcome, VIADUCT_PARCEL_CANCELLED);
  ok(viaduct_parcel_close(parcel, &error_));
  ok(viaduct_fetch_close(fetch, &error_));
}

TEST_F(CInterface, RefusesParcelsThatCannotBe) {
  viaduct_parcel parcel{};
  viaduct_fetch fetch{};
  viaduct_publish_options options = VIADUCT_INIT(viaduct_publish_options);
  const viaduct_part_blocks part = partOf({0, 1}, blocksOf(local_.address, 1));
  viaduct_part_blocks sliced = part;
  sliced.slice = part.blocks;
  invalid(viaduct_parcel_publish({0}, "kv", nullptr, &part, 1, &parcel, &error_), "the agent is 0");
  invalid(viaduct_parcel_publish(a_, nullptr, nullptr, &part, 1, &parcel, &error_), "name is NULL");
  invalid(viaduct_parcel_publish(a_, "kv", nullptr, &part, 1, nullptr, &error_), "parcel is NULL");
  invalid(viaduct_parcel_publish(a_, "kv", nullptr, nullptr, 1, &parcel, &error_), "is NULL");
  invalid(viaduct_parcel_publish(a_, "kv", nullptr, &sliced, 1, &parcel, &error_), "slice");
  options.size = 8;
  invalid(viaduct_parcel_publish(a_, "kv", &options, &part, 1, &parcel, &error_), "has size 8");
  viaduct_fetch_options wanted = VIADUCT_INIT(viaduct_fetch_options);
  wanted.priority = 9;
  invalid(viaduct_fetch_begin(a_, peer_, "kv", &wanted, &part, 1, &fetch, &error_), "priority");
  invalid(viaduct_fetch_begin(a_, {0}, "kv", nullptr, &part, 1, &fetch, &error_),
          "no meeting place");
  invalid(viaduct_fetch_begin(a_, peer_, "kv", nullptr, nullptr, 0, &fetch, &error_), "no memory");
  invalid(viaduct_fetch_wait({0}, 0, &error_), "the fetch is 0");
  invalid(viaduct_fetch_close({0}, &error_), "the fetch is 0");
  invalid(viaduct_parcel_ready({0}, &part, &error_), "the parcel is 0");
  invalid(viaduct_parcel_close({0}, &error_), "the parcel is 0");
}

TEST_F(CInterface, RefusesNullAndEveryHandleThatIsNotOpen) {
  viaduct_agent closed = open("closed");
  ok(viaduct_agent_close(closed, &error_));
  viaduct_pin pin{};
  viaduct_peer peer{};
  viaduct_transfer transfer{};
  viaduct_pin_info pin_info = VIADUCT_INIT(viaduct_pin_info);
  viaduct_note_info note_info = VIADUCT_INIT(viaduct_note_info);
  std::uint64_t length = 0;
  std::int32_t number = 0;
  for (const viaduct_agent agent : {viaduct_agent{0}, viaduct_agent{1}, closed,
                                    viaduct_agent{peer_.id}, viaduct_agent{UINT64_MAX}}) {
    const viaduct_grant all = VIADUCT_INIT(viaduct_grant);
    const std::array<viaduct_code, 17> codes{
        viaduct_agent_close(agent, &error_),
        viaduct_agent_name(agent, nullptr, 0, &length, &error_),
        viaduct_agent_poll(agent, &number, &error_),
        viaduct_agent_event_fd(agent, &number, &error_),
        viaduct_memory_allocate(agent, 1, nullptr, 0, &pin, &error_),
        viaduct_memory_pin(agent, &number, 1, nullptr, &pin, &error_),
        viaduct_card_export(agent, nullptr, 0, &length, &error_),
        viaduct_card_export_granted(agent, &all, nullptr, 0, &length, &error_),
        viaduct_card_revoke(agent, nullptr, 0, &error_),
        viaduct_card_import(agent, "", 0, &peer, &error_),
        viaduct_peer_connect(agent, "localhost:1", &peer, &error_),
        viaduct_peer_find(agent, "b", 0, &peer, &error_),
        viaduct_peer_known(agent, "b", &peer, &error_),
        viaduct_peer_self(agent, &peer, &error_),
        viaduct_file_pin(agent, "/etc/hostname", -1, nullptr, nullptr, &pin, &error_),
        viaduct_object_pin(agent, "s3://b/k", nullptr, nullptr, &pin, &error_),
        viaduct_note_receive(agent, 0, &note_info, nullptr, 0, &error_)};
    for (const viaduct_code code : codes) invalid(code, "the agent is 0, closed");
  }
  for (const viaduct_peer other : {viaduct_peer{0}, viaduct_peer{a_.id}}) {
    const std::array<viaduct_code, 9> codes{
        viaduct_peer_close(other, &error_),
        viaduct_peer_state(other, &number, nullptr, &error_),
        viaduct_peer_name(other, nullptr, 0, &length, &error_),
        viaduct_peer_wait_ready(other, 0, &error_),
        viaduct_peer_wait_over(other, 1, 0, &error_),
        viaduct_peer_wait_pin(other, "x", 0, &pin_info, &error_),
        viaduct_peer_settled(other, &number, &error_),
        viaduct_peer_forget(other, &error_),
        viaduct_note_send(other, "x", 1, &error_)};
    for (const viaduct_code code : codes) invalid(code, "the peer is 0, closed");
  }
  for (const viaduct_transfer other : {viaduct_transfer{0}, viaduct_transfer{a_.id}}) {
    const std::array<viaduct_code, 6> codes{
        viaduct_transfer_post(other, 0, nullptr, 0, &error_),
        viaduct_transfer_poll(other, &number, &error_),
        viaduct_transfer_wait(other, 0, &error_),
        viaduct_transfer_cancel(other, &error_),
        viaduct_transfer_path(other, nullptr, 0, &length, &error_),
        viaduct_transfer_close(other, &error_)};
    for (const viaduct_code code : codes) invalid(code, "the transfer is 0, closed");
  }
  invalid(viaduct_pin_describe({0}, &pin_info, &error_), "the pin is 0, closed");
  invalid(viaduct_pin_close({0}, &error_), "the pin is 0, closed");
  invalid(viaduct_blocks_close({0}, &error_), "the list of blocks is 0, closed");
  invalid(viaduct_transfer_plan({0}, VIADUCT_WRITE, peer_, {0}, nullptr, 0, {0}, nullptr, 0,
                                nullptr, VIADUCT_NORMAL, &transfer, &error_),
          "the agent is 0, closed");
}

TEST_F(CInterface, ACardGrantsAPartAndIsTakenBack) {
  std::array<char, 4096> card{}, less{};
  std::array<char, VIADUCT_CARD_ID_SIZE> id{};
  std::array<char, 128> text{};
  std::uint64_t length = 0;
  viaduct_grant grant = VIADUCT_INIT(viaduct_grant);
  grant.pins = "the*";
  grant.access = VIADUCT_GRANT_READ;
  ok(viaduct_card_export_granted(b_, &grant, card.data(), card.size(), &length, &error_));
  ok(viaduct_card_describe(card.data(), length, id.data(), text.data(), text.size(), &error_));
  EXPECT_STREQ(text.data(), "pins like the*, reading");
  viaduct_grant one = VIADUCT_INIT(viaduct_grant);
  one.name = "c";
  std::uint64_t short_length = 0;
  ok(viaduct_card_narrow(card.data(), length, &one, less.data(), less.size(), &short_length,
                         &error_));
  const viaduct_agent c = open("c");
  viaduct_peer peer{};
  ok(viaduct_card_import(c, less.data(), short_length, &peer, &error_));
  ok(viaduct_peer_wait_ready(peer, kSoon, &error_));
  viaduct_pin_info there = VIADUCT_INIT(viaduct_pin_info);
  ok(viaduct_peer_wait_pin(peer, "there", kSoon, &there, &error_));
  EXPECT_EQ(there.access, VIADUCT_READ_ONLY);
  ok(viaduct_card_revoke(b_, id.data(), 0, &error_));
  ok(viaduct_peer_wait_over(peer, 1, kSoon, &error_));
  refused(viaduct_peer_wait_ready(peer, kSoon, &error_), VIADUCT_DENIED, "revoked");
  ok(viaduct_peer_close(peer, &error_));
  ok(viaduct_agent_close(c, &error_));

  invalid(viaduct_card_revoke(b_, "00", 0, &error_), "no id");
  invalid(viaduct_card_export_granted(b_, nullptr, card.data(), card.size(), &length, &error_),
          "grant is NULL");
  grant.access = 4;
  invalid(viaduct_card_export_granted(b_, &grant, card.data(), card.size(), &length, &error_),
          "no access has the number 4");
  grant.size = 8;
  invalid(viaduct_card_export_granted(b_, &grant, card.data(), card.size(), &length, &error_),
          "size 8");
  const std::string all = cardOf(b_);
  ok(viaduct_card_describe(all.data(), all.size(), id.data(), nullptr, 0, &error_));
  EXPECT_STREQ(id.data(), "");
  invalid(
      viaduct_card_narrow(all.data(), all.size(), &one, less.data(), less.size(), &length, &error_),
      "grants all");
}

TEST_F(CInterface, RefusesOutputsAndInputsThatAreNull) {
  std::array<char, 4> buffer{};
  std::uint64_t length = 0;
  viaduct_peer peer{};
  viaduct_note_info note_info = VIADUCT_INIT(viaduct_note_info);
  invalid(viaduct_agent_name(a_, buffer.data(), 4, nullptr, &error_), "length is NULL");
  invalid(viaduct_agent_name(a_, nullptr, 4, &length, &error_), "buffer is NULL");
  invalid(viaduct_agent_event_fd(a_, nullptr, &error_), "fd is NULL");
  invalid(viaduct_memory_allocate(a_, 1, nullptr, 0, nullptr, &error_), "pin is NULL");
  invalid(viaduct_memory_pin(a_, buffer.data(), 4, nullptr, nullptr, &error_), "pin is NULL");
  viaduct_pin pin{};
  invalid(viaduct_memory_allocate(a_, 1, nullptr, 2, &pin, &error_), "0x2");
  invalid(viaduct_memory_allocate(a_, 0, nullptr, 0, &pin, &error_), "");
  invalid(viaduct_pin_describe(here_, nullptr, &error_), "missing");
  invalid(viaduct_card_export(a_, buffer.data(), 4, nullptr, &error_), "length is NULL");
  invalid(viaduct_card_import(a_, nullptr, 4, &peer, &error_), "NULL");
  invalid(viaduct_card_import(a_, "card", 4, nullptr, &error_), "peer is NULL");
  invalid(viaduct_card_import(a_, "card", 4, &peer, &error_), "not a Card");
  invalid(viaduct_peer_connect(a_, nullptr, &peer, &error_), "host_port is NULL");
  invalid(viaduct_peer_find(a_, nullptr, 0, &peer, &error_), "name is NULL");
  invalid(viaduct_peer_known(a_, nullptr, &peer, &error_), "name is NULL");
  invalid(viaduct_peer_state(peer_, nullptr, nullptr, &error_), "state is NULL");
  invalid(viaduct_peer_settled(peer_, nullptr, &error_), "settled is NULL");
  invalid(viaduct_peer_wait_pin(peer_, nullptr, 0, &remote_, &error_), "label is NULL");
  invalid(viaduct_peer_wait_pin(peer_, "there", 0, nullptr, &error_), "missing");
  invalid(viaduct_note_receive(a_, 0, nullptr, nullptr, 0, &error_), "missing");
  invalid(viaduct_note_receive(a_, 0, &note_info, nullptr, 1, &error_), "buffer is NULL");
}

TEST_F(CInterface, RefusesSizesBeyondAllMemory) {
  constexpr std::uint64_t kAll = std::uint64_t{1} << 60U;
  const viaduct_setting setting{"VIADUCT_NAME", "c"};
  viaduct_agent agent{};
  invalid(viaduct_agent_open(&setting, kAll, 0, &agent, &error_), "the limit is 2^32");
  viaduct_run run{.base = local_.address, .stride = 0, .bytes = 4096, .count = 1};
  viaduct_blocks blocks{};
  invalid(viaduct_blocks_of_runs(&run, kAll, &blocks, &error_), "the limit is 2^32");
  for (const std::uint64_t bytes : {std::uint64_t{1}, std::uint64_t{4096}, kAll}) {
    run.bytes = bytes;
    run.count = kAll;
    invalid(viaduct_blocks_of_runs(&run, 1, &blocks, &error_), "2^");
  }
  const viaduct_extent extent{.address = local_.address, .bytes = 4096};
  invalid(viaduct_blocks_of_extents(&extent, kAll, &blocks, &error_), "the limit is 2^32");
  const std::uint32_t first = 0;
  const viaduct_blocks here = blocksOf(local_.address, 4), there = blocksOf(remote_.address, 4);
  viaduct_transfer transfer{};
  invalid(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, &first, kAll, there, &first, 1,
                                nullptr, VIADUCT_NORMAL, &transfer, &error_),
          "the limit is 2^32");
  invalid(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, &first, 1, there, &first, kAll,
                                nullptr, VIADUCT_NORMAL, &transfer, &error_),
          "the limit is 2^32");
  viaduct_pin pin{};
  std::array<char, 16> bytes{};
  for (const std::uint32_t flags : {std::uint32_t{0}, VIADUCT_HUGE_PAGES})
    EXPECT_NE(viaduct_memory_allocate(a_, kAll, nullptr, flags, &pin, &error_), VIADUCT_OK);
  EXPECT_NE(viaduct_memory_pin(a_, bytes.data(), kAll, nullptr, &pin, &error_), VIADUCT_OK);
  EXPECT_NE(viaduct_gpu_pin(a_, 0, 4096, kAll, nullptr, &pin, &error_), VIADUCT_OK);
  const viaduct::testing::TemporaryFolder folder;
  folder.write("/file", "some bytes");
  const std::string file = folder.path() + "/file";
  for (const std::uint32_t flags : {std::uint32_t{0}, VIADUCT_CREATE})
    for (const std::uint64_t offset : {std::uint64_t{0}, UINT64_MAX - kAll + 2}) {
      viaduct_part part = VIADUCT_INIT(viaduct_part);
      part.offset = offset;
      part.bytes = kAll;
      part.flags = flags;
      EXPECT_NE(viaduct_file_pin(a_, file.c_str(), -1, &part, nullptr, &pin, &error_), VIADUCT_OK);
    }
  viaduct_peer peer{};
  const std::string card = cardOf(b_);
  invalid(viaduct_card_import(a_, card.data(), kAll, &peer, &error_), "longer");
  invalid(viaduct_note_send(peer_, bytes.data(), kAll, &error_), "the limit is");
  invalid(viaduct_transfer_post(planned(), VIADUCT_DEFAULT_DEADLINE, bytes.data(), kAll, &error_),
          "the limit is");
  EXPECT_EQ(agent.id | blocks.id | transfer.id | pin.id | peer.id, 0U);
}

TEST_F(CInterface, RefusesMalformedBlocksAndPlans) {
  const viaduct_run run{.base = local_.address, .stride = 0, .bytes = 4096, .count = 2};
  viaduct_blocks blocks{};
  invalid(viaduct_blocks_of_runs(&run, 1, nullptr, &error_), "blocks is NULL");
  invalid(viaduct_blocks_of_runs(nullptr, 1, &blocks, &error_), "NULL");
  invalid(viaduct_blocks_of_runs(&run, UINT64_MAX, &blocks, &error_), "the limit is 2^32");
  const std::array<viaduct_run, 2> overlap{run, run};
  invalid(viaduct_blocks_of_runs(overlap.data(), 2, &blocks, &error_), "overlap");
  invalid(viaduct_blocks_of_extents(nullptr, 1, &blocks, &error_), "NULL");
  const viaduct_extent empty{.address = 4096, .bytes = 0};
  invalid(viaduct_blocks_of_extents(&empty, 1, &blocks, &error_), "");
  EXPECT_EQ(blocks.id, 0U);

  const viaduct_blocks here = blocksOf(local_.address, 4), there = blocksOf(remote_.address, 4);
  viaduct_transfer transfer{};
  struct Wrong {
    std::int32_t kind;
    viaduct_blocks local, remote;
    std::vector<std::uint32_t> indices;
    const char *require, *word;
  };
  const std::vector<Wrong> plans{
      {2, here, there, {}, nullptr, "kind 2"},
      {VIADUCT_WRITE, {0}, there, {}, nullptr, "list of blocks is 0"},
      {VIADUCT_WRITE, here, {here_.id}, {}, nullptr, "list of blocks is 0"},
      {VIADUCT_WRITE, here, there, {4}, nullptr, "4"},
      {VIADUCT_WRITE, here, there, {1}, nullptr, ""},
      {VIADUCT_WRITE, here, there, {}, "wings", "wings"},
  };
  for (const Wrong& one : plans)
    invalid(viaduct_transfer_plan(a_, one.kind, peer_, one.local,
                                  one.indices.empty() ? nullptr : one.indices.data(),
                                  one.indices.size(), one.remote, nullptr, 0, one.require,
                                  VIADUCT_NORMAL, &transfer, &error_),
            one.word);
  invalid(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, nullptr, 0, there, nullptr, 0,
                                nullptr, 3, &transfer, &error_),
          "3 is no class of priority");
  const std::uint32_t none = 0;
  invalid(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, &none, 0, there, nullptr, 0,
                                nullptr, VIADUCT_NORMAL, &transfer, &error_),
          "0 indices");
  invalid(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, nullptr, 1, there, nullptr, 0,
                                nullptr, VIADUCT_NORMAL, &transfer, &error_),
          "NULL");
  invalid(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, nullptr, 0, there, nullptr, 0,
                                nullptr, VIADUCT_NORMAL, nullptr, &error_),
          "transfer is NULL");
  invalid(viaduct_transfer_plan(b_, VIADUCT_WRITE, peer_, here, nullptr, 0, there, nullptr, 0,
                                nullptr, VIADUCT_NORMAL, &transfer, &error_),
          "another agent");
  refused(viaduct_transfer_plan(a_, VIADUCT_WRITE, peer_, here, nullptr, 0, there, nullptr, 0,
                                "rdma", VIADUCT_NORMAL, &transfer, &error_),
          VIADUCT_UNSUPPORTED, "");
  EXPECT_EQ(transfer.id, 0U);
}

TEST_F(CInterface, ReportsTheEndOfAPost) {
  const viaduct_transfer transfer = planned();
  std::int32_t state = -1;
  ok(viaduct_transfer_poll(transfer, &state, &error_));
  EXPECT_EQ(state, VIADUCT_TRANSFER_IDLE);
  invalid(viaduct_transfer_poll(transfer, nullptr, &error_), "state is NULL");
  invalid(viaduct_transfer_wait(transfer, kSoon, &error_), "nothing was posted");
  invalid(viaduct_transfer_post(transfer, kSoon, nullptr, 1, &error_), "NULL");
  invalid(viaduct_transfer_path(transfer, nullptr, 0, nullptr, &error_), "length is NULL");
  std::uint64_t landed = 1;
  invalid(viaduct_transfer_landed(transfer, nullptr, 0, nullptr, &error_), "count is NULL");
  invalid(viaduct_transfer_landed(transfer, nullptr, 1, &landed, &error_), "numbers is NULL");
  ok(viaduct_transfer_landed(transfer, nullptr, 0, &landed, &error_));
  EXPECT_EQ(landed, 0U);
  ok(viaduct_transfer_cancel(transfer, &error_));
  ok(viaduct_pin_close(there_, &error_));
  there_ = {};
  viaduct_code posted = viaduct_transfer_post(transfer, kSoon, nullptr, 0, &error_);
  if (posted == VIADUCT_OK) posted = viaduct_transfer_wait(transfer, kSoon, &error_);
  EXPECT_NE(posted, VIADUCT_OK);
  EXPECT_STRNE(error_.detail, "");
  EXPECT_STREQ(error_.peer, "b");
}

TEST_F(CInterface, AnErrorStructOfTooSmallSizeIsNotWritten) {
  viaduct_error error{};
  std::strcpy(error.text, "mine");
  for (const std::uint64_t size : {std::uint64_t{0}, sizeof(error) - 1}) {
    error.size = size;
    EXPECT_EQ(viaduct_peer_wait_ready(peer_, kSoon, &error), VIADUCT_INVALID);
    EXPECT_STREQ(error.text, "mine");
  }
  error.size = sizeof(error) + 64;  // as in a newer header
  EXPECT_EQ(viaduct_peer_wait_ready(peer_, kSoon, &error), VIADUCT_OK);
  viaduct_pin_info info{};
  invalid(viaduct_pin_describe(here_, &info, &error_), "size 0");
  EXPECT_EQ(viaduct_peer_wait_ready({0}, 0, nullptr), VIADUCT_INVALID);
}

TEST_F(CInterface, CutsALongTextAtTheEndOfACharacter) {
  std::string label = "x";
  while (label.size() < 1000) label += "\u00e4";
  viaduct_pin_info info = VIADUCT_INIT(viaduct_pin_info);
  refused(viaduct_peer_wait_pin(peer_, label.c_str(), 0, &info, &error_), VIADUCT_TIMEOUT, "x");
  const std::string_view detail = error_.detail;
  EXPECT_LT(detail.size(), sizeof error_.detail);
  EXPECT_TRUE(detail.ends_with("\u00e4...")) << detail;
}

// A wait for a transfer that never ends, and a wait for a note, end when transfer and agent are
// closed.
TEST_F(CInterface, ClosingEndsTheWaitsOfOtherThreads) {
  const viaduct_agent slow = open("slow", "fake", "stop");
  const viaduct_agent other = open("other", "fake");
  viaduct_pin pin{}, far{};
  ok(viaduct_memory_allocate(slow, kBytes, nullptr, 0, &pin, &error_));
  ok(viaduct_memory_allocate(other, kBytes, "far", 0, &far, &error_));
  const std::string card = cardOf(other);
  viaduct_peer peer{};
  ok(viaduct_card_import(slow, card.data(), card.size(), &peer, &error_));
  ok(viaduct_peer_wait_ready(peer, kSoon, &error_));
  viaduct_pin_info near_info = VIADUCT_INIT(viaduct_pin_info), far_info = near_info;
  ok(viaduct_pin_describe(pin, &near_info, &error_));
  ok(viaduct_peer_wait_pin(peer, "far", kSoon, &far_info, &error_));
  viaduct_transfer transfer{};
  ok(viaduct_transfer_plan(slow, VIADUCT_WRITE, peer, blocksOf(near_info.address, 1), nullptr, 0,
                           blocksOf(far_info.address, 1), nullptr, 0, nullptr, VIADUCT_NORMAL,
                           &transfer, &error_));
  ok(viaduct_transfer_post(transfer, VIADUCT_DEFAULT_DEADLINE, nullptr, 0, &error_));
  refused(viaduct_transfer_wait(transfer, 1, &error_), VIADUCT_TIMEOUT, "still running");

  viaduct_code waited = VIADUCT_OK, received = VIADUCT_OK, over = VIADUCT_OK;
  std::thread waits([&] { waited = viaduct_transfer_wait(transfer, VIADUCT_FOREVER, nullptr); });
  std::thread receives([&] {
    viaduct_note_info info = VIADUCT_INIT(viaduct_note_info);
    received = viaduct_note_receive(slow, VIADUCT_FOREVER, &info, nullptr, 0, nullptr);
  });
  std::thread watches([&] { over = viaduct_peer_wait_over(peer, 7, VIADUCT_FOREVER, nullptr); });
  ok(viaduct_transfer_close(transfer, &error_));
  waits.join();
  EXPECT_TRUE(waited == VIADUCT_CANCELLED || waited == VIADUCT_INVALID) << waited;
  ok(viaduct_agent_close(slow, &error_));
  receives.join();
  watches.join();
  EXPECT_EQ(received, VIADUCT_INVALID);
  EXPECT_EQ(over, VIADUCT_INVALID);
  // The closed agent's handles fail, and the program still has to close them.
  std::int32_t state = -1;
  ok(viaduct_peer_state(peer, &state, nullptr, &error_));
  EXPECT_EQ(state, VIADUCT_PEER_IS_GONE);
  ok(viaduct_peer_close(peer, &error_));
  for (const viaduct_pin one : {pin, far}) ok(viaduct_pin_close(one, &error_));
  ok(viaduct_agent_close(other, &error_));
}

// Each call returns, whenever the agent is closed. Sanitizers report races and use after free.
TEST_F(CInterface, AnAgentMayBeClosedWhileEveryCallRuns) {
  for (int round = 0; round < 10; ++round) {
    const viaduct_agent agent = open("short-lived");
    const std::string card = cardOf(b_);
    const std::vector<std::function<viaduct_code()>> calls{
        [&] {
          viaduct_pin pin{};
          const auto code = viaduct_memory_allocate(agent, 4096, nullptr, 0, &pin, nullptr);
          viaduct_pin_close(pin, nullptr);
          return code;
        },
        [&] {
          viaduct_peer peer{};
          const auto code = viaduct_card_import(agent, card.data(), card.size(), &peer, nullptr);
          viaduct_peer_wait_ready(peer, kSoon, nullptr);
          viaduct_peer_close(peer, nullptr);
          return code;
        },
        [&] {
          std::array<char, 4096> mine{};
          std::uint64_t length = 0;
          return viaduct_card_export(agent, mine.data(), mine.size(), &length, nullptr);
        },
        [&] {
          std::int32_t fd = -1;
          viaduct_agent_event_fd(agent, &fd, nullptr);
          return viaduct_agent_poll(agent, nullptr, nullptr);
        }};
    std::vector<std::thread> threads;
    for (const auto& one : calls)
      threads.emplace_back([&one] {
        while (one() == VIADUCT_OK) {
        }
      });
    std::this_thread::yield();
    ok(viaduct_agent_close(agent, &error_));
    for (std::thread& one : threads) one.join();
  }
}

TEST_F(CInterface, AHandleIsClosedOnceByHoweverManyThreads) {
  std::atomic<int> closed{0};
  std::vector<std::thread> threads;
  for (int i = 0; i < 4; ++i)
    threads.emplace_back(
        [&] { closed += viaduct_pin_close(here_, nullptr) == VIADUCT_OK ? 1 : 0; });
  for (std::thread& one : threads) one.join();
  EXPECT_EQ(closed, 1);
  here_ = {};
}

TEST_F(CInterface, AForkedChildHasHandlesOfItsOwn) {
  const pid_t child = ::fork();
  if (child == 0) {
    std::int32_t state = -1;
    viaduct_agent mine{};
    const bool refused = viaduct_peer_state(peer_, &state, nullptr, nullptr) == VIADUCT_INVALID &&
                         viaduct_pin_close(here_, nullptr) == VIADUCT_INVALID &&
                         viaduct_agent_close(a_, nullptr) == VIADUCT_INVALID;
#ifdef __SANITIZE_THREAD__  // TSan ends a forked process that starts a thread
    const bool opens = mine.id == 0;
#else
    const bool opens = viaduct_agent_open(nullptr, 0, 0, &mine, nullptr) == VIADUCT_OK &&
                       viaduct_agent_close(mine, nullptr) == VIADUCT_OK;
#endif
    ::_exit(refused && opens ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_TRUE(WIFEXITED(status) && WEXITSTATUS(status) == 0) << status;
  std::int32_t state = -1;
  ok(viaduct_peer_state(peer_, &state, nullptr, &error_));
  EXPECT_EQ(state, VIADUCT_PEER_IS_READY);
}

}  // namespace
