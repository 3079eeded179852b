/* Winograd's convolution: tiles in groups, each group transformed, multiplied and transformed back by all threads together.
 *
 * A group's transforms (36, tiles, channels) stay in the last cache between the three steps. */
#include "cpu/winograd.h"

#include <string.h>

#include "base/memory.h"
#include "base/parallel.h"
#include "cpu/sgemm.h"

enum { POINTS = 36, TILE = 4, GROUP_BYTES = 6 << 20 };

static int64_t least(int64_t a, int64_t b) { return a < b ? a : b; }

/* One computation: `from` (n, height, width, channels) is convolved to `to` (n, out_height, out_width, out_channels). */
typedef struct {
    int64_t n, height, width, channels, top, left, out_height, out_width, out_channels;
    int64_t tall, wide, tiles; /* tiles of an image, of all */
} geometry;

static geometry forward_geometry(const msa_conv *c) {
    geometry g = {c->n, c->in[1], c->in[2], c->ci, c->padding[1], c->padding[2], c->out[1], c->out[2], c->co, 0, 0, 0};
    g.tall = (g.out_height + TILE - 1) / TILE;
    g.wide = (g.out_width + TILE - 1) / TILE;
    g.tiles = g.n * g.tall * g.wide;
    return g;
}

/* Towards the input: a convolution of the gradient, padded so that windows reach each input once. */
static geometry backward_geometry(const msa_conv *c) {
    geometry g = {c->n, c->out[1], c->out[2], c->co, 2 - c->padding[1], 2 - c->padding[2], c->in[1], c->in[2], c->ci, 0, 0, 0};
    g.tall = (g.out_height + TILE - 1) / TILE;
    g.wide = (g.out_width + TILE - 1) / TILE;
    g.tiles = g.n * g.tall * g.wide;
    return g;
}

/* MSADAPTER_WINOGRAD=0 asks for the direct method, whose rounding errors are smaller. */
static bool allowed = true;
__attribute__((constructor)) static void read_environment(void) {
    const char *value = getenv("MSADAPTER_WINOGRAD");
    allowed = !value || strcmp(value, "0") != 0;
}

bool msa_winograd_fits(const msa_conv *c) {
    if (!allowed || c->groups != 1 || c->in[0] != 1 || c->out[0] != 1 || c->kernel[0] != 1 || c->padding[0] != 0) return false;
    for (int i = 1; i < 3; i++)
        if (c->kernel[i] != 3 || c->stride[i] != 1 || c->dilation[i] != 1 || c->padding[i] > 2) return false;
    const int64_t wide = msa_sgemm->columns; /* a multiple of the transforms' lanes too */
    if (c->ci < 32 || c->co < 32 || c->ci % wide || c->co % wide) return false;
    /* Where a tile is not full, its multiplications are wasted; below some tiles the weight's transform costs more than it saves. */
    const int64_t tall = (c->out[1] + TILE - 1) / TILE, across = (c->out[2] + TILE - 1) / TILE;
    return c->n * tall * across >= 24 && 2 * c->out[1] * c->out[2] > tall * across * TILE * TILE;
}

/* Tiles whose transforms, of `channels` floats a tile and point, fill a group: a multiple of a register tile's rows. */
static int64_t group_size(int64_t channels, int64_t tiles) {
    int64_t size = GROUP_BYTES / (POINTS * 4 * channels);
    const int64_t rows = msa_sgemm->rows;
    size = (size < 2 * rows ? 2 * rows : size) / rows * rows;
    return least(size, tiles);
}

typedef struct {
    int64_t image, y, x; /* of the tile's corner in the output */
} place;

static place place_of(const geometry *g, int64_t tile) {
    const int64_t rest = tile % (g->tall * g->wide);
    return (place){tile / (g->tall * g->wide), rest / g->wide * TILE, rest % g->wide * TILE};
}

static void transform_input(const geometry *g, const float *from, int64_t tile, float *to, int64_t step) {
    const place p = place_of(g, tile);
    const float *image = from + p.image * g->height * g->width * g->channels;
    for (int64_t ch = 0; ch < g->channels; ch += msa_winograd->lanes)
        msa_winograd->input(image + ch, g->height, g->width, g->channels, p.y - g->top, p.x - g->left, to + ch, step);
}

/* (point, panel of output channels, input channels, columns): what the register tiles take as b. */
static void transform_weights(const float *weight, int64_t channels, int64_t out_channels, bool turned, float *to) {
    const int64_t columns = msa_sgemm->columns, lanes = msa_winograd->lanes, step = channels * out_channels;
    /* The weight is (out, in, 3, 3), for the turned one (in, out, 3, 3). */
    const int64_t out_step = turned ? 9 : channels * 9, in_step = turned ? out_channels * 9 : 9;
#pragma omp for schedule(static)
    for (int64_t o = 0; o < out_channels; o += columns)
        for (int64_t i = 0; i < channels; i++)
            for (int64_t l = 0; l < columns; l += lanes)
                msa_winograd->weight(weight + (o + l) * out_step + i * in_step, out_step, turned, to + (o * channels + i * columns) + l, step);
}

static int convolve(const geometry *g, const float *from, const float *weight, bool turned, const float *bias, float *to) {
    const msa_sgemm_tiles *t = msa_sgemm;
    const int64_t ci = g->channels, co = g->out_channels, group = group_size(ci + co, g->tiles);
    const int64_t rows = (group + t->rows - 1) / t->rows * t->rows; /* a register tile may read beyond the last tile */
    const int64_t in_step = rows * ci, out_step = rows * co;
    const int threads = msa_threads();
    float *memory = msa_data_alloc(sizeof(float) * (size_t)(POINTS * (ci * co + in_step + out_step)));
    if (!memory) return -1;
    float *in = memory + POINTS * ci * co, *out = in + POINTS * in_step;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        transform_weights(weight, ci, co, turned, memory);
        for (int64_t first = 0; first < g->tiles; first += group) {
            const int64_t count = least(group, g->tiles - first);
#pragma omp for schedule(static)
            for (int64_t i = 0; i < count; i++) transform_input(g, from, first + i, in + i * ci, in_step);
#pragma omp for schedule(static)
            for (int64_t point = 0; point < POINTS; point++)
                for (int64_t o = 0; o < co; o += t->columns)
                    for (int64_t i = 0; i < count; i += t->rows)
                        t->by_rows(ci, in + point * in_step + i * ci, ci, memory + point * ci * co + o * ci,
                                   out + point * out_step + i * co + o, co, (int)least(count - i, t->rows));
#pragma omp for schedule(static)
            for (int64_t i = 0; i < count; i++) {
                const place p = place_of(g, first + i);
                float *image = to + ((p.image * g->out_height + p.y) * g->out_width + p.x) * co;
                const int high = (int)least(TILE, g->out_height - p.y), wide = (int)least(TILE, g->out_width - p.x);
                for (int64_t ch = 0; ch < co; ch += msa_winograd->lanes)
                    msa_winograd->output(out + i * co + ch, out_step, image + ch, g->out_width, co, high, wide, bias ? bias + ch : NULL);
            }
        }
    }
    msa_data_free(memory);
    return 0;
}

int msa_winograd_forward(const msa_conv *c, const float *src, const float *weight, const float *bias, float *dst) {
    const geometry g = forward_geometry(c);
    return convolve(&g, src, weight, false, bias, dst);
}

int msa_winograd_backward_data(const msa_conv *c, const float *diff_dst, const float *weight, float *diff_src) {
    const geometry g = backward_geometry(c);
    return convolve(&g, diff_dst, weight, true, NULL, diff_src);
}

int msa_winograd_backward_weights(const msa_conv *c, const float *src, const float *diff_dst, float *diff_weight) {
    const msa_sgemm_tiles *t = msa_sgemm;
    const geometry g = forward_geometry(c);
    const int64_t ci = c->ci, co = c->co, group = group_size(ci + co, g.tiles);
    const int64_t in_step = group * ci, out_step = group * co, step = ci * co;
    const int threads = msa_threads();
    /* Behind the last row of `in` comes `out`: a register tile that reads a little too far reads something. */
    float *memory = msa_data_alloc(sizeof(float) * (size_t)(POINTS * (step + in_step + out_step)));
    if (!memory) return -1;
    float *in = memory + POINTS * step, *out = in + POINTS * in_step;
#pragma omp parallel num_threads(threads) if (threads > 1)
    {
        for (int64_t first = 0; first < g.tiles; first += group) {
            const int64_t count = least(group, g.tiles - first);
#pragma omp for schedule(static)
            for (int64_t i = 0; i < count; i++) {
                transform_input(&g, src, first + i, in + i * ci, in_step);
                const place p = place_of(&g, first + i);
                const float *image = diff_dst + ((p.image * g.out_height + p.y) * g.out_width + p.x) * co;
                const int high = (int)least(TILE, g.out_height - p.y), wide = (int)least(TILE, g.out_width - p.x);
                for (int64_t ch = 0; ch < co; ch += msa_winograd->lanes)
                    msa_winograd->gradient(image + ch, g.out_width, co, high, wide, out + i * co + ch, out_step);
            }
            /* (out channels, tiles) @ (tiles, in channels): out channels are the rows, so that lanes are input channels below. */
#pragma omp for schedule(static)
            for (int64_t point = 0; point < POINTS; point++)
                for (int64_t i = 0; i < ci; i += t->columns)
                    for (int64_t o = 0; o < co; o += t->rows)
                        t->by_columns(count, out + point * out_step + o, co, in + point * in_step + i, ci, first > 0,
                                      memory + point * step + o * ci + i, ci, (int)least(co - o, t->rows));
        }
#pragma omp for schedule(static)
        for (int64_t o = 0; o < co; o++)
            for (int64_t i = 0; i < ci; i += msa_winograd->lanes)
                msa_winograd->weight_gradient(memory + o * ci + i, step, diff_weight + (o * ci + i) * 9, 9);
    }
    msa_data_free(memory);
    return 0;
}
