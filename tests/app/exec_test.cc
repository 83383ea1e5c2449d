// `viaduct exec` as users run it, on this machine.
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "app/program.h"
#include "support/paths.h"
#include "support/temporary_folder.h"
#include "support/text.h"

namespace viaduct::testing {
namespace {

class ExecCommand : public ::testing::Test {
 protected:
  // The environment, with a separate folder for the file that later shells read.
  std::vector<std::string> environment(std::vector<std::string> more = {}) const {
    more.push_back("XDG_RUNTIME_DIR=" + folder.path());
    return more;
  }
  std::string fileText() const {
    std::ostringstream out;
    out << std::ifstream(file()).rdbuf();
    return out.str();
  }
  std::string file() const { return folder.path() + "/viaduct/env"; }
  TemporaryFolder folder;
};

TEST_F(ExecCommand, PassesWordsAndExitCodes) {
  Program run({"exec", "--", "sh", "-c", "printf '<%s>' \"$@\"; exit 7", "sh", "[1,2]", "--force",
               "", "a b", "--"},
              environment());
  EXPECT_EQ(run.finish(), 7) << run.err();
  EXPECT_EQ(run.out(), "<[1,2]><--force><><a b><-->");
}

TEST_F(ExecCommand, IsTheSameProcessSoThatSignalsPass) {
  Program run({"exec", "--", "sh", "-c", "echo $$; exec tail -f /dev/null"}, environment());
  const auto line = run.readLine();
  ASSERT_TRUE(line);
  EXPECT_EQ(*line, std::to_string(run.pid()));
  ::kill(run.pid(), SIGTERM);
  EXPECT_EQ(run.finish(), 128 + SIGTERM);
}

TEST_F(ExecCommand, EndsAsShellsDoIfTheProgramCannotRun) {
  Program missing({"exec", "--", "no-such-program"}, environment());
  EXPECT_EQ(missing.finish(), 127);
  EXPECT_TRUE(has(missing.err(), "no-such-program: no such program in PATH\n")) << missing.err();
  const TemporaryFolder closed;
  ASSERT_EQ(::chmod(closed.path().c_str(), 0), 0);
  Program beside({"exec", "--", "env", "PATH=" + closed.path() + ":/bin", kProgram, "exec", "--",
                  "no-such-program"},
                 environment());
  EXPECT_EQ(beside.finish(), 127) << "a folder that cannot be searched: " << beside.err();
  Program absent({"exec", "--", "/no/such/program"}, environment());
  EXPECT_EQ(absent.finish(), 127);
  EXPECT_TRUE(has(absent.err(), "/no/such/program: No such file")) << absent.err();
  Program denied({"exec", "--", "/etc/passwd"}, environment());
  EXPECT_EQ(denied.finish(), 126);
  EXPECT_TRUE(has(denied.err(), "/etc/passwd: Permission denied\n")) << denied.err();
  Program directory({"exec", "--", "/"}, environment());
  EXPECT_EQ(directory.finish(), 126);
}

TEST_F(ExecCommand, LetsProgramsFindNixlsLibrary) {
  const std::vector<std::string> command{
      "exec", "--nixl", "--", "sh", "-c", "echo $LD_LIBRARY_PATH $KVBM_NIXL_CAPI_LIB"};
  Program run(command, environment({"LD_LIBRARY_PATH=/before", "KVBM_NIXL_CAPI_LIB="}));
  const std::string out = run.readLine().value_or("");
  EXPECT_EQ(run.finish(), 0) << run.err();
  const std::string library = out.substr(0, out.find(':'));
  EXPECT_EQ(out, library + ":/before " + library + "/libnixl_capi.so");
  EXPECT_TRUE(std::filesystem::exists(library + "/libnixl_capi.so")) << out;
  Program kept(command, environment({"LD_LIBRARY_PATH=", "KVBM_NIXL_CAPI_LIB=/mine.so"}));
  EXPECT_EQ(kept.readLine().value_or(""), library + " /mine.so");
  EXPECT_EQ(kept.finish(), 0) << kept.err();
}

TEST_F(ExecCommand, WantsACommandBehindDashes) {
  for (const std::vector<std::string>& words :
       {std::vector<std::string>{"exec"}, {"exec", "--"}, {"exec", "--", ""}, {"exec", "ls"}}) {
    Program run(words, environment());
    EXPECT_EQ(run.finish(), 2) << run.err();
    EXPECT_EQ(run.out(), "");
  }
}

constexpr auto kShow = "echo $NCCL_SOCKET_IFNAME,$GLOO_SOCKET_IFNAME";

// The advised value on this machine; empty: it has no default route.
std::string advised(const std::vector<std::string>& environment) {
  Program run({"exec", "--force", "--", "sh", "-c", kShow}, environment);
  std::string out = run.readLine().value_or("");
  EXPECT_EQ(run.finish(), 0) << run.err();
  return out;
}

TEST_F(ExecCommand, KeepsTheUsersVariablesUnlessForced) {
  const auto ours = environment({"NCCL_SOCKET_IFNAME=^lo", "GLOO_SOCKET_IFNAME="});
  const std::string value = advised(ours);
  if (value == "^lo,") GTEST_SKIP() << "skipped: no default route on this machine";
  Program run({"exec", "--", "sh", "-c", kShow}, ours);
  EXPECT_EQ(run.finish(), 0) << run.err();
  const std::string gloo = value.substr(value.find(','));
  EXPECT_EQ(run.out(), "^lo" + gloo + "\n") << "an empty variable counts as unset";
  EXPECT_TRUE(has(run.err(), "keeps NCCL_SOCKET_IFNAME=^lo; --force replaces it\n")) << run.err();
  EXPECT_TRUE(has(fileText(), "export NCCL_SOCKET_IFNAME='^lo'\n")) << fileText();
}

TEST_F(ExecCommand, WritesAPrivateFileForLaterShells) {
  Program run({"exec", "--", "true"}, environment({"NCCL_DEBUG=it's\nINFO"}));
  EXPECT_EQ(run.finish(), 0);
  EXPECT_TRUE(has(run.err(), "later shells get the variables by: . " + file() + "\n")) << run.err();
  EXPECT_TRUE(has(fileText(), "export NCCL_DEBUG='it'\\''s\nINFO'\n")) << fileText();
  struct stat facts{};
  ASSERT_EQ(::stat(file().c_str(), &facts), 0);
  EXPECT_EQ(facts.st_mode & 0777U, 0600U);
  std::size_t files = 0;
  for ([[maybe_unused]] const auto& one :
       std::filesystem::directory_iterator(folder.path() + "/viaduct"))
    ++files;
  EXPECT_EQ(files, 1U) << "no temporary file is left";
}

TEST_F(ExecCommand, ALinkInThePlaceOfTheFileIsReplacedAndNotFollowed) {
  folder.write("/victim", "untouched");
  folder.write("/viaduct/env", "");
  std::filesystem::remove(file());
  std::filesystem::create_symlink(folder.path() + "/victim", file());
  Program run({"exec", "--", "true"}, environment());
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_FALSE(std::filesystem::is_symlink(file()));
  std::string text;
  std::getline(std::ifstream(folder.path() + "/victim"), text);
  EXPECT_EQ(text, "untouched");
}

TEST_F(ExecCommand, GoesOnWithoutAFile) {
  if (::access("/run", W_OK) == 0) GTEST_SKIP() << "skipped: this user may write to /run";
  Program run({"exec", "--", "echo", "started"}, {"XDG_RUNTIME_DIR=/proc/self/fdinfo"});
  EXPECT_EQ(run.finish(), 0);
  EXPECT_EQ(run.out(), "started\n");
  EXPECT_TRUE(has(run.err(), "goes on without a file of the variables")) << run.err();
}

TEST_F(ExecCommand, RaisesSoftLimits) {
  rlimit files{};
  ASSERT_EQ(::getrlimit(RLIMIT_NOFILE, &files), 0);
  if (files.rlim_max <= 256) GTEST_SKIP() << "skipped: no more than 256 open files permitted";
  Program run({"exec", "--", "sh", "-c", "ulimit -Sn 256; exec \"$@\"", "sh", kProgram, "exec",
               "--", "sh", "-c", "ulimit -Sn"},
              environment());
  EXPECT_EQ(run.finish(), 0);
  EXPECT_GT(std::atol(run.out().c_str()), 256) << run.out();
  EXPECT_TRUE(has(run.err(), "raises the limit of open files from 256 to ")) << run.err();
}

TEST_F(ExecCommand, ADryRunStartsAndWritesNothing) {
  const std::string trap = folder.path() + "/trap";
  Program run({"exec", "--dry-run", "--", "touch", trap}, environment());
  EXPECT_EQ(run.finish(), 0);
  EXPECT_TRUE(run.out().ends_with("exec 'touch' '" + trap + "'\n")) << run.out();
  EXPECT_FALSE(std::filesystem::exists(trap) || std::filesystem::exists(file()));
}

constexpr auto kAbsent = R"(PCIDEVICE_X_INFO={"ffff:1f:1f.7":{"rdma":{"rdma_dev":"mlx5_absent"}}})";

TEST_F(ExecCommand, WarnsOfAbsentDevicesFirst) {
  Program run({"exec", "--", "echo", "started"}, environment({kAbsent}));
  EXPECT_EQ(run.finish(), 0) << run.err();
  EXPECT_EQ(run.out(), "started\n");
  EXPECT_EQ(run.err().rfind("viaduct exec: warning PCIDEVICE_X_INFO names absent devices: "
                            "mlx5_absent (ffff:1f:1f.7) is not in /sys/class/infiniband: ",
                            0),
            0U)
      << run.err();
  EXPECT_EQ(run.err().find("mlx5_absent"), run.err().rfind("mlx5_absent")) << "once";
}

TEST_F(ExecCommand, StartsNothingWithoutTheRequiredRdma) {
  Program absent({"exec", "--require", "rdma", "--", "echo", "started"}, environment({kAbsent}));
  EXPECT_EQ(absent.finish(), 126);
  EXPECT_EQ(absent.out(), "");
  EXPECT_TRUE(
      has(absent.err(), "--require rdma: unsupported: PCIDEVICE_X_INFO names absent devices: "))
      << absent.err();
  Program wrong({"exec", "--require", "tcp", "--", "true"}, environment());
  EXPECT_EQ(wrong.finish(), 2) << wrong.err();
}

TEST_F(ExecCommand, NamesVariablesOfThePluginThatCannotBeUsed) {
  Program run({"exec", "--", "true"},
              environment({"PCIDEVICE_X_INFO={\"0000:00:00.9\":", "PCIDEVICE_Y=$(reboot)\x1b"}));
  EXPECT_EQ(run.finish(), 0);
  EXPECT_TRUE(has(run.err(), "viaduct exec: PCIDEVICE_X_INFO: {\"0000:00:00.9\": is not JSON.\n"))
      << run.err();
  EXPECT_TRUE(has(run.err(), "PCIDEVICE_Y: $(reboot)\\x1b is not a PCI address.\n")) << run.err();
}

}  // namespace
}  // namespace viaduct::testing
