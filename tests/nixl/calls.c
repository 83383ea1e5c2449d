/* Calls every function of NIXL's C library, as a program in C does. The argument names a scenario.
 * Scenarios of two processes fork before they open agents: the child is the target. */
#define _GNU_SOURCE
#include <fcntl.h>
#include <netinet/in.h>
#include <nixl_capi.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void refuse(const char* call, int line, int status) {
  fprintf(stderr, "line %d: %s gave %d\n", line, call, status);
  exit(1);
}
#define GIVES(status, call)                            \
  do {                                                 \
    const int got = (call);                            \
    if (got != (status)) refuse(#call, __LINE__, got); \
  } while (0)
#define OK(call) GIVES(NIXL_CAPI_SUCCESS, call)
#define INVALID(call) GIVES(NIXL_CAPI_ERROR_INVALID_PARAM, call)
#define FAILS(call) GIVES(NIXL_CAPI_ERROR_BACKEND, call)
#define ABSENT(call) GIVES(NIXL_CAPI_ERROR_NOT_FOUND, call)
#define IS(condition)                                  \
  do {                                                 \
    if (!(condition)) refuse(#condition, __LINE__, 0); \
  } while (0)

enum { kBlock = 4096, kBlocks = 16, kBytes = kBlock * kBlocks, kLarge = 1 << 28 };

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}

/* Polls the status until it is not IN_PROG, for 20 s. */
static int end_of(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request) {
  const double until = now() + 20;
  for (;;) {
    const int status = nixl_capi_get_xfer_status(agent, request);
    if (status != NIXL_CAPI_IN_PROG) return status;
    IS(now() < until);
    sched_yield();
  }
}
static void run(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request, nixl_capi_opt_args_t how) {
  const int status = nixl_capi_post_xfer_req(agent, request, how);
  IS(status == NIXL_CAPI_SUCCESS || status == NIXL_CAPI_IN_PROG);
  OK(end_of(agent, request));
}
static void give_up(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request) {
  GIVES(NIXL_CAPI_ERROR_INVALID_STATE, nixl_capi_destroy_xfer_req(request));
  OK(nixl_capi_release_xfer_req(agent, request));
  INVALID(nixl_capi_release_xfer_req(agent, request));
  OK(nixl_capi_destroy_xfer_req(request));
}

static nixl_capi_backend_t backend_of(nixl_capi_agent_t agent, const char* plugin) {
  nixl_capi_params_t params;
  nixl_capi_backend_t backend;
  OK(nixl_capi_create_params(&params));
  OK(nixl_capi_create_backend(agent, plugin, params, &backend));
  OK(nixl_capi_destroy_params(params));
  return backend;
}
static nixl_capi_agent_t agent_named(const char* name) {
  nixl_capi_agent_t agent;
  OK(nixl_capi_create_agent(name, &agent));
  OK(nixl_capi_destroy_backend(backend_of(agent, "UCX")));
  return agent;
}
static void add_memory(nixl_capi_agent_t agent, const void* memory, size_t bytes) {
  nixl_capi_reg_dlist_t descs;
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &descs));
  OK(nixl_capi_reg_dlist_add_desc(descs, (uintptr_t)memory, bytes, 0, NULL, 0));
  OK(nixl_capi_register_mem(agent, descs, NULL));
  OK(nixl_capi_destroy_reg_dlist(descs));
}
static nixl_capi_xfer_dlist_t blocks_at(uintptr_t memory, size_t block, size_t count) {
  nixl_capi_xfer_dlist_t descs;
  OK(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_DRAM, &descs));
  for (size_t i = 0; i < count; ++i)
    OK(nixl_capi_xfer_dlist_add_desc(descs, memory + i * block, block, 0));
  return descs;
}
static nixl_capi_xfer_req_t request_of(nixl_capi_agent_t agent, nixl_capi_xfer_op_t op,
                                       const void* here, uintptr_t there, size_t bytes,
                                       const char* remote) {
  nixl_capi_xfer_dlist_t local = blocks_at((uintptr_t)here, bytes, 1);
  nixl_capi_xfer_dlist_t far = blocks_at(there, bytes, 1);
  nixl_capi_xfer_req_t request;
  OK(nixl_capi_create_xfer_req(agent, op, local, far, remote, &request, NULL));
  OK(nixl_capi_destroy_xfer_dlist(local));
  OK(nixl_capi_destroy_xfer_dlist(far));
  return request;
}
static nixl_capi_opt_args_t note_of(const char* text, bool flag_first) {
  nixl_capi_opt_args_t options;
  OK(nixl_capi_create_opt_args(&options));
  if (flag_first) OK(nixl_capi_opt_args_set_has_notif(options, true));
  OK(nixl_capi_opt_args_set_notif_msg(options, text, strlen(text)));
  if (!flag_first) OK(nixl_capi_opt_args_set_has_notif(options, true));
  return options;
}
static nixl_capi_opt_args_t address_of(uint16_t port) {
  nixl_capi_opt_args_t options;
  OK(nixl_capi_create_opt_args(&options));
  OK(nixl_capi_opt_args_set_ip_addr(options, "127.0.0.1"));
  OK(nixl_capi_opt_args_set_port(options, port));
  return options;
}
/* Waits for `count` notifications of an agent, and takes them. */
static nixl_capi_notif_map_t notes_from(nixl_capi_agent_t agent, const char* name, size_t count) {
  const double until = now() + 20;
  nixl_capi_notif_map_t map;
  OK(nixl_capi_create_notif_map(&map));
  for (size_t arrived = 0; arrived < count;) {
    OK(nixl_capi_get_notifs(agent, map, NULL));
    if (nixl_capi_notif_map_get_notifs_size(map, name, &arrived) != NIXL_CAPI_SUCCESS) arrived = 0;
    IS(now() < until);
    sched_yield();
  }
  return map;
}

/* The other process. */
struct other {
  pid_t pid;
  int in, out;
};
static void put(int to, const void* bytes, size_t length) {
  IS(write(to, bytes, length) == (ssize_t)length);
}
static void get(int from, void* bytes, size_t length) {
  for (size_t have = 0; have < length;) {
    const ssize_t more = read(from, (char*)bytes + have, length - have);
    IS(more > 0);
    have += (size_t)more;
  }
}
static void put_metadata(int to, nixl_capi_agent_t agent) {
  void* blob;
  size_t length;
  OK(nixl_capi_get_local_md(agent, &blob, &length));
  put(to, &length, sizeof length);
  put(to, blob, length);
  free(blob);
}
static void load_metadata(int from, nixl_capi_agent_t agent, const char* expected) {
  size_t length;
  get(from, &length, sizeof length);
  char* blob = malloc(length);
  get(from, blob, length);
  char* name;
  OK(nixl_capi_load_remote_md(agent, blob, length, &name));
  IS(strcmp(name, expected) == 0);
  free(name);
  free(blob);
}

/* Serves memory until the other process asks for the end. */
static void target(struct other other, size_t bytes) {
  nixl_capi_agent_t agent = agent_named("target");
  unsigned char* memory = aligned_alloc(kBlock, bytes);
  for (size_t i = 0; i < kBytes; ++i) memory[i] = (unsigned char)(i / kBlock + 1);
  add_memory(agent, memory, bytes);
  const uintptr_t address = (uintptr_t)memory;
  put(other.out, &address, sizeof address);
  put_metadata(other.out, agent);
  load_metadata(other.in, agent, "initiator");
  char question;
  while (read(other.in, &question, 1) == 1 && question == 'n') {
    nixl_capi_notif_map_t map = notes_from(agent, "initiator", 1);
    const void* text;
    size_t length;
    OK(nixl_capi_notif_map_get_notif(map, "initiator", 0, &text, &length));
    put(other.out, &length, sizeof length);
    put(other.out, text, length);
    put(other.out, memory, kBytes); /* as it is once the notification has arrived */
    OK(nixl_capi_destroy_notif_map(map));
  }
  OK(nixl_capi_gen_notif(agent, "initiator", "bye", 3, NULL));
  IS(read(other.in, &question, 1) == 0);
  OK(nixl_capi_destroy_agent(agent));
  exit(0);
}
static struct other start_target(size_t bytes) {
  int to[2], from[2];
  IS(pipe2(to, O_CLOEXEC) == 0 && pipe2(from, O_CLOEXEC) == 0);
  const pid_t pid = fork();
  if (pid == 0) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    close(to[1]);
    close(from[0]);
    target((struct other){getppid(), to[0], from[1]}, bytes);
  }
  close(to[0]);
  close(from[1]);
  return (struct other){pid, from[0], to[1]};
}

static void texts_and_parameters(void) {
  const char *text, *key, *value = NULL;
  const char* const names[] = {"DRAM", "VRAM", "BLOCK", "OBJECT", "FILE", "UNKNOWN"};
  for (int type = 0; type < 6; ++type) {
    OK(nixl_capi_mem_type_to_string((nixl_capi_mem_type_t)type, &text));
    IS(strcmp(text, names[type]) == 0);
  }
  INVALID(nixl_capi_mem_type_to_string((nixl_capi_mem_type_t)6, &text));
  nixl_capi_params_t params;
  nixl_capi_param_iter_t at;
  bool yes;
  INVALID(nixl_capi_create_params(NULL));
  OK(nixl_capi_create_params(&params));
  OK(nixl_capi_params_is_empty(params, &yes));
  IS(yes);
  OK(nixl_capi_params_add(params, "a", "1"));
  OK(nixl_capi_params_add(params, "b", "2"));
  OK(nixl_capi_params_add(params, "b", "3"));
  OK(nixl_capi_params_create_iterator(params, &at));
  OK(nixl_capi_params_iterator_next(at, &key, &value, &yes));
  IS(strcmp(key, "a") == 0 && strcmp(value, "1") == 0 && yes);
  OK(nixl_capi_params_iterator_next(at, &key, &value, &yes));
  IS(strcmp(key, "b") == 0 && strcmp(value, "3") == 0 && !yes);
  key = NULL;
  OK(nixl_capi_params_iterator_next(at, &key, &value, &yes));
  IS(key == NULL && !yes);
  OK(nixl_capi_params_destroy_iterator(at));
  OK(nixl_capi_destroy_params(params));
  INVALID(nixl_capi_destroy_params(NULL));
}

static void options(void) {
  nixl_capi_opt_args_t options = note_of("hello", false);
  bool yes;
  void* text;
  size_t length;
  OK(nixl_capi_opt_args_get_has_notif(options, &yes));
  IS(yes);
  OK(nixl_capi_opt_args_set_has_notif(options, false));
  OK(nixl_capi_opt_args_get_notif_msg(options, &text, &length));
  IS(length == 5 && memcmp(text, "hello", 5) == 0);
  free(text);
  OK(nixl_capi_opt_args_set_notif_msg(options, NULL, 0));
  INVALID(nixl_capi_opt_args_set_notif_msg(options, NULL, 1));
  OK(nixl_capi_opt_args_get_notif_msg(options, &text, &length));
  IS(text == NULL && length == 0);
  OK(nixl_capi_opt_args_get_skip_desc_merge(options, &yes));
  IS(!yes);
  OK(nixl_capi_opt_args_set_skip_desc_merge(options, true));
  OK(nixl_capi_opt_args_get_skip_desc_merge(options, &yes));
  IS(yes);
  OK(nixl_capi_destroy_opt_args(options));
}

static void transfer_lists(void) {
  nixl_capi_xfer_dlist_t list;
  nixl_capi_mem_type_t type;
  size_t count;
  bool empty;
  INVALID(nixl_capi_create_xfer_dlist((nixl_capi_mem_type_t)6, &list));
  OK(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_FILE, &list));
  OK(nixl_capi_xfer_dlist_get_type(list, &type));
  IS(type == NIXL_CAPI_MEM_FILE);
  OK(nixl_capi_xfer_dlist_is_empty(list, &empty));
  IS(empty);
  OK(nixl_capi_xfer_dlist_add_desc(list, 4096, 10, 1));
  OK(nixl_capi_xfer_dlist_add_desc(list, 8192, 20, 2));
  OK(nixl_capi_xfer_dlist_trim(list));
  OK(nixl_capi_xfer_dlist_resize(list, 5));
  OK(nixl_capi_xfer_dlist_desc_count(list, &count));
  IS(count == 5);
  FAILS(nixl_capi_xfer_dlist_rem_desc(list, 5));
  FAILS(nixl_capi_xfer_dlist_rem_desc(list, -1));
  OK(nixl_capi_xfer_dlist_rem_desc(list, 0));
  OK(nixl_capi_xfer_dlist_print(list));
  OK(nixl_capi_xfer_dlist_len(list, &count));
  IS(count == 4);
  OK(nixl_capi_xfer_dlist_clear(list));
  OK(nixl_capi_xfer_dlist_len(list, &count));
  IS(count == 0);
  OK(nixl_capi_destroy_xfer_dlist(list));
}

static void registration_lists(void) {
  nixl_capi_reg_dlist_t list;
  nixl_capi_remote_dlist_t remote;
  nixl_capi_mem_type_t type;
  size_t count;
  bool empty;
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_UNKNOWN, &list));
  OK(nixl_capi_reg_dlist_get_type(list, &type));
  IS(type == NIXL_CAPI_MEM_UNKNOWN);
  OK(nixl_capi_reg_dlist_add_desc(list, 0, 1, 2, "meta", 4));
  INVALID(nixl_capi_reg_dlist_add_desc(list, 0, 1, 2, NULL, 4));
  OK(nixl_capi_reg_dlist_resize(list, 3));
  OK(nixl_capi_reg_dlist_rem_desc(list, 1));
  FAILS(nixl_capi_reg_dlist_rem_desc(list, 2));
  OK(nixl_capi_reg_dlist_trim(list));
  OK(nixl_capi_reg_dlist_print(list));
  OK(nixl_capi_reg_dlist_desc_count(list, &count));
  IS(count == 2);
  OK(nixl_capi_reg_dlist_clear(list));
  OK(nixl_capi_reg_dlist_is_empty(list, &empty));
  IS(empty);
  OK(nixl_capi_destroy_reg_dlist(list));
  OK(nixl_capi_create_remote_dlist(NIXL_CAPI_MEM_DRAM, &remote));
  OK(nixl_capi_remote_dlist_add_desc(remote, 0, 1, 2, "somebody"));
  OK(nixl_capi_remote_dlist_add_desc(remote, 0, 1, 2, NULL));
  OK(nixl_capi_destroy_remote_dlist(remote));
}

static void values(void) {
  IS(!nixl_capi_is_stub());
  texts_and_parameters();
  options();
  transfer_lists();
  registration_lists();
}

static void backends(void) {
  nixl_capi_agent_t agent;
  FAILS(nixl_capi_create_agent("", &agent));
  INVALID(nixl_capi_create_agent(NULL, &agent));
  OK(nixl_capi_create_agent("backends", &agent));
  nixl_capi_string_list_t plugins;
  size_t count, i;
  const char* name;
  bool ucx = false, posix = false, empty;
  OK(nixl_capi_get_available_plugins(agent, &plugins));
  OK(nixl_capi_string_list_size(plugins, &count));
  for (i = 0; i < count; ++i) {
    OK(nixl_capi_string_list_get(plugins, i, &name));
    ucx = ucx || strcmp(name, "UCX") == 0;
    posix = posix || strcmp(name, "POSIX") == 0;
  }
  IS(ucx && posix);
  INVALID(nixl_capi_string_list_get(plugins, count, &name));
  OK(nixl_capi_destroy_string_list(plugins));
  nixl_capi_mem_list_t mems;
  nixl_capi_mem_type_t type;
  nixl_capi_params_t params;
  nixl_capi_backend_t backend;
  FAILS(nixl_capi_get_plugin_params(agent, "HF3FS", &mems, &params));
  OK(nixl_capi_get_plugin_params(agent, "UCX", &mems, &params));
  OK(nixl_capi_mem_list_is_empty(mems, &empty));
  OK(nixl_capi_mem_list_size(mems, &count));
  IS(!empty && count > 0);
  OK(nixl_capi_mem_list_get(mems, 0, &type));
  IS(type == NIXL_CAPI_MEM_DRAM);
  INVALID(nixl_capi_mem_list_get(mems, count, &type));
  OK(nixl_capi_destroy_mem_list(mems));
  OK(nixl_capi_params_add(params, "unknown", "1"));
  FAILS(nixl_capi_create_backend(agent, "nonsense", params, &backend));
  INVALID(nixl_capi_create_backend(agent, "UCX", NULL, &backend));
  /* No backend serves DRAM so far. */
  char memory[64];
  nixl_capi_reg_dlist_t descs;
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &descs));
  OK(nixl_capi_reg_dlist_add_desc(descs, (uintptr_t)memory, sizeof memory, 0, NULL, 0));
  ABSENT(nixl_capi_register_mem(agent, descs, NULL));
  OK(nixl_capi_create_backend(agent, "UCX", params, &backend));
  OK(nixl_capi_destroy_params(params));
  OK(nixl_capi_get_backend_params(agent, backend, &mems, &params));
  OK(nixl_capi_destroy_mem_list(mems));
  OK(nixl_capi_destroy_params(params));
  nixl_capi_opt_args_t options;
  OK(nixl_capi_create_opt_args(&options));
  OK(nixl_capi_opt_args_add_backend(options, backend));
  OK(nixl_capi_destroy_backend(backend));
  OK(nixl_capi_register_mem(agent, descs, options));
  OK(nixl_capi_deregister_mem(agent, descs, options));
  ABSENT(nixl_capi_deregister_mem(agent, descs, NULL));
  OK(nixl_capi_destroy_opt_args(options));
  OK(nixl_capi_destroy_reg_dlist(descs));
  OK(nixl_capi_destroy_agent(agent));
}

/* Metadata of a part of the memory: it covers that part alone, until all of it is loaded. */
static void partial_metadata(nixl_capi_agent_t agent) {
  nixl_capi_agent_t owner = agent_named("owner");
  static char first[kBlock], second[kBlock];
  add_memory(owner, first, sizeof first);
  add_memory(owner, second, sizeof second);
  nixl_capi_reg_dlist_t part;
  nixl_capi_xfer_dlist_t both[2] = {blocks_at((uintptr_t)first, kBlock, 1),
                                    blocks_at((uintptr_t)second, kBlock, 1)};
  void* blob;
  size_t length;
  char* name;
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &part));
  OK(nixl_capi_get_local_partial_md(owner, part, &blob, &length, NULL)); /* of nothing */
  free(blob);
  OK(nixl_capi_reg_dlist_add_desc(part, (uintptr_t)first, sizeof first, 0, NULL, 0));
  OK(nixl_capi_get_local_partial_md(owner, part, &blob, &length, NULL));
  OK(nixl_capi_load_remote_md(agent, blob, length, &name));
  free(blob);
  free(name);
  OK(nixl_capi_check_remote_md(agent, "owner", both[0]));
  ABSENT(nixl_capi_check_remote_md(agent, "owner", both[1]));
  first[0] = 42;
  char here[kBlock] = {0};
  add_memory(agent, here, sizeof here);
  nixl_capi_xfer_req_t request =
      request_of(agent, NIXL_CAPI_XFER_OP_READ, here, (uintptr_t)first, kBlock, "owner");
  run(agent, request, NULL);
  IS(here[0] == 42);
  give_up(agent, request);
  OK(nixl_capi_get_local_md(owner, &blob, &length));
  OK(nixl_capi_load_remote_md(agent, blob, length, &name));
  free(blob);
  free(name);
  OK(nixl_capi_check_remote_md(agent, "owner", both[1]));
  OK(nixl_capi_invalidate_remote_md(agent, "owner"));
  ABSENT(nixl_capi_invalidate_remote_md(agent, "owner"));
  OK(nixl_capi_destroy_xfer_dlist(both[0]));
  OK(nixl_capi_destroy_xfer_dlist(both[1]));
  OK(nixl_capi_destroy_reg_dlist(part));
  OK(nixl_capi_destroy_agent(owner));
}

static void answers_of_target(struct other other, const char* note, const unsigned char* bytes) {
  char text[64] = {0};
  unsigned char memory[kBytes];
  size_t length;
  put(other.out, "n", 1);
  get(other.in, &length, sizeof length);
  IS(length == strlen(note));
  get(other.in, text, length);
  IS(strcmp(text, note) == 0);
  get(other.in, memory, sizeof memory);
  IS(memcmp(memory, bytes, kBytes) == 0);
}

static void telemetry_of(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request) {
  nixl_capi_xfer_telemetry_t told;
  OK(nixl_capi_get_xfer_telemetry(agent, request, &told));
  IS(told.total_bytes == kBytes && told.desc_count == 1);
  IS(told.post_duration_us > 0 && told.xfer_duration_us >= told.post_duration_us);
  IS((double)told.start_time_us * 1e-6 > now() - 60 && (double)told.start_time_us * 1e-6 < now());
}

/* READ, WRITE with a notification, and a list of prepared blocks. */
static void transfers(nixl_capi_agent_t agent, struct other other, unsigned char* memory,
                      uintptr_t there) {
  nixl_capi_xfer_req_t request =
      request_of(agent, NIXL_CAPI_XFER_OP_READ, memory, there, kBytes, "target");
  nixl_capi_xfer_telemetry_t told;
  FAILS(nixl_capi_get_xfer_status(agent, request)); /* not posted */
  FAILS(nixl_capi_get_xfer_telemetry(agent, request, &told));
  run(agent, request, NULL);
  for (size_t i = 0; i < kBytes; ++i) IS(memory[i] == i / kBlock + 1);
  telemetry_of(agent, request);
  nixl_capi_backend_t backend;
  int64_t duration, margin;
  nixl_capi_cost_t method;
  OK(nixl_capi_query_xfer_backend(agent, request, &backend));
  OK(nixl_capi_destroy_backend(backend));
  FAILS(nixl_capi_estimate_xfer_cost(agent, request, NULL, &duration, &margin, &method));
  give_up(agent, request);

  memset(memory, 200, kBytes);
  nixl_capi_opt_args_t note = note_of("written", true);
  request = request_of(agent, NIXL_CAPI_XFER_OP_WRITE, memory, there, kBytes, "target");
  run(agent, request, note);
  answers_of_target(other, "written", memory);
  OK(nixl_capi_opt_args_set_has_notif(note, false)); /* keeps the text, and sends it no more */
  OK(nixl_capi_release_xfer_req(agent, request));
  OK(nixl_capi_destroy_xfer_req(request));
  request = request_of(agent, NIXL_CAPI_XFER_OP_WRITE, memory, there, kBytes, "target");
  run(agent, request, note);
  OK(nixl_capi_destroy_opt_args(note));
  give_up(agent, request);

  nixl_capi_xfer_dlist_t local = blocks_at((uintptr_t)memory, kBlock, kBlocks);
  nixl_capi_xfer_dlist_t remote = blocks_at(there, kBlock, kBlocks);
  nixl_capi_xfer_dlist_handle_t here, far, unknown;
  OK(nixl_capi_prep_xfer_dlist(agent, "", local, &here, NULL));
  OK(nixl_capi_prep_xfer_dlist(agent, "target", remote, &far, NULL));
  ABSENT(nixl_capi_prep_xfer_dlist(agent, "nobody", remote, &unknown, NULL));
  const int from[] = {3, 5}, into[] = {0, 15}, wrong[] = {0, kBlocks}, negative[] = {0, -1};
  const nixl_capi_xfer_op_t write = NIXL_CAPI_XFER_OP_WRITE;
  INVALID(nixl_capi_make_xfer_req(agent, write, here, from, 2, far, wrong, 2, &request, NULL));
  INVALID(nixl_capi_make_xfer_req(agent, write, here, negative, 2, far, into, 2, &request, NULL));
  INVALID(nixl_capi_make_xfer_req(agent, write, here, from, 1, far, into, 2, &request, NULL));
  memory[3 * kBlock] = 33;
  memory[5 * kBlock] = 55;
  note = note_of("two blocks", false);
  OK(nixl_capi_make_xfer_req(agent, write, here, from, 2, far, into, 2, &request, note));
  OK(nixl_capi_destroy_opt_args(note));
  unsigned char expected[kBytes];
  memset(expected, 200, kBytes);
  expected[0] = 33;
  expected[15 * kBlock] = 55;
  run(agent, request, NULL);
  answers_of_target(other, "two blocks", expected);
  give_up(agent, request);
  OK(nixl_capi_release_xfer_dlist_handle(agent, here));
  OK(nixl_capi_release_xfer_dlist_handle(agent, far));
  OK(nixl_capi_destroy_xfer_dlist(local));
  OK(nixl_capi_destroy_xfer_dlist(remote));
}

static void mem_views(nixl_capi_agent_t agent) {
  nixl_capi_xfer_dlist_t local = blocks_at(0, 1, 1);
  nixl_capi_remote_dlist_t remote;
  nixl_capi_mem_view_t view = &view;
  OK(nixl_capi_create_remote_dlist(NIXL_CAPI_MEM_DRAM, &remote));
  FAILS(nixl_capi_prep_mem_view_local(agent, local, &view, NULL));
  FAILS(nixl_capi_prep_mem_view_remote(agent, remote, &view, NULL));
  FAILS(nixl_capi_release_mem_view(agent, view));
  OK(nixl_capi_destroy_remote_dlist(remote));
  OK(nixl_capi_destroy_xfer_dlist(local));
}

/* An agent with telemetry, and metadata exchanged with the target. */
static nixl_capi_agent_t initiator_of(struct other other, uintptr_t* there) {
  const nixl_capi_agent_config_t config = {.enable_prog_thread = true, .capture_telemetry = true};
  _Static_assert(sizeof config == 40, "the layout of NIXL's configuration");
  nixl_capi_agent_t agent;
  OK(nixl_capi_create_configured_agent("initiator", &config, &agent));
  OK(nixl_capi_destroy_backend(backend_of(agent, "UCX")));
  get(other.in, there, sizeof *there);
  load_metadata(other.in, agent, "target");
  put_metadata(other.out, agent);
  return agent;
}

static void two_processes(void) {
  const struct other other = start_target(kBytes);
  uintptr_t there;
  nixl_capi_agent_t agent = initiator_of(other, &there);
  unsigned char* memory = aligned_alloc(kBlock, kBytes);
  add_memory(agent, memory, kBytes);
  OK(nixl_capi_check_remote_md(agent, "target", NULL));
  ABSENT(nixl_capi_check_remote_md(agent, "nobody", NULL));
  nixl_capi_xfer_dlist_t outside = blocks_at(there - kBlock, kBlock, 1);
  ABSENT(nixl_capi_check_remote_md(agent, "target", outside));
  OK(nixl_capi_destroy_xfer_dlist(outside));
  OK(nixl_capi_agent_make_connection(agent, "target", NULL));
  ABSENT(nixl_capi_agent_make_connection(agent, "nobody", NULL));
  INVALID(nixl_capi_invalidate_remote_md(agent, "initiator"));
  transfers(agent, other, memory, there);
  partial_metadata(agent);
  mem_views(agent);
  ABSENT(nixl_capi_gen_notif(agent, "nobody", "text", 4, NULL));

  put(other.out, "q", 1);
  nixl_capi_notif_map_t map = notes_from(agent, "target", 1);
  size_t count;
  const char* name;
  const void* text;
  OK(nixl_capi_notif_map_size(map, &count));
  OK(nixl_capi_notif_map_get_agent_at(map, 0, &name));
  IS(count == 1 && strcmp(name, "target") == 0);
  OK(nixl_capi_notif_map_get_notif(map, "target", 0, &text, &count));
  IS(count == 3 && memcmp(text, "bye", 3) == 0);
  INVALID(nixl_capi_notif_map_get_agent_at(map, 1, &name));
  INVALID(nixl_capi_notif_map_get_notif(map, "target", 1, &text, &count));
  INVALID(nixl_capi_notif_map_get_notifs_size(map, "nobody", &count));
  OK(nixl_capi_notif_map_clear(map));
  OK(nixl_capi_notif_map_size(map, &count));
  IS(count == 0);
  OK(nixl_capi_destroy_notif_map(map));
  close(other.out);
  int status;
  IS(waitpid(other.pid, &status, 0) == other.pid && status == 0);
  OK(nixl_capi_destroy_agent(agent));
  free(memory);
}

/* The target gets the signal before or after the post. The transfer ends with an error in time. */
static void target_fails(int with, bool before) {
  setenv("VIADUCT_BACKENDS", "tcp", 1); /* a copy over tcp needs the target's process */
  const struct other other = start_target(kLarge);
  uintptr_t there;
  nixl_capi_agent_t agent = initiator_of(other, &there);
  char* memory = aligned_alloc(kBlock, kLarge);
  add_memory(agent, memory, kLarge);
  nixl_capi_xfer_req_t request =
      request_of(agent, NIXL_CAPI_XFER_OP_WRITE, memory, there, kLarge, "target");
  OK(nixl_capi_agent_make_connection(agent, "target", NULL));
  const double began = now();
  int status = NIXL_CAPI_IN_PROG;
  if (before) kill(other.pid, with);
  status = nixl_capi_post_xfer_req(agent, request, NULL);
  if (!before) IS(status == NIXL_CAPI_IN_PROG && kill(other.pid, with) == 0);
  if (status == NIXL_CAPI_IN_PROG) status = end_of(agent, request);
  IS(status == NIXL_CAPI_ERROR_BACKEND);
  IS(now() - began < 20); /* VIADUCT_DETECT is 2 s; the machine may be busy */
  FAILS(nixl_capi_get_xfer_status(agent, request));
  give_up(agent, request);
  OK(nixl_capi_destroy_agent(agent));
  free(memory);
  kill(other.pid, SIGKILL);
  IS(waitpid(other.pid, &status, 0) == other.pid);
}

static void files(const char* folder) {
  char path[512];
  snprintf(path, sizeof path, "%s/data", folder);
  const int fd = open(path, O_CREAT | O_TRUNC | O_RDWR | O_CLOEXEC, 0600);
  IS(fd >= 0);
  nixl_capi_agent_t agent = agent_named("disk");
  nixl_capi_backend_t posix = backend_of(agent, "POSIX");
  static unsigned char memory[kBytes];
  memset(memory, 7, kBytes);
  add_memory(agent, memory, kBytes);
  nixl_capi_reg_dlist_t registered, asked;
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_FILE, &registered));
  OK(nixl_capi_reg_dlist_add_desc(registered, 0, kBytes, (uint64_t)fd, NULL, 0));
  OK(nixl_capi_register_mem(agent, registered, NULL));
  nixl_capi_xfer_dlist_t local = blocks_at((uintptr_t)memory, kBytes, 1), file;
  OK(nixl_capi_create_xfer_dlist(NIXL_CAPI_MEM_FILE, &file));
  OK(nixl_capi_xfer_dlist_add_desc(file, 0, kBytes, (uint64_t)fd));
  for (int op = NIXL_CAPI_XFER_OP_WRITE; op >= NIXL_CAPI_XFER_OP_READ; --op) {
    nixl_capi_xfer_req_t request;
    OK(nixl_capi_create_xfer_req(agent, (nixl_capi_xfer_op_t)op, local, file, "disk", &request,
                                 NULL));
    run(agent, request, NULL);
    nixl_capi_xfer_telemetry_t told;
    GIVES(NIXL_CAPI_ERROR_NO_TELEMETRY, nixl_capi_get_xfer_telemetry(agent, request, &told));
    give_up(agent, request);
    if (op == NIXL_CAPI_XFER_OP_WRITE) memset(memory, 0, kBytes);
  }
  for (size_t i = 0; i < kBytes; ++i) IS(memory[i] == 7);
  OK(nixl_capi_deregister_mem(agent, registered, NULL));

  nixl_capi_query_resp_list_t answers;
  nixl_capi_opt_args_t options;
  nixl_capi_params_t params;
  nixl_capi_param_iter_t at;
  const char *key, *value;
  size_t count;
  bool yes;
  OK(nixl_capi_create_query_resp_list(&answers));
  OK(nixl_capi_create_opt_args(&options));
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_FILE, &asked));
  OK(nixl_capi_reg_dlist_add_desc(asked, 0, 1, 0, path, strlen(path)));
  OK(nixl_capi_reg_dlist_add_desc(asked, 0, 1, 0, "/nonexistent", 12));
  INVALID(nixl_capi_query_mem(agent, asked, answers, options)); /* no backend */
  OK(nixl_capi_opt_args_add_backend(options, posix));
  OK(nixl_capi_query_mem(agent, asked, answers, options));
  OK(nixl_capi_query_resp_list_size(answers, &count));
  IS(count == 2);
  OK(nixl_capi_query_resp_list_has_value(answers, 1, &yes));
  IS(!yes);
  INVALID(nixl_capi_query_resp_list_get_params(answers, 1, &params));
  OK(nixl_capi_query_resp_list_get_params(answers, 0, &params));
  OK(nixl_capi_params_create_iterator(params, &at));
  OK(nixl_capi_params_iterator_next(at, &key, &value, &yes));
  IS(strcmp(key, "size") == 0 && atoi(value) == kBytes && yes);
  OK(nixl_capi_params_destroy_iterator(at));
  OK(nixl_capi_destroy_params(params));
  OK(nixl_capi_destroy_query_resp_list(answers));
  OK(nixl_capi_destroy_opt_args(options));
  OK(nixl_capi_destroy_reg_dlist(asked));
  OK(nixl_capi_destroy_reg_dlist(registered));
  OK(nixl_capi_destroy_xfer_dlist(local));
  OK(nixl_capi_destroy_xfer_dlist(file));
  OK(nixl_capi_destroy_backend(posix));
  OK(nixl_capi_destroy_agent(agent));
  close(fd);
}

static void until_known(nixl_capi_agent_t agent, const char* name, int wanted) {
  const double until = now() + 20;
  while (nixl_capi_check_remote_md(agent, name, NULL) != wanted) {
    IS(now() < until);
    sched_yield();
  }
}

/* A port that was free a moment ago. */
static uint16_t free_port(void) {
  struct sockaddr_in address = {.sin_family = AF_INET};
  socklen_t size = sizeof address;
  const int held = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  IS(bind(held, (struct sockaddr*)&address, size) == 0);
  IS(getsockname(held, (struct sockaddr*)&address, &size) == 0);
  close(held);
  return ntohs(address.sin_port);
}

static void listener(void) {
  unsetenv("VIADUCT_MEET");
  unsetenv("NIXL_ETCD_ENDPOINTS");
  const uint16_t port = free_port();
  const nixl_capi_agent_config_t config = {.enable_listen_thread = true, .listen_port = port};
  nixl_capi_agent_t listening, caller = agent_named("caller"), second;
  OK(nixl_capi_create_configured_agent("listening", &config, &listening));
  FAILS(nixl_capi_create_configured_agent("second", &config, &second)); /* the port is taken */
  nixl_capi_opt_args_t there = address_of(port);
  OK(nixl_capi_fetch_remote_md(caller, "listening", there));
  until_known(caller, "listening", NIXL_CAPI_SUCCESS);
  OK(nixl_capi_send_local_md(caller, there));
  until_known(listening, "caller", NIXL_CAPI_SUCCESS);
  OK(nixl_capi_invalidate_local_md(caller, there));
  until_known(listening, "caller", NIXL_CAPI_ERROR_NOT_FOUND);
  nixl_capi_reg_dlist_t part;
  OK(nixl_capi_create_reg_dlist(NIXL_CAPI_MEM_DRAM, &part));
  OK(nixl_capi_send_local_partial_md(caller, part, there));
  until_known(listening, "caller", NIXL_CAPI_SUCCESS);
  INVALID(nixl_capi_send_local_partial_md(caller, part, NULL));
  OK(nixl_capi_destroy_reg_dlist(part));
  OK(nixl_capi_destroy_opt_args(there));
  FAILS(nixl_capi_send_local_md(caller, NULL)); /* no meeting place */
  FAILS(nixl_capi_fetch_remote_md(caller, "somebody", NULL));
  nixl_capi_opt_args_t nobody = address_of(1);
  OK(nixl_capi_send_local_md(caller, nobody));
  OK(nixl_capi_destroy_opt_args(nobody));
  OK(nixl_capi_destroy_agent(listening));
  OK(nixl_capi_destroy_agent(caller));
}

/* A copy within one agent, whose handles outlive it. */
static void leftovers(void) {
  nixl_capi_agent_t agent = agent_named("own");
  static char memory[2 * kBlock];
  memory[0] = 9;
  add_memory(agent, memory, sizeof memory);
  nixl_capi_xfer_req_t request =
      request_of(agent, NIXL_CAPI_XFER_OP_WRITE, memory, (uintptr_t)memory + kBlock, kBlock, "own");
  run(agent, request, NULL);
  IS(memory[kBlock] == 9);
  nixl_capi_xfer_dlist_t descs = blocks_at((uintptr_t)memory, kBlock, 1);
  nixl_capi_xfer_dlist_handle_t handle;
  OK(nixl_capi_prep_xfer_dlist(agent, "", descs, &handle, NULL));
  OK(nixl_capi_destroy_xfer_dlist(descs));
  OK(nixl_capi_destroy_agent(agent));
  OK(nixl_capi_release_xfer_dlist_handle(agent, handle));
  give_up(agent, request);
}

/* Metadata that was cut, was changed, or is of another NIXL. */
static void wrong_metadata(void) {
  nixl_capi_agent_t agent = agent_named("reader"), other = agent_named("other");
  void* blob = NULL;
  size_t length = 0;
  char* name = NULL;
  OK(nixl_capi_get_local_md(other, &blob, &length));
  for (size_t left = 0; left < length; ++left)
    INVALID(nixl_capi_load_remote_md(agent, blob, left, &name));
  ((char*)blob)[length / 2] ^= 1;
  INVALID(nixl_capi_load_remote_md(agent, blob, length, &name));
  INVALID(nixl_capi_load_remote_md(agent, "nixlSerDes|x", 12, &name));
  free(blob);
  OK(nixl_capi_destroy_agent(other));
  OK(nixl_capi_destroy_agent(agent));
}

int main(int argc, char** argv) {
  const char* const scenario = argc > 1 ? argv[1] : "";
  signal(SIGPIPE, SIG_IGN);
  if (strcmp(scenario, "values") == 0)
    values();
  else if (strcmp(scenario, "backends") == 0)
    backends();
  else if (strcmp(scenario, "two_processes") == 0)
    two_processes();
  else if (strcmp(scenario, "killed") == 0)
    target_fails(SIGKILL, false);
  else if (strcmp(scenario, "frozen") == 0)
    target_fails(SIGSTOP, false);
  else if (strcmp(scenario, "frozen_before") == 0)
    target_fails(SIGSTOP, true);
  else if (strcmp(scenario, "files") == 0 && argc > 2)
    files(argv[2]);
  else if (strcmp(scenario, "listener") == 0)
    listener();
  else if (strcmp(scenario, "wrong_metadata") == 0)
    wrong_metadata();
  else if (strcmp(scenario, "leftovers") == 0)
    leftovers();
  else
    refuse("a scenario", __LINE__, 0);
  return 0;
}
