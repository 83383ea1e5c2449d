/* Two processes in C: one offers memory; the other fills every second block, and sends a note.
     pair receiver FILE    writes its card to FILE, and waits for the note
     pair sender FILE      waits for the card, writes the blocks, and sends the note after them */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>
#include <viaduct/c.h>

enum { BLOCK = 4096, BLOCKS = 256, CARD_MOST = 4096 };
static const int64_t SECONDS = 1000000000;

/* Prints the failed call and its error. */
static int failed(const viaduct_error* error) {
  fprintf(stderr, "pair: %s\n", error->text);
  return 1;
}
#define TRY(call) \
  if ((call) != VIADUCT_OK) return failed(&error)

/* A card is a secret, so only its owner may read the file. The rename publishes a complete file. */
static int save(const char* file, const void* card, uint64_t length) {
  char part[CARD_MOST];
  if (snprintf(part, sizeof part, "%s.part", file) >= (int)sizeof part) return -1;
  const int fd = open(part, O_WRONLY | O_CREAT | O_TRUNC, 0600);
  if (fd < 0) return -1;
  const int written = write(fd, card, length) == (ssize_t)length;
  return close(fd) == 0 && written ? rename(part, file) : -1;
}

static ssize_t load(const char* file, void* card, size_t capacity) {
  const struct timespec moment = {.tv_nsec = 10000000};
  int fd = -1;
  for (int tries = 0; tries < 1000 && (fd = open(file, O_RDONLY)) < 0; ++tries)
    nanosleep(&moment, NULL);
  if (fd < 0) return -1;
  const ssize_t length = read(fd, card, capacity);
  close(fd);
  return length;
}

static int receive(viaduct_agent agent, const char* file) {
  viaduct_error error = VIADUCT_INIT(viaduct_error);
  viaduct_pin inbox;
  viaduct_pin_info memory = VIADUCT_INIT(viaduct_pin_info);
  TRY(viaduct_memory_allocate(agent, BLOCK * BLOCKS, "inbox", 0, &inbox, &error));
  TRY(viaduct_pin_describe(inbox, &memory, &error));

  char card[CARD_MOST];
  uint64_t length = 0;
  TRY(viaduct_card_export(agent, card, sizeof card, &length, &error));
  if (save(file, card, length) != 0) return perror(file), 1;

  /* The note arrives after the blocks, so the receiver need not wait for the blocks themselves. */
  viaduct_note_info info = VIADUCT_INIT(viaduct_note_info);
  char note[64];
  TRY(viaduct_note_receive(agent, 30 * SECONDS, &info, note, sizeof note, &error));
  const char* bytes = (const char*)(uintptr_t)memory.address;
  for (int i = 0; i < BLOCKS; ++i)
    if (bytes[i * BLOCK] != (i % 2 == 0 ? 'x' : '\0')) {
      fprintf(stderr, "pair: block %d is wrong\n", i);
      return 1;
    }
  printf("receiver: %s says \"%.*s\"\n", info.from, (int)info.bytes, note);

  viaduct_peer sender;
  TRY(viaduct_peer_known(agent, info.from, &sender, &error));
  TRY(viaduct_note_send(sender, "thank you", 9, &error));
  /* Waits until the sender leaves, because the end of this agent could cut off the answer. */
  TRY(viaduct_peer_wait_over(sender, 1, 30 * SECONDS, &error));
  TRY(viaduct_peer_close(sender, &error));
  TRY(viaduct_pin_close(inbox, &error));
  return 0;
}

/* Every second block: number 0 here goes to number 0 there, 1 to 2, 2 to 4, and so on. */
static int plan(viaduct_agent agent, viaduct_peer peer, uint64_t from, uint64_t into,
                viaduct_transfer* transfer) {
  viaduct_error error = VIADUCT_INIT(viaduct_error);
  const viaduct_run here = {.base = from, .bytes = BLOCK, .count = BLOCKS / 2};
  const viaduct_run there = {.base = into, .bytes = BLOCK, .count = BLOCKS};
  uint32_t even[BLOCKS / 2];
  for (uint32_t i = 0; i < BLOCKS / 2; ++i) even[i] = 2 * i;

  viaduct_blocks local, remote;
  TRY(viaduct_blocks_of_runs(&here, 1, &local, &error));
  TRY(viaduct_blocks_of_runs(&there, 1, &remote, &error));
  TRY(viaduct_transfer_plan(agent, VIADUCT_WRITE, peer, local, NULL, 0, remote, even, BLOCKS / 2,
                            NULL, VIADUCT_NORMAL, transfer, &error));
  TRY(viaduct_blocks_close(local, &error)); /* the plan keeps them */
  TRY(viaduct_blocks_close(remote, &error));
  return 0;
}

static int send_blocks(viaduct_agent agent, const char* file) {
  viaduct_error error = VIADUCT_INIT(viaduct_error);
  char card[CARD_MOST];
  const ssize_t length = load(file, card, sizeof card);
  if (length < 0) return perror(file), 1;

  viaduct_peer receiver;
  viaduct_pin_info inbox = VIADUCT_INIT(viaduct_pin_info);
  TRY(viaduct_card_import(agent, card, (uint64_t)length, &receiver, &error));
  TRY(viaduct_peer_wait_ready(receiver, 10 * SECONDS, &error));
  TRY(viaduct_peer_wait_pin(receiver, "inbox", 10 * SECONDS, &inbox, &error));

  viaduct_pin pin;
  viaduct_pin_info memory = VIADUCT_INIT(viaduct_pin_info);
  TRY(viaduct_memory_allocate(agent, BLOCK * BLOCKS / 2, NULL, 0, &pin, &error));
  TRY(viaduct_pin_describe(pin, &memory, &error));
  memset((void*)(uintptr_t)memory.address, 'x', memory.bytes);

  viaduct_transfer transfer;
  if (plan(agent, receiver, memory.address, inbox.address, &transfer) != 0) return 1;
  TRY(viaduct_transfer_post(transfer, 10 * SECONDS, "half of it", 10, &error));
  TRY(viaduct_transfer_wait(transfer, VIADUCT_FOREVER, &error));

  viaduct_note_info info = VIADUCT_INIT(viaduct_note_info);
  char answer[64], path[256];
  uint64_t path_length = 0;
  TRY(viaduct_note_receive(agent, 10 * SECONDS, &info, answer, sizeof answer, &error));
  TRY(viaduct_transfer_path(transfer, path, sizeof path, &path_length, &error));
  printf("sender: %s; answer: %.*s\n", path, (int)info.bytes, answer);

  TRY(viaduct_transfer_close(transfer, &error));
  TRY(viaduct_pin_close(pin, &error));
  TRY(viaduct_peer_close(receiver, &error));
  return 0;
}

int main(int argc, char** argv) {
  const char* role = argc == 3 ? argv[1] : "";
  const int receives = strcmp(role, "receiver") == 0;
  if (!receives && strcmp(role, "sender") != 0) {
    fprintf(stderr, "usage: pair receiver|sender CARD-FILE\n");
    return 2;
  }
  viaduct_error error = VIADUCT_INIT(viaduct_error);
  viaduct_agent agent;
  const viaduct_setting name = {"VIADUCT_NAME", role};
  TRY(viaduct_agent_open(&name, 1, VIADUCT_READ_ENVIRONMENT, &agent, &error));
  const int code = receives ? receive(agent, argv[2]) : send_blocks(agent, argv[2]);
  TRY(viaduct_agent_close(agent, &error));
  return code;
}
