/* The loops over regions of interest for one type: regions.c includes this file once with T and N(name) for each. */

/* A sample between four neighbours: their positions in a plane (y * width + x) and weights. */
typedef struct {
    int64_t at[4];
    T weight[4];
} N(sample);

/* false: the point lies more than one element outside, where everything is 0. */
static inline bool N(place_sample)(int64_t height, int64_t width, T y, T x, N(sample) *s) {
    if (!(y >= -1 && y <= (T)height && x >= -1 && x <= (T)width)) return false;
    if (y < 0) y = 0;
    if (x < 0) x = 0;
    int64_t top = (int64_t)y, left = (int64_t)x, bottom = top + 1, right = left + 1;
    if (top >= height - 1) {
        top = bottom = height - 1;
        y = (T)top;
    }
    if (left >= width - 1) {
        left = right = width - 1;
        x = (T)left;
    }
    const T dy = y - (T)top, dx = x - (T)left, ey = 1 - dy, ex = 1 - dx;
    *s = (N(sample)){{top * width + left, top * width + right, bottom * width + left, bottom * width + right}, {ey * ex, ey * dx, dy * ex, dy * dx}};
    return true;
}

/* How the bins of a region are sampled. */
typedef struct {
    T top, left, bin_height, bin_width;
    int64_t rows, columns; /* of samples in a bin */
} N(grid);

static inline int64_t N(samples_along)(T length, int64_t bins, int64_t sampling_ratio) {
    if (sampling_ratio > 0) return sampling_ratio;
    const T wanted = N(ceil)(length / (T)bins);
    return wanted >= 0 && wanted < (T)INT32_MAX ? (int64_t)wanted : 0; /* not for NaN */
}

/* roi is (image, x1, y1, x2, y2). */
static N(grid) N(make_grid)(const T *roi, const msa_regions *r, T shift, bool at_least_one) {
    const T scale = (T)r->scale;
    N(grid) g = {.left = roi[1] * scale - shift, .top = roi[2] * scale - shift};
    T width = roi[3] * scale - shift - g.left, height = roi[4] * scale - shift - g.top;
    if (at_least_one) { /* regions that are too small or malformed */
        if (!(width > 1)) width = 1;
        if (!(height > 1)) height = 1;
    }
    g.bin_height = height / (T)r->bins_high;
    g.bin_width = width / (T)r->bins_wide;
    g.rows = N(samples_along)(height, r->bins_high, r->sampling_ratio);
    g.columns = N(samples_along)(width, r->bins_wide, r->sampling_ratio);
    return g;
}

static inline bool N(sample_of_bin)(const msa_regions *r, const N(grid) *g, int64_t bin_y, int64_t bin_x, int64_t i, int64_t j, N(sample) *s) {
    const T y = g->top + (T)bin_y * g->bin_height + ((T)i + (T)0.5) * g->bin_height / (T)g->rows;
    const T x = g->left + (T)bin_x * g->bin_width + ((T)j + (T)0.5) * g->bin_width / (T)g->columns;
    return N(place_sample)(r->height, r->width, y, x, s);
}

/* ---- roi_align: channels last, `image` is (height, width, channels) --------------------------------------------------- */

MSA_VECTOR static void N(add_sample)(int64_t c, const T *restrict image, const int64_t *at, const T *weight, T *restrict sum) {
    const T *a = image + at[0] * c, *b = image + at[1] * c, *d = image + at[2] * c, *e = image + at[3] * c;
    const T wa = weight[0], wb = weight[1], wd = weight[2], we = weight[3];
    for (int64_t k = 0; k < c; k++) sum[k] += wa * a[k] + wb * b[k] + wd * d[k] + we * e[k];
}

MSA_VECTOR static void N(divide)(int64_t c, T *sum, T count) {
    for (int64_t k = 0; k < c; k++) sum[k] /= count;
}

static void N(align)(const msa_regions *r, const T *input, const T *rois, T *out) {
    const int64_t c = r->channels, plane = r->height * r->width * c;
    _Pragma("omp parallel for schedule(dynamic, 1) num_threads(r->threads)") for (int64_t k = 0; k < r->count; k++) {
        const T *roi = rois + 5 * k, *image = input + (int64_t)roi[0] * plane;
        const N(grid) g = N(make_grid)(roi, r, r->shift ? (T)0.5 : 0, !r->shift);
        const int64_t samples = g.rows * g.columns;
        T *bin = out + k * r->bins_high * r->bins_wide * c;
        for (int64_t y = 0; y < r->bins_high; y++)
            for (int64_t x = 0; x < r->bins_wide; x++, bin += c) {
                memset(bin, 0, sizeof(T) * (size_t)c);
                N(sample) s;
                for (int64_t i = 0; i < g.rows; i++)
                    for (int64_t j = 0; j < g.columns; j++)
                        if (N(sample_of_bin)(r, &g, y, x, i, j, &s)) N(add_sample)(c, image, s.at, s.weight, bin);
                N(divide)(c, bin, (T)(samples > 1 ? samples : 1));
            }
    }
}

/* Channels [begin, end) of one sample's gradient. */
MSA_VECTOR static void N(spread_sample)(int64_t c, int64_t begin, int64_t end, T *image, const int64_t *at, const T *weight, const T *grad, T count) {
    for (int n = 0; n < 4; n++) {
        T *row = image + at[n] * c;
        const T w = weight[n];
        for (int64_t k = begin; k < end; k++) row[k] += grad[k] * w / count;
    }
}

/* Threads share out the channels, so that no two add to one element. grad_in is cleared by the caller. */
static void N(align_back)(const msa_regions *r, const T *grad, const T *rois, T *grad_in) {
    const int64_t c = r->channels, plane = r->height * r->width * c;
    _Pragma("omp parallel for num_threads(r->threads)") for (int t = 0; t < r->threads; t++) {
        int64_t begin, end;
        msa_share(c, r->threads, t, &begin, &end);
        const T *bin = grad;
        for (int64_t k = 0; k < r->count; k++) {
            const T *roi = rois + 5 * k;
            T *image = grad_in + (int64_t)roi[0] * plane;
            const N(grid) g = N(make_grid)(roi, r, r->shift ? (T)0.5 : 0, !r->shift);
            for (int64_t y = 0; y < r->bins_high; y++)
                for (int64_t x = 0; x < r->bins_wide; x++, bin += c) {
                    N(sample) s;
                    for (int64_t i = 0; i < g.rows; i++)
                        for (int64_t j = 0; j < g.columns; j++)
                            if (N(sample_of_bin)(r, &g, y, x, i, j, &s))
                                N(spread_sample)(c, begin, end, image, s.at, s.weight, bin, (T)(g.rows * g.columns));
                }
        }
    }
}

/* ---- bins of whole elements ------------------------------------------------------------------------------------------ */

/* [low, high) of bin i out of `bins` over `length` elements from `start`, kept inside [0, most]. */
static inline void N(bounds)(int64_t start, T length, int64_t bins, int64_t i, int64_t most, int64_t *low, int64_t *high) {
    const T size = length / (T)bins;
    const int64_t from = start + (int64_t)N(floor)((T)i * size), to = start + (int64_t)N(ceil)((T)(i + 1) * size);
    *low = from < 0 ? 0 : from > most ? most : from;
    *high = to < 0 ? 0 : to > most ? most : to;
}

static inline int64_t N(rounded)(T v) {
    const double whole = round((double)v); /* halves go away from zero */
    return whole > -1e9 && whole < 1e9 ? (int64_t)whole : whole > 0 ? 1000000000 : -1000000000;
}

/* Largest values: channels last. places are y * width + x, -1 for an empty bin, whose value is 0. */
static void N(pool)(const msa_regions *r, const T *input, const T *rois, T *out, int32_t *places) {
    const int64_t c = r->channels, plane = r->height * r->width * c;
    const T scale = (T)r->scale;
    _Pragma("omp parallel for schedule(dynamic, 1) num_threads(r->threads)") for (int64_t k = 0; k < r->count; k++) {
        const T *roi = rois + 5 * k, *image = input + (int64_t)roi[0] * plane;
        const int64_t left = N(rounded)(roi[1] * scale), top = N(rounded)(roi[2] * scale);
        int64_t width = N(rounded)(roi[3] * scale) - left + 1, height = N(rounded)(roi[4] * scale) - top + 1;
        if (width < 1) width = 1;
        if (height < 1) height = 1;
        int64_t at = k * r->bins_high * r->bins_wide * c;
        for (int64_t y = 0; y < r->bins_high; y++)
            for (int64_t x = 0; x < r->bins_wide; x++, at += c) {
                int64_t y0, y1, x0, x1;
                N(bounds)(top, (T)height, r->bins_high, y, r->height, &y0, &y1);
                N(bounds)(left, (T)width, r->bins_wide, x, r->width, &x0, &x1);
                const T least = y1 <= y0 || x1 <= x0 ? 0 : -(T)FLT_MAX;
                T *best = out + at;
                int32_t *place = places + at;
                for (int64_t i = 0; i < c; i++) {
                    best[i] = least;
                    place[i] = -1;
                }
                for (int64_t v = y0; v < y1; v++)
                    for (int64_t u = x0; u < x1; u++) {
                        const int32_t position = (int32_t)(v * r->width + u);
                        const T *row = image + position * c;
                        for (int64_t i = 0; i < c; i++)
                            if (row[i] > best[i]) {
                                best[i] = row[i];
                                place[i] = position;
                            }
                    }
            }
    }
}

/* Towards the input (add), or the values at the places (take): `image` is the input's side, `bins` the regions'. */
static void N(pool_places)(const msa_regions *r, T *input, const T *rois, T *bins, const int32_t *places, bool take) {
    const int64_t c = r->channels, plane = r->height * r->width * c, size = r->bins_high * r->bins_wide * c;
    for (int64_t k = 0; k < r->count; k++) {
        T *image = input + (int64_t)rois[5 * k] * plane;
        for (int64_t i = k * size; i < (k + 1) * size; i++) {
            if (take) bins[i] = places[i] < 0 ? 0 : image[places[i] * c + i % c];
            else if (places[i] >= 0) image[places[i] * c + i % c] += bins[i];
        }
    }
}

/* ---- position-sensitive: every bin has channels of its own; planes in plain order. Forward fills `bins`, back adds to `input`;
 * threads share out the channels of the result. ------------------------------------------------------------------------ */

static void N(ps_align)(const msa_regions *r, T *input, const T *rois, T *bins, bool back) {
    const int64_t per_region = r->bins_high * r->bins_wide, plane = r->height * r->width, channels_out = r->channels / (per_region ? per_region : 1);
    _Pragma("omp parallel for num_threads(r->threads)") for (int64_t c = 0; c < channels_out; c++)
        for (int64_t k = 0; k < r->count; k++) {
            const T *roi = rois + 5 * k;
            const N(grid) g = N(make_grid)(roi, r, (T)0.5, false);
            const T count = (T)(g.rows * g.columns);
            for (int64_t b = 0; b < per_region; b++) {
                T *image = input + ((int64_t)roi[0] * r->channels + c * per_region + b) * plane, *value = bins + (k * channels_out + c) * per_region + b, sum = 0;
                N(sample) s;
                for (int64_t i = 0; i < g.rows; i++)
                    for (int64_t j = 0; j < g.columns; j++) {
                        if (!N(sample_of_bin)(r, &g, b / r->bins_wide, b % r->bins_wide, i, j, &s)) continue;
                        if (back)
                            for (int n = 0; n < 4; n++) image[s.at[n]] += *value * s.weight[n] / count;
                        else sum += s.weight[0] * image[s.at[0]] + s.weight[1] * image[s.at[1]] + s.weight[2] * image[s.at[2]] + s.weight[3] * image[s.at[3]];
                    }
                if (!back) *value = sum / count;
            }
        }
}

/* Means over whole elements. The last row and column never count, as in PyTorch's. */
static void N(ps_pool)(const msa_regions *r, T *input, const T *rois, T *bins, bool back) {
    const int64_t per_region = r->bins_high * r->bins_wide, plane = r->height * r->width, channels_out = r->channels / (per_region ? per_region : 1);
    const T scale = (T)r->scale;
    _Pragma("omp parallel for num_threads(r->threads)") for (int64_t c = 0; c < channels_out; c++)
        for (int64_t k = 0; k < r->count; k++) {
            const T *roi = rois + 5 * k;
            const int64_t left = N(rounded)(roi[1] * scale), top = N(rounded)(roi[2] * scale);
            int64_t width = N(rounded)(roi[3] * scale) - left, height = N(rounded)(roi[4] * scale) - top;
            if (width < 1) width = 1;
            if (height < 1) height = 1;
            for (int64_t b = 0; b < per_region; b++) {
                T *image = input + ((int64_t)roi[0] * r->channels + c * per_region + b) * plane, *value = bins + (k * channels_out + c) * per_region + b, sum = 0;
                int64_t y0, y1, x0, x1;
                N(bounds)(top, (T)height, r->bins_high, b / r->bins_wide, r->height - 1, &y0, &y1);
                N(bounds)(left, (T)width, r->bins_wide, b % r->bins_wide, r->width - 1, &x0, &x1);
                const bool empty = y1 <= y0 || x1 <= x0;
                const T area = empty ? 1 : (T)((y1 - y0) * (x1 - x0)), share = back && !empty ? *value / area : 0;
                for (int64_t y = y0; y < y1; y++)
                    for (int64_t x = x0; x < x1; x++) {
                        if (back) image[y * r->width + x] += share;
                        else sum += image[y * r->width + x];
                    }
                if (!back) *value = sum / area;
            }
        }
}
