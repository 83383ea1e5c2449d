// The fake driver in several processes, and in children of fork(). The process of these tests never
// starts the driver: each test forks the processes that do.
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <functional>

#include "base/fd.h"
#include "device/fake_cuda_testing.h"

namespace viaduct::testing {
namespace {

// One end of a connection between two processes of a test.
class Line {
 public:
  explicit Line(int file) : file_(file) {}
  template <class Value>
  void tell(const Value& value) const {
    EXPECT_EQ(::send(file_, &value, sizeof value, MSG_NOSIGNAL),
              static_cast<ssize_t>(sizeof value));
  }
  template <class Value>
  Value hear() const {
    Value value{};
    EXPECT_EQ(::recv(file_, &value, sizeof value, MSG_WAITALL), static_cast<ssize_t>(sizeof value));
    return value;
  }
  void tellFile(int sent) const;
  int hearFile() const;

 private:
  int file_;
};

struct FileMessage {
  char byte = 'f';
  iovec part{&byte, 1};
  alignas(cmsghdr) char control[CMSG_SPACE(sizeof(int))] = {};
  msghdr header{};
  FileMessage() {
    header.msg_iov = &part;
    header.msg_iovlen = 1;
    header.msg_control = control;
    header.msg_controllen = sizeof control;
  }
};

void Line::tellFile(int sent) const {
  FileMessage message;
  cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  control->cmsg_level = SOL_SOCKET;
  control->cmsg_type = SCM_RIGHTS;
  control->cmsg_len = CMSG_LEN(sizeof(int));
  std::memcpy(CMSG_DATA(control), &sent, sizeof sent);
  EXPECT_EQ(::sendmsg(file_, &message.header, MSG_NOSIGNAL), 1);
}

int Line::hearFile() const {
  FileMessage message;
  EXPECT_EQ(::recvmsg(file_, &message.header, 0), 1);
  int heard = -1;
  const cmsghdr* control = CMSG_FIRSTHDR(&message.header);
  if (control != nullptr) std::memcpy(&heard, CMSG_DATA(control), sizeof heard);
  return heard;
}

// A process that runs `body` and reports whether all its expectations held.
pid_t start(const std::function<void()>& body) {
  const pid_t process = ::fork();
  if (process != 0) return process;
  body();
  ::_exit(::testing::Test::HasFailure() ? 1 : 0);
}

void expectEnd(pid_t process, int status = 0) {
  int got = 0;
  EXPECT_EQ(::waitpid(process, &got, 0), process);
  EXPECT_EQ(got, status);
}

void runPair(const std::function<void(Line)>& one, const std::function<void(Line)>& two,
             int status_of_one = 0) {
  int ends[2];
  ASSERT_EQ(::socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0);
  const pid_t first = start([&] { one(Line(ends[0])); });
  const pid_t second = start([&] { two(Line(ends[1])); });
  ::close(ends[0]);
  ::close(ends[1]);
  expectEnd(second);
  expectEnd(first, status_of_one);
}

// Sends the other end a handle of memory with a text, and waits until the other end changed the
// text.
void ownLegacy(Line line) {
  const OnDevice device;
  const CUdeviceptr memory = allocate(1000);
  std::memcpy(fakeCudaAlias(memory), "from the owner", 14);
  CUipcMemHandle handle;
  EXPECT_EQ(fakeApi().ipcGetMemHandle(&handle, memory), CUresult::kSuccess);
  line.tell(handle);
  line.hear<char>();
  EXPECT_EQ(bytesAt(memory, 7), "changed");
}

TEST(FakeProcess, ALegacyHandleOpensMemoryOfAnotherProcess) {
  runPair(ownLegacy, [](Line line) {
    const auto handle = line.hear<CUipcMemHandle>();
    const OnDevice device(1);
    CUdeviceptr memory = 0;
    CUdeviceptr again = 0;
    EXPECT_EQ(fakeApi().ipcOpenMemHandle(&memory, handle, kIpcLazyPeerAccess), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().ipcOpenMemHandle(&again, handle, kIpcLazyPeerAccess),
              CUresult::kAlreadyMapped);
    EXPECT_EQ(bytesAt(memory, 14), "from the owner");
    EXPECT_EQ(attributeOf<int>(memory, 9), 0);
    EXPECT_EQ(fakeApi().memcpySync(memory, hostAddress("changed"), 7), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().memcpySync(memory + 994, hostAddress("changed"), 7),
              CUresult::kInvalidValue);
    EXPECT_EQ(fakeApi().memFree(memory), CUresult::kInvalidValue);
    EXPECT_EQ(fakeApi().ipcCloseMemHandle(memory), CUresult::kSuccess);
    EXPECT_EQ(fakeApi().ipcCloseMemHandle(memory), CUresult::kInvalidValue);
    EXPECT_EQ(fakeApi().ipcOpenMemHandle(&memory, handle, kIpcLazyPeerAccess), CUresult::kSuccess);
    line.tell('x');
  });
}

TEST(FakeProcess, OpenedMemoryOutlivesItsKilledOwner) {
  runPair(
      [](Line line) {
        line.tell(::getpid());
        ownLegacy(line);
      },
      [](Line line) {
        const auto owner = line.hear<pid_t>();
        const auto handle = line.hear<CUipcMemHandle>();
        const OnDevice device;
        CUdeviceptr memory = 0;
        EXPECT_EQ(fakeApi().ipcOpenMemHandle(&memory, handle, kIpcLazyPeerAccess),
                  CUresult::kSuccess);
        ::kill(owner, SIGKILL);
        char byte = 0;
        while (::access(("/proc/" + std::to_string(owner) + "/fd/0").c_str(), F_OK) == 0)
          ::sched_yield();
        EXPECT_EQ(bytesAt(memory, 14), "from the owner");
        EXPECT_EQ(fakeApi().memcpySync(hostAddress(&byte), memory + 1, 1), CUresult::kSuccess);
        EXPECT_EQ(byte, 'r');
        EXPECT_EQ(fakeApi().ipcCloseMemHandle(memory), CUresult::kSuccess);
        EXPECT_EQ(fakeApi().ipcOpenMemHandle(&memory, handle, kIpcLazyPeerAccess),
                  CUresult::kInvalidValue);
      },
      SIGKILL);
}

constexpr std::size_t kChunk = std::size_t{2} << 20;

// Maps memory for device 0.
CUdeviceptr mapped(CUmemGenericAllocationHandle handle) {
  CUdeviceptr address = 0;
  EXPECT_EQ(fakeApi().memAddressReserve(&address, kChunk, 0, 0, 0), CUresult::kSuccess);
  EXPECT_EQ(fakeApi().memMap(address, kChunk, 0, handle, 0), CUresult::kSuccess);
  const CUmemAccessDesc access{{CUmemLocationType::kDevice, 0}, CUmemAccessFlags::kReadWrite};
  EXPECT_EQ(fakeApi().memSetAccess(address, kChunk, &access, 1), CUresult::kSuccess);
  return address;
}

CUmemGenericAllocationHandle create(CUmemHandleType types) {
  const CUmemAllocationProp properties{.requested_handle_types = types,
                                       .location = {CUmemLocationType::kDevice, 0}};
  CUmemGenericAllocationHandle handle = 0;
  EXPECT_EQ(fakeApi().memCreate(&handle, kChunk, &properties, 0), CUresult::kSuccess);
  return handle;
}

TEST(FakeProcess, ADescriptorOpensVirtualMemoryOfAnotherProcess) {
  runPair(
      [](Line line) {
        const OnDevice device;
        const auto handle = create(CUmemHandleType::kPosixFd);
        int file = -1;
        EXPECT_EQ(fakeApi().memExportToShareableHandle(&file, handle, CUmemHandleType::kPosixFd, 0),
                  CUresult::kSuccess);
        line.tellFile(file);
        line.hear<char>();
        EXPECT_EQ(bytesAt(mapped(handle), 7), "changed");
      },
      [](Line line) {
        const base::Fd file(line.hearFile());
        const OnDevice device;
        CUmemGenericAllocationHandle handle = 0;
        EXPECT_EQ(fakeApi().memImportFromShareableHandle(
                      &handle, reinterpret_cast<void*>(std::intptr_t{file.get()}),
                      CUmemHandleType::kPosixFd),
                  CUresult::kSuccess);
        EXPECT_EQ(fakeApi().memcpySync(mapped(handle), hostAddress("changed"), 7),
                  CUresult::kSuccess);
        line.tell('x');
      });
}

TEST(FakeProcess, AFabricHandleOpensVirtualMemoryOfAnotherProcess) {
  ::setenv("FAKE_CUDA_FABRIC", "1", 1);
  runPair(
      [](Line line) {
        const OnDevice device;
        const auto handle = create(CUmemHandleType::kFabric);
        CUipcMemHandle fabric;
        EXPECT_EQ(
            fakeApi().memExportToShareableHandle(&fabric, handle, CUmemHandleType::kFabric, 0),
            CUresult::kSuccess);
        line.tell(fabric);
        line.hear<char>();
        EXPECT_EQ(bytesAt(mapped(handle), 7), "changed");
      },
      [](Line line) {
        auto fabric = line.hear<CUipcMemHandle>();
        const OnDevice device;
        CUmemGenericAllocationHandle handle = 0;
        EXPECT_EQ(
            fakeApi().memImportFromShareableHandle(&handle, &fabric, CUmemHandleType::kFabric),
            CUresult::kSuccess);
        EXPECT_EQ(fakeApi().memcpySync(mapped(handle), hostAddress("changed"), 7),
                  CUresult::kSuccess);
        line.tell('x');
      });
  ::unsetenv("FAKE_CUDA_FABRIC");
}

TEST(FakeProcess, AChildOfForkCanCallNothing) {
  expectEnd(start([] {
    const OnDevice device;
    const CUdeviceptr memory = allocate(10);
    expectEnd(start([memory] {
      CUdeviceptr address = 0;
      EXPECT_EQ(fakeApi().init(0), CUresult::kNotInitialized);
      EXPECT_EQ(fakeApi().memAlloc(&address, 10), CUresult::kNotInitialized);
      EXPECT_EQ(fakeApi().memcpySync(memory, memory + 5, 5), CUresult::kNotInitialized);
      EXPECT_EQ(fakeApi().eventQuery(nullptr), CUresult::kNotInitialized);
      EXPECT_EQ(fakeCudaCount("after fork"), 4U);
    }));
    EXPECT_EQ(fakeApi().memFree(memory), CUresult::kSuccess);
  }));
}

TEST(FakeProcess, TheEnvironmentSaysWhichCallsFail) {
  ::setenv("FAKE_CUDA_FAIL", "cuMemAlloc:2:2,cuMemFree:1:-9", 1);
  expectEnd(start([] {
              const OnDevice device;
              CUdeviceptr address = 0;
              EXPECT_EQ(fakeApi().memAlloc(&address, 10), CUresult::kSuccess);
              EXPECT_EQ(fakeApi().memAlloc(&address, 10), CUresult::kOutOfMemory);
              fakeApi().memFree(address);
            }),
            SIGKILL);
  ::unsetenv("FAKE_CUDA_FAIL");
}

// Expects this error text from a driver that starts with this environment.
void expectError(const char* name, const char* value, const std::string& text) {
  ::setenv(name, value, 1);
  expectEnd(start([&] {
    const auto loaded = cuda::driver(kFakeCuda);
    ASSERT_FALSE(loaded);
    EXPECT_NE(loaded.error().text().find(text), std::string::npos) << loaded.error().text();
  }));
  ::unsetenv(name);
}

TEST(FakeProcess, TheProductNamesAMissingDeviceAndAnOldDriver) {
  expectError("FAKE_CUDA_DEVICES", "0", "CUDA_ERROR_NO_DEVICE (100)");
  expectError("FAKE_CUDA_VERSION", "10020", "CUDA 10.2");
}

}  // namespace
}  // namespace viaduct::testing
