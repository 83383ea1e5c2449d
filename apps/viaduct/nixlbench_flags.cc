// The flags that only nixlbench has.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <functional>

#include "base/text.h"
#include "viaduct/bench_workload.h"
#include "viaduct/nixlbench.h"
#include "viaduct/run_flags.h"

namespace viaduct::app {
namespace {

using NixlFlag = Flag<NixlbenchOptions>;

constexpr base::Words<std::string_view, 2> kRuntimes{{{"ETCD", "ETCD"}, {"ASIO", "ASIO"}}};
constexpr base::Words<std::string_view, 2> kUrlSchemes{{{"http", "http"}, {"https", "https"}}};

// Sets a variable of the agents, which `viaduct bench` takes from the environment.
constexpr char kTheirRegion[] = "VIADUCT_OBJECT_REGION", kTheirAuthority[] = "VIADUCT_OBJECT_CA",
               kTheirAccessKey[] = "AWS_ACCESS_KEY_ID", kTheirSecretKey[] = "AWS_SECRET_ACCESS_KEY",
               kTheirToken[] = "AWS_SESSION_TOKEN";
template <const char* Variable>
Status intoObjects(std::string_view text, NixlbenchOptions& into) {
  into.storage.of_objects.variables.push_back(fmt::format("{}={}", Variable, text));
  return Ok{};
}
Status intoStyle(std::string_view text, NixlbenchOptions& into) {
  bool in_host = false;
  VIADUCT_CHECK(intoYesNo(text, in_host));
  into.storage.of_objects.variables.push_back(in_host ? "VIADUCT_OBJECT_STYLE=virtual"
                                                      : "VIADUCT_OBJECT_STYLE=path");
  return Ok{};
}

constexpr std::array kTheirData{
    NixlFlag{"op_type", "WRITE|READ", "WRITE", "as --op", oneOf<kOps, &NixlbenchOptions::op>},
    NixlFlag{"start_block_size", "SIZE", "4096", "first block size; each row doubles it",
             set<intoSize, &NixlbenchOptions::start_block_size>},
    NixlFlag{"max_block_size", "SIZE", "67108864", "last block size",
             set<intoSize, &NixlbenchOptions::max_block_size>},
    NixlFlag{"start_batch_size", "N", "1", "first batch size; each row doubles it",
             count<1, &NixlbenchOptions::start_batch_size>},
    NixlFlag{"max_batch_size", "N", "1", "last batch size",
             count<1, &NixlbenchOptions::max_batch_size>},
};
constexpr std::array kTheirStorage{
    NixlFlag{"posix_kernel_queue_size", "N", "VIADUCT_FILE_QUEUE_DEPTH",
             "most reads and writes of files in flight, at most 1024",
             count<1, &NixlbenchOptions::kernel_queue_size>},
    NixlFlag{"obj_bucket_name", "NAME", "AWS_DEFAULT_BUCKET",
             "bucket for the objects of a run with OBJ (object)",
             set<intoText, &BenchOptions::storage, &StorageOptions::bucket>},
    NixlFlag{"obj_endpoint_override", "URL", "VIADUCT_OBJECT_ENDPOINT, AWS_ENDPOINT_OVERRIDE",
             "object store, https://host[:port]; by default Amazon S3 in the region",
             set<intoText, &BenchOptions::storage, &StorageOptions::endpoint>},
    NixlFlag{"obj_scheme", "http|https", "http", "scheme of an obj_endpoint_override without one",
             oneOf<kUrlSchemes, &NixlbenchOptions::obj_scheme>},
    NixlFlag{"obj_region", "NAME", "eu-central-1", "region of the bucket",
             intoObjects<kTheirRegion>},
    NixlFlag{"obj_use_virtual_addressing", "", "false",
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
constexpr std::array kTheirDuration{
    NixlFlag{
        "num_iter", "N", "1000",
        "timed transfers per pair, rounded up to a multiple of num_threads x large_blk_iter_ftr",
        count<1, &NixlbenchOptions::num_iter>},
    NixlFlag{"large_blk_iter_ftr", "N", "16",
             "divide num_iter and warmup_iter by NixlbenchOptions for blocks above 1 MiB",
             count<1, &BenchOptions::counts, &RoundedCounts::divisor>},
    NixlFlag{"warmup_iter", "N", "100", "warm-up transfers before each row, rounded like num_iter",
             count<0, &NixlbenchOptions::warmup_iter>},
};
constexpr std::array kTheirChecks{
    NixlFlag{"check_consistency", "", "false", "as --verify full",
             set<intoYesNo, &NixlbenchOptions::check_consistency>},
};
constexpr std::array kTheirMeeting{
    NixlFlag{"etcd_endpoints", "URL,...",
             "VIADUCT_MEET, NIXL_ETCD_ENDPOINTS, http://localhost:2379",
             "etcd where the workers meet", set<intoText, &NixlbenchOptions::etcd_endpoints>},
    NixlFlag{"etcd_user", "NAME", "VIADUCT_MEET_USER", "user name for etcd",
             set<intoText, &NixlbenchOptions::etcd_user>},
    NixlFlag{"etcd_password", "WORD", "VIADUCT_MEET_PASSWORD",
             "password for etcd; ps shows the flag, but neither the variable nor a config_file",
             set<intoText, &NixlbenchOptions::etcd_password>},
    NixlFlag{"etcd_ca", "FILE", "VIADUCT_MEET_CA", "CA certificates that verify the etcd server",
             set<intoText, &NixlbenchOptions::etcd_ca>},
    NixlFlag{"etcd_cert", "FILE", "VIADUCT_MEET_CERTIFICATE", "client certificate for etcd",
             set<intoText, &NixlbenchOptions::etcd_cert>},
    NixlFlag{"etcd_key", "FILE", "VIADUCT_MEET_KEY", "private key of the client certificate",
             set<intoText, &NixlbenchOptions::etcd_key>},
    NixlFlag{"runtime_type", "ETCD|ASIO", "ETCD",
             "ASIO: meet at asio_address:asio_port; ETCD: meet at etcd_endpoints",
             oneOf<kRuntimes, &NixlbenchOptions::runtime_type>},
    NixlFlag{"asio_address", "HOST", "127.0.0.1", "host of the ASIO meeting place",
             set<intoText, &NixlbenchOptions::asio_address>},
    NixlFlag{"asio_port", "PORT", "12345", "port of the ASIO meeting place",
             count<1, &NixlbenchOptions::asio_port>},
};

// A flag that does nothing here. Its value is checked.
struct Inert {
  std::string_view name, form, fallback, about;
};
constexpr std::array kNoEffect{
    Inert{"prepared_xfer", "", "false", "transfers are always planned once"},
    Inert{"enable_pt", "", "false", "there always is a progress thread"},
    Inert{"progress_threads", "N", "0", "every agent has one progress thread"},
    Inert{"posix_api_type", "AIO|URING|POSIXAIO", "AIO", "VIADUCT_FILE_ENGINE chooses the engine"},
    Inert{"posix_ios_pool_size", "N", "65536", "the pool has the size of the queue"},
    Inert{"obj_req_checksum", "supported|required", "supported",
          "VIADUCT_OBJECT_SIGN_BODIES chooses what signatures cover"},
    Inert{"obj_crt_min_limit", "N", "0", "one client serves all sizes"},
    Inert{"obj_accelerated_type", "NAME", "", "needs obj_accelerated_enable"},
};
// Features that viaduct does not have. Each flag is refused unless it has its default.
constexpr std::array kRefused{
    Inert{"worker_type", "nixl|nvshmem", "nixl", "NVSHMEM workers are not built in"},
    Inert{"enable_vmm", "", "false", "CUDA memory is not built in"},
    Inert{"use_device_api", "", "false", "transfers started by GPU kernels are not built in"},
    Inert{"obj_accelerated_enable", "", "false",
          "accelerated engines of object stores are not built in"},
};
// Backends that viaduct does not have. Scripts pass these flags with every backend, and nixlbench
// ignores them for other backends. So they have no effect.
constexpr auto kGds = "GPUDirect Storage";
constexpr auto kAzure = "Azure Blob";
constexpr std::array kIgnored{
    Inert{"randomize_location_mode", "MODE", "none", "storage backends"},
    Inert{"randomize_location_mode_seed", "NUMBER", "0", "storage backends"},
    Inert{"gds_batch_pool_size", "NUMBER", "32", kGds},
    Inert{"gds_batch_limit", "NUMBER", "128", kGds},
    Inert{"gds_mt_num_threads", "NUMBER", "1", kGds},
    Inert{"gpunetio_device_list", "LIST", "0", "GPUNETIO"},
    Inert{"gpunetio_oob_list", "LIST", "", "GPUNETIO"},
    Inert{"azure_blob_account_url", "URL", "", kAzure},
    Inert{"azure_blob_container_name", "NAME", "", kAzure},
    Inert{"azure_blob_connection_string", "TEXT", "", kAzure},
    Inert{"infinia_config_file", "FILE", "", "INFINIA"},
    Inert{"hf3fs_iopool_size", "NUMBER", "64", "HF3FS"},
    Inert{"gusli_client_name", "NAME", "NIXLBench", "GUSLI"},
    Inert{"gusli_max_simultaneous_requests", "NUMBER", "32", "GUSLI"},
    Inert{"gusli_config_file", "FILE", "", "GUSLI"},
    Inert{"gusli_device_byte_offsets", "LIST", "", "GUSLI"},
    Inert{"gusli_device_security", "LIST", "", "GUSLI"},
    Inert{"gusli_try_use_uring", "", "false", "GUSLI"},
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

void addInert(std::string_view title, std::span<const Inert> flags, bool works,
              const std::function<Status(const Inert& flag, const Given& given)>& apply,
              FlagSheet& sheet) {
  for (const Inert& flag : flags)
    sheet.add(title, {.name = {.name = flag.name, .yes_or_no = flag.form.empty(), .works = works},
                      .form = flag.form,
                      .fallback = flag.fallback,
                      .help = flag.about,
                      .apply = [&flag, apply](const Given& one) { return apply(flag, one); }});
}

void addAllInert(NixlbenchOptions& into, FlagSheet& sheet) {
  addInert(
      "Without effect", kNoEffect, true,
      [](const Inert& flag, const Given& one) -> Status {
        auto fits = checkForm(flag, one.text);
        if (fits) return fits;
        Error error = std::move(fits).error();
        error.operation = one.from;
        return error;
      },
      sheet);
  addInert(
      "Not built in", kRefused, false,
      [](const Inert& flag, const Given& one) -> Status {
        if (isDefault(flag, one.text)) return Ok{};
        return Error{.code = Code::kUnsupported,
                     .operation = one.from,
                     .detail = std::string(flag.about),
                     .remedy = "leave it out"};
      },
      sheet);
  addInert(
      "Of other backends, ignored", kIgnored, false,
      [&into](const Inert& flag, const Given& one) -> Status {
        if (!isDefault(flag, one.text)) into.ignored.emplace_back(flag.name);
        return Ok{};
      },
      sheet);
}

// What `viaduct bench` has in the place of nixlbench's flags.
struct Instead {
  std::string_view theirs, ours;
};
constexpr auto kSizes = "use --block-sizes, as in --block-sizes 4K..64M";
constexpr auto kBatches = "use --batch, as in --batch 1..16";
constexpr auto kMeet = "use --meet, as in --meet http://etcd:2379";
constexpr std::array kInstead{Instead{"op_type", "use --op"},
                              Instead{"start_block_size", kSizes},
                              Instead{"max_block_size", kSizes},
                              Instead{"start_batch_size", kBatches},
                              Instead{"max_batch_size", kBatches},
                              Instead{"num_iter", "use --iterations"},
                              Instead{"warmup_iter", "use --warmup"},
                              Instead{"large_blk_iter_ftr", "use --iterations"},
                              Instead{"check_consistency", "use --verify full"},
                              Instead{"etcd_endpoints", kMeet},
                              Instead{"runtime_type", kMeet},
                              Instead{"asio_address", "use --meet HOST:PORT"},
                              Instead{"asio_port", "use --meet HOST:PORT"},
                              Instead{"obj_bucket_name", "use --object-bucket"},
                              Instead{"obj_endpoint_override", "use --object-endpoint"},
                              Instead{"obj_scheme", "use --object-endpoint"},
                              Instead{"obj_region", "set VIADUCT_OBJECT_REGION"},
                              Instead{"obj_use_virtual_addressing", "set VIADUCT_OBJECT_STYLE"}};

std::string insteadOf(const SheetFlag& flag) {
  for (const Instead& one : kInstead)
    if (one.theirs == flag.name.name) return std::string(one.ours);
  const bool variable = flag.fallback.starts_with("VIADUCT_") || flag.fallback.starts_with("AWS_");
  return variable ? fmt::format("set {}", flag.fallback) : "leave it out";
}

constexpr WorkloadTexts kTheirTexts{
    "nixlbench",
    "Measure transfers between workers, as NVIDIA's nixlbench does.\n\n"
    "It has the flags, the defaults and the table of NVIDIA's nixlbench. Start one process per "
    "worker. They meet at an etcd, by default at http://localhost:2379.\n",
    "Write a flag as --name value, --name=value or -name value, with dashes or underscores. A flag "
    "without a value is --name or --noname.\n\n"
    "VIADUCT_* variables configure the agents: see `viaduct settings`. NIXL_BACKEND, "
    "NIXL_WORKER_TYPE, NIXL_TARGET_SEG_TYPE, ETCD_ENDPOINTS and NIXL_LOG_LEVEL stand for flags "
    "that are not typed.\n\n"
    "nixlbench's flags for features that are not built in are errors. Flags of storage are ignored "
    "with a note if the backend is none of storage.\n\n"
    "Exit codes:\n"
    "  0    every row was measured and is valid\n"
    "  1    a row failed or is not valid, or B is slower than --fail_if_slower allows\n"
    "  2    the command line is wrong\n"
    "  3    a worker was killed; rows measured before are kept\n"
    "  4    the comparison has too few runs to show a difference\n"
    "  130  interrupted; rows measured before are kept\n"
    "\nExamples:\n"
    "  Measure two hosts, with this command on both:\n"
    "    nixlbench --etcd_endpoints http://etcd:2379 --backend UCX\n"
    "  The same without etcd:\n"
    "    nixlbench --runtime_type ASIO --asio_address node0 --secret WORD\n"
    "  Measure this machine:\n"
    "    nixlbench --local_workers 2 --backend tcp --max_block_size 1048576\n"
    "  Measure the disk of a folder, without etcd and other workers:\n"
    "    nixlbench --backend POSIX --filepath /nvme --storage_enable_direct\n"
    "  Show the path and the proof of each row:\n"
    "    nixlbench --local_workers 2 --backend tcp --output table\n"};
constexpr Workload<NixlbenchOptions> kNixlbench{kTheirTexts, nixlbenchSheet, planNixlbench};

}  // namespace

FlagSheet nixlbenchSheet(NixlbenchOptions& o) {
  FlagSheet out = sharedSheet(o);
  out.add<NixlbenchOptions>("Data", kTheirData, o)
      .add<NixlbenchOptions>("Storage", kTheirStorage, o)
      .add<NixlbenchOptions>("Duration", kTheirDuration, o)
      .add<NixlbenchOptions>("Checks", kTheirChecks, o)
      .add<NixlbenchOptions>("Meeting place", kTheirMeeting, o);
  addAllInert(o, out);
  return out;
}

std::optional<Error> nixlbenchFlag(std::string_view name) {
  NixlbenchOptions options;
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
