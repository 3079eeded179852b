/* Short-time Fourier transforms: frames of a signal, windowed and transformed, and the way back by overlapping sums. */
#include <stdio.h>

#include "msadapter/ops.h"
#include "ops/kernels.h"
#include "tensor/internal.h"

enum { TEXT = 640 };

/* "torch.FloatTensor", as PyTorch's messages call a tensor's type. */
static const char *type_text(const msa_tensor *t, char *text, size_t size) {
    const char *name = msa_dtype_type_name((msa_dtype)t->dtype);
    snprintf(text, size, msa_is_complex((msa_dtype)t->dtype) ? "CPU%sType" : "torch.%sTensor", name);
    return text;
}

static const char *optional_text(msa_opt_int value, char *text, size_t size) {
    if (!value.has) return "None";
    snprintf(text, size, "%lld", (long long)value.v);
    return text;
}

/* How messages show a call; `more` follows the window. */
static void call_text(char *text, const char *name, const msa_tensor *self, int64_t n_fft, int64_t hop, int64_t win, const msa_tensor *window,
                      const char *more) {
    char type[48], window_type[48], window_text[176] = "None";
    if (window) snprintf(window_text, sizeof window_text, "%s{%.100s}", type_text(window, window_type, sizeof window_type), msa_sizes_text(msa_sizes(window)));
    snprintf(text, TEXT, "%s(%s%.160s, n_fft=%lld, hop_length=%lld, win_length=%lld, window=%s, %s)", name, type_text(self, type, sizeof type),
             msa_sizes_text(msa_sizes(self)), (long long)n_fft, (long long)hop, (long long)win, window_text, more);
}

/* The window in the middle of n_fft zeros; without one, ones. */
static msa_tensor *whole_window(msa_tensor *window, msa_dtype dtype, int64_t win, int64_t n_fft) {
    msa_auto msa_tensor *ones = window ? msa_tensor_retain(window) : msa_tensor_new(MSA_INTS(win), dtype);
    if (!ones || (!window && msa_fill_values(ones, msa_int(1)) != 0)) return NULL;
    int64_t left = (n_fft - win) / 2;
    return win == n_fft ? msa_take(ones) : msa_constant_pad_nd(ones, MSA_INTS(left, n_fft - win - left), msa_int(0));
}

/* self is (length) or (batch, length); the result (batch, frequencies, frames), as pairs of numbers without return_complex. */
msa_tensor *stft_values(msa_tensor *self, int64_t n_fft, msa_opt_int hop_length, msa_opt_int win_length, msa_tensor *window, bool normalized,
                        msa_opt_int onesided, msa_opt_int return_complex) {
    int64_t hop = hop_length.has ? hop_length.v : n_fft >> 2, win = win_length.has ? win_length.v : n_fft;
    msa_dtype dtype = (msa_dtype)self->dtype;
    bool complex = msa_is_complex(dtype) || (window && msa_is_complex((msa_dtype)window->dtype));
    bool as_complex = return_complex.has ? return_complex.v : complex;
    char call[TEXT], more[128], digits[24];
    snprintf(more, sizeof more, "normalized=%d, onesided=%s, return_complex=%d", normalized, optional_text(onesided, digits, sizeof digits), as_complex);
    call_text(call, "stft", self, n_fft, hop, win, window, more);
    if (!msa_is_inexact(dtype)) return msa_fail_null(MSA_RUNTIME_ERROR, "%s : expected a tensor of floating point or complex values", call);
    if (self->ndim < 1 || self->ndim > 2) return msa_fail_null(MSA_RUNTIME_ERROR, "%s : expected a 1D or 2D tensor", call);
    int64_t length = self->sizes[self->ndim - 1];
    if (n_fft <= 0 || n_fft > length)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s : expected 0 < n_fft < %lld, but got n_fft=%lld", call, (long long)length, (long long)n_fft);
    if (hop <= 0) return msa_fail_null(MSA_RUNTIME_ERROR, "%s : expected hop_length > 0, but got hop_length=%lld", call, (long long)hop);
    if (win <= 0 || win > n_fft)
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s : expected 0 < win_length <= n_fft, but got win_length=%lld", call, (long long)win);
    if (window && (window->ndim != 1 || window->sizes[0] != win))
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s : expected a 1D window tensor of size equal to win_length=%lld, but got window with size %s",
                             call, (long long)win, msa_sizes_text(msa_sizes(window)));
    bool half = onesided.has ? onesided.v : !complex;
    if (complex && half) return msa_fail_null(MSA_RUNTIME_ERROR, "Cannot have onesided output if window or input is complex");
    msa_auto msa_tensor *batch = self->ndim == 1 ? msa_unsqueeze(self, 0) : msa_tensor_retain(self);
    msa_auto msa_tensor *frames = batch ? msa_unfold(batch, -1, n_fft, hop) : NULL;
    if (!frames) return NULL;
    msa_auto msa_tensor *taper = window || win < n_fft ? whole_window(window, dtype, win, n_fft) : NULL;
    if (!taper && (window || win < n_fft)) return NULL;
    msa_auto msa_tensor *tapered = taper ? msa_mul(frames, taper) : msa_tensor_retain(frames);
    if (!tapered) return NULL;
    msa_auto msa_tensor *spectra = complex ? msa__fft_c2c(tapered, MSA_INTS(2), normalized, true) : msa__fft_r2c(tapered, MSA_INTS(2), normalized, half);
    msa_auto msa_tensor *turned = spectra ? msa_transpose_int(spectra, 1, 2) : NULL;
    msa_auto msa_tensor *result = turned && self->ndim == 1 ? msa_squeeze_dim(turned, 0) : msa_tensor_retain(turned);
    return !result || as_complex ? msa_take(result) : msa_view_as_real(result);
}

/* The checks of istft on a (..., frequencies, frames, 2) tensor; 0 when they hold. */
static int check_istft(const char *call, const msa_tensor *self, int64_t n_fft, int64_t hop, int64_t win, const msa_tensor *window, bool onesided) {
    int ndim = self->ndim + msa_is_complex((msa_dtype)self->dtype);
    int64_t fft_size = self->sizes[ndim - 3];
    if (self->numel == 0) return msa_fail(MSA_RUNTIME_ERROR, "%s : input tensor cannot be empty.", call);
    if (ndim != 3 && ndim != 4) return msa_fail(MSA_RUNTIME_ERROR, "%s : expected a tensor with 3 or 4 dimensions, but got %d", call, ndim);
    if (ndim == self->ndim && self->sizes[ndim - 1] != 2)
        return msa_fail(MSA_RUNTIME_ERROR, "%s : expected the last dimension to be 2 (corresponding to real and imaginary parts), but got %lld", call,
                        (long long)self->sizes[ndim - 1]);
    if (fft_size != (onesided ? n_fft / 2 + 1 : n_fft))
        return msa_fail(MSA_RUNTIME_ERROR, "%s : expected the frequency dimension (3rd to the last) of the input tensor to match %s, but got %lld", call,
                        onesided ? "n_fft / 2 + 1 when onsided=True" : "n_fft when onsided=False", (long long)fft_size);
    if (hop < 1 || hop > win) return msa_fail(MSA_RUNTIME_ERROR, "%s : expected 0 < hop_length <= win_length", call);
    if (win < 1 || win > n_fft) return msa_fail(MSA_RUNTIME_ERROR, "%s : expected 0 < win_length <= n_fft", call);
    if (window && (window->ndim != 1 || window->sizes[0] != win))
        return msa_fail(MSA_RUNTIME_ERROR, "%s : Invalid window shape. window has to be 1D and length of `win_length`", call);
    return 0;
}

/* Frames from spectra: (batch, frequencies, frames) -> (batch, frames, n_fft). */
static msa_tensor *frames_of(msa_tensor *spectra, int64_t n_fft, msa_tensor *window, bool normalized, bool onesided, bool return_complex) {
    int64_t mode = normalized ? 1 : 2;
    msa_auto msa_tensor *turned = msa_transpose_int(spectra, 1, 2);
    if (!turned) return NULL;
    if (return_complex) {
        if (onesided) return msa_fail_null(MSA_RUNTIME_ERROR, "Cannot have onesided output if window or input is complex");
        return msa__fft_c2c(turned, MSA_INTS(2), mode, false);
    }
    if (window && msa_is_complex((msa_dtype)window->dtype))
        return msa_fail_null(MSA_RUNTIME_ERROR, "Complex windows are incompatible with return_complex=False");
    msa_auto msa_tensor *half = onesided ? msa_tensor_retain(turned) : msa_narrow(turned, 2, 0, n_fft / 2 + 1);
    return half ? msa__fft_c2r(half, MSA_INTS(2), mode, n_fft) : NULL;
}

/* The least-squares signal: sum of windowed frames over the sum of squared windows (D. Griffin and J. Lim, "Signal estimation from
 * modified short-time Fourier transform", IEEE Transactions on Acoustics, Speech and Signal Processing 32 (1984)). */
msa_tensor *istft_values(msa_tensor *self, int64_t n_fft, msa_opt_int hop_length, msa_opt_int win_length, msa_tensor *window, bool center,
                         bool normalized, msa_opt_int onesided, msa_opt_int length, bool return_complex) {
    int64_t hop = hop_length.has ? hop_length.v : n_fft >> 2, win = win_length.has ? win_length.v : n_fft;
    bool pairs = !msa_is_complex((msa_dtype)self->dtype);
    char call[TEXT], more[128], sided[24], count[24];
    snprintf(more, sizeof more, "center=%d, normalized=%d, onesided=%s, length=%s, return_complex=%d", center, normalized,
             optional_text(onesided, sided, sizeof sided), optional_text(length, count, sizeof count), return_complex);
    call_text(call, "istft", self, n_fft, hop, win, window, more);
    int ndim = self->ndim + !pairs;
    if (ndim < 3) return msa_fail_null(MSA_INDEX_ERROR, "Dimension out of range (expected to be in range of [-%d, %d], but got %d)", ndim, ndim - 1, ndim < 2 ? -2 : -3);
    bool half = onesided.has ? onesided.v : self->sizes[ndim - 3] != n_fft;
    if (check_istft(call, self, n_fft, hop, win, window, half) != 0) return NULL;
    msa_auto msa_tensor *dense = pairs ? msa_contiguous(self, 0) : msa_tensor_retain(self);
    msa_auto msa_tensor *joined = dense && pairs ? msa_view_as_complex(dense) : msa_tensor_retain(dense);
    msa_auto msa_tensor *spectra = joined && ndim == 3 ? msa_unsqueeze(joined, 0) : msa_tensor_retain(joined);
    msa_auto msa_tensor *taper = spectra ? whole_window(window, msa_dtype_real((msa_dtype)spectra->dtype), win, n_fft) : NULL;
    msa_auto msa_tensor *frames = taper ? frames_of(spectra, n_fft, window, normalized, half, return_complex) : NULL;
    msa_auto msa_tensor *tapered = frames ? msa_mul(frames, taper) : NULL;
    if (!tapered) return NULL;
    int64_t n_frames = tapered->sizes[1], whole;
    if (__builtin_mul_overflow(hop, n_frames - 1, &whole) || __builtin_add_overflow(whole, n_fft, &whole))
        return msa_fail_null(MSA_RUNTIME_ERROR, "%s : the signal is too long", call);
    msa_auto msa_tensor *sum = msa_overlap_add(tapered, whole, hop);
    msa_auto msa_tensor *squares = sum ? msa_mul(taper, taper) : NULL;
    msa_auto msa_tensor *spread = squares ? msa_expand(squares, MSA_INTS(1, n_frames, n_fft), false) : NULL;
    msa_auto msa_tensor *envelope = spread ? msa_overlap_add(spread, whole, hop) : NULL;
    if (!envelope) return NULL;
    int64_t start = center ? n_fft / 2 : 0;
    if (length.has && length.v > INT64_MAX - start) return msa_fail_null(MSA_RUNTIME_ERROR, "%s : the signal is too long", call);
    int64_t end = length.has ? start + length.v : center ? -(n_fft / 2) : whole;
    msa_auto msa_tensor *signal = msa_slice_Tensor(sum, 1, (msa_opt_int)MSA_SOME(start), (msa_opt_int)MSA_SOME(end), 1);
    msa_auto msa_tensor *weight = signal ? msa_slice_Tensor(envelope, 1, (msa_opt_int)MSA_SOME(start), (msa_opt_int)MSA_SOME(end), 1) : NULL;
    msa_auto msa_tensor *size = weight ? msa_abs(weight) : NULL;
    msa_auto msa_tensor *least = size ? msa_min(size) : NULL;
    msa_scalar lowest;
    if (!least || msa_tensor_item(least, &lowest) != 0) return NULL;
    if (msa_scalar_double(lowest) < 1e-11) return msa_fail_null(MSA_RUNTIME_ERROR, "%s window overlap add min: 1\n[ CPUBoolType{} ]", call);
    msa_auto msa_tensor *result = msa_div(signal, weight);
    msa_auto msa_tensor *shaped = result && ndim == 3 ? msa_squeeze_dim(result, 0) : msa_tensor_retain(result);
    return shaped && length.has && end > whole ? msa_constant_pad_nd(shaped, MSA_INTS(0, end - whole), msa_int(0)) : msa_take(shaped);
}
