/* Handlers of XLA's typed FFI in C, for machines without XLA's header. The declarations are those that the handlers
 * need; see hlo/ffi/structs.py. */
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <unistd.h>

typedef struct { size_t size; void *extensions; int32_t dtype; void *data; int64_t rank; int64_t *dims; } Buffer;
typedef struct { size_t size; void *extensions; int64_t count; int32_t *kinds; Buffer **buffers; } Buffers;
typedef struct { const char *data; size_t length; } Span;
typedef struct { int32_t dtype; void *value; } Scalar;
typedef struct { int32_t dtype; size_t count; void *data; } Array;
typedef struct { size_t size; void *extensions; int64_t count; int32_t *kinds; Span **names; void **values; } Attributes;
typedef struct Error Error;
typedef struct Future Future;
typedef struct Context Context;
typedef Error *(*Entry)(void *arguments);
typedef struct {
  size_t size; void *extensions; size_t version_size; void *version_extensions; int32_t major, minor; void *internal;
  Entry error_create, error_details, error_destroy, handler_register, stream, type_register, user_data, state_set,
      state_get, allocate, release, schedule, threads, future_create, future_done, future_failed, run, device;
} Api;
typedef struct {
  size_t size; void *extensions; const Api *api; Context *context; int32_t stage;
  Buffers args, rets; Attributes attributes; Future *future;
} Frame;
typedef struct { size_t size; int32_t type; void *next; void *metadata; } Extension;
typedef struct {
  size_t size, version_size; void *version_extensions; int32_t major, minor; uint32_t traits; int64_t state_type;
} Metadata;

enum { INVALID_ARGUMENT = 3, F32 = 11 };

static Error *fail(const Frame *frame, int code, const char *message) {
  struct { size_t size; void *extensions; const char *message; int32_t code; } args = {28, 0, message, code};
  return frame->api->error_create(&args);
}

/* Answers a request for metadata: 1 if it was one. */
static int answered(Frame *frame, int minor) {
  Extension *extension = frame->extensions;
  if (!extension || extension->type != 1) return 0;
  Metadata *metadata = extension->metadata;
  metadata->version_size = 24;
  metadata->major = 0;
  metadata->minor = minor;
  metadata->traits = 1;
  return 1;
}

static int64_t elements(const Buffer *buffer) {
  int64_t count = 1;
  for (int64_t d = 0; d < buffer->rank; ++d) count *= buffer->dims[d];
  return count;
}

static void *attribute(const Frame *frame, const char *name, int32_t kind) {
  for (int64_t k = 0; k < frame->attributes.count; ++k) {
    Span *span = frame->attributes.names[k];
    if (span->length == strlen(name) && !memcmp(span->data, name, span->length))
      return frame->attributes.kinds[k] == kind ? frame->attributes.values[k] : 0;
  }
  return 0;
}

/* y = scale * x, of f32; it counts its calls. */
int64_t calls_of_scaled;
Error *scaled(Frame *frame) {
  if (answered(frame, 3)) return 0;
  if (frame->args.count != 1 || frame->rets.count != 1) return fail(frame, INVALID_ARGUMENT, "one array, please");
  Buffer *x = frame->args.buffers[0], *y = frame->rets.buffers[0];
  Scalar *scale = attribute(frame, "scale", 3);
  if (x->dtype != F32) return fail(frame, INVALID_ARGUMENT, "x must be f32");
  if (!scale || scale->dtype != F32) return fail(frame, INVALID_ARGUMENT, "scale must be an f32");
  __atomic_add_fetch(&calls_of_scaled, 1, __ATOMIC_RELAXED);
  for (int64_t k = 0, count = elements(x); k < count; ++k)
    ((float *)y->data)[k] = *(float *)scale->value * ((float *)x->data)[k];
  return 0;
}

/* Copies the bytes of each argument to the result of its number; further results get what the frame says about them. */
Error *copied(Frame *frame) {
  if (answered(frame, 0)) return 0;
  for (int64_t k = 0; k < frame->rets.count && k < frame->args.count; ++k) {
    Scalar *width = attribute(frame, "width", 3);
    memmove(frame->rets.buffers[k]->data, frame->args.buffers[k]->data,
            elements(frame->rets.buffers[k]) * *(int64_t *)width->value);
  }
  return 0;
}

/* For each argument and result: dtype, rank, dimensions; to the last result, s64[n]. */
static Error *describe(Frame *frame, Buffer *target) {
  int64_t *out = target->data, *end = out + elements(target);
  for (int part = 0; part < 2; ++part) {
    Buffers *all = part ? &frame->rets : &frame->args;
    for (int64_t k = 0; k < all->count; ++k) {
      Buffer *buffer = all->buffers[k];
      if (out + 2 + buffer->rank > end) return 0;
      *out++ = buffer->dtype;
      *out++ = buffer->rank;
      for (int64_t d = 0; d < buffer->rank; ++d) *out++ = buffer->dims[d];
    }
  }
  return 0;
}

Error *described(Frame *frame) {
  return answered(frame, 5) ? 0 : describe(frame, frame->rets.buffers[frame->rets.count - 1]);
}

Error *described_with_tokens(Frame *frame) { return answered(frame, 5) ? 0 : describe(frame, frame->rets.buffers[1]); }

/* Attributes as text, for dictionaries also inside: "name:kind:dtype:count:bytes;" */
static char *hex(char *at, const unsigned char *data, size_t count) {
  for (size_t k = 0; k < count; ++k) {
    *at++ = "0123456789abcdef"[data[k] >> 4];
    *at++ = "0123456789abcdef"[data[k] & 15];
  }
  return at;
}

static char *number(char *at, int64_t value) {
  if (value > 9) at = number(at, value / 10);
  *at++ = '0' + value % 10;
  return at;
}

static char *attributes_text(char *at, const Attributes *all) {
  static const int widths[40] = {0, 1, 1, 2, 4, 8, 1, 2, 4, 8, 2, 4, 8, 0, 0, 8, 2};
  for (int64_t k = 0; k < all->count; ++k) {
    memcpy(at, all->names[k]->data, all->names[k]->length);
    at += all->names[k]->length;
    *at++ = ':';
    void *value = all->values[k];
    if (all->kinds[k] == 1) {
      Array *array = value;
      *at++ = 'a';
      at = number(at, array->dtype);
      *at++ = 'x';
      at = hex(at, array->data, array->count * widths[array->dtype]);
    } else if (all->kinds[k] == 2) {
      *at++ = '{';
      at = attributes_text(at, value);
      *at++ = '}';
    } else if (all->kinds[k] == 3) {
      Scalar *scalar = value;
      *at++ = 's';
      at = number(at, scalar->dtype);
      *at++ = 'x';
      at = hex(at, scalar->value, widths[scalar->dtype]);
    } else {
      Span *span = value;
      *at++ = '"';
      memcpy(at, span->data, span->length);
      at += span->length;
      *at++ = '"';
    }
    *at++ = ';';
  }
  return at;
}

Error *attributes_of(Frame *frame) {
  if (answered(frame, 3)) return 0;
  Buffer *out = frame->rets.buffers[0];
  memset(out->data, ' ', elements(out));
  attributes_text(out->data, &frame->attributes);
  return 0;
}

/* x[0] = x[0] + 1 in the result's memory; the rest stays as it is. */
Error *first_incremented(Frame *frame) {
  if (answered(frame, 3)) return 0;
  *(float *)frame->rets.buffers[0]->data += 1;
  return 0;
}

Error *always_fails(Frame *frame) {
  if (answered(frame, 3)) return 0;
  Scalar *code = attribute(frame, "code", 3);
  return fail(frame, *(int64_t *)code->value, "it \xe2\x9c\x97 fails");
}

Error *too_new(Frame *frame) { answered(frame, 99); return 0; }
Error *no_metadata(Frame *frame) { return 0; }
Error *refuses_metadata(Frame *frame) { return fail(frame, 9, "not today"); }

/* States. A counter is made with the program; "prepare" and "initialize" make one for each execution. */
int64_t counter_type, alive;
int64_t log_of_stages[16], stages_logged;
static void delete_counter(void *object) { __atomic_sub_fetch(&alive, 1, __ATOMIC_RELAXED); *(int64_t *)object = -1; }
struct { size_t size; void *extensions; void (*deleter)(void *); } counter_info = {24, 0, delete_counter};
static int64_t counters[1024], used;

static Error *set_state(Frame *frame, int32_t stage, int64_t value) {
  int64_t *state = &counters[__atomic_fetch_add(&used, 1, __ATOMIC_RELAXED) % 1024];
  *state = value;
  __atomic_add_fetch(&alive, 1, __ATOMIC_RELAXED);
  struct { size_t size; void *extensions; Context *context; int32_t stage; int64_t *type; void *state; } args = {
      48, 0, frame->context, stage, &counter_type, state};
  return frame->api->state_set(&args);
}

static Error *get_state(Frame *frame, int32_t stage, int64_t **state) {
  struct { size_t size; void *extensions; Context *context; int32_t stage; int64_t *type; void *state; } args = {
      48, 0, frame->context, stage, &counter_type, 0};
  Error *error = frame->api->state_get(&args);
  *state = args.state;
  return error;
}

static void log_stage(int32_t stage) {
  int64_t place = __atomic_fetch_add(&stages_logged, 1, __ATOMIC_RELAXED);
  if (place < 16) log_of_stages[place] = stage;
}

Error *counter_instantiate(Frame *frame) {
  if (answered(frame, 3)) return 0;
  log_stage(frame->stage);
  Scalar *start = attribute(frame, "start", 3);
  if (*(int64_t *)start->value < 0) return fail(frame, INVALID_ARGUMENT, "start must not be negative");
  return set_state(frame, 0, *(int64_t *)start->value);
}
Error *counter_prepare(Frame *frame) {
  if (answered(frame, 3)) return 0;
  log_stage(frame->stage);
  return set_state(frame, 1, 100);
}
Error *counter_initialize(Frame *frame) {
  if (answered(frame, 3)) return 0;
  log_stage(frame->stage);
  return set_state(frame, 2, 10000);
}
Error *counter_execute(Frame *frame) {
  if (answered(frame, 3)) return 0;
  log_stage(frame->stage);
  int64_t *own, *prepared = 0, *initialized = 0;
  Error *error = get_state(frame, 0, &own);
  if (error) return error;
  if (frame->rets.count > 1) {
    if ((error = get_state(frame, 1, &prepared)) || (error = get_state(frame, 2, &initialized))) return error;
    *(int32_t *)frame->rets.buffers[1]->data = *prepared + *initialized;
  }
  *(int32_t *)frame->rets.buffers[0]->data = __atomic_fetch_add(own, 1, __ATOMIC_RELAXED);
  return 0;
}

/* Scratch memory: the array is copied there and back, reversed. */
Error *reversed(Frame *frame) {
  if (answered(frame, 3)) return 0;
  Buffer *x = frame->args.buffers[0], *y = frame->rets.buffers[0];
  int64_t count = elements(x);
  Scalar *alignment = attribute(frame, "alignment", 3);
  struct { size_t size; void *extensions; Context *context; size_t bytes, alignment; void *data; } take = {
      48, 0, frame->context, 4 * count, *(int64_t *)alignment->value, 0};
  Error *error = frame->api->allocate(&take);
  if (error) return error;
  if ((uintptr_t)take.data % take.alignment) return fail(frame, 13, "it is not aligned");
  float *scratch = take.data;
  for (int64_t k = 0; k < count; ++k) scratch[k] = ((float *)x->data)[count - 1 - k];
  memcpy(y->data, scratch, 4 * count);
  struct { size_t size; void *extensions; Context *context; size_t bytes; void *data; } give = {
      40, 0, frame->context, 4 * count, take.data};
  return frame->api->release(&give);
}

Error *too_much_scratch(Frame *frame) {
  if (answered(frame, 3)) return 0;
  struct { size_t size; void *extensions; Context *context; size_t bytes, alignment; void *data; } take = {
      48, 0, frame->context, (size_t)-8, 1, 0};
  return frame->api->allocate(&take);
}

/* Squares by tasks of the thread pool. The last task to end completes a future, or the handler waits for it. */
typedef struct { const float *x; float *y; int64_t count, *left; Future *future; const Api *api; Error *error; } Task;

static void square(void *data) {
  Task *task = data;
  for (int64_t k = 0; k < task->count; ++k) task->y[k] = task->x[k] * task->x[k];
  if (__atomic_sub_fetch(task->left, 1, __ATOMIC_ACQ_REL) || !task->future) return;
  struct { size_t size; void *extensions; Future *future; Error *error; } args = {32, 0, task->future, task->error};
  if (task->error) task->api->future_failed(&args); else { args.size = 24; task->api->future_done(&args); }
}

static Task tasks[64][16];
static int64_t left[64], next_set;

static Error *squares(Frame *frame, Future *future, Error *failed) {
  Buffer *x = frame->args.buffers[0], *y = frame->rets.buffers[0];
  int64_t set = __atomic_fetch_add(&next_set, 1, __ATOMIC_RELAXED) % 64, count = elements(x), done = 0;
  left[set] = 16;
  for (int k = 0; k < 16; ++k) {
    int64_t end = count * (k + 1) / 16;
    tasks[set][k] = (Task){(float *)x->data + done, (float *)y->data + done, end - done, &left[set], future,
                           frame->api, failed};
    done = end;
    struct { size_t size; void *extensions; Context *context; void (*task)(void *); void *data; } args = {
        40, 0, frame->context, square, &tasks[set][k]};
    Error *error = frame->api->schedule(&args);
    if (error) return error;
  }
  while (!future && __atomic_load_n(&left[set], __ATOMIC_ACQUIRE)) usleep(1);
  return 0;
}

Error *squared(Frame *frame) { return answered(frame, 3) ? 0 : squares(frame, 0, 0); }

static Error *create_future(Frame *frame) {
  struct { size_t size; void *extensions; Future *future; } args = {16, 0, 0};
  Error *error = frame->api->future_create(&args);
  frame->future = args.future;
  return error;
}

Error *squared_later(Frame *frame) {
  if (answered(frame, 3)) return 0;
  Error *error = create_future(frame);
  return error ? error : squares(frame, frame->future, 0);
}

Error *fails_later(Frame *frame) {
  if (answered(frame, 3)) return 0;
  Error *error = create_future(frame);
  return error ? error : squares(frame, frame->future, fail(frame, 15, "lost on the way"));
}

/* A future that a thread of the handler's own completes. */
static void *complete(void *data) {
  Task *task = data;
  usleep(20000);
  *task->y = 7;
  struct { size_t size; void *extensions; Future *future; } args = {24, 0, task->future};
  task->api->future_done(&args);
  return 0;
}

Error *by_own_thread(Frame *frame) {
  if (answered(frame, 3)) return 0;
  static Task task;
  Error *error = create_future(frame);
  if (error) return error;
  task = (Task){0, frame->rets.buffers[0]->data, 1, 0, frame->future, frame->api, 0};
  pthread_t thread;
  pthread_create(&thread, 0, complete, &task);
  pthread_detach(thread);
  return 0;
}

/* s64[3]: the number of the run, of the device, of threads. */
Error *where(Frame *frame) {
  if (answered(frame, 3)) return 0;
  int64_t *out = frame->rets.buffers[0]->data;
  struct { size_t size; void *extensions; Context *context; int64_t run; } run = {32, 0, frame->context, 0};
  struct { size_t size; void *extensions; Context *context; int32_t device; } device = {28, 0, frame->context, -1};
  struct { size_t size; void *extensions; Context *context; int64_t *threads; } threads = {32, 0, frame->context, out + 2};
  Error *error = frame->api->run(&run);
  if (error || (error = frame->api->device(&device)) || (error = frame->api->threads(&threads))) return error;
  out[0] = run.run;
  out[1] = device.device;
  return 0;
}

Error *asks_for(Frame *frame) {
  if (answered(frame, 3)) return 0;
  Scalar *entry = attribute(frame, "entry", 3);
  struct { size_t size; void *extensions; Context *context; int64_t *type; void *data; } args = {
      40, 0, frame->context, &counter_type, 0};
  return *(int64_t *)entry->value ? frame->api->stream(&args) : frame->api->user_data(&args);
}

/* Registers a handler and a type, as C++ does when a library is loaded. */
Error *registers(Frame *frame) {
  if (answered(frame, 3)) return 0;
  static int64_t type;
  struct { size_t size; void *extensions; Span name, platform; void *stages[4]; uint32_t traits; } handler = {
      84, 0, {"registered_from_c", 17}, {"Host", 4}, {0, 0, 0, scaled}, 0};
  Error *error = frame->api->handler_register(&handler);
  if (error) return error;
  struct { size_t size; void *extensions; Span name; int64_t *type; void *info; } type_args = {
      48, 0, {"type_from_c", 11}, &type, &counter_info};
  error = frame->api->type_register(&type_args);
  *(int64_t *)frame->rets.buffers[0]->data = type;
  return error;
}

/* void(void* out, void** in), not of the typed FFI: adds one to f32[3]. */
void untyped(void *out, void **in) {
  for (int k = 0; k < 3; ++k) ((float *)out)[k] = ((float *)in[0])[k] + 1;
}

/* XLA's older interfaces: the status is a std::optional<std::string>. */
typedef struct { const char *data; size_t length; char local[16]; unsigned char is_set; } Status;

static void set(Status *status, const char *message) {
  status->data = message;
  status->length = strlen(message);
  status->is_set = 1;
}

void with_status(float *out, const float **in, Status *status) {
  *out = *in[0] + 1;
  if (*in[0] > 5) set(status, "more than 5 \xe2\x9c\x97");
}

void with_opaque_and_status(void **out, const float **in, const char *opaque, size_t size, Status *status) {
  *(float *)out[0] = *in[0] + *in[1];
  memcpy(out[1], opaque, size < 4 ? size : 4);
  if (*in[0] > 5) set(status, opaque);
}
