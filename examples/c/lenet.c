/* Trains LeNet from plain C: the network, loss and optimizer of the Python examples, without Python.
 *
 *     cc -O2 examples/c/lenet.c $(pkg-config --cflags --libs msadapter) -lm -o lenet
 *     ./lenet [FOLDER] [EPOCHS]
 *
 * FOLDER holds CIFAR-10's binary version (data_batch_1.bin ... data_batch_5.bin, test_batch.bin: records of a label byte and
 * 3x32x32 bytes). Without it the pictures are made up: a bright square in one of ten places, in noise. Prints the loss of each
 * epoch and the accuracy on pictures that were held out. README.md tells where PKG_CONFIG_PATH points to.
 *
 * How to read the calls: arguments are borrowed and results owned; `msa_auto` releases a variable at the end of its scope.
 * A failing call returns NULL or -1 and leaves a message in msa_error_message(); each result is checked where it is made. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <msadapter/autograd.h>
#include <msadapter/ops.h>
#include <msadapter/optim.h>
#include <msadapter/random.h>

enum { CHANNELS = 3, SIDE = 32, PIXELS = CHANNELS * SIDE * SIDE, RECORD = 1 + PIXELS, BATCH = 64, CLASSES = 10 };

/* Pictures as CIFAR-10 stores them: `count` records one after the other. */
typedef struct {
    unsigned char *records;
    int64_t count;
} pictures;

/* Weights and biases of the five layers, in the order of use. */
enum { PARAMETERS = 10 };
typedef struct {
    msa_tensor *parameters[PARAMETERS];
    msa_tensor *momentum[PARAMETERS];
    bool fresh[PARAMETERS]; /* its momentum has not been used yet */
} network;

static int fail(const char *where) {
    fprintf(stderr, "lenet: %s: %s\n", where, msa_error_message());
    return -1;
}

/* ---- data ---- */

static int read_records(pictures *into, const char *folder, const char *name) {
    char path[4096];
    if (snprintf(path, sizeof path, "%s/%s", folder, name) >= (int)sizeof path) return -1;
    FILE *file = fopen(path, "rb");
    if (!file) {
        fprintf(stderr, "lenet: cannot open %s\n", path);
        return -1;
    }
    unsigned char record[RECORD];
    int status = 0;
    while (fread(record, 1, RECORD, file) == RECORD) {
        if (record[0] >= CLASSES) {
            fprintf(stderr, "lenet: %s: picture %lld has label %d\n", path, (long long)into->count, record[0]);
            status = -1;
            break;
        }
        if ((into->count & (into->count - 1)) == 0) { /* full: double it */
            void *grown = realloc(into->records, (size_t)(into->count ? 2 * into->count : 1) * RECORD);
            if (!grown) {
                status = -1;
                break;
            }
            into->records = grown;
        }
        memcpy(into->records + into->count++ * RECORD, record, RECORD);
    }
    fclose(file);
    return status;
}

static int read_cifar(pictures *train, pictures *held_out, const char *folder) {
    for (int i = 1; i <= 5; i++) {
        char name[32];
        snprintf(name, sizeof name, "data_batch_%d.bin", i);
        if (read_records(train, folder, name) != 0) return -1;
    }
    return read_records(held_out, folder, "test_batch.bin");
}

/* A picture of class c: noise, and a brighter square of 10x10 pixels whose place says c. */
static int make_up(pictures *into, int64_t count) {
    into->records = malloc((size_t)count * RECORD);
    if (!into->records) return -1;
    into->count = count;
    for (int64_t i = 0; i < count; i++) {
        unsigned char *record = into->records + i * RECORD;
        const int c = (int)(msa_generator_random(NULL) % CLASSES), left = c % 5 * 5, top = c / 5 * 16;
        record[0] = (unsigned char)c;
        for (int p = 0; p < PIXELS; p++) {
            const int x = p % SIDE, y = p / SIDE % SIDE;
            const bool inside = x >= left && x < left + 10 && y >= top && y < top + 10;
            record[1 + p] = (unsigned char)(msa_generator_random(NULL) % 160 + (inside ? 60 : 0));
        }
    }
    return 0;
}

/* Pictures order[0..n-1] as x (n, 3, 32, 32), float32 in [-1, 1], and y (n), int64. */
static int load_batch(const pictures *from, const int64_t *order, int64_t n, msa_tensor **x, msa_tensor **y) {
    *x = msa_tensor_new(MSA_INTS(n, CHANNELS, SIDE, SIDE), MSA_FLOAT32);
    *y = msa_tensor_new(MSA_INTS(n), MSA_INT64);
    if (!*x || !*y) return fail("batch");
    float *values = msa_tensor_data(*x);
    int64_t *labels = msa_tensor_data(*y);
    for (int64_t i = 0; i < n; i++) {
        const unsigned char *record = from->records + order[i] * RECORD;
        labels[i] = record[0];
        for (int p = 0; p < PIXELS; p++) values[i * PIXELS + p] = record[1 + p] / 127.5f - 1.0f;
    }
    return 0;
}

/* ---- the network ---- */

/* Weights and biases uniform in +-1 / sqrt(inputs of an output), as the layers of torch.nn begin. */
static int network_init(network *net) {
    static const struct {
        int64_t sizes[4];
        int ndim;
    } shapes[PARAMETERS] = {{{16, 3, 5, 5}, 4}, {{16}, 1}, {{32, 16, 5, 5}, 4}, {{32}, 1}, {{120, 800}, 2},
                            {{120}, 1},         {{84, 120}, 2}, {{84}, 1},      {{10, 84}, 2}, {{10}, 1}};
    double bound = 0;
    for (int i = 0; i < PARAMETERS; i++) {
        const msa_ints sizes = {shapes[i].sizes, shapes[i].ndim};
        if (shapes[i].ndim > 1) {
            int64_t inputs = 1;
            for (int d = 1; d < shapes[i].ndim; d++) inputs *= shapes[i].sizes[d];
            bound = 1 / sqrt((double)inputs);
        }
        net->parameters[i] = msa_tensor_new(sizes, MSA_FLOAT32);
        net->momentum[i] = msa_tensor_new(sizes, MSA_FLOAT32);
        net->fresh[i] = true;
        if (!net->parameters[i] || !net->momentum[i]) return fail("parameters");
        msa_auto msa_tensor *filled = msa_uniform_(net->parameters[i], -bound, bound, NULL);
        if (!filled || msa_tensor_set_requires_grad(net->parameters[i], true) != 0) return fail("parameters");
    }
    return 0;
}

static void network_release(network *net) {
    for (int i = 0; i < PARAMETERS; i++) {
        msa_tensor_release(net->parameters[i]);
        msa_tensor_release(net->momentum[i]);
    }
}

/* relu(conv(x)), then the largest of each 2x2 square. x is (n, c, h, w). */
static msa_tensor *convolve(msa_tensor *x, msa_tensor *weight, msa_tensor *bias) {
    msa_auto msa_tensor *out = msa_conv2d(x, weight, bias, MSA_INTS(1, 1), MSA_INTS(0, 0), MSA_INTS(1, 1), 1);
    if (!out) return NULL;
    msa_auto msa_tensor *active = msa_relu(out);
    if (!active) return NULL;
    return msa_max_pool2d(active, MSA_INTS(2, 2), MSA_INTS(2, 2), MSA_INTS(0, 0), MSA_INTS(1, 1), false);
}

static msa_tensor *dense(msa_tensor *x, msa_tensor *weight, msa_tensor *bias) {
    msa_auto msa_tensor *out = msa_linear(x, weight, bias);
    return out ? msa_relu(out) : NULL;
}

/* x (n, 3, 32, 32) -> logits (n, 10) */
static msa_tensor *network_forward(const network *net, msa_tensor *x) {
    msa_tensor *const *p = net->parameters;
    msa_auto msa_tensor *first = convolve(x, p[0], p[1]);
    if (!first) return NULL;
    msa_auto msa_tensor *second = convolve(first, p[2], p[3]);
    if (!second) return NULL;
    msa_auto msa_tensor *flat = msa_reshape(second, MSA_INTS(-1, 800));
    if (!flat) return NULL;
    msa_auto msa_tensor *third = dense(flat, p[4], p[5]);
    if (!third) return NULL;
    msa_auto msa_tensor *fourth = dense(third, p[6], p[7]);
    return fourth ? msa_linear(fourth, p[8], p[9]) : NULL;
}

/* Cross entropy, the mean over pictures of log(sum_j exp x_j) - x_y. logits (n, 10), labels (n) -> 0-dim */
static msa_tensor *cross_entropy(msa_tensor *logits, msa_tensor *labels) {
    msa_auto msa_tensor *column = msa_unsqueeze(labels, 1);
    msa_auto msa_tensor *total = msa_logsumexp(logits, MSA_INTS(1), true);
    if (!column || !total) return NULL;
    msa_auto msa_tensor *chosen = msa_gather(logits, 1, column, false);
    if (!chosen) return NULL;
    msa_auto msa_tensor *losses = msa_sub(total, chosen, msa_int(1));
    return losses ? msa_mean(losses, MSA_NO_DTYPE) : NULL;
}

/* ---- training ---- */

/* One step of stochastic gradient descent on a batch; the loss goes to *value. */
static int train_step(network *net, msa_tensor *x, msa_tensor *y, double *value) {
    static const msa_sgd_options options = {.lr = 0.01, .momentum = 0.9, .weight_decay = 0.0005};
    msa_auto msa_tensor *logits = network_forward(net, x);
    if (!logits) return fail("forward");
    msa_auto msa_tensor *loss = cross_entropy(logits, y);
    msa_scalar number;
    if (!loss || msa_tensor_item(loss, &number) != 0) return fail("loss");
    for (int i = 0; i < PARAMETERS; i++)
        if (msa_tensor_set_grad(net->parameters[i], NULL) != 0) return fail("gradients");
    if (msa_backward(MSA_TENSORS(loss), (msa_tensors){NULL, 0}, false, false, (msa_tensors){NULL, 0}) != 0)
        return fail("backward");
    msa_tensor *gradients[PARAMETERS];
    for (int i = 0; i < PARAMETERS; i++) gradients[i] = msa_tensor_grad(net->parameters[i]);
    if (msa_sgd_step((msa_tensors){net->parameters, PARAMETERS}, (msa_tensors){gradients, PARAMETERS},
                     (msa_tensors){net->momentum, PARAMETERS}, net->fresh, &options) != 0)
        return fail("step");
    memset(net->fresh, 0, sizeof net->fresh);
    *value = msa_scalar_double(number);
    return 0;
}

/* The share of pictures whose largest logit is that of their label, or -1. Nothing is recorded meanwhile. */
static double accuracy(const network *net, const pictures *held_out) {
    const bool recording = msa_set_grad_enabled(false);
    int64_t right = 0, order[BATCH];
    int status = 0;
    for (int64_t begin = 0; begin < held_out->count && status == 0; begin += BATCH) {
        const int64_t n = held_out->count - begin < BATCH ? held_out->count - begin : BATCH;
        for (int64_t i = 0; i < n; i++) order[i] = begin + i;
        msa_auto msa_tensor *x = NULL, *y = NULL;
        status = load_batch(held_out, order, n, &x, &y);
        msa_auto msa_tensor *logits = status == 0 ? network_forward(net, x) : NULL;
        msa_auto msa_tensor *best = logits ? msa_argmax(logits, (msa_opt_int)MSA_SOME(1), false) : NULL;
        if (!best) {
            status = fail("accuracy");
            break;
        }
        const int64_t *guessed = msa_tensor_data(best), *labels = msa_tensor_data(y);
        for (int64_t i = 0; i < n; i++) right += guessed[i] == labels[i];
    }
    msa_set_grad_enabled(recording);
    return status == 0 ? (double)right / (double)held_out->count : -1;
}

static int train(network *net, const pictures *train_set, const pictures *held_out, int epochs) {
    int64_t *order = malloc((size_t)train_set->count * sizeof *order);
    if (!order) return -1;
    int status = 0;
    for (int epoch = 0; epoch < epochs && status == 0; epoch++) {
        double sum = 0, loss = 0;
        int64_t steps = 0;
        status = msa_random_permutation(NULL, order, train_set->count, MSA_INT64);
        for (int64_t begin = 0; begin + BATCH <= train_set->count && status == 0; begin += BATCH, steps++) {
            msa_auto msa_tensor *x = NULL, *y = NULL;
            status = load_batch(train_set, order + begin, BATCH, &x, &y);
            if (status == 0) status = train_step(net, x, y, &loss);
            sum += loss;
        }
        if (status != 0) break;
        const double share = accuracy(net, held_out);
        if (share < 0) status = -1;
        else printf("epoch %d: loss %.4f, accuracy %.1f%%\n", epoch + 1, sum / (double)steps, 100 * share);
        fflush(stdout);
    }
    free(order);
    return status;
}

int main(int argc, char **argv) {
    pictures train_set = {NULL, 0}, held_out = {NULL, 0};
    network net = {{NULL}, {NULL}, {false}};
    const int epochs = argc > 2 ? atoi(argv[2]) : 5;
    msa_generator_manual_seed(NULL, 0);
    int status = argc > 1 && strcmp(argv[1], "-") != 0
                     ? read_cifar(&train_set, &held_out, argv[1])
                     : (make_up(&train_set, 2048) != 0 || make_up(&held_out, 512) != 0 ? -1 : 0);
    if (status == 0 && (train_set.count < BATCH || held_out.count == 0)) {
        fprintf(stderr, "lenet: too few pictures\n");
        status = -1;
    }
    if (status == 0) status = network_init(&net);
    if (status == 0) status = train(&net, &train_set, &held_out, epochs);
    network_release(&net);
    free(train_set.records);
    free(held_out.records);
    return status == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
