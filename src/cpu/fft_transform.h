/* The discrete Fourier transform of several lines at once, for one real type. fft.c includes it for float and for double,
 * with REAL and NAME(x) defined; there is no guard.
 *
 * Lines lie as planes: element k of line l is re[k * lanes + l] and im[k * lanes + l], so that innermost loops run over lines
 * and finished stages, whatever the length. Lengths whose prime factors are small go through stages that reorder as they
 * compute (Stockham's form; C. Van Loan, "Computational Frameworks for the Fast Fourier Transform", 1992); other lengths are a
 * convolution with a chirp (L. Bluestein, 1970) done by transforms of a longer, smooth length. Only exp(-2 pi i jk / n) is
 * computed: the other sign is the same with the two planes exchanged. */

typedef struct {
    REAL *re, *im;
} NAME(planes);

typedef struct NAME(plan) {
    int64_t n;
    int stages;
    int radix[MSA_FFT_STAGES];
    REAL *twiddles[MSA_FFT_STAGES]; /* exp(-2 pi i p k / (r m)): real parts [k - 1][p], then imaginary ones */
    REAL *roots;                    /* chirp: exp(-i pi k^2 / n); real lines: exp(-2 pi i k / n); both as two rows */
    REAL *filter;                   /* chirp: the transform of its conjugate over the length of `inner`, divided by it */
    struct NAME(plan) *inner;       /* chirp: the longer length; real lines: half the length */
} NAME(plan);

static void NAME(plan_free)(void *pointer) {
    NAME(plan) *plan = pointer;
    if (!plan) return;
    for (int i = 0; i < plan->stages; i++) free(plan->twiddles[i]);
    free(plan->roots);
    free(plan->filter);
    NAME(plan_free)(plan->inner);
    free(plan);
}

static inline __attribute__((always_inline)) void NAME(turn)(REAL re, REAL im, REAL wr, REAL wi, REAL *yr, REAL *yi) {
    *yr = re * wr - im * wi;
    *yi = re * wi + im * wr;
}

/* One butterfly of each radix: x's r values are a apart, y's b. */
static inline __attribute__((always_inline)) void NAME(two)(const REAL *xr, const REAL *xi, int64_t a, REAL *yr, REAL *yi, int64_t b,
                                                            const REAL *wr, const REAL *wi) {
    REAL r0 = xr[0], i0 = xi[0], r1 = xr[a], i1 = xi[a];
    yr[0] = r0 + r1;
    yi[0] = i0 + i1;
    NAME(turn)(r0 - r1, i0 - i1, wr[0], wi[0], yr + b, yi + b);
}

static inline __attribute__((always_inline)) void NAME(three)(const REAL *xr, const REAL *xi, int64_t a, REAL *yr, REAL *yi, int64_t b,
                                                              const REAL *wr, const REAL *wi) {
    const REAL sine = (REAL)0.86602540378443864676;
    REAL sr = xr[a] + xr[2 * a], si = xi[a] + xi[2 * a];
    REAL dr = sine * (xr[a] - xr[2 * a]), di = sine * (xi[a] - xi[2 * a]);
    REAL r0 = xr[0], i0 = xi[0], mr = r0 - (REAL)0.5 * sr, mi = i0 - (REAL)0.5 * si;
    yr[0] = r0 + sr;
    yi[0] = i0 + si;
    NAME(turn)(mr + di, mi - dr, wr[0], wi[0], yr + b, yi + b);
    NAME(turn)(mr - di, mi + dr, wr[1], wi[1], yr + 2 * b, yi + 2 * b);
}

static inline __attribute__((always_inline)) void NAME(four)(const REAL *xr, const REAL *xi, int64_t a, REAL *yr, REAL *yi, int64_t b,
                                                             const REAL *wr, const REAL *wi) {
    REAL r02 = xr[0] + xr[2 * a], i02 = xi[0] + xi[2 * a], d02r = xr[0] - xr[2 * a], d02i = xi[0] - xi[2 * a];
    REAL r13 = xr[a] + xr[3 * a], i13 = xi[a] + xi[3 * a], d13r = xr[a] - xr[3 * a], d13i = xi[a] - xi[3 * a];
    yr[0] = r02 + r13;
    yi[0] = i02 + i13;
    NAME(turn)(d02r + d13i, d02i - d13r, wr[0], wi[0], yr + b, yi + b);
    NAME(turn)(r02 - r13, i02 - i13, wr[1], wi[1], yr + 2 * b, yi + 2 * b);
    NAME(turn)(d02r - d13i, d02i + d13r, wr[2], wi[2], yr + 3 * b, yi + 3 * b);
}

static inline __attribute__((always_inline)) void NAME(five)(const REAL *xr, const REAL *xi, int64_t a, REAL *yr, REAL *yi, int64_t b,
                                                             const REAL *wr, const REAL *wi) {
    const REAL c1 = (REAL)0.30901699437494742410, c2 = (REAL)-0.80901699437494742410;
    const REAL s1 = (REAL)0.95105651629515357212, s2 = (REAL)0.58778525229247312917;
    REAL r0 = xr[0], i0 = xi[0];
    REAL p1r = xr[a] + xr[4 * a], p1i = xi[a] + xi[4 * a], m1r = xr[a] - xr[4 * a], m1i = xi[a] - xi[4 * a];
    REAL p2r = xr[2 * a] + xr[3 * a], p2i = xi[2 * a] + xi[3 * a], m2r = xr[2 * a] - xr[3 * a], m2i = xi[2 * a] - xi[3 * a];
    REAL e1r = r0 + c1 * p1r + c2 * p2r, e1i = i0 + c1 * p1i + c2 * p2i;
    REAL e2r = r0 + c2 * p1r + c1 * p2r, e2i = i0 + c2 * p1i + c1 * p2i;
    REAL o1r = s1 * m1r + s2 * m2r, o1i = s1 * m1i + s2 * m2i;
    REAL o2r = s2 * m1r - s1 * m2r, o2i = s2 * m1i - s1 * m2i;
    yr[0] = r0 + p1r + p2r;
    yi[0] = i0 + p1i + p2i;
    NAME(turn)(e1r + o1i, e1i - o1r, wr[0], wi[0], yr + b, yi + b);
    NAME(turn)(e2r + o2i, e2i - o2r, wr[1], wi[1], yr + 2 * b, yi + 2 * b);
    NAME(turn)(e2r - o2i, e2i + o2r, wr[2], wi[2], yr + 3 * b, yi + 3 * b);
    NAME(turn)(e1r - o1i, e1i + o1r, wr[3], wi[3], yr + 4 * b, yi + 4 * b);
}

/* A stage of radix r: x is (r, m, s), y is (m, r, s). With s == 1 the vector loop is the one over m. */
#define MSA_FFT_STAGE(BUTTERFLY, R) \
    MSA_VECTOR static void NAME(BUTTERFLY##_stage)(const REAL *restrict xr, const REAL *restrict xi, REAL *restrict yr, \
                                                   REAL *restrict yi, const REAL *restrict w, int64_t m, int64_t s) { \
        if (s == 1) { \
            _Pragma("GCC ivdep") \
            for (int64_t p = 0; p < m; p++) { \
                REAL wr[R - 1], wi[R - 1]; \
                for (int k = 0; k < R - 1; k++) { \
                    wr[k] = w[k * m + p]; \
                    wi[k] = w[(k + R - 1) * m + p]; \
                } \
                NAME(BUTTERFLY)(xr + p, xi + p, m, yr + R * p, yi + R * p, 1, wr, wi); \
            } \
            return; \
        } \
        for (int64_t p = 0; p < m; p++) { \
            REAL wr[R - 1], wi[R - 1]; \
            for (int k = 0; k < R - 1; k++) { \
                wr[k] = w[k * m + p]; \
                wi[k] = w[(k + R - 1) * m + p]; \
            } \
            const REAL *ur = xr + p * s, *ui = xi + p * s; \
            REAL *vr = yr + R * p * s, *vi = yi + R * p * s; \
            _Pragma("GCC ivdep") \
            for (int64_t q = 0; q < s; q++) NAME(BUTTERFLY)(ur + q, ui + q, m * s, vr + q, vi + q, s, wr, wi); \
        } \
    }
MSA_FFT_STAGE(two, 2)
MSA_FFT_STAGE(three, 3)
MSA_FFT_STAGE(four, 4)
MSA_FFT_STAGE(five, 5)
#undef MSA_FFT_STAGE

enum { NAME(WIDTH) = 64 / sizeof(REAL) };

/* An odd prime radix by its definition, the two halves of the spectrum sharing sums and differences. */
MSA_VECTOR static void NAME(prime_stage)(const REAL *restrict xr, const REAL *restrict xi, REAL *restrict yr, REAL *restrict yi,
                                         const REAL *restrict w, int r, int64_t m, int64_t s) {
    enum { V = NAME(WIDTH), H = MSA_FFT_PRIME / 2 + 1 };
    REAL cosine[MSA_FFT_PRIME], sine[MSA_FFT_PRIME];
    for (int j = 0; j < r; j++) {
        double c, d;
        unit_root(j, r, &c, &d);
        cosine[j] = (REAL)c;
        sine[j] = (REAL)d;
    }
    int half = r / 2;
    REAL rows[4][H][V]; /* sums and differences of x_j and x_(r-j), real and imaginary; x_0 where the sums have no row 0 */
    for (int64_t p = 0; p < m; p++)
        for (int64_t q = 0; q < s; q += V) {
            int width = s - q < V ? (int)(s - q) : V;
            if (width < V) memset(rows, 0, sizeof rows); /* the lanes that nothing is read for */
            REAL(*pr)[V] = rows[0], (*pi)[V] = rows[1], (*mr)[V] = rows[2], (*mi)[V] = rows[3], *r0 = rows[0][0], *i0 = rows[1][0];
            const REAL *ur = xr + p * s + q, *ui = xi + p * s + q;
            REAL *vr = yr + p * r * s + q, *vi = yi + p * r * s + q;
            for (int v = 0; v < width; v++) {
                r0[v] = ur[v];
                i0[v] = ui[v];
            }
            for (int j = 1; j <= half; j++) {
                const REAL *ar = ur + j * m * s, *ai = ui + j * m * s, *br = ur + (r - j) * m * s, *bi = ui + (r - j) * m * s;
                for (int v = 0; v < width; v++) {
                    pr[j][v] = ar[v] + br[v];
                    pi[j][v] = ai[v] + bi[v];
                    mr[j][v] = ar[v] - br[v];
                    mi[j][v] = ai[v] - bi[v];
                }
            }
            REAL tr[V], ti[V];
            memcpy(tr, r0, sizeof tr);
            memcpy(ti, i0, sizeof ti);
            for (int j = 1; j <= half; j++)
                for (int v = 0; v < V; v++) {
                    tr[v] += pr[j][v];
                    ti[v] += pi[j][v];
                }
            memcpy(vr, tr, sizeof(REAL) * (size_t)width);
            memcpy(vi, ti, sizeof(REAL) * (size_t)width);
            for (int k = 1; k <= half; k++) {
                REAL er[V], ei[V], or_[V] = {0}, oi[V] = {0};
                memcpy(er, r0, sizeof er);
                memcpy(ei, i0, sizeof ei);
                for (int j = 1; j <= half; j++) {
                    REAL c = cosine[j * k % r], d = -sine[j * k % r];
                    for (int v = 0; v < V; v++) {
                        er[v] += c * pr[j][v];
                        ei[v] += c * pi[j][v];
                        or_[v] += d * mr[j][v];
                        oi[v] += d * mi[j][v];
                    }
                }
                REAL wr = w[(k - 1) * m + p], wi = w[(k + r - 2) * m + p];
                REAL zr = w[(r - k - 1) * m + p], zi = w[(2 * r - k - 2) * m + p];
                for (int v = 0; v < width; v++) {
                    NAME(turn)(er[v] + oi[v], ei[v] - or_[v], wr, wi, &vr[k * s + v], &vi[k * s + v]);
                    NAME(turn)(er[v] - oi[v], ei[v] + or_[v], zr, zi, &vr[(r - k) * s + v], &vi[(r - k) * s + v]);
                }
            }
        }
}

/* y = a * b elementwise, b's rows being numbers of their own: lines times a table. y may be a. */
MSA_VECTOR static void NAME(multiply_rows)(NAME(planes) y, NAME(planes) a, const REAL *b, int64_t b_plane, int64_t n, int64_t lanes) {
    for (int64_t k = 0; k < n; k++) {
        REAL wr = b[k], wi = b[b_plane + k];
        for (int64_t l = 0; l < lanes; l++) {
            REAL re = a.re[k * lanes + l], im = a.im[k * lanes + l];
            y.re[k * lanes + l] = re * wr - im * wi;
            y.im[k * lanes + l] = re * wi + im * wr;
        }
    }
}

/* Elements that `run` wants as work for one lane, counted in REAL. */
static int64_t NAME(work)(const NAME(plan) *plan) { return plan->filter ? 4 * plan->inner->n : 2 * plan->n; }

/* Transforms the lines in x; the result is in x or in work. */
static NAME(planes) NAME(run)(const NAME(plan) *plan, NAME(planes) x, REAL *work, int64_t lanes) {
    int64_t n = plan->n;
    if (plan->filter) {
        int64_t longer = plan->inner->n;
        NAME(planes) a = {work, work + longer * lanes};
        NAME(multiply_rows)(a, x, plan->roots, n, n, lanes);
        memset(a.re + n * lanes, 0, sizeof(REAL) * (size_t)((longer - n) * lanes));
        memset(a.im + n * lanes, 0, sizeof(REAL) * (size_t)((longer - n) * lanes));
        a = NAME(run)(plan->inner, a, work + 2 * longer * lanes, lanes);
        NAME(multiply_rows)(a, a, plan->filter, longer, longer, lanes);
        REAL *other = a.re == work ? work + 2 * longer * lanes : work;
        NAME(planes) back = NAME(run)(plan->inner, (NAME(planes)){a.im, a.re}, other, lanes);
        NAME(multiply_rows)(x, (NAME(planes)){back.im, back.re}, plan->roots, n, n, lanes);
        return x;
    }
    NAME(planes) y = {work, work + n * lanes};
    int64_t s = lanes, m = n;
    for (int i = 0; i < plan->stages; i++) {
        int r = plan->radix[i];
        m /= r;
        const REAL *w = plan->twiddles[i];
        switch (r) {
        case 2: NAME(two_stage)(x.re, x.im, y.re, y.im, w, m, s); break;
        case 3: NAME(three_stage)(x.re, x.im, y.re, y.im, w, m, s); break;
        case 4: NAME(four_stage)(x.re, x.im, y.re, y.im, w, m, s); break;
        case 5: NAME(five_stage)(x.re, x.im, y.re, y.im, w, m, s); break;
        default: NAME(prime_stage)(x.re, x.im, y.re, y.im, w, r, m, s); break;
        }
        s *= r;
        NAME(planes) swap = x;
        x = y;
        y = swap;
    }
    return x;
}

static NAME(plan) *NAME(plan_new)(int64_t n);

/* The stages of a smooth length; the caller has made sure of it. */
static int NAME(plan_stages)(NAME(plan) *plan) {
    int64_t m = plan->n;
    for (int r = 4; m > 1; r = r == 4 ? 2 : r == 2 ? 3 : r + 2)
        while (m % r == 0) {
            m /= r;
            REAL *w = msa_malloc(sizeof(REAL) * 2 * (size_t)(r - 1) * (size_t)m);
            if (!w) return -1;
            plan->twiddles[plan->stages] = w;
            plan->radix[plan->stages++] = r;
            for (int k = 1; k < r; k++)
                for (int64_t p = 0; p < m; p++) {
                    double c, d;
                    unit_root(p * k, r * m, &c, &d);
                    w[(k - 1) * m + p] = (REAL)c;
                    w[(k + r - 2) * m + p] = (REAL)d;
                }
        }
    return 0;
}

/* The chirp and its filter: x_k^ = c_k sum_j (x_j c_j) conj(c_(k-j)), c_k = exp(-i pi k^2 / n). */
static int NAME(plan_chirp)(NAME(plan) *plan) {
    int64_t n = plan->n, longer = smooth_length(2 * n - 1);
    plan->inner = NAME(plan_new)(longer);
    plan->roots = msa_malloc(sizeof(REAL) * 2 * (size_t)n);
    msa_auto_free REAL *buffers = msa_calloc(4 * (size_t)longer, sizeof(REAL));
    plan->filter = msa_malloc(sizeof(REAL) * 2 * (size_t)longer);
    if (!plan->inner || !plan->roots || !buffers || !plan->filter) return -1;
    NAME(planes) h = {buffers, buffers + longer};
    int64_t square = 0; /* k^2 modulo 2n */
    for (int64_t k = 0; k < n; k++) {
        double c, d;
        unit_root(square, 2 * n, &c, &d);
        plan->roots[k] = (REAL)c;
        plan->roots[n + k] = (REAL)d;
        h.re[k] = (REAL)c;
        h.im[k] = (REAL)-d;
        if (k) {
            h.re[longer - k] = h.re[k];
            h.im[longer - k] = h.im[k];
        }
        square = (square + 2 * k + 1) % (2 * n);
    }
    h = NAME(run)(plan->inner, h, buffers + 2 * longer, 1);
    for (int64_t k = 0; k < longer; k++) {
        plan->filter[k] = h.re[k] / (REAL)longer;
        plan->filter[longer + k] = h.im[k] / (REAL)longer;
    }
    return 0;
}

static NAME(plan) *NAME(plan_new)(int64_t n) {
    NAME(plan) *plan = msa_calloc(1, sizeof *plan);
    if (!plan) return NULL;
    plan->n = n;
    if ((is_smooth(n) ? NAME(plan_stages)(plan) : NAME(plan_chirp)(plan)) == 0) return plan;
    NAME(plan_free)(plan);
    return NULL;
}

/* Real lines of even length: a complex transform of half the length, and the roots that join its halves. */
static NAME(plan) *NAME(plan_real)(int64_t n) {
    if (n % 2) return NAME(plan_new)(n);
    NAME(plan) *plan = msa_calloc(1, sizeof *plan);
    if (!plan) return NULL;
    int64_t h = n / 2;
    plan->n = n;
    plan->inner = NAME(plan_new)(h);
    plan->roots = msa_malloc(sizeof(REAL) * 2 * (size_t)(h + 1));
    if (!plan->inner || !plan->roots) {
        NAME(plan_free)(plan);
        return NULL;
    }
    for (int64_t k = 0; k <= h; k++) {
        double c, d;
        unit_root(k, n, &c, &d);
        plan->roots[k] = (REAL)c;
        plan->roots[h + 1 + k] = (REAL)d;
    }
    return plan;
}

/* From the transform z of x[2k] + i x[2k+1] (h = n/2 rows) to that of x, rows 0..h of y. */
MSA_VECTOR static void NAME(join)(const NAME(plan) *plan, NAME(planes) z, NAME(planes) y, int64_t lanes) {
    int64_t h = plan->n / 2;
    for (int64_t l = 0; l < lanes; l++) {
        REAL re = z.re[l], im = z.im[l];
        y.re[l] = re + im;
        y.re[h * lanes + l] = re - im;
        y.im[l] = y.im[h * lanes + l] = 0;
    }
    for (int64_t k = 1; k < h; k++) {
        REAL wr = plan->roots[k], wi = plan->roots[h + 1 + k];
        for (int64_t l = 0; l < lanes; l++) {
            int64_t i = k * lanes + l, j = (h - k) * lanes + l;
            REAL er = z.re[i] + z.re[j], ei = z.im[i] - z.im[j], or_ = z.im[i] + z.im[j], oi = z.re[j] - z.re[i];
            y.re[i] = (REAL)0.5 * (er + or_ * wr - oi * wi);
            y.im[i] = (REAL)0.5 * (ei + or_ * wi + oi * wr);
        }
    }
}

/* The way back: from rows 0..h of y to the h rows whose inverse transform is x[2k] + i x[2k+1]. The imaginary parts of the
 * first and last rows count as zero. */
MSA_VECTOR static void NAME(part)(const NAME(plan) *plan, NAME(planes) y, NAME(planes) z, int64_t lanes) {
    int64_t h = plan->n / 2;
    for (int64_t l = 0; l < lanes; l++) {
        REAL first = y.re[l], last = y.re[h * lanes + l];
        z.re[l] = first + last;
        z.im[l] = first - last;
    }
    for (int64_t k = 1; k < h; k++) {
        REAL wr = plan->roots[k], wi = -plan->roots[h + 1 + k];
        for (int64_t l = 0; l < lanes; l++) {
            int64_t i = k * lanes + l, j = (h - k) * lanes + l;
            REAL dr = y.re[i] - y.re[j], di = y.im[i] + y.im[j];
            z.re[i] = y.re[i] + y.re[j] - (dr * wi + di * wr);
            z.im[i] = y.im[i] - y.im[j] + (dr * wr - di * wi);
        }
    }
}

/* Lines in and out of tensors: `at` holds where each begins, `step` is the distance of its elements, both in elements. */
static void NAME(gather_complex)(NAME(planes) x, const REAL *from, const int64_t *at, int64_t step, int64_t n, int64_t lanes) {
    for (int64_t first = 0; first < n; first += MSA_FFT_BLOCK) {
        int64_t end = first + MSA_FFT_BLOCK < n ? first + MSA_FFT_BLOCK : n;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = first; k < end; k++) {
                const REAL *p = from + 2 * (at[l] + k * step);
                x.re[k * lanes + l] = p[0];
                x.im[k * lanes + l] = p[1];
            }
    }
}

static void NAME(scatter_complex)(REAL *to, NAME(planes) x, const int64_t *at, int64_t step, int64_t n, int64_t lanes, REAL scale) {
    for (int64_t first = 0; first < n; first += MSA_FFT_BLOCK) {
        int64_t end = first + MSA_FFT_BLOCK < n ? first + MSA_FFT_BLOCK : n;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = first; k < end; k++) {
                REAL *p = to + 2 * (at[l] + k * step);
                p[0] = x.re[k * lanes + l] * scale;
                p[1] = x.im[k * lanes + l] * scale;
            }
    }
}

/* n numbers of each line into one plane. */
static void NAME(gather_real)(REAL *x, const REAL *from, const int64_t *at, int64_t step, int64_t n, int64_t lanes) {
    for (int64_t first = 0; first < n; first += MSA_FFT_BLOCK) {
        int64_t end = first + MSA_FFT_BLOCK < n ? first + MSA_FFT_BLOCK : n;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = first; k < end; k++) x[k * lanes + l] = from[at[l] + k * step];
    }
}

static void NAME(scatter_real)(REAL *to, const REAL *x, const int64_t *at, int64_t step, int64_t n, int64_t lanes, REAL scale) {
    for (int64_t first = 0; first < n; first += MSA_FFT_BLOCK) {
        int64_t end = first + MSA_FFT_BLOCK < n ? first + MSA_FFT_BLOCK : n;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = first; k < end; k++) to[at[l] + k * step] = x[k * lanes + l] * scale;
    }
}

/* Numbers of work that the lines of a pass need for each lane. */
static int64_t NAME(pass_work)(const NAME(plan) *plan, msa_fft_kind kind) {
    int64_t n = plan->n;
    if (kind == MSA_FFT_COMPLEX) return 2 * n + NAME(work)(plan);
    if (n % 2) return 2 * n + 2 * (n / 2 + 1) + NAME(work)(plan);
    return n + 2 * (n / 2 + 1) + NAME(work)(plan->inner);
}

/* One group of lines of a pass, start to end. */
static void NAME(group)(const NAME(plan) *plan, const msa_fft_pass *pass, const void *in, void *out, const int64_t *from,
                        const int64_t *to, int64_t lanes, REAL *memory) {
    int64_t n = plan->n, h = n / 2;
    REAL scale = (REAL)pass->scale;
    if (pass->kind == MSA_FFT_COMPLEX) {
        NAME(planes) x = {memory, memory + n * lanes};
        NAME(gather_complex)(pass->forward ? x : (NAME(planes)){x.im, x.re}, in, from, pass->in_step, n, lanes);
        x = NAME(run)(plan, x, memory + 2 * n * lanes, lanes);
        NAME(scatter_complex)(out, pass->forward ? x : (NAME(planes)){x.im, x.re}, to, pass->out_step, n, lanes, scale);
        return;
    }
    NAME(planes) spectrum = {memory, memory + (h + 1) * lanes};
    REAL *rest = memory + 2 * (h + 1) * lanes;
    if (pass->kind == MSA_FFT_REAL_IN) {
        if (n % 2) {
            NAME(planes) x = {rest, rest + n * lanes};
            NAME(gather_real)(x.re, in, from, pass->in_step, n, lanes);
            memset(x.im, 0, sizeof(REAL) * (size_t)(n * lanes));
            spectrum = NAME(run)(plan, x, rest + 2 * n * lanes, lanes);
            memset(spectrum.im, 0, sizeof(REAL) * (size_t)lanes);
        } else {
            /* Even elements are the real parts, odd ones the imaginary parts. */
            NAME(planes) x = {rest, rest + h * lanes};
            NAME(gather_real)(x.re, in, from, 2 * pass->in_step, h, lanes);
            NAME(gather_real)(x.im, (const REAL *)in + pass->in_step, from, 2 * pass->in_step, h, lanes);
            NAME(join)(plan, NAME(run)(plan->inner, x, rest + n * lanes, lanes), spectrum, lanes);
        }
        NAME(scatter_complex)(out, spectrum, to, pass->out_step, h + 1, lanes, scale);
        if (!pass->whole) return;
        for (int64_t l = 0; l < lanes; l++)
            for (int64_t k = h + 1; k < n; k++) {
                REAL *line = (REAL *)out + 2 * to[l];
                line[2 * k * pass->out_step] = line[2 * (n - k) * pass->out_step];
                line[2 * k * pass->out_step + 1] = -line[2 * (n - k) * pass->out_step + 1];
            }
        return;
    }
    NAME(gather_complex)(spectrum, in, from, pass->in_step, h + 1, lanes);
    if (n % 2) {
        /* The planes are exchanged for the inverse: conjugates go into rows n - k. */
        NAME(planes) x = {rest, rest + n * lanes};
        memcpy(x.im, spectrum.re, sizeof(REAL) * (size_t)((h + 1) * lanes));
        memcpy(x.re, spectrum.im, sizeof(REAL) * (size_t)((h + 1) * lanes));
        memset(x.re, 0, sizeof(REAL) * (size_t)lanes);
        for (int64_t k = 1; k <= h; k++)
            for (int64_t l = 0; l < lanes; l++) {
                x.im[(n - k) * lanes + l] = x.im[k * lanes + l];
                x.re[(n - k) * lanes + l] = -x.re[k * lanes + l];
            }
        x = NAME(run)(plan, x, rest + 2 * n * lanes, lanes);
        NAME(scatter_real)(out, x.im, to, pass->out_step, n, lanes, scale);
        return;
    }
    NAME(planes) x = {rest, rest + h * lanes};
    NAME(part)(plan, spectrum, x, lanes);
    x = NAME(run)(plan->inner, (NAME(planes)){x.im, x.re}, rest + n * lanes, lanes);
    NAME(scatter_real)(out, x.im, to, 2 * pass->out_step, h, lanes, scale);
    NAME(scatter_real)((REAL *)out + pass->out_step, x.re, to, 2 * pass->out_step, h, lanes, scale);
}
