/* The loops of deformable convolution for one type: deform.c includes this file once with T and N(name) for each. */

/* A point between four elements: positions are y * width + x, and those outside the image have `inside` false. */
typedef struct {
    int64_t at[4];
    bool inside[4], any;
    T dy, dx; /* from the upper left one */
} N(point);

static inline N(point) N(place_point)(const msa_deform *d, const T *offset, int64_t tap, int64_t place) {
    const int64_t oy = place / d->out_width, ox = place % d->out_width, ky = tap / d->kernel_width, kx = tap % d->kernel_width;
    const T y = (T)(oy * d->stride[0] - d->padding[0] + ky * d->dilation[0]) + offset[2 * tap * d->places + place];
    const T x = (T)(ox * d->stride[1] - d->padding[1] + kx * d->dilation[1]) + offset[(2 * tap + 1) * d->places + place];
    N(point) p = {.any = y > -1 && x > -1 && y < (T)d->height && x < (T)d->width};
    /* on the border's outer line the value is 0, its slope is not */
    if (!(y >= -1 && x >= -1 && y <= (T)d->height && x <= (T)d->width)) return p;
    const T top = N(floor)(y), left = N(floor)(x);
    const int64_t iy = (int64_t)top, ix = (int64_t)left;
    p.dy = y - top;
    p.dx = x - left;
    for (int n = 0; n < 4; n++) {
        const int64_t py = iy + n / 2, px = ix + n % 2;
        p.inside[n] = py >= 0 && py < d->height && px >= 0 && px < d->width;
        p.at[n] = p.inside[n] ? py * d->width + px : 0;
    }
    return p;
}

static inline void N(weights_of)(const N(point) *p, T scale, T *weight) {
    const T ey = 1 - p->dy, ex = 1 - p->dx;
    const T plain[4] = {ey * ex, ey * p->dx, p->dy * ex, p->dy * p->dx};
    for (int n = 0; n < 4; n++) weight[n] = p->any && p->inside[n] ? plain[n] * scale : 0;
}

MSA_VECTOR static void N(mix)(int64_t n, const T *restrict image, const int64_t *at, int64_t channels, const T *weight, T *restrict out) {
    const T *a = image + at[0] * channels, *b = image + at[1] * channels, *c = image + at[2] * channels, *d = image + at[3] * channels;
    const T wa = weight[0], wb = weight[1], wc = weight[2], wd = weight[3];
    for (int64_t k = 0; k < n; k++) out[k] = wa * a[k] + wb * b[k] + wc * c[k] + wd * d[k];
}

/* Sums of a column's gradient with each of the four neighbours. */
MSA_VECTOR static void N(project)(int64_t n, const T *restrict image, const int64_t *at, int64_t channels, const T *restrict grad, T *sums) {
    for (int i = 0; i < 4; i++) {
        const T *row = image + at[i] * channels;
        T sum = 0;
        for (int64_t k = 0; k < n; k++) sum += grad[k] * row[k];
        sums[i] += sum;
    }
}

MSA_VECTOR static void N(spread)(int64_t n, T *image, const int64_t *at, int64_t channels, const T *weight, const T *restrict grad) {
    for (int i = 0; i < 4; i++) {
        T *row = image + at[i] * channels;
        const T w = weight[i];
        for (int64_t k = 0; k < n; k++) row[k] += w * grad[k];
    }
}

/* Channels [c, end) that share group and offsets: where the run that begins at c ends. */
static inline int64_t N(run_end)(const msa_deform *d, int64_t c) {
    const int64_t per_group = d->channels / d->groups, per_offset = d->channels / d->offset_groups;
    const int64_t a = (c / per_group + 1) * per_group, b = (c / per_offset + 1) * per_offset;
    return a < b ? a : b;
}

/* Where channel c of a tap lies in the columns, (groups, N * places, taps, channels of a group). */
static inline int64_t N(column_of)(const msa_deform *d, int64_t row, int64_t tap, int64_t c) {
    const int64_t per_group = d->channels / d->groups;
    return ((c / per_group * d->images * d->places + row) * d->taps + tap) * per_group + c % per_group;
}

/* image is (N, height, width, channels); offset (N, offset_groups, taps, 2, places); mask (N, offset_groups, taps, places) or NULL. */
static void N(columns)(const msa_deform *d, const T *image, const T *offset, const T *mask, T *columns) {
    _Pragma("omp parallel for num_threads(d->threads)") for (int64_t row = 0; row < d->images * d->places; row++) {
        const int64_t n = row / d->places, place = row % d->places, per_offset = d->channels / d->offset_groups;
        const T *own = image + n * d->height * d->width * d->channels;
        for (int64_t g = 0; g < d->offset_groups; g++) {
            const int64_t set = (n * d->offset_groups + g) * d->taps * d->places;
            for (int64_t tap = 0; tap < d->taps; tap++) {
                const N(point) p = N(place_point)(d, offset + 2 * set, tap, place);
                T weight[4];
                N(weights_of)(&p, 1, weight);
                const T scale = mask ? mask[set + tap * d->places + place] : 1;
                for (int i = 0; i < 4; i++) weight[i] *= scale;
                for (int64_t c = g * per_offset; c < (g + 1) * per_offset;) {
                    const int64_t end = N(run_end)(d, c);
                    N(mix)(end - c, own + c, p.at, d->channels, weight, columns + N(column_of)(d, row, tap, c));
                    c = end;
                }
            }
        }
    }
}

/* Gradients towards offset and mask, either of which may be NULL. */
static void N(place_gradients)(const msa_deform *d, const T *grad, const T *image, const T *offset, const T *mask, T *grad_offset, T *grad_mask) {
    _Pragma("omp parallel for num_threads(d->threads)") for (int64_t row = 0; row < d->images * d->places; row++) {
        const int64_t n = row / d->places, place = row % d->places, per_offset = d->channels / d->offset_groups;
        const T *own = image + n * d->height * d->width * d->channels;
        for (int64_t g = 0; g < d->offset_groups; g++) {
            const int64_t set = (n * d->offset_groups + g) * d->taps * d->places;
            for (int64_t tap = 0; tap < d->taps; tap++) {
                const N(point) p = N(place_point)(d, offset + 2 * set, tap, place);
                T v[4] = {0}, weight[4];
                for (int64_t c = g * per_offset; c < (g + 1) * per_offset;) {
                    const int64_t end = N(run_end)(d, c);
                    N(project)(end - c, own + c, p.at, d->channels, grad + N(column_of)(d, row, tap, c), v);
                    c = end;
                }
                for (int i = 0; i < 4; i++)
                    if (!p.inside[i]) v[i] = 0;
                const int64_t at = set + tap * d->places + place;
                if (grad_mask) {
                    N(weights_of)(&p, 1, weight);
                    grad_mask[at] = weight[0] * v[0] + weight[1] * v[1] + weight[2] * v[2] + weight[3] * v[3];
                }
                if (grad_offset) {
                    const T scale = mask ? mask[at] : 1;
                    T *to = grad_offset + 2 * set + 2 * tap * d->places + place;
                    to[0] = scale * (p.dx * (v[3] - v[1]) + (1 - p.dx) * (v[2] - v[0]));
                    to[d->places] = scale * (p.dy * (v[3] - v[2]) + (1 - p.dy) * (v[1] - v[0]));
                }
            }
        }
    }
}

/* The gradient towards the image, which the caller has cleared: threads share out the channels, so that no two add to one element. */
static void N(image_gradient)(const msa_deform *d, const T *grad, const T *offset, const T *mask, T *grad_image) {
    const int64_t per_offset = d->channels / d->offset_groups;
    _Pragma("omp parallel for num_threads(d->threads)") for (int t = 0; t < d->threads; t++) {
        int64_t begin, end;
        msa_share(d->channels, d->threads, t, &begin, &end);
        for (int64_t row = 0; row < d->images * d->places && begin < end; row++) {
            const int64_t n = row / d->places, place = row % d->places;
            T *own = grad_image + n * d->height * d->width * d->channels;
            for (int64_t g = begin / per_offset; g <= (end - 1) / per_offset; g++) {
                const int64_t set = (n * d->offset_groups + g) * d->taps * d->places;
                for (int64_t tap = 0; tap < d->taps; tap++) {
                    const N(point) p = N(place_point)(d, offset + 2 * set, tap, place);
                    T weight[4];
                    N(weights_of)(&p, mask ? mask[set + tap * d->places + place] : 1, weight);
                    int64_t c = g * per_offset > begin ? g * per_offset : begin;
                    const int64_t last = (g + 1) * per_offset < end ? (g + 1) * per_offset : end;
                    while (c < last) {
                        const int64_t whole = N(run_end)(d, c), stop = whole < last ? whole : last;
                        N(spread)(stop - c, own + c, p.at, d->channels, weight, grad + N(column_of)(d, row, tap, c));
                        c = stop;
                    }
                }
            }
        }
    }
}
