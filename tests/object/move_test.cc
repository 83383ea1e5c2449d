// Bytes to and from objects, in one request or many.
#include <sys/mman.h>

#include <cstdlib>

#include "object/object_testing.h"
#include "support/temporary_folder.h"

namespace viaduct::testing {
namespace {

TEST_F(ObjectTest, ReadsAnObjectInRanges) {
  open();
  constexpr std::uint64_t kBytes = 20 * kMiB + 5;
  tell("put kv block/0 " + std::to_string(kBytes));
  std::vector<std::uint64_t> memory(kBytes / 8 + 1);
  const auto done = read(memory, "block/0");
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(isPattern(memory, kBytes));
  EXPECT_EQ(tell("count GET"), "3");
}

TEST_F(ObjectTest, SaysThePathAndTheBytes) {
  open();
  tell("put kv k 1000");
  const auto object = pinObject("k");
  ASSERT_TRUE(object) << object.error().text();
  EXPECT_EQ(object->size(), 1000U);
  EXPECT_EQ(object->info().kind, MemoryKind::kObject);
  EXPECT_EQ(object->info().access, MemoryAccess::kReadOnly);
  std::vector<std::uint64_t> memory(125);
  const auto host = pinHost(memory, 1000);
  auto transfer = plan(OpKind::kRead, *host, *object);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  ASSERT_TRUE(transfer->wait(60s));
  EXPECT_EQ(transfer->path().text(), "object/s3 1000 B in 1 op");
}

TEST_F(ObjectTest, ReadsScatteredBlocksWithOneRequest) {
  open();
  tell("put kv k 65536");
  const auto object = pinObject("k", {.offset = 4096, .bytes = 16 * 1024});
  ASSERT_TRUE(object) << object.error().text();
  std::vector<std::uint64_t> memory(16 * 1024);
  const auto host = pinHost(memory, memory.size() * 8);
  // Sixteen blocks of 1 KiB, which lie in reverse order and apart here.
  std::vector<Extent> here;
  for (std::uint64_t i = 0; i < 16; ++i)
    here.push_back({host->info().address + (15 - i) * 8192, 1024});
  auto transfer =
      agent_->plan(OpKind::kRead, *self_, Selection{*Blocks::list(here)}, whole(*object));
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto done = transfer->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  const auto wanted = pattern(65536);
  for (std::uint64_t i = 0; i < 16; ++i)
    EXPECT_EQ(std::memcmp(&memory[(15 - i) * 1024], &wanted[512 + i * 128], 1024), 0) << i;
  EXPECT_EQ(tell("count GET"), "1");
}

TEST_F(ObjectTest, WritesASmallObjectWithOnePut) {
  open();
  const auto done = write("small", 100'003);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv small 100003"), "yes");
  EXPECT_EQ(tell("count PUT"), "1");
}

TEST_F(ObjectTest, DeletesATemporaryObjectAfterItsPin) {
  open();
  const auto memory = pattern(1000);
  for (const bool temporary : {false, true}) {
    auto object = pinObject("k", {.bytes = 1000, .create = true, .temporary = temporary});
    auto host = pinHost(memory, 1000);
    ASSERT_TRUE(object && host);
    auto transfer = plan(OpKind::kWrite, *host, *object);
    ASSERT_TRUE(transfer && transfer->post() && transfer->wait(60s));
    EXPECT_EQ(tell("same kv k 1000"), "yes");
    EXPECT_TRUE(object->release());
  }
  agent_.reset();  // waits for the deletion
  EXPECT_EQ(tell("same kv k 1000"), "absent");
  EXPECT_EQ(tell("count DELETE"), "1") << "an object that is not temporary stays";
}

TEST_F(ObjectTest, DeletesOnlyObjectsThatItMakes) {
  open();
  tell("put kv k 1000");
  const auto refused = pinObject("k", {.temporary = true});
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Code::kInvalid) << refused.error().text();
}

TEST_F(ObjectTest, WritesALargeObjectInParts) {
  open();
  constexpr std::uint64_t kBytes = 20 * kMiB + 5;
  const auto done = write("dir/large", kBytes);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv dir/large " + std::to_string(kBytes)), "yes");
  EXPECT_EQ(tell("count PUT"), "3");
  EXPECT_EQ(tell("uploads"), "0");
}

TEST_F(ObjectTest, KeysMayHaveAnyCharacters) {
  open();
  const std::string key = "a+b/../=&?#%41\xc3\xa9~!'()*;,:@$";
  const auto done = write(key, 1000);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv " + key + " 1000"), "yes");
}

// The name of the bucket is in the host name: libcurl resolves names below localhost by itself.
TEST_F(ObjectTest, FindsTheBucketInTheHostName) {
  more_ = {{"VIADUCT_OBJECT_ENDPOINT", "http://localhost:" + port_},
           {"VIADUCT_OBJECT_STYLE", "virtual"}};
  open();
  const auto done = write("k", 1000);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv k 1000"), "yes");
}

TEST_F(ObjectTest, TheObjectMayBeTheLocalSide) {
  open();
  tell("put kv k 1000");
  const auto object = pinObject("k");
  std::vector<std::uint64_t> memory(125);
  const auto host = pinHost(memory, 1000);
  auto transfer = plan(OpKind::kWrite, *object, *host);
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  const auto done = transfer->wait(60s);
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_TRUE(isPattern(memory, 1000));
}

TEST_F(ObjectTest, RefusesToWriteAPart) {
  open();
  const auto object = pinObject("k", {.bytes = 1000, .create = true});
  const auto memory = pattern(1000);
  const auto host = pinHost(memory, 1000);
  const auto half = [](const Pin& pin) {
    return Selection{*Blocks::strided({.base = pin.info().address, .bytes = 500, .count = 1})};
  };
  auto transfer = agent_->plan(OpKind::kWrite, *self_, half(*host), half(*object));
  ASSERT_TRUE(transfer) << transfer.error().text();
  ASSERT_TRUE(transfer->post());
  expectSays(transfer->wait(60s), Code::kUnsupported,
             {"s3://kv/k", "a part of the 1000 bytes", "all bytes of the pin"});
  EXPECT_EQ(tell("count PUT"), "0");
}

TEST_F(ObjectTest, AnExistingObjectIsReadOnly) {
  open();
  tell("put kv k 1000");
  const auto object = pinObject("k");
  const auto memory = pattern(1000);
  const auto host = pinHost(memory, 1000);
  EXPECT_FALSE(plan(OpKind::kWrite, *host, *object));
}

TEST_F(ObjectTest, PinsOnlyBytesThatTheObjectHas) {
  open();
  tell("put kv k 1000");
  const auto pin = pinObject("k", {.offset = 500, .bytes = 501});
  ASSERT_FALSE(pin);
  EXPECT_NE(pin.error().text().find("of an object of 1000 bytes"), std::string::npos)
      << pin.error().text();
  EXPECT_FALSE(pinObject("new", {.create = true})) << "without a size";
}

TEST_F(ObjectTest, MemoryThatIsProtectedIsAnError) {
  open();
  tell("put kv k 100000");
  const auto object = pinObject("k");
  void* const memory =
      ::mmap(nullptr, 100'000, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto host = agent_->pin(Segment::host(memory, 100'000));
  auto transfer = plan(OpKind::kRead, *host, *object);
  // Protected, because other memory may be mapped where this was unmapped.
  ASSERT_EQ(::mprotect(memory, 100'000, PROT_NONE), 0);
  ASSERT_TRUE(transfer->post());
  expectSays(transfer->wait(60s), Code::kDevice, {"not mapped", "release the Pin"});
  ::munmap(memory, 100'000);
}

// A server with a certificate that only a CA file of the test trusts.
class SecureObjectTest : public ObjectTest {
 protected:
  SecureObjectTest() : ObjectTest({"--tls", file("cert"), file("key")}) {
    more_ = {{"VIADUCT_OBJECT_ENDPOINT", "https://localhost:" + port_}};
  }
  static std::string file(const std::string& name) {
    static const TemporaryFolder kFolder;
    static const int kMade = std::system(
        ("openssl req -x509 -newkey rsa:2048 -nodes -days 2 -subj /CN=localhost -addext "
         "subjectAltName=DNS:localhost -keyout " +
         kFolder.path() + "/key -out " + kFolder.path() + "/cert 2>/dev/null")
            .c_str());
    EXPECT_EQ(kMade, 0);
    return kFolder.path() + "/" + name;
  }
};

TEST_F(SecureObjectTest, TrustsTheFileOfTheSettings) {
  more_["VIADUCT_OBJECT_CA"] = file("cert");
  open();
  const auto done = write("k", 1000);  // with an unsigned body
  ASSERT_TRUE(done) << done.error().text();
  EXPECT_EQ(tell("same kv k 1000"), "yes");
}

TEST_F(SecureObjectTest, TrustsNobodyElse) {
  open();
  const auto pin = pinObject("k");
  ASSERT_FALSE(pin);
  EXPECT_EQ(pin.error().code, Code::kDenied) << pin.error().text();
  EXPECT_NE(pin.error().text().find("VIADUCT_OBJECT_CA"), std::string::npos) << pin.error().text();
}

}  // namespace
}  // namespace viaduct::testing
