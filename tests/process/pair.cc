#include "process/pair.h"

namespace viaduct::testing {

namespace {

// Returns a value without which no test can go on, or prints the library's error and exits.
template <class T>
T need(Result<T> result, const char* what) {
  if (!result) {
    ADD_FAILURE() << what << ": " << result.error().text();
    std::exit(1);  // the harness is broken, so there is nothing to test
  }
  return *std::move(result);
}

Selection backwards(std::uint64_t address, std::uint64_t bytes, std::uint64_t block) {
  Selection all{
      need(Blocks::strided({.base = address, .bytes = block, .count = bytes / block}), "blocks"),
      {}};
  for (std::uint64_t i = bytes / block; i-- > 0;)
    all.indices.push_back(static_cast<std::uint32_t>(i));
  return all;
}

}  // namespace

Survivor::Survivor(DataPath path, std::chrono::milliseconds detect, std::chrono::milliseconds grace)
    : data_path_(path), detect_(detect) {
  agent_ = std::make_unique<Agent>(need(Agent::open({.name = "survivor",
                                                     .backends = {path.backend},
                                                     .ofi_provider = path.provider,
                                                     .detect = detect,
                                                     .grace = grace}),
                                        "open"));
}

std::string Survivor::settings(const std::string& name) const {
  return "name=" + name + " backends=" + data_path_.backend +
         " detect=" + std::to_string(detect_.count()) + " provider=" + data_path_.provider;
}

std::unique_ptr<PeerProcess> Survivor::start(const std::string& name, const std::string& more) {
  auto victim = std::make_unique<PeerProcess>(settings(name) + more);
  const std::string how = data_path_.heap ? " heap" : "";
  victim->must("memory data " + std::to_string(kData) + how);
  victim->must("memory small " + std::to_string(kSmall) + how);
  victim->must("import " + toHex(agent_->exportCard()));
  victim->must("ready survivor 10000");
  const auto ready = peer(name).ready(std::chrono::seconds(10));
  EXPECT_TRUE(ready) << ready.error().text();
  return victim;
}

Peer Survivor::peer(const std::string& name) { return need(agent_->peer(name), "peer"); }

Survivor::Memory Survivor::memory(std::uint64_t bytes, const std::string& label) {
  Memory memory;
  if (data_path_.heap) {
    memory.own.resize(bytes);
    memory.pin = std::make_unique<Pin>(
        need(agent_->pin(Segment::host(memory.own.data(), bytes), label), "pin"));
  } else {
    memory.pin = std::make_unique<Pin>(need(agent_->allocate(bytes, {.label = label}), "allocate"));
  }
  return memory;
}

Transfer Survivor::plan(OpKind kind, const Memory& local, const std::string& remote,
                        std::uint64_t block, TransferOptions options, const std::string& name) {
  const Peer victim = peer(name);
  const PinInfo there = need(victim.waitPin(remote, std::chrono::seconds(10)), "remote pin");
  const std::uint64_t bytes = local.pin->size();
  return need(agent_->plan(kind, victim, backwards(local.pin->info().address, bytes, block),
                           backwards(there.address, bytes, block), std::move(options)),
              "plan");
}

void Survivor::expectWorks(PeerProcess& victim) {
  const Memory mine = memory(kSmall, "");
  mine.fill(0x51);
  Transfer write = plan(OpKind::kWrite, mine, "small", 4096);
  Status ended = write.post();
  if (ended) ended = write.wait(std::chrono::seconds(10));
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(victim.number("differ small 81"), 0);
  victim.must("fill small 82");
  Transfer read = plan(OpKind::kRead, mine, "small", 4096);
  ended = read.post();
  if (ended) ended = read.wait(std::chrono::seconds(10));
  ASSERT_TRUE(ended) << ended.error().text();
  EXPECT_EQ(mine.differ(82), 0);
}

}  // namespace viaduct::testing
