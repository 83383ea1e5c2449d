/* The C interface of NIXL, as Viaduct serves it: the functions that libnixl_capi.so exports.
 *
 * Every function but nixl_capi_is_stub returns a status. NULL in the place of a needed pointer is
 * NIXL_CAPI_ERROR_INVALID_PARAM. Parameters of the type nixl_capi_opt_args_t may be NULL.
 *
 * Ownership: objects from create, get, prep, make and query belong to the caller, who calls their
 * destroy or release function. Outputs of the types void** and char** are allocated with malloc(),
 * and the caller calls free(). Outputs of the types const char** and const void** are borrowed:
 * valid until their owner changes or is destroyed.
 *
 * Threads: call with an agent, and with its transfers and prepared lists, from any. Call with one
 * other object from one thread at a time. docs/nixl.md tells how to use the library. */
#ifndef VIADUCT_NIXL_CAPI_H
#define VIADUCT_NIXL_CAPI_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

/* NOLINTBEGIN: the names of NIXL */
typedef enum {
  NIXL_CAPI_SUCCESS = 0,
  NIXL_CAPI_IN_PROG = 1,
  NIXL_CAPI_ERROR_INVALID_PARAM = -1,
  NIXL_CAPI_ERROR_BACKEND = -2, /* every failure without a status of its own */
  NIXL_CAPI_ERROR_INVALID_STATE = -3,
  NIXL_CAPI_ERROR_EXCEPTION = -4, /* never returned */
  NIXL_CAPI_ERROR_NO_TELEMETRY = -5,
  NIXL_CAPI_ERROR_NOT_FOUND = -6
} nixl_capi_status_t;

typedef enum {
  NIXL_CAPI_MEM_DRAM = 0,
  NIXL_CAPI_MEM_VRAM = 1,
  NIXL_CAPI_MEM_BLOCK = 2,
  NIXL_CAPI_MEM_OBJECT = 3,
  NIXL_CAPI_MEM_FILE = 4,
  NIXL_CAPI_MEM_UNKNOWN = 5
} nixl_capi_mem_type_t;

typedef enum { NIXL_CAPI_XFER_OP_READ = 0, NIXL_CAPI_XFER_OP_WRITE = 1 } nixl_capi_xfer_op_t;

typedef enum {
  NIXL_CAPI_THREAD_SYNC_NONE = 0,
  NIXL_CAPI_THREAD_SYNC_STRICT = 1,
  NIXL_CAPI_THREAD_SYNC_RW = 2
} nixl_capi_thread_sync_t;

typedef enum { NIXL_CAPI_COST_ANALYTICAL_BACKEND = 0 } nixl_capi_cost_t;

/* Only the listener's fields and capture_telemetry have an effect. */
typedef struct {
  bool enable_prog_thread;
  bool enable_listen_thread;
  int listen_port; /* 0: a free one */
  nixl_capi_thread_sync_t thread_sync;
  unsigned int num_workers;
  uint64_t pthr_delay_us;
  uint64_t lthr_delay_us;
  bool capture_telemetry;
} nixl_capi_agent_config_t;

typedef struct {
  uint64_t start_time_us; /* of the steady clock */
  uint64_t post_duration_us;
  uint64_t xfer_duration_us;
  uint64_t total_bytes;
  uint64_t desc_count;
} nixl_capi_xfer_telemetry_t;

typedef struct nixl_capi_agent_s* nixl_capi_agent_t;
typedef struct nixl_capi_string_list_s* nixl_capi_string_list_t;
typedef struct nixl_capi_params_s* nixl_capi_params_t;
typedef struct nixl_capi_param_iter_s* nixl_capi_param_iter_t;
typedef struct nixl_capi_mem_list_s* nixl_capi_mem_list_t;
typedef struct nixl_capi_backend_s* nixl_capi_backend_t;
typedef struct nixl_capi_opt_args_s* nixl_capi_opt_args_t;
typedef struct nixl_capi_xfer_dlist_s* nixl_capi_xfer_dlist_t;
typedef struct nixl_capi_reg_dlist_s* nixl_capi_reg_dlist_t;
typedef struct nixl_capi_remote_dlist_s* nixl_capi_remote_dlist_t;
typedef struct nixl_capi_xfer_dlist_handle_s* nixl_capi_xfer_dlist_handle_t;
typedef struct nixl_capi_xfer_req_s* nixl_capi_xfer_req_t;
typedef struct nixl_capi_notif_map_s* nixl_capi_notif_map_t;
typedef struct nixl_capi_query_resp_list_s* nixl_capi_query_resp_list_t;
typedef void* nixl_capi_mem_view_t;

/* Agents */
nixl_capi_status_t nixl_capi_create_agent(const char* name, nixl_capi_agent_t* agent);
nixl_capi_status_t nixl_capi_create_configured_agent(const char* name,
                                                     const nixl_capi_agent_config_t* config,
                                                     nixl_capi_agent_t* agent);
nixl_capi_status_t nixl_capi_destroy_agent(nixl_capi_agent_t agent);

/* Metadata. The options name the address and port of another agent's listener. */
nixl_capi_status_t nixl_capi_get_local_md(nixl_capi_agent_t agent, void** data, size_t* length);
nixl_capi_status_t nixl_capi_get_local_partial_md(nixl_capi_agent_t agent,
                                                  nixl_capi_reg_dlist_t descs, void** data,
                                                  size_t* length, nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_load_remote_md(nixl_capi_agent_t agent, const void* data,
                                            size_t length, char** agent_name);
nixl_capi_status_t nixl_capi_invalidate_remote_md(nixl_capi_agent_t agent, const char* remote);
/* SUCCESS: the metadata is known and covers `descs`; NOT_FOUND otherwise. */
nixl_capi_status_t nixl_capi_check_remote_md(nixl_capi_agent_t agent, const char* remote,
                                             nixl_capi_xfer_dlist_t descs);
nixl_capi_status_t nixl_capi_send_local_md(nixl_capi_agent_t agent, nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_send_local_partial_md(nixl_capi_agent_t agent,
                                                   nixl_capi_reg_dlist_t descs,
                                                   nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_fetch_remote_md(nixl_capi_agent_t agent, const char* remote,
                                             nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_invalidate_local_md(nixl_capi_agent_t agent,
                                                 nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_agent_make_connection(nixl_capi_agent_t agent, const char* remote,
                                                   nixl_capi_opt_args_t opt_args);

/* Lists of strings */
nixl_capi_status_t nixl_capi_get_available_plugins(nixl_capi_agent_t agent,
                                                   nixl_capi_string_list_t* plugins);
nixl_capi_status_t nixl_capi_string_list_size(nixl_capi_string_list_t list, size_t* size);
nixl_capi_status_t nixl_capi_string_list_get(nixl_capi_string_list_t list, size_t index,
                                             const char** text);
nixl_capi_status_t nixl_capi_destroy_string_list(nixl_capi_string_list_t list);

/* Backends */
nixl_capi_status_t nixl_capi_get_plugin_params(nixl_capi_agent_t agent, const char* plugin,
                                               nixl_capi_mem_list_t* mems,
                                               nixl_capi_params_t* params);
nixl_capi_status_t nixl_capi_create_backend(nixl_capi_agent_t agent, const char* plugin,
                                            nixl_capi_params_t params,
                                            nixl_capi_backend_t* backend);
nixl_capi_status_t nixl_capi_get_backend_params(nixl_capi_agent_t agent,
                                                nixl_capi_backend_t backend,
                                                nixl_capi_mem_list_t* mems,
                                                nixl_capi_params_t* params);
/* Frees the object; the agent keeps the backend. */
nixl_capi_status_t nixl_capi_destroy_backend(nixl_capi_backend_t backend);

/* Lists of kinds of memory */
nixl_capi_status_t nixl_capi_mem_list_is_empty(nixl_capi_mem_list_t list, bool* is_empty);
nixl_capi_status_t nixl_capi_mem_list_size(nixl_capi_mem_list_t list, size_t* size);
nixl_capi_status_t nixl_capi_mem_list_get(nixl_capi_mem_list_t list, size_t index,
                                          nixl_capi_mem_type_t* type);
nixl_capi_status_t nixl_capi_mem_type_to_string(nixl_capi_mem_type_t type, const char** text);
nixl_capi_status_t nixl_capi_destroy_mem_list(nixl_capi_mem_list_t list);

/* Parameters of backends */
nixl_capi_status_t nixl_capi_create_params(nixl_capi_params_t* params);
nixl_capi_status_t nixl_capi_params_add(nixl_capi_params_t params, const char* key,
                                        const char* value);
nixl_capi_status_t nixl_capi_params_is_empty(nixl_capi_params_t params, bool* is_empty);
nixl_capi_status_t nixl_capi_params_create_iterator(nixl_capi_params_t params,
                                                    nixl_capi_param_iter_t* iterator);
/* Gives an entry, and whether another follows. At the end only `has_next` is set, to false. */
nixl_capi_status_t nixl_capi_params_iterator_next(nixl_capi_param_iter_t iterator, const char** key,
                                                  const char** value, bool* has_next);
nixl_capi_status_t nixl_capi_params_destroy_iterator(nixl_capi_param_iter_t iterator);
nixl_capi_status_t nixl_capi_destroy_params(nixl_capi_params_t params);

/* Options. A transfer sends the message if the flag is set. Both may be set in either order. */
nixl_capi_status_t nixl_capi_create_opt_args(nixl_capi_opt_args_t* opt_args);
nixl_capi_status_t nixl_capi_destroy_opt_args(nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_opt_args_add_backend(nixl_capi_opt_args_t opt_args,
                                                  nixl_capi_backend_t backend);
nixl_capi_status_t nixl_capi_opt_args_set_notif_msg(nixl_capi_opt_args_t opt_args, const void* data,
                                                    size_t length);
nixl_capi_status_t nixl_capi_opt_args_get_notif_msg(nixl_capi_opt_args_t opt_args, void** data,
                                                    size_t* length);
nixl_capi_status_t nixl_capi_opt_args_set_has_notif(nixl_capi_opt_args_t opt_args, bool has_notif);
nixl_capi_status_t nixl_capi_opt_args_get_has_notif(nixl_capi_opt_args_t opt_args, bool* has_notif);
nixl_capi_status_t nixl_capi_opt_args_set_skip_desc_merge(nixl_capi_opt_args_t opt_args,
                                                          bool skip_merge);
nixl_capi_status_t nixl_capi_opt_args_get_skip_desc_merge(nixl_capi_opt_args_t opt_args,
                                                          bool* skip_merge);
nixl_capi_status_t nixl_capi_opt_args_set_ip_addr(nixl_capi_opt_args_t opt_args,
                                                  const char* ip_addr);
nixl_capi_status_t nixl_capi_opt_args_set_port(nixl_capi_opt_args_t opt_args, uint16_t port);

/* Memory. query_mem needs exactly one backend in the options. */
nixl_capi_status_t nixl_capi_register_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                          nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_deregister_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                            nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_query_mem(nixl_capi_agent_t agent, nixl_capi_reg_dlist_t descs,
                                       nixl_capi_query_resp_list_t responses,
                                       nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_create_query_resp_list(nixl_capi_query_resp_list_t* responses);
nixl_capi_status_t nixl_capi_query_resp_list_size(nixl_capi_query_resp_list_t responses,
                                                  size_t* size);
nixl_capi_status_t nixl_capi_query_resp_list_has_value(nixl_capi_query_resp_list_t responses,
                                                       size_t index, bool* has_value);
nixl_capi_status_t nixl_capi_query_resp_list_get_params(nixl_capi_query_resp_list_t responses,
                                                        size_t index, nixl_capi_params_t* params);
nixl_capi_status_t nixl_capi_destroy_query_resp_list(nixl_capi_query_resp_list_t responses);

/* Descriptors of transfers: (address, length, device) */
nixl_capi_status_t nixl_capi_create_xfer_dlist(nixl_capi_mem_type_t type,
                                               nixl_capi_xfer_dlist_t* dlist);
nixl_capi_status_t nixl_capi_destroy_xfer_dlist(nixl_capi_xfer_dlist_t dlist);
nixl_capi_status_t nixl_capi_xfer_dlist_get_type(nixl_capi_xfer_dlist_t dlist,
                                                 nixl_capi_mem_type_t* type);
nixl_capi_status_t nixl_capi_xfer_dlist_add_desc(nixl_capi_xfer_dlist_t dlist, uintptr_t addr,
                                                 size_t len, uint64_t dev_id);
nixl_capi_status_t nixl_capi_xfer_dlist_desc_count(nixl_capi_xfer_dlist_t dlist, size_t* count);
nixl_capi_status_t nixl_capi_xfer_dlist_len(nixl_capi_xfer_dlist_t dlist, size_t* count);
nixl_capi_status_t nixl_capi_xfer_dlist_is_empty(nixl_capi_xfer_dlist_t dlist, bool* is_empty);
nixl_capi_status_t nixl_capi_xfer_dlist_trim(nixl_capi_xfer_dlist_t dlist);
nixl_capi_status_t nixl_capi_xfer_dlist_rem_desc(nixl_capi_xfer_dlist_t dlist, int index);
nixl_capi_status_t nixl_capi_xfer_dlist_clear(nixl_capi_xfer_dlist_t dlist);
nixl_capi_status_t nixl_capi_xfer_dlist_resize(nixl_capi_xfer_dlist_t dlist, size_t count);
nixl_capi_status_t nixl_capi_xfer_dlist_print(nixl_capi_xfer_dlist_t dlist);

/* Descriptors of registrations: (address, length, device, metadata) */
nixl_capi_status_t nixl_capi_create_reg_dlist(nixl_capi_mem_type_t type,
                                              nixl_capi_reg_dlist_t* dlist);
nixl_capi_status_t nixl_capi_destroy_reg_dlist(nixl_capi_reg_dlist_t dlist);
nixl_capi_status_t nixl_capi_reg_dlist_get_type(nixl_capi_reg_dlist_t dlist,
                                                nixl_capi_mem_type_t* type);
nixl_capi_status_t nixl_capi_reg_dlist_add_desc(nixl_capi_reg_dlist_t dlist, uintptr_t addr,
                                                size_t len, uint64_t dev_id, const void* metadata,
                                                size_t metadata_length);
nixl_capi_status_t nixl_capi_reg_dlist_desc_count(nixl_capi_reg_dlist_t dlist, size_t* count);
nixl_capi_status_t nixl_capi_reg_dlist_is_empty(nixl_capi_reg_dlist_t dlist, bool* is_empty);
nixl_capi_status_t nixl_capi_reg_dlist_trim(nixl_capi_reg_dlist_t dlist);
nixl_capi_status_t nixl_capi_reg_dlist_rem_desc(nixl_capi_reg_dlist_t dlist, int index);
nixl_capi_status_t nixl_capi_reg_dlist_clear(nixl_capi_reg_dlist_t dlist);
nixl_capi_status_t nixl_capi_reg_dlist_resize(nixl_capi_reg_dlist_t dlist, size_t count);
nixl_capi_status_t nixl_capi_reg_dlist_print(nixl_capi_reg_dlist_t dlist);

/* Memory views are refused with BACKEND. `agent_name` may be NULL. */
nixl_capi_status_t nixl_capi_create_remote_dlist(nixl_capi_mem_type_t type,
                                                 nixl_capi_remote_dlist_t* dlist);
nixl_capi_status_t nixl_capi_destroy_remote_dlist(nixl_capi_remote_dlist_t dlist);
nixl_capi_status_t nixl_capi_remote_dlist_add_desc(nixl_capi_remote_dlist_t dlist, uintptr_t addr,
                                                   size_t len, uint64_t dev_id,
                                                   const char* agent_name);
nixl_capi_status_t nixl_capi_prep_mem_view_local(nixl_capi_agent_t agent,
                                                 nixl_capi_xfer_dlist_t dlist,
                                                 nixl_capi_mem_view_t* view,
                                                 nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_prep_mem_view_remote(nixl_capi_agent_t agent,
                                                  nixl_capi_remote_dlist_t dlist,
                                                  nixl_capi_mem_view_t* view,
                                                  nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_release_mem_view(nixl_capi_agent_t agent, nixl_capi_mem_view_t view);

/* Prepared lists. An empty `remote` means memory of this process. The release function frees the
 * handle even if it fails; the agent may be destroyed already. */
nixl_capi_status_t nixl_capi_prep_xfer_dlist(nixl_capi_agent_t agent, const char* remote,
                                             nixl_capi_xfer_dlist_t descs,
                                             nixl_capi_xfer_dlist_handle_t* handle,
                                             nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_release_xfer_dlist_handle(nixl_capi_agent_t agent,
                                                       nixl_capi_xfer_dlist_handle_t handle);
nixl_capi_status_t nixl_capi_make_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation,
                                           nixl_capi_xfer_dlist_handle_t local,
                                           const int* local_indices, size_t local_count,
                                           nixl_capi_xfer_dlist_handle_t remote,
                                           const int* remote_indices, size_t remote_count,
                                           nixl_capi_xfer_req_t* request,
                                           nixl_capi_opt_args_t opt_args);

/* Transfers. release ends the transfer, and destroy then frees the object. Destroy before release
 * is INVALID_STATE. Both accept a request of an agent that was destroyed. */
nixl_capi_status_t nixl_capi_create_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_op_t operation,
                                             nixl_capi_xfer_dlist_t local,
                                             nixl_capi_xfer_dlist_t remote_descs,
                                             const char* remote, nixl_capi_xfer_req_t* request,
                                             nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_post_xfer_req(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request,
                                           nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_get_xfer_status(nixl_capi_agent_t agent, nixl_capi_xfer_req_t request);
nixl_capi_status_t nixl_capi_query_xfer_backend(nixl_capi_agent_t agent,
                                                nixl_capi_xfer_req_t request,
                                                nixl_capi_backend_t* backend);
/* Refused with BACKEND. */
nixl_capi_status_t nixl_capi_estimate_xfer_cost(nixl_capi_agent_t agent,
                                                nixl_capi_xfer_req_t request,
                                                nixl_capi_opt_args_t opt_args, int64_t* duration_us,
                                                int64_t* err_margin_us, nixl_capi_cost_t* method);
nixl_capi_status_t nixl_capi_get_xfer_telemetry(nixl_capi_agent_t agent,
                                                nixl_capi_xfer_req_t request,
                                                nixl_capi_xfer_telemetry_t* telemetry);
nixl_capi_status_t nixl_capi_release_xfer_req(nixl_capi_agent_t agent,
                                              nixl_capi_xfer_req_t request);
nixl_capi_status_t nixl_capi_destroy_xfer_req(nixl_capi_xfer_req_t request);

/* Notifications. get_notifs appends to the map. */
nixl_capi_status_t nixl_capi_create_notif_map(nixl_capi_notif_map_t* map);
nixl_capi_status_t nixl_capi_destroy_notif_map(nixl_capi_notif_map_t map);
nixl_capi_status_t nixl_capi_get_notifs(nixl_capi_agent_t agent, nixl_capi_notif_map_t map,
                                        nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_gen_notif(nixl_capi_agent_t agent, const char* remote,
                                       const void* data, size_t length,
                                       nixl_capi_opt_args_t opt_args);
nixl_capi_status_t nixl_capi_notif_map_size(nixl_capi_notif_map_t map, size_t* agents);
nixl_capi_status_t nixl_capi_notif_map_get_agent_at(nixl_capi_notif_map_t map, size_t index,
                                                    const char** agent_name);
nixl_capi_status_t nixl_capi_notif_map_get_notifs_size(nixl_capi_notif_map_t map,
                                                       const char* agent_name, size_t* notifs);
nixl_capi_status_t nixl_capi_notif_map_get_notif(nixl_capi_notif_map_t map, const char* agent_name,
                                                 size_t index, const void** data, size_t* length);
nixl_capi_status_t nixl_capi_notif_map_clear(nixl_capi_notif_map_t map);

bool nixl_capi_is_stub(void); /* false */
/* NOLINTEND */

#ifdef __cplusplus
}
#endif

#endif
