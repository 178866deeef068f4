// Handlers in C++ with XLA's header, as users of jax.ffi write them. The same library runs under hloom and under JAX.
#include <atomic>
#include <cmath>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "xla/ffi/api/ffi.h"

namespace ffi = xla::ffi;

// ---- root mean square norm: each row divided by the root of the mean of its squares; its gradient

static std::pair<int64_t, int64_t> RowsOf(ffi::Span<const int64_t> dims) {
  int64_t rows = 1;
  for (size_t d = 0; d + 1 < dims.size(); ++d) rows *= dims[d];
  return {rows, dims.size() ? dims.back() : 0};
}

static ffi::Error RmsNorm(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  auto [rows, columns] = RowsOf(x.dimensions());
  if (columns == 0) return ffi::Error::InvalidArgument("rms_norm needs rows with elements");
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.typed_data() + r * columns;
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c] * row[c];
    float scale = 1 / std::sqrt(sum / columns + eps);
    for (int64_t c = 0; c < columns; ++c) y->typed_data()[r * columns + c] = row[c] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    rms_norm, RmsNorm,
    ffi::Ffi::Bind().Attr<float>("eps").Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>(),
    {ffi::Traits::kCmdBufferCompatible});

// Forward, with the scale of each row for the gradient.
static ffi::Error RmsNormForward(float eps, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y,
                                 ffi::ResultBuffer<ffi::F32> scales) {
  auto [rows, columns] = RowsOf(x.dimensions());
  for (int64_t r = 0; r < rows; ++r) {
    const float* row = x.typed_data() + r * columns;
    float sum = 0;
    for (int64_t c = 0; c < columns; ++c) sum += row[c] * row[c];
    float scale = 1 / std::sqrt(sum / columns + eps);
    scales->typed_data()[r] = scale;
    for (int64_t c = 0; c < columns; ++c) y->typed_data()[r * columns + c] = row[c] * scale;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rms_norm_forward, RmsNormForward,
                              ffi::Ffi::Bind()
                                  .Attr<float>("eps")
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Error RmsNormBackward(ffi::Buffer<ffi::F32> scales, ffi::Buffer<ffi::F32> x, ffi::Buffer<ffi::F32> dy,
                                  ffi::ResultBuffer<ffi::F32> dx) {
  auto [rows, columns] = RowsOf(x.dimensions());
  for (int64_t r = 0; r < rows; ++r) {
    const float *row = x.typed_data() + r * columns, *given = dy.typed_data() + r * columns;
    float scale = scales.typed_data()[r], dot = 0;
    for (int64_t c = 0; c < columns; ++c) dot += row[c] * given[c];
    float factor = dot * scale * scale * scale / columns;
    for (int64_t c = 0; c < columns; ++c)
      dx->typed_data()[r * columns + c] = given[c] * scale - row[c] * factor;
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(rms_norm_backward, RmsNormBackward,
                              ffi::Ffi::Bind()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

// ---- attributes of all kinds, and any number of buffers of any type

struct Range {
  int64_t low, high;
};
XLA_FFI_REGISTER_STRUCT_ATTR_DECODING(Range, ffi::StructMember<int64_t>("low"), ffi::StructMember<int64_t>("high"));

static ffi::Error Attributes(bool flag, int32_t number, double factor, std::string_view name, ffi::Span<const int64_t> sizes,
                             Range range, ffi::Result<ffi::Buffer<ffi::F64>> out) {
  double* y = out->typed_data();
  y[0] = flag, y[1] = number, y[2] = factor, y[3] = name.size(), y[4] = 0, y[5] = range.low, y[6] = range.high;
  for (int64_t size : sizes) y[4] += size;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(attributes, Attributes,
                              ffi::Ffi::Bind()
                                  .Attr<bool>("flag")
                                  .Attr<int32_t>("number")
                                  .Attr<double>("factor")
                                  .Attr<std::string_view>("name")
                                  .Attr<ffi::Span<const int64_t>>("sizes")
                                  .Attr<Range>("range")
                                  .Ret<ffi::Buffer<ffi::F64>>());

static ffi::Error AnyBuffers(ffi::Dictionary attrs, ffi::RemainingArgs args, ffi::RemainingRets rets) {
  auto out = rets.get<ffi::Buffer<ffi::S32>>(0);
  if (out.has_error()) return out.error();
  int32_t* y = (*out)->typed_data();
  y[0] = args.size(), y[1] = rets.size(), y[2] = attrs.size(), y[3] = 0;
  for (size_t k = 0; k < args.size(); ++k) {
    auto arg = args.get<ffi::AnyBuffer>(k);
    if (arg.has_error()) return arg.error();
    y[3] += arg->size_bytes();
  }
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(any_buffers, AnyBuffers, ffi::Ffi::Bind().Attrs().RemainingArgs().RemainingRets());

// ---- a state for each program

struct Counter {
  static ffi::TypeId id;
  explicit Counter(int64_t start) : value(start) {}
  std::atomic<int64_t> value;
};
ffi::TypeId Counter::id = {};
static const ffi::TypeInfo kCounterInfo = ffi::MakeTypeInfo<Counter>();

extern "C" void* counter_type_id() { return &Counter::id; }
extern "C" const void* counter_type_info() { return &kCounterInfo; }

static ffi::ErrorOr<std::unique_ptr<Counter>> MakeCounter(int64_t start) {
  if (start < 0) return ffi::Unexpected(ffi::Error::InvalidArgument("start is negative"));
  return std::make_unique<Counter>(start);
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(counter_instantiate, MakeCounter,
                              ffi::Ffi::BindInstantiate().Attr<int64_t>("start"));

static ffi::Error Count(Counter* counter, ffi::Result<ffi::Buffer<ffi::S32>> out) {
  *out->typed_data() = counter->value.fetch_add(1);
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(counter_execute, Count,
                              ffi::Ffi::Bind().Ctx<ffi::State<Counter>>().Ret<ffi::Buffer<ffi::S32>>());

// ---- errors

static ffi::Error Fail(int64_t code, std::string_view message, ffi::ResultBuffer<ffi::F32>) {
  return ffi::Error(static_cast<ffi::ErrorCode>(code), std::string(message));
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    fail, Fail, ffi::Ffi::Bind().Attr<int64_t>("code").Attr<std::string_view>("message").Ret<ffi::Buffer<ffi::F32>>());

// ---- scratch memory and the thread pool

static ffi::Error ReversedThroughScratch(ffi::ScratchAllocator scratch, ffi::Buffer<ffi::F32> x,
                                         ffi::ResultBuffer<ffi::F32> y) {
  size_t count = x.element_count();
  std::optional<void*> memory = scratch.Allocate(count * sizeof(float), 16);
  if (!memory.has_value()) return ffi::Error::Internal("there is no scratch memory");
  float* copy = static_cast<float*>(*memory);
  for (size_t k = 0; k < count; ++k) copy[k] = x.typed_data()[count - 1 - k];
  for (size_t k = 0; k < count; ++k) y->typed_data()[k] = copy[k];
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(reversed, ReversedThroughScratch,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::ScratchAllocator>()
                                  .Arg<ffi::Buffer<ffi::F32>>()
                                  .Ret<ffi::Buffer<ffi::F32>>());

static ffi::Future SquaredLater(ffi::ThreadPool pool, ffi::Buffer<ffi::F32> x, ffi::ResultBuffer<ffi::F32> y) {
  constexpr int64_t kParts = 8;
  int64_t count = x.element_count();
  ffi::CountDownPromise promise(kParts);
  ffi::Future future(promise);
  for (int64_t part = 0; part < kParts; ++part) {
    pool.Schedule([=, in = x.typed_data(), out = y->typed_data()]() mutable {
      for (int64_t k = count * part / kParts; k < count * (part + 1) / kParts; ++k) out[k] = in[k] * in[k];
      promise.CountDown();
    });
  }
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(
    squared_later, SquaredLater,
    ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Arg<ffi::Buffer<ffi::F32>>().Ret<ffi::Buffer<ffi::F32>>());

static ffi::Future FailsLater(ffi::ThreadPool pool, ffi::ResultBuffer<ffi::F32>) {
  ffi::Promise promise;
  ffi::Future future(promise);
  pool.Schedule([promise]() mutable { promise.SetError(ffi::Error(ffi::ErrorCode::kDataLoss, "it got lost")); });
  return future;
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(fails_later, FailsLater,
                              ffi::Ffi::Bind().Ctx<ffi::ThreadPool>().Ret<ffi::Buffer<ffi::F32>>());

// ---- what a handler knows about its run

static ffi::Error Where(ffi::RunId run, int32_t device, ffi::ThreadPool pool, ffi::Result<ffi::Buffer<ffi::S32>> out) {
  out->typed_data()[0] = device;
  out->typed_data()[1] = pool.num_threads();
  out->typed_data()[2] = run.run_id != 0;
  return ffi::Error::Success();
}
XLA_FFI_DEFINE_HANDLER_SYMBOL(where, Where,
                              ffi::Ffi::Bind()
                                  .Ctx<ffi::RunId>()
                                  .Ctx<ffi::DeviceOrdinal>()
                                  .Ctx<ffi::ThreadPool>()
                                  .Ret<ffi::Buffer<ffi::S32>>());

// ---- XLA's older interfaces: functions that set a status, whose class a library declares itself

struct Status {
  std::optional<std::string> message;
};

extern "C" void with_status(float* out, const float** in, Status* status) {
  *out = *in[0] + 1;
  if (*in[0] > 5) status->message = "more than 5";
}

extern "C" void with_opaque(float* out, const float** in, const char* opaque, size_t size, Status* status) {
  *out = *in[0] + size;
  if (*in[0] > 5) status->message = std::string(opaque, size) + ", a message that is too long for a short string";
}
