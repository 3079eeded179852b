/* Greedy suppression of boxes that overlap a better one. */
#include "ops/kernels.h"
#include "tensor/internal.h"

/* boxes is (n, 4) in the order of their scores, `side` is x1 y1 x2 y2 and the areas, n each. No products are fused with sums, so
 * that overlaps compare with the threshold as PyTorch's do. */
#define SUPPRESS(NAME, T) \
    static void NAME##_suppress(int64_t n, const T *boxes, double threshold, T *side, uint8_t *gone) { \
        T *x1 = side, *y1 = side + n, *x2 = side + 2 * n, *y2 = side + 3 * n, *area = side + 4 * n; \
        for (int64_t i = 0; i < n; i++) { \
            x1[i] = boxes[4 * i]; \
            y1[i] = boxes[4 * i + 1]; \
            x2[i] = boxes[4 * i + 2]; \
            y2[i] = boxes[4 * i + 3]; \
            area[i] = (x2[i] - x1[i]) * (y2[i] - y1[i]); \
        } \
        for (int64_t i = 0; i < n; i++) { \
            if (gone[i]) continue; \
            const T left = x1[i], top = y1[i], right = x2[i], bottom = y2[i], own = area[i]; \
            for (int64_t j = i + 1; j < n; j++) { \
                const T w = (right < x2[j] ? right : x2[j]) - (left > x1[j] ? left : x1[j]); \
                const T h = (bottom < y2[j] ? bottom : y2[j]) - (top > y1[j] ? top : y1[j]); \
                const T both = (w > 0 ? w : 0) * (h > 0 ? h : 0); \
                gone[j] |= (double)(both / (own + area[j] - both)) > threshold; \
            } \
        } \
    }
SUPPRESS(f32, float)
SUPPRESS(f64, double)

/* order is (n,) int64, the boxes' places by falling score; the result holds those of them that are kept. */
msa_tensor *nms_kept_cpu(msa_tensor *boxes, msa_tensor *order, double iou_threshold) {
    const msa_dtype type = (msa_dtype)boxes->dtype;
    const int64_t n = boxes->sizes[0];
    msa_auto msa_tensor *plain = msa_contiguous_values(boxes), *places = msa_contiguous_values(order);
    msa_auto_free void *side = msa_malloc((size_t)(5 * n + 1) * msa_dtype_size(type));
    msa_auto_free uint8_t *gone = msa_calloc((size_t)n + 1, 1);
    if (!plain || !places || !side || !gone) return NULL;
    if (n && type == MSA_FLOAT64) f64_suppress(n, msa_data(plain), iou_threshold, side, gone);
    else if (n) f32_suppress(n, msa_data(plain), iou_threshold, side, gone);
    int64_t count = 0;
    for (int64_t i = 0; i < n; i++) count += !gone[i];
    msa_auto msa_tensor *out = msa_tensor_new(MSA_INTS(count), MSA_INT64);
    if (!out) return NULL;
    int64_t *to = out->storage->data;
    const int64_t *from = n ? msa_data(places) : NULL;
    for (int64_t i = 0; i < n; i++)
        if (!gone[i]) *to++ = from[i];
    return msa_take(out);
}
