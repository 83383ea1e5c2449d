/* The C interface, for C, Rust, Go and whatever else calls C. Threads: call from any.

   A program opens an agent, pins memory, imports the card of another agent, plans a transfer
   between blocks here and blocks there, and posts it. Every call ends within the time that it is
   given.

   Compatibility. A program that was built with this header runs with every later libviaduct whose
   viaduct_abi_version() is the same. Functions, constants and fields are added, and none changes.

   Results. A call returns VIADUCT_OK or another viaduct_code. A call that fails leaves its outputs
   as they were, unless its comment says otherwise. No call throws or ends the process. A call may
   change errno, whose value then means nothing.

   Errors. A call describes its failure in its last argument, which may be NULL. The caller owns the
   viaduct_error, so it may move between threads, as goroutines and tasks do.

   Handles. A handle is a number, and 0 is never one. Pass it by value, and copy it freely. A handle
   that is 0, closed, or of the parent process of a fork() is refused with VIADUCT_INVALID. Close
   each handle once, in any order, also while other threads use it. A wait for an agent or a
   transfer that is being closed ends.

   Structs. The first field `size` is sizeof the struct, set by the caller: it tells the library how
   many fields the caller knows. VIADUCT_INIT(type) sets it, and zeroes the other fields.

   Texts are UTF-8 and end in NUL. A text that comes with a length needs no NUL.

   Times are nanoseconds. A timeout of 0 does not wait, and VIADUCT_FOREVER waits without limit.

   Events. The library calls no function of the caller. viaduct_agent_event_fd gives a descriptor
   for poll, epoll or an event loop, which is readable when viaduct_agent_poll has something to do.
 */
#ifndef VIADUCT_C_H
#define VIADUCT_C_H

#include <stdint.h>

/* NOLINTBEGIN(readability-identifier-naming,modernize-use-using,modernize-deprecated-headers) */
#ifdef __cplusplus
extern "C" {
#endif

#if defined(__GNUC__)
#define VIADUCT_C_API __attribute__((visibility("default")))
#else
#define VIADUCT_C_API
#endif

#define VIADUCT_ABI_VERSION 1

/* viaduct_error error = VIADUCT_INIT(viaduct_error); */
#ifdef __cplusplus
#define VIADUCT_INIT(type) (viaduct_sized<type>())
#else
#define VIADUCT_INIT(type) {.size = sizeof(type)}
#endif

#define VIADUCT_FOREVER INT64_C(-1)
/* For viaduct_transfer_post: the time in the setting VIADUCT_DEADLINE. */
#define VIADUCT_DEFAULT_DEADLINE INT64_C(-1)

typedef int32_t viaduct_code;
enum {
  VIADUCT_OK = 0,
  VIADUCT_INVALID = 1,     /* the arguments cannot be right, or the handle is closed */
  VIADUCT_NOT_FOUND = 2,   /* no such peer, pin, backend or name */
  VIADUCT_UNSUPPORTED = 3, /* this build, backend or machine cannot do it */
  VIADUCT_DENIED = 4,      /* a wrong secret, memory that is not pinned, forbidden by the system */
  VIADUCT_BUSY = 5,        /* no room now: the same call may succeed later */
  VIADUCT_TIMEOUT = 6,     /* the time has passed */
  VIADUCT_CANCELLED = 7,   /* the caller cancelled the transfer */
  VIADUCT_PEER_LOST = 8,   /* the peer died, froze or cannot be reached */
  VIADUCT_DEVICE = 9,      /* the system or a device refused */
  VIADUCT_EXHAUSTED = 10,  /* out of memory or descriptors; or the caller's buffer is too small */
  VIADUCT_PROTOCOL = 11,   /* the other end sent something that it must not */
  VIADUCT_STALE = 12,      /* the lease of the access has ended */
  VIADUCT_CORRUPT = 13,    /* a block has other bytes than its digest says */
  VIADUCT_DRAINING = 14    /* this agent or the peer is about to leave and begins nothing new */
};

/* The name of a code: "ok", "peer lost". Never NULL, even if the number is no code. */
VIADUCT_C_API const char* viaduct_code_name(viaduct_code code);

/* VIADUCT_ABI_VERSION of the loaded library. */
VIADUCT_C_API uint32_t viaduct_abi_version(void);
/* The version of the loaded library, as "0.1.0". */
VIADUCT_C_API const char* viaduct_version(void);

/* Why a call failed. Fields that do not apply are empty. A text that is too long ends in "...".
   After a call that succeeded, `code` is VIADUCT_OK and `text` is empty, and the other fields are
   as they were. */
typedef struct viaduct_error {
  uint64_t size;
  viaduct_code code;
  int32_t os_errno;   /* 0: no system call failed */
  char operation[64]; /* the call that failed: "connect", "process_vm_writev", "plan" */
  char device[64];    /* the NIC or backend */
  char peer[256];     /* the peer's name */
  char file[256];     /* the file or folder */
  char detail[512];   /* the text of the system or the provider, or the facts */
  char cause[256];    /* the likely cause */
  char remedy[256];   /* what to do about it */
  char text[1024];    /* all of this in one line */
} viaduct_error;

typedef struct viaduct_agent {
  uint64_t id;
} viaduct_agent;
typedef struct viaduct_pin {
  uint64_t id;
} viaduct_pin;
typedef struct viaduct_peer {
  uint64_t id;
} viaduct_peer;
typedef struct viaduct_blocks {
  uint64_t id;
} viaduct_blocks;
typedef struct viaduct_transfer {
  uint64_t id;
} viaduct_transfer;
typedef struct viaduct_parcel {
  uint64_t id;
} viaduct_parcel;
typedef struct viaduct_fetch {
  uint64_t id;
} viaduct_fetch;

/* ---- Agents: one process's end ---- */

/* One setting, named as docs/settings.md names it: {"VIADUCT_NAME", "decode-3"}. */
typedef struct viaduct_setting {
  const char* name;
  const char* value;
} viaduct_setting;

/* For viaduct_agent_open: starts from the environment's VIADUCT_* variables; without this flag it
   starts from the defaults. `settings` override either. */
#define VIADUCT_READ_ENVIRONMENT UINT32_C(1)

/* `settings` may be NULL if `count` is 0. Ends within the time of the setting VIADUCT_DEADLINE. */
VIADUCT_C_API viaduct_code viaduct_agent_open(const viaduct_setting* settings, uint64_t count,
                                              uint32_t flags, viaduct_agent* agent,
                                              viaduct_error* error);
/* Says goodbye to all peers and ends all transfers. The agent's pins, peers and transfers are then
   dead: their calls return errors, and they still have to be closed. */
VIADUCT_C_API viaduct_code viaduct_agent_close(viaduct_agent agent, viaduct_error* error);

/* The work between an agent that drains and one peer. */
typedef struct viaduct_drain_left {
  uint64_t size;
  char peer[256];           /* its name */
  uint64_t transfers;       /* running transfers of this agent, and their bytes */
  uint64_t bytes;           /* */
  uint64_t their_transfers; /* of the peer, by its last report */
  uint64_t their_bytes;     /* */
  uint64_t lent;            /* leases */
  uint64_t borrowed;        /* */
  uint64_t streams;         /* open streams of marks, which C programs do not have */
  uint64_t unsent_bytes;    /* of notes and messages that the peer's socket has not taken */
  int32_t answered;         /* 0: the peer has not answered, so its part is not known */
  int32_t reserved;         /* 0 */
} viaduct_drain_left;

/* Leaves without losing a transfer, then closes the agent as viaduct_agent_close does, except that
   the handle still has to be closed. Gives up the published name and tells all peers; from then on,
   calls that begin something new return VIADUCT_DRAINING at both ends. Waits until running
   transfers and leases have ended, at most for `timeout_ns`, and then ends the rest. `*cut_off` is
   the number of peers with such a rest; `cut_off` may be NULL. VIADUCT_CANCELLED: another thread
   called viaduct_agent_undrain. */
VIADUCT_C_API viaduct_code viaduct_agent_drain(viaduct_agent agent, int64_t timeout_ns,
                                               uint64_t* cut_off, viaduct_error* error);
/* Takes a running viaduct_agent_drain back. Fails if the name belongs to a successor now. */
VIADUCT_C_API viaduct_code viaduct_agent_undrain(viaduct_agent agent, viaduct_error* error);
/* The peers that a running viaduct_agent_drain waits for: fills at most `capacity` elements of
   `left`, each with its `size` set before, and sets `*count` to the number of these peers. `left`
   may be NULL if `capacity` is 0. */
VIADUCT_C_API viaduct_code viaduct_agent_drain_left(viaduct_agent agent, viaduct_drain_left* left,
                                                    uint64_t capacity, uint64_t* count,
                                                    viaduct_error* error);

/* The name that peers see. Calls that fill a buffer set `*length` to the bytes of the whole answer,
   without the NUL of a text. If `capacity` is too small they return VIADUCT_EXHAUSTED and write
   nothing into `buffer`, which may then be NULL: so a first call with 0 asks for the length. */
VIADUCT_C_API viaduct_code viaduct_agent_name(viaduct_agent agent, char* buffer, uint64_t capacity,
                                              uint64_t* length, viaduct_error* error);

/* Makes progress on everything once, without blocking. `*moved` is 1 if something happened; `moved`
   may be NULL. No call is needed for progress: the agent has a thread for it. */
VIADUCT_C_API viaduct_code viaduct_agent_poll(viaduct_agent agent, int32_t* moved,
                                              viaduct_error* error);
/* A descriptor that is readable while viaduct_agent_poll has something to do, and once more after
   notes arrived or transfers ended. Watch it, but neither read nor close it, because the agent owns
   it until viaduct_agent_close. */
VIADUCT_C_API viaduct_code viaduct_agent_event_fd(viaduct_agent agent, int32_t* fd,
                                                  viaduct_error* error);

/* ---- Memory that peers may reach ---- */

enum {
  VIADUCT_MEMORY_HOST = 0,
  VIADUCT_MEMORY_DEVICE = 1, /* of a GPU */
  VIADUCT_MEMORY_FILE = 2,
  VIADUCT_MEMORY_BLOCK = 3, /* a block device */
  VIADUCT_MEMORY_OBJECT = 4
};
enum { VIADUCT_READ_WRITE = 0, VIADUCT_READ_ONLY = 1, VIADUCT_WRITE_ONLY = 2 };

/* Pinned memory, here or at a peer. */
typedef struct viaduct_pin_info {
  uint64_t size;
  uint64_t address; /* at a peer, or of a GPU, file or object: for blocks, and no pointer */
  uint64_t bytes;
  int32_t kind;   /* VIADUCT_MEMORY_HOST, ... */
  int32_t access; /* VIADUCT_READ_ONLY: no transfer writes here; VIADUCT_WRITE_ONLY: none reads */
} viaduct_pin_info;

/* For viaduct_memory_allocate: 2 MiB pages. An error if the system has none to give. */
#define VIADUCT_HUGE_PAGES UINT32_C(1)

/* Memory that peers on this host can map, zeroed, pinned at once, and freed with its pin. `label`
   is how peers find it, or NULL. viaduct_pin_describe has its address. */
VIADUCT_C_API viaduct_code viaduct_memory_allocate(viaduct_agent agent, uint64_t bytes,
                                                   const char* label, uint32_t flags,
                                                   viaduct_pin* pin, viaduct_error* error);
/* Pins memory of the caller, who keeps it until viaduct_pin_close has returned. Go: only memory
   that the garbage collector neither moves nor frees, such as C.malloc's or syscall.Mmap's. */
VIADUCT_C_API viaduct_code viaduct_memory_pin(viaduct_agent agent, void* start, uint64_t bytes,
                                              const char* label, viaduct_pin* pin,
                                              viaduct_error* error);
/* Memory of the GPU with this number under CUDA_VISIBLE_DEVICES (docs/gpu.md), pinned at once, and
   freed with its pin. viaduct_pin_describe has its address. */
VIADUCT_C_API viaduct_code viaduct_gpu_allocate(viaduct_agent agent, uint32_t device,
                                                uint64_t bytes, const char* label, viaduct_pin* pin,
                                                viaduct_error* error);
/* Pins memory of a GPU that the caller keeps until viaduct_pin_close has returned. `address` is
   what cuMemAlloc or cudaMalloc gave. */
VIADUCT_C_API viaduct_code viaduct_gpu_pin(viaduct_agent agent, uint32_t device, uint64_t address,
                                           uint64_t bytes, const char* label, viaduct_pin* pin,
                                           viaduct_error* error);

/* For viaduct_part: makes an absent file and extends a shorter one to `offset` + `bytes`; makes a
   new object of `bytes` bytes, which one transfer writes as a whole. */
#define VIADUCT_CREATE UINT32_C(1)
/* For viaduct_part: no transfer writes to the file. */
#define VIADUCT_ONLY_READ UINT32_C(2)

/* The part of a file or object to pin. All of it: VIADUCT_INIT(viaduct_part), or NULL. */
typedef struct viaduct_part {
  uint64_t size;
  uint64_t offset; /* of the first byte */
  uint64_t bytes;  /* 0: all bytes to the end */
  uint32_t flags;
} viaduct_part;

/* Pins a part of a file or block device: `path`, or the open descriptor `fd` if `path` is NULL. The
   pin keeps a duplicate of the descriptor. Transfers between the agent and itself move its blocks
   (viaduct_peer_self, docs/files.md). */
VIADUCT_C_API viaduct_code viaduct_file_pin(viaduct_agent agent, const char* path, int32_t fd,
                                            const viaduct_part* part, const char* label,
                                            viaduct_pin* pin, viaduct_error* error);
/* Pins a part of an object of an S3 store, "s3://bucket/key" (docs/objects.md). */
VIADUCT_C_API viaduct_code viaduct_object_pin(viaduct_agent agent, const char* url,
                                              const viaduct_part* part, const char* label,
                                              viaduct_pin* pin, viaduct_error* error);
VIADUCT_C_API viaduct_code viaduct_pin_describe(viaduct_pin pin, viaduct_pin_info* info,
                                                viaduct_error* error);
/* Unpins, closes the handle in every case, and frees what viaduct_memory_allocate or
   viaduct_gpu_allocate gave. On return
   no peer reaches the memory, and no transfer of this process uses it: transfers that still run end
   with an error. VIADUCT_PEER_LOST: a peer was stopped in the middle of a copy, and may still
   change the memory until viaduct_peer_settled says 1 for it. */
VIADUCT_C_API viaduct_code viaduct_pin_close(viaduct_pin pin, viaduct_error* error);

/* ---- Cards and peers ---- */

/* The card of the agent: some hundred bytes that admit the holder, so treat it like a password.
   Send it to the other process by any means. Fills a buffer as viaduct_agent_name does. */
VIADUCT_C_API viaduct_code viaduct_card_export(viaduct_agent agent, void* buffer, uint64_t capacity,
                                               uint64_t* length, viaduct_error* error);
/* The access that a card gives its holder. */
enum { VIADUCT_GRANT_READ = 1, VIADUCT_GRANT_WRITE = 2, VIADUCT_GRANT_BOTH = 3 };
typedef struct viaduct_grant {
  uint64_t size;
  const char* pins; /* the pins whose labels match, now and later; '*' is any text; NULL: all */
  int32_t access;   /* VIADUCT_GRANT_READ, ...; 0: both */
  int32_t zero;     /* 0 */
  int64_t until_ns; /* its end, in nanoseconds since 1970; 0: none */
  const char* name; /* the only agent that may use the card; NULL: any */
} viaduct_grant;
/* The digits of a card's id, and NUL. */
#define VIADUCT_CARD_ID_SIZE 33
/* A card that grants no more than `grant`. Each call makes a card with an id of its own. */
VIADUCT_C_API viaduct_code viaduct_card_export_granted(viaduct_agent agent,
                                                       const viaduct_grant* grant, void* buffer,
                                                       uint64_t capacity, uint64_t* length,
                                                       viaduct_error* error);
/* A card that grants less than the given one, without asking its owner. 4096 bytes always hold it
   if its agent has no more than 50 pins and addresses. */
VIADUCT_C_API viaduct_code viaduct_card_narrow(const void* card, uint64_t card_length,
                                               const viaduct_grant* grant, void* buffer,
                                               uint64_t capacity, uint64_t* length,
                                               viaduct_error* error);
/* The id of a card with a grant, and what the card grants, in words. A card that grants all has an
   empty id. Both buffers may be NULL. */
VIADUCT_C_API viaduct_code viaduct_card_describe(const void* card, uint64_t card_length,
                                                 char id[VIADUCT_CARD_ID_SIZE], char* text,
                                                 uint64_t capacity, viaduct_error* error);
/* Revokes the card with this id, and all cards that were narrowed from it; `id` NULL: all cards
   with a grant. `until_ns`: the end of the card's grant, when the id is forgotten; 0: never. */
VIADUCT_C_API viaduct_code viaduct_card_revoke(viaduct_agent agent, const char* id,
                                               int64_t until_ns, viaduct_error* error);
/* Starts to connect to the agent of that card, and returns. */
VIADUCT_C_API viaduct_code viaduct_card_import(viaduct_agent agent, const void* card,
                                               uint64_t length, viaduct_peer* peer,
                                               viaduct_error* error);
/* Starts to connect to "host:port" and returns. Needs the group's secret in VIADUCT_SECRET. */
VIADUCT_C_API viaduct_code viaduct_peer_connect(viaduct_agent agent, const char* host_port,
                                                viaduct_peer* peer, viaduct_error* error);
/* Waits for an agent with this name at the meeting place in VIADUCT_MEET, and starts to connect. */
VIADUCT_C_API viaduct_code viaduct_peer_find(viaduct_agent agent, const char* name,
                                             int64_t timeout_ns, viaduct_peer* peer,
                                             viaduct_error* error);
/* A handle of a peer that is known already, by its name: to answer the sender of a note. */
VIADUCT_C_API viaduct_code viaduct_peer_known(viaduct_agent agent, const char* name,
                                              viaduct_peer* peer, viaduct_error* error);
/* The agent itself as a peer: for its own files and objects, and for copies within the process. */
VIADUCT_C_API viaduct_code viaduct_peer_self(viaduct_agent agent, viaduct_peer* peer,
                                             viaduct_error* error);
/* Closes the handle. The session with the peer goes on. */
VIADUCT_C_API viaduct_code viaduct_peer_close(viaduct_peer peer, viaduct_error* error);

enum {
  VIADUCT_PEER_IS_CONNECTING = 0, /* being reached for the first time, or again */
  VIADUCT_PEER_IS_READY = 1,      /* transfers and notes go */
  VIADUCT_PEER_IS_LOST = 2,       /* dead, frozen or unreachable; tried again in the background */
  VIADUCT_PEER_IS_GONE = 3,       /* said goodbye, or was forgotten here */
  VIADUCT_PEER_IS_DRAINING = 4    /* ready, but one end is about to leave: nothing new begins */
};

/* `*state` is a VIADUCT_PEER_IS_... value. `*epoch` numbers the sessions with the peer, from 1;
   `epoch` may be NULL. */
VIADUCT_C_API viaduct_code viaduct_peer_state(viaduct_peer peer, int32_t* state, uint64_t* epoch,
                                              viaduct_error* error);
/* Fills a buffer as viaduct_agent_name does. Empty until a peer named by address has answered. */
VIADUCT_C_API viaduct_code viaduct_peer_name(viaduct_peer peer, char* buffer, uint64_t capacity,
                                             uint64_t* length, viaduct_error* error);
/* Waits until the peer is ready. The error says why it is not. */
VIADUCT_C_API viaduct_code viaduct_peer_wait_ready(viaduct_peer peer, int64_t timeout_ns,
                                                   viaduct_error* error);
/* Waits until the session of `epoch` is over: the peer was lost, has left, or has a new session. */
VIADUCT_C_API viaduct_code viaduct_peer_wait_over(viaduct_peer peer, uint64_t epoch,
                                                  int64_t timeout_ns, viaduct_error* error);
/* Waits until the peer has announced a pin of that label. */
VIADUCT_C_API viaduct_code viaduct_peer_wait_pin(viaduct_peer peer, const char* label,
                                                 int64_t timeout_ns, viaduct_pin_info* info,
                                                 viaduct_error* error);
/* `*settled` is 0 while a stopped copy of the peer may still change memory here that was unpinned.
 */
VIADUCT_C_API viaduct_code viaduct_peer_settled(viaduct_peer peer, int32_t* settled,
                                                viaduct_error* error);
/* Ends the session, and stops connecting to the peer. */
VIADUCT_C_API viaduct_code viaduct_peer_forget(viaduct_peer peer, viaduct_error* error);

/* ---- Blocks: which pieces of memory, described once and used by any number of plans ---- */

/* `count` blocks of `bytes` each. The first starts at `base`, the others `stride` bytes apart; 0:
   the blocks touch. */
typedef struct viaduct_run {
  uint64_t base;
  uint64_t stride;
  uint64_t bytes;
  uint64_t count;
} viaduct_run;

typedef struct viaduct_extent {
  uint64_t address;
  uint64_t bytes;
} viaduct_extent;

/* The blocks of all runs, numbered from 0. A million equal blocks are one run, and cost as much as
   one. Refuses empty blocks, and blocks that overlap. The runs are copied. */
VIADUCT_C_API viaduct_code viaduct_blocks_of_runs(const viaduct_run* runs, uint64_t count,
                                                  viaduct_blocks* blocks, viaduct_error* error);
/* One block per extent, numbered from 0. The extents are copied. */
VIADUCT_C_API viaduct_code viaduct_blocks_of_extents(const viaduct_extent* extents, uint64_t count,
                                                     viaduct_blocks* blocks, viaduct_error* error);
/* Closes the handle. Plans that were made with the blocks keep the blocks. */
VIADUCT_C_API viaduct_code viaduct_blocks_close(viaduct_blocks blocks, viaduct_error* error);

/* ---- Transfers: planned once, posted many times ---- */

enum {
  VIADUCT_WRITE = 0, /* from local blocks to remote ones */
  VIADUCT_READ = 1   /* from remote blocks to local ones */
};

/* The class of a transfer. Where transfers wait for the same rail, those of a higher class go first
   (docs/priority.md). */
enum {
  VIADUCT_NORMAL = 0,
  VIADUCT_URGENT = 1,    /* a request waits for it */
  VIADUCT_BACKGROUND = 2 /* nobody waits for it */
};

/* Plans a copy between blocks in pins here and blocks in pins of the peer, which is ready. Both
   sides have the same number of bytes. `*_indices` are the numbers of the blocks to take, in order;
   NULL with count 0 takes all. `require` lists properties of the path, such as "rdma"
   or "same-host,not-tcp"; it may be NULL (docs/choosing.md). */
VIADUCT_C_API viaduct_code
viaduct_transfer_plan(viaduct_agent agent, int32_t kind, viaduct_peer peer, viaduct_blocks local,
                      const uint32_t* local_indices, uint64_t local_count, viaduct_blocks remote,
                      const uint32_t* remote_indices, uint64_t remote_count, const char* require,
                      int32_t priority, viaduct_transfer* transfer, viaduct_error* error);
/* Starts the copy and returns. The memory belongs to the transfer until it has ended, at the latest
   `deadline_ns` from now and the setting VIADUCT_GRACE later. If `note` is not NULL, the peer gets
   it as a note, after the data; the bytes are copied. */
VIADUCT_C_API viaduct_code viaduct_transfer_post(viaduct_transfer transfer, int64_t deadline_ns,
                                                 const void* note, uint64_t note_bytes,
                                                 viaduct_error* error);

enum {
  VIADUCT_TRANSFER_IDLE = 0, /* never posted */
  VIADUCT_TRANSFER_RUNNING = 1,
  VIADUCT_TRANSFER_DONE = 2,
  VIADUCT_TRANSFER_FAILED = 3, /* viaduct_transfer_wait says why */
  VIADUCT_TRANSFER_CANCELLED = 4
};

/* Makes progress once, without blocking, and returns the transfer's state. */
VIADUCT_C_API viaduct_code viaduct_transfer_poll(viaduct_transfer transfer, int32_t* state,
                                                 viaduct_error* error);
/* Waits for the end of the post, and returns its result. VIADUCT_TIMEOUT with the state
   VIADUCT_TRANSFER_RUNNING: the post goes on. */
VIADUCT_C_API viaduct_code viaduct_transfer_wait(viaduct_transfer transfer, int64_t timeout_ns,
                                                 viaduct_error* error);
/* Asks the post to end. It ends within the setting VIADUCT_GRACE; wait for it. */
VIADUCT_C_API viaduct_code viaduct_transfer_cancel(viaduct_transfer transfer, viaduct_error* error);
/* The path of the last post, as "local/mapped 1.0 MiB in 16 ops". Fills a buffer as
   viaduct_agent_name does. */
VIADUCT_C_API viaduct_code viaduct_transfer_path(viaduct_transfer transfer, char* buffer,
                                                 uint64_t capacity, uint64_t* length,
                                                 viaduct_error* error);
/* After a post that failed or was cancelled: the numbers of the local blocks, in the order of the
   plan, whose bytes are certainly all there. The others are unknown. Fills `numbers` with at most
   `capacity` of them; NULL with capacity 0 only counts. `*count` is the number of landed blocks. */
VIADUCT_C_API viaduct_code viaduct_transfer_landed(viaduct_transfer transfer, uint32_t* numbers,
                                                   uint64_t capacity, uint64_t* count,
                                                   viaduct_error* error);
/* Cancels a running post and waits for its end, then closes the handle. */
VIADUCT_C_API viaduct_code viaduct_transfer_close(viaduct_transfer transfer, viaduct_error* error);

/* ---- Parcels: a named and versioned thing of parts, with one end for everybody ---- */

/* Names a part: the rank that publishes it, and a number that the application gives. */
typedef struct viaduct_parcel_part {
  uint32_t rank;
  uint32_t component;
} viaduct_parcel_part;
/* 128 bits from which a reader sees whether a block has the right bytes. */
typedef struct viaduct_digest {
  uint64_t low;
  uint64_t high;
} viaduct_digest;
/* A part, and its blocks in pins here. The part's bytes are those of its blocks, one block after
   the other. */
typedef struct viaduct_part_blocks {
  viaduct_parcel_part part;
  viaduct_blocks blocks;
  const uint32_t* indices; /* the numbers of the blocks to take, in order; NULL: all */
  uint64_t index_count;
  viaduct_blocks slice; /* for a fetch: the bytes to take, as offsets in the part; {0}: all */
  /* For a fetch: the digests of the bytes that are here already, one for each block, or none. A
     block is read only if the publisher's digest of it differs. */
  const viaduct_digest* have;
  uint64_t have_count;
} viaduct_part_blocks;
/* The digests of blocks in pins here, one for each of `digests`. `count` must be the number of the
   blocks. */
VIADUCT_C_API viaduct_code viaduct_blocks_digests(viaduct_agent agent, viaduct_blocks blocks,
                                                  const uint32_t* indices, uint64_t index_count,
                                                  viaduct_digest* digests, uint64_t count,
                                                  viaduct_error* error);

typedef struct viaduct_publish_options {
  uint64_t size;
  uint64_t version;                 /* above those of this name that were published here before */
  uint64_t layout;                  /* a signature that a fetch compares; 0: none */
  const viaduct_parcel_part* parts; /* all parts of the parcel; NULL: those that are ready */
  uint64_t part_count;
  uint32_t takers;    /* the groups that may take it; 0: any number */
  int32_t digests;    /* 1: each block gets a digest, which the fetch checks */
  int64_t life_ns;    /* after it the parcel expires, unless all takers have asked; 0: never */
  viaduct_peer owner; /* decides about a parcel of several publishing ranks; {0}: this agent */
  int32_t at_place; /* 1: its name is published at the meeting place, until the handle is closed */
  int32_t zero;     /* 0 */
} viaduct_publish_options;

enum {
  VIADUCT_PARCEL_WHOLE = 0,      /* every byte of exactly this version */
  VIADUCT_PARCEL_FAILED = 1,     /* a part failed, for the reason in `why` */
  VIADUCT_PARCEL_SUPERSEDED = 2, /* a newer version took its place before it was fetched */
  VIADUCT_PARCEL_EXPIRED = 3,    /* its time has passed */
  VIADUCT_PARCEL_CANCELLED = 4,  /* by a rank of the group, or withdrawn by the publisher */
  VIADUCT_PARCEL_LOST = 5        /* a session that it needed is over */
};
/* The end of a parcel, or of the fetch of a group. */
typedef struct viaduct_parcel_end {
  uint64_t size;
  uint64_t version;
  int32_t outcome;          /* VIADUCT_PARCEL_WHOLE, ... */
  int32_t has_part;         /* 1: `part` failed */
  viaduct_parcel_part part; /* */
  int32_t has_consumer;     /* 1: the rank `consumer` of the group failed or was lost */
  uint32_t consumer;        /* */
  uint64_t ranks;           /* whole: how many ranks of the group have all */
  char why[1024];           /* empty if it is whole */
} viaduct_parcel_end;

/* Publishes a parcel under that name. `options` may be NULL, and so may `ready`, the parts that are
   ready already, if `ready_count` is 0. */
VIADUCT_C_API viaduct_code viaduct_parcel_publish(viaduct_agent agent, const char* name,
                                                  const viaduct_publish_options* options,
                                                  const viaduct_part_blocks* ready,
                                                  uint64_t ready_count, viaduct_parcel* parcel,
                                                  viaduct_error* error);
/* Declares a part ready: its bytes stay unchanged until the parcel has ended. Once for each. */
VIADUCT_C_API viaduct_code viaduct_parcel_ready(viaduct_parcel parcel,
                                                const viaduct_part_blocks* part,
                                                viaduct_error* error);
/* Lists at most `capacity` parts that are not ready. `*count` is the number of all such parts. */
VIADUCT_C_API viaduct_code viaduct_parcel_missing(viaduct_parcel parcel, viaduct_parcel_part* parts,
                                                  uint64_t capacity, uint64_t* count,
                                                  viaduct_error* error);
/* Waits until all expected groups have ended and no rank reads any more: the blocks may be used
   again. `end` may be NULL. */
VIADUCT_C_API viaduct_code viaduct_parcel_wait(viaduct_parcel parcel, int64_t timeout_ns,
                                               viaduct_parcel_end* end, viaduct_error* error);
/* Ends the parcel for everybody. On VIADUCT_OK the blocks may be used again. VIADUCT_PEER_LOST: a
   consumer was stopped in the middle of a copy. Use the blocks only once viaduct_parcel_wait
   returns. */
VIADUCT_C_API viaduct_code viaduct_parcel_withdraw(viaduct_parcel parcel, viaduct_error* error);
/* Sets `*count` to the number of groups that have ended. */
VIADUCT_C_API viaduct_code viaduct_parcel_taken(viaduct_parcel parcel, uint64_t* count,
                                                viaduct_error* error);
/* Closes the handle in every case. Withdraws the parcel if it has not ended and no other handle of
   it is left here. */
VIADUCT_C_API viaduct_code viaduct_parcel_close(viaduct_parcel parcel, viaduct_error* error);

typedef struct viaduct_fetch_options {
  uint64_t size;
  uint64_t version;    /* this one or a newer one */
  uint64_t layout;     /* 0: any */
  const char* group;   /* the name of the group that fetches together; NULL: this rank alone */
  uint32_t group_size; /* with a group: its ranks */
  uint32_t group_rank; /* */
  uint32_t at_least;   /* the fewest ranks that suffice if others are lost; 0: all */
  int32_t exact;       /* 1: exactly this version */
  int32_t priority;    /* VIADUCT_NORMAL, ... */
  int32_t zero;        /* 0 */
  int64_t deadline_ns; /* 0 or VIADUCT_DEFAULT_DEADLINE: the setting VIADUCT_DEADLINE */
  const char* require; /* as in viaduct_transfer_plan; NULL: any path */
} viaduct_fetch_options;

/* Begins to fetch a parcel that `owner` has published, or will publish before the deadline: the
   parts in `into`, each once. `options` may be NULL. Owner {0}: the agent that has published the
   parcel with `at_place`; the call then waits for that agent up to the deadline. */
VIADUCT_C_API viaduct_code viaduct_fetch_begin(viaduct_agent agent, viaduct_peer owner,
                                               const char* name,
                                               const viaduct_fetch_options* options,
                                               const viaduct_part_blocks* into, uint64_t into_count,
                                               viaduct_fetch* fetch, viaduct_error* error);
/* Waits for the end of the fetch. VIADUCT_OK: the parcel is whole, for all ranks of the group. Any
   code but VIADUCT_TIMEOUT: the fetch has ended, and viaduct_fetch_end says how. */
VIADUCT_C_API viaduct_code viaduct_fetch_wait(viaduct_fetch fetch, int64_t timeout_ns,
                                              viaduct_error* error);
/* Waits until one part has arrived, before it is known whether the parcel will be whole. */
VIADUCT_C_API viaduct_code viaduct_fetch_wait_part(viaduct_fetch fetch, viaduct_parcel_part part,
                                                   int64_t timeout_ns, viaduct_error* error);
/* Fills `*end` with the end of the fetch. VIADUCT_BUSY: the fetch has not ended. */
VIADUCT_C_API viaduct_code viaduct_fetch_end(viaduct_fetch fetch, viaduct_parcel_end* end,
                                             viaduct_error* error);
/* The parts that have not arrived, as viaduct_parcel_missing lists them. */
VIADUCT_C_API viaduct_code viaduct_fetch_missing(viaduct_fetch fetch, viaduct_parcel_part* parts,
                                                 uint64_t capacity, uint64_t* count,
                                                 viaduct_error* error);
/* Asks the fetch to end, for all ranks of the group. `why` may be NULL. Wait for the end. */
VIADUCT_C_API viaduct_code viaduct_fetch_cancel(viaduct_fetch fetch, const char* why,
                                                viaduct_error* error);
/* Cancels a running fetch and waits until none of its transfers runs, then closes the handle. */
VIADUCT_C_API viaduct_code viaduct_fetch_close(viaduct_fetch fetch, viaduct_error* error);

/* ---- Notes: a few bytes for a peer ---- */

#define VIADUCT_NOTE_MOST_BYTES UINT64_C(1048576)

/* Notes arrive once and in the order sent, or the peer is lost. */
VIADUCT_C_API viaduct_code viaduct_note_send(viaduct_peer peer, const void* note, uint64_t bytes,
                                             viaduct_error* error);

typedef struct viaduct_note_info {
  uint64_t size;
  uint64_t bytes;
  char from[256]; /* the peer's name */
} viaduct_note_info;

/* Waits for the next note from any peer, and takes it. VIADUCT_TIMEOUT: none came.
   VIADUCT_EXHAUSTED with `info->bytes` above `capacity`: the buffer is too small, `info` is filled,
   and the note stays the next one. */
VIADUCT_C_API viaduct_code viaduct_note_receive(viaduct_agent agent, int64_t timeout_ns,
                                                viaduct_note_info* info, void* buffer,
                                                uint64_t capacity, viaduct_error* error);

#ifdef __cplusplus
}
template <class T>
T viaduct_sized() {
  T sized = T();
  sized.size = sizeof(T);
  return sized;
}
#endif
/* NOLINTEND(readability-identifier-naming,modernize-use-using,modernize-deprecated-headers) */
#endif
