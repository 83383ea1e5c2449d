// The flags that only nixlbench has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "base/text.h"
#include "viaduct/nixlbench.h"
#include "viaduct/run_flags.h"
#include "viaduct/workload.h"

namespace viaduct::app {
namespace {

using Nixl = NixlbenchOptions;
using NixlFlag = Flag<Nixl>;

constexpr base::Words<std::string_view, 2> kRuntimes{{{"ETCD", "ETCD"}, {"ASIO", "ASIO"}}};
constexpr base::Words<std::string_view, 2> kUrlSchemes{{{"http", "http"}, {"https", "https"}}};

// intoObjects() sets one of these variables for the agents. `viaduct bench` takes them from the
// environment.
constexpr char kTheirRegion[] = "VIADUCT_OBJECT_REGION", kTheirAuthority[] = "VIADUCT_OBJECT_CA",
               kTheirAccessKey[] = "AWS_ACCESS_KEY_ID", kTheirSecretKey[] = "AWS_SECRET_ACCESS_KEY",
               kTheirToken[] = "AWS_SESSION_TOKEN";
template <const char* Variable>
Status intoObjects(std::string_view text, Nixl& into) {
  into.storage.of_objects.variables.push_back(fmt::format("{}={}", Variable, text));
  return Ok{};
}
Status intoStyle(std::string_view text, Nixl& into) {
  bool in_host = false;
  VIADUCT_CHECK(intoYesNo(text, in_host));
  into.storage.of_objects.variables.push_back(in_host ? "VIADUCT_OBJECT_STYLE=virtual"
                                                      : "VIADUCT_OBJECT_STYLE=path");
  return Ok{};
}

// Help that begins with "as --" names what `viaduct bench` has in the place of the flag.
constexpr std::array kTheirFlags{
    NixlFlag{"op_type", "WRITE|READ", "WRITE", "as --op", oneOf<kOps, &RunOptions::op>},
    NixlFlag{"start_block_size", "SIZE", "4096", "as --block_sizes 4K..64M: the first size",
             set<intoSize, &Nixl::start_block_size>},
    NixlFlag{"max_block_size", "SIZE", "67108864", "as --block_sizes 4K..64M: the last size",
             set<intoSize, &Nixl::max_block_size>},
    NixlFlag{"start_batch_size", "N", "1", "as --batch 1..16: the first batch size",
             count<1, &Nixl::start_batch_size>},
    NixlFlag{"max_batch_size", "N", "1", "as --batch 1..16: the last batch size",
             count<1, &Nixl::max_batch_size>},
    NixlFlag{"num_iter", "N", "1000",
             "as --iterations, rounded up to a multiple of num_threads x large_blk_iter_ftr",
             count<1, &Nixl::num_iter>},
    NixlFlag{"large_blk_iter_ftr", "N", "16",
             "divisor of num_iter and warmup_iter for blocks above 1 MiB",
             count<1, &BenchOptions::counts, &RoundedCounts::divisor>},
    NixlFlag{"warmup_iter", "N", "100", "as --warmup: transfers, rounded like num_iter",
             count<0, &Nixl::warmup_iter>},
    NixlFlag{"check_consistency", "", "false", "as --verify full",
             set<intoYesNo, &Nixl::check_consistency>},
    NixlFlag{"etcd_endpoints", "URL,...",
             "VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379",
             "as --meet http://etcd:2379", set<intoText, &Nixl::etcd_endpoints>},
    NixlFlag{"etcd_user", "NAME", "VIADUCT_MEET_USER", "user name for etcd",
             set<intoText, &Nixl::etcd_user>},
    NixlFlag{"etcd_password", "WORD", "VIADUCT_MEET_PASSWORD",
             "password for etcd; ps shows the flag, but neither the variable nor a config_file",
             set<intoText, &Nixl::etcd_password>},
    NixlFlag{"etcd_ca", "FILE", "VIADUCT_MEET_CA", "CA certificates that verify the etcd server",
             set<intoText, &Nixl::etcd_ca>},
    NixlFlag{"etcd_cert", "FILE", "VIADUCT_MEET_CERTIFICATE", "client certificate for etcd",
             set<intoText, &Nixl::etcd_cert>},
    NixlFlag{"etcd_key", "FILE", "VIADUCT_MEET_KEY", "private key of the client certificate",
             set<intoText, &Nixl::etcd_key>},
    NixlFlag{"runtime_type", "ETCD|ASIO", "ETCD",
             "as --meet: ASIO at asio_address:asio_port, ETCD at etcd_endpoints",
             oneOf<kRuntimes, &Nixl::runtime_type>},
    NixlFlag{"asio_address", "HOST", "127.0.0.1", "as --meet HOST:PORT",
             set<intoText, &Nixl::asio_address>},
    NixlFlag{"asio_port", "PORT", "12345", "as --meet HOST:PORT", count<1, &Nixl::asio_port>},
    NixlFlag{"posix_kernel_queue_size", "N", "VIADUCT_FILE_QUEUE_DEPTH",
             "most reads and writes of files in flight, at most 1024",
             count<1, &Nixl::kernel_queue_size>},
    NixlFlag{"obj_bucket_name", "NAME", "AWS_DEFAULT_BUCKET", "as --object_bucket",
             set<intoText, &BenchOptions::storage, &StorageOptions::bucket>},
    NixlFlag{"obj_endpoint_override", "URL", "VIADUCT_OBJECT_ENDPOINT, AWS_ENDPOINT_OVERRIDE",
             "as --object_endpoint",
             set<intoText, &BenchOptions::storage, &StorageOptions::endpoint>},
    NixlFlag{"obj_scheme", "http|https", "http",
             "as --object_endpoint: the scheme of an obj_endpoint_override without one",
             oneOf<kUrlSchemes, &Nixl::obj_scheme>},
    NixlFlag{"obj_region", "NAME", "VIADUCT_OBJECT_REGION; nixlbench: eu-central-1",
             "region of the bucket", intoObjects<kTheirRegion>},
    NixlFlag{"obj_use_virtual_addressing", "", "VIADUCT_OBJECT_STYLE; nixlbench: false",
             "name the bucket in the host name, not in the path", intoStyle},
    NixlFlag{"obj_access_key", "KEY", "AWS_ACCESS_KEY_ID",
             "access key; ps shows the flag, but not the variable", intoObjects<kTheirAccessKey>},
    NixlFlag{"obj_secret_key", "KEY", "AWS_SECRET_ACCESS_KEY",
             "secret key; ps shows the flag, but not the variable", intoObjects<kTheirSecretKey>},
    NixlFlag{"obj_session_token", "TOKEN", "AWS_SESSION_TOKEN",
             "token of a temporary key; ps shows the flag, but not the variable",
             intoObjects<kTheirToken>},
    NixlFlag{"obj_ca_bundle", "FILE", "VIADUCT_OBJECT_CA",
             "CA certificates that verify the object store", intoObjects<kTheirAuthority>},
};

// How viaduct treats a flag that has no effect here.
enum class Inertia : std::uint8_t {
  kNone,     // only the form of its value is checked
  kRefused,  // of a feature that viaduct does not have; its default is accepted
  kIgnored,  // of a backend or a mode that viaduct does not have; scripts pass it with every
             // backend
};
struct Inert {
  std::string_view name, form, fallback, about;
};
struct InertGroup {
  std::string_view title;
  Inertia kind;
  std::span<const Inert> flags;
};
constexpr std::array kNoEffect{
    Inert{"prepared_xfer", "", "false", "transfers are always planned once"},
    Inert{"enable_vmm", "", "false", "GPU memory is VMM where the driver can share it"},
    Inert{"enable_pt", "", "false", "there always is a progress thread"},
    Inert{"progress_threads", "N", "0", "every agent has one progress thread"},
    Inert{"posix_api_type", "AIO|URING|POSIXAIO", "AIO", "VIADUCT_FILE_ENGINE chooses the engine"},
    Inert{"posix_ios_pool_size", "N", "65536", "the pool has the size of the queue"},
    Inert{"obj_req_checksum", "supported|required", "supported",
          "VIADUCT_OBJECT_SIGN_BODIES chooses what signatures cover"},
    Inert{"obj_crt_min_limit", "N", "0", "one client serves all sizes"},
    Inert{"obj_accelerated_type", "NAME", "", "needs obj_accelerated_enable"},
};
constexpr std::array kRefused{
    Inert{"worker_type", "nixl|nvshmem", "nixl", "NVSHMEM workers are not built in"},
    Inert{"use_device_api", "", "false", "transfers started by GPU kernels are not built in"},
    Inert{"obj_accelerated_enable", "", "false",
          "accelerated engines of object stores are not built in"},
};
constexpr auto kGds = "GPUDirect Storage";
constexpr auto kAzure = "Azure Blob";
constexpr std::array kIgnored{
    Inert{"randomize_location_mode", "MODE", "none",
          "random places in storage; here the blocks of each batch lie in random order"},
    Inert{"randomize_location_mode_seed", "N", "0", "seed of those places; here --seed"},
    Inert{"gds_batch_pool_size", "N", "32", kGds},
    Inert{"gds_batch_limit", "N", "128", kGds},
    Inert{"gds_mt_num_threads", "N", "1", kGds},
    Inert{"gpunetio_device_list", "LIST", "0", "GPUNETIO"},
    Inert{"gpunetio_oob_list", "LIST", "", "GPUNETIO"},
    Inert{"azure_blob_account_url", "URL", "", kAzure},
    Inert{"azure_blob_container_name", "NAME", "", kAzure},
    Inert{"azure_blob_connection_string", "TEXT", "", kAzure},
    Inert{"infinia_config_file", "FILE", "", "INFINIA"},
    Inert{"hf3fs_iopool_size", "N", "64", "HF3FS"},
    Inert{"gusli_client_name", "NAME", "NIXLBench", "GUSLI"},
    Inert{"gusli_max_simultaneous_requests", "N", "32", "GUSLI"},
    Inert{"gusli_config_file", "FILE", "", "GUSLI"},
    Inert{"gusli_device_byte_offsets", "LIST", "", "GUSLI"},
    Inert{"gusli_device_security", "LIST", "", "GUSLI"},
    Inert{"gusli_try_use_uring", "", "false", "GUSLI"},
};

constexpr std::array kInert{
    InertGroup{"Without effect", Inertia::kNone, kNoEffect},
    InertGroup{"Not built in", Inertia::kRefused, kRefused},
    InertGroup{"Ignored here", Inertia::kIgnored, kIgnored},
};

bool isDefault(const Inert& flag, std::string_view text) {
  const auto yes = parseYesNo(text), usual = parseYesNo(flag.fallback);
  if (flag.form.empty() && yes && usual) return *yes == *usual;
  return base::sameWord(text, flag.fallback);
}

// Fails for a value that does not have the flag's form.
Status checkForm(const Inert& flag, std::string_view text) {
  bool asked = false;
  if (flag.form.empty()) return intoYesNo(text, asked);
  if (flag.form == "N") {
    VIADUCT_CHECK(countIn(text, 0, std::uint64_t{1} << 48U));
    return Ok{};
  }
  const std::vector<std::string> words = valuesOf(flag.form);
  const auto same = [&](const std::string& word) { return base::sameWord(word, text); };
  if (words.empty() || std::ranges::any_of(words, same)) return Ok{};
  return wrongValue(fmt::format("\"{}\" is none of {}", text, fmt::join(words, ", ")), {});
}

Status applyInert(Inertia kind, const Inert& flag, std::string_view text, Nixl& into) {
  if (kind == Inertia::kNone) return checkForm(flag, text);
  if (isDefault(flag, text)) return Ok{};
  if (kind == Inertia::kRefused)
    return Error{
        .code = Code::kUnsupported, .detail = std::string(flag.about), .remedy = "leave it out"};
  into.ignored.emplace_back(flag.name);
  return Ok{};
}

void addInert(const InertGroup& group, Nixl& into, FlagSheet& sheet) {
  for (const Inert& flag : group.flags)
    sheet.add(group.title, {.name = {.name = flag.name,
                                     .yes_or_no = flag.form.empty(),
                                     .works = group.kind == Inertia::kNone},
                            .form = flag.form,
                            .fallback = flag.fallback,
                            .help = flag.about,
                            .apply = [&flag, &into, kind = group.kind](std::string_view text) {
                              return applyInert(kind, flag, text, into);
                            }});
}

// Returns what to do in the place of a flag of nixlbench.
std::string insteadOf(const SheetFlag& flag) {
  if (flag.help.starts_with("as "))
    return fmt::format("use {}", flag.help.substr(3, flag.help.find_first_of(":,") - 3));
  const std::string_view variable = flag.fallback.substr(0, flag.fallback.find(';'));
  const bool set = variable.starts_with("VIADUCT_") || variable.starts_with("AWS_");
  return set ? fmt::format("set {}", variable) : "leave it out";
}

const std::string kTheirMore =
    std::string(kSpelling) +
    "NIXL_BACKEND, NIXL_WORKER_TYPE, NIXL_TARGET_SEG_TYPE, ETCD_ENDPOINTS and NIXL_LOG_LEVEL stand "
    "for flags that are not typed.\n\n"
    "nixlbench's flags for features that are not built in are errors. Flags of storage are ignored "
    "with a note if the backend is none of storage.\n\n" +
    kExitCodes;

const Workload<Nixl> kNixlbench{
    "nixlbench",
    "Measure transfers between workers, as NVIDIA's nixlbench does.\n\n"
    "It has the flags, the defaults and the table of NVIDIA's nixlbench. Start one process per "
    "worker. They meet at an etcd, by default at http://localhost:2379.\n",
    "  Measure two hosts, with this command on both:\n"
    "    nixlbench --etcd_endpoints http://etcd:2379 --backend UCX\n"
    "  The same without etcd:\n"
    "    nixlbench --runtime_type ASIO --asio_address node0 --secret WORD\n"
    "  Measure this machine:\n"
    "    nixlbench --local_workers 2 --backend tcp --max_block_size 1048576\n"
    "  Measure the disk of a folder, without etcd and other workers:\n"
    "    nixlbench --backend POSIX --filepath /nvme --storage_enable_direct\n"
    "  Show the path and the proof of each row:\n"
    "    nixlbench --local_workers 2 --backend tcp --output table\n",
    nixlbenchSheet,
    planNixlbench,
    nullptr,
    kTheirMore.c_str()};

}  // namespace

FlagSheet nixlbenchSheet(Nixl& o) {
  FlagSheet out = sharedSheet(o);
  out.add<Nixl>("Only in nixlbench", kTheirFlags, o);
  for (const InertGroup& group : kInert) addInert(group, o, out);
  return out;
}

std::optional<Error> nixlbenchFlag(std::string_view name) {
  Nixl options;
  const FlagSheet sheet = nixlbenchSheet(options);
  for (const FlagGroup& group : sheet.groups())
    for (const SheetFlag& flag : group.flags)
      if (flag.name.name == name)
        return badFlag("", "it is a flag of `nixlbench`", insteadOf(flag));
  return std::nullopt;
}

CommandPage nixlbenchPage() { return pageOf(kNixlbench); }
int runNixlbench(const CommandWords& words) { return runWorkload(kNixlbench, words); }

}  // namespace viaduct::app
