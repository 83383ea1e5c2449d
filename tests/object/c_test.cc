// Objects over the C interface.
#include <viaduct/c.h>

#include <array>

#include "object/object_testing.h"

namespace viaduct::testing {
namespace {

class CObject : public ObjectTest {
 protected:
  void SetUp() override {
    const std::string endpoint = "http://127.0.0.1:" + port_;
    const std::array<viaduct_setting, 4> settings{{{"VIADUCT_BACKENDS", "object"},
                                                   {"VIADUCT_OBJECT_ENDPOINT", endpoint.c_str()},
                                                   {"AWS_ACCESS_KEY_ID", "FAKEKEY"},
                                                   {"AWS_SECRET_ACCESS_KEY", "fakesecret"}}};
    ok(viaduct_agent_open(settings.data(), settings.size(), 0, &c_agent_, &error_));
    ok(viaduct_peer_self(c_agent_, &c_self_, &error_));
    ok(viaduct_peer_wait_ready(c_self_, kLong, &error_));
  }
  void TearDown() override {
    ok(viaduct_peer_close(c_self_, &error_));
    ok(viaduct_agent_close(c_agent_, &error_));
  }
  void ok(viaduct_code code) { EXPECT_EQ(code, VIADUCT_OK) << error_.text; }

  // Moves the whole object to or from the memory.
  void move(std::int32_t kind, std::vector<std::uint64_t>& memory, const viaduct_part* part) {
    // The agent may still know the label of the object before this one.
    const char* const label = kind == VIADUCT_WRITE ? "new" : "stored";
    viaduct_pin host{}, object{};
    ok(viaduct_memory_pin(c_agent_, memory.data(), kBytes, nullptr, &host, &error_));
    ok(viaduct_object_pin(c_agent_, "s3://kv/key", part, label, &object, &error_));
    viaduct_pin_info there = VIADUCT_INIT(viaduct_pin_info);
    ok(viaduct_peer_wait_pin(c_self_, label, kLong, &there, &error_));
    EXPECT_EQ(there.kind, VIADUCT_MEMORY_OBJECT);
    EXPECT_EQ(there.bytes, kBytes);
    const viaduct_extent local{reinterpret_cast<std::uintptr_t>(memory.data()), kBytes};
    const viaduct_extent remote{there.address, there.bytes};
    viaduct_blocks from{}, to{};
    ok(viaduct_blocks_of_extents(&local, 1, &from, &error_));
    ok(viaduct_blocks_of_extents(&remote, 1, &to, &error_));
    viaduct_transfer transfer{};
    ok(viaduct_transfer_plan(c_agent_, kind, c_self_, from, nullptr, 0, to, nullptr, 0, nullptr,
                             VIADUCT_NORMAL, &transfer, &error_));
    ok(viaduct_transfer_post(transfer, kLong, nullptr, 0, &error_));
    ok(viaduct_transfer_wait(transfer, kLong, &error_));
    ok(viaduct_transfer_close(transfer, &error_));
    for (const viaduct_blocks one : {from, to}) ok(viaduct_blocks_close(one, &error_));
    for (const viaduct_pin one : {host, object}) ok(viaduct_pin_close(one, &error_));
  }

  static constexpr std::int64_t kLong = 60'000'000'000;
  static constexpr std::uint64_t kBytes = 100'000;
  viaduct_agent c_agent_{};
  viaduct_peer c_self_{};
  viaduct_error error_ = VIADUCT_INIT(viaduct_error);
};

TEST_F(CObject, IsWrittenAsAWholeAndRead) {
  viaduct_part part = VIADUCT_INIT(viaduct_part);
  part.bytes = kBytes;
  part.flags = VIADUCT_CREATE;
  auto memory = pattern(kBytes);
  move(VIADUCT_WRITE, memory, &part);
  EXPECT_EQ(tell("same kv key " + std::to_string(kBytes)), "yes");
  std::vector<std::uint64_t> back(memory.size());
  move(VIADUCT_READ, back, nullptr);
  EXPECT_TRUE(isPattern(back, kBytes));
}

TEST_F(CObject, ThatIsAbsentIsNotFound) {
  viaduct_pin pin{};
  EXPECT_EQ(viaduct_object_pin(c_agent_, "s3://kv/none", nullptr, nullptr, &pin, &error_),
            VIADUCT_NOT_FOUND);
  EXPECT_NE(std::string_view(error_.text).find("s3://kv/none"), std::string_view::npos)
      << error_.text;
}

}  // namespace
}  // namespace viaduct::testing
