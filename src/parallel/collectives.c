/* The algorithms of collectives.h. */
#include "parallel/collectives.h"

#include <string.h>

#include "base/memory.h"

/* Wait for a request and release it. */
static int settle(const msa_call *call, msa_request *r, const char *what) {
    if (!r) return -1;
    int status = msa_request_wait(r, call->deadline);
    msa_request_release(r);
    return status == 1 ? msa_fail(MSA_RUNTIME_ERROR, "Timed out waiting %lldms for %s operation to complete",
                                  (long long)call->timeout_ms, what)
                       : status;
}

static int send_to(const msa_call *call, int to, const void *data, size_t bytes) {
    return settle(call, msa_mesh_send(call->mesh, to, call->tag, data, bytes), "send");
}

static int receive_from(const msa_call *call, int from, void *data, size_t bytes) {
    return settle(call, msa_mesh_receive(call->mesh, from, call->tag, data, bytes), "recv");
}

/* Send to one and receive from another at the same time. */
static int pass_on(const msa_call *call, int to, const void *out, size_t out_bytes, int from, void *in,
                   size_t in_bytes) {
    msa_request *receiving = msa_mesh_receive(call->mesh, from, call->tag, in, in_bytes);
    msa_request *sending = receiving ? msa_mesh_send(call->mesh, to, call->tag, out, out_bytes) : NULL;
    int status = settle(call, receiving, "recv");
    if (status == 0) return settle(call, sending, "send");
    msa_request_release(sending);
    return -1;
}

int msa_broadcast_blocks(const msa_call *call, msa_block block, int root) {
    int n = msa_mesh_size(call->mesh), me = (msa_mesh_rank(call->mesh) - root + n) % n, bit = 1;
    for (; bit < n && !(me & bit); bit <<= 1) {
    }
    if (me && receive_from(call, (me - bit + root) % n, block.data, block.bytes) != 0) return -1;
    for (bit >>= 1; bit; bit >>= 1)
        if (me + bit < n && send_to(call, (me + bit + root) % n, block.data, block.bytes) != 0) return -1;
    return 0;
}

/* Where part `i` (any number, modulo `parts`) of n elements begins. */
static int64_t part_begin(int64_t n, int parts, int i) {
    return n / parts * i + (i < n % parts ? i : n % parts);
}

int msa_all_reduce_blocks(const msa_call *call, msa_reduce_op op, msa_dtype dtype, void *data, int64_t n) {
    int size = msa_mesh_size(call->mesh), me = msa_mesh_rank(call->mesh), next = (me + 1) % size,
        previous = (me + size - 1) % size;
    if (size == 1) return 0;
    size_t item = msa_dtype_size(dtype);
    msa_auto_free char *come = msa_malloc((size_t)(n / size + 1) * item);
    if (!come) return -1;
    for (int step = 0; step < 2 * (size - 1); step++) {
        /* In the first half parts are combined on their way; then part me + 1 is complete here, and complete parts go
         * round. */
        bool combining = step < size - 1;
        int out = (me + 2 * size - step) % size, in = (out + size - 1) % size;
        if (!combining) out = (me + 1 + 2 * size - (step - (size - 1))) % size, in = (out + size - 1) % size;
        int64_t out_begin = part_begin(n, size, out), out_n = part_begin(n, size, out + 1) - out_begin;
        int64_t in_begin = part_begin(n, size, in), in_n = part_begin(n, size, in + 1) - in_begin;
        char *in_data = (char *)data + (size_t)in_begin * item;
        if (pass_on(call, next, (char *)data + (size_t)out_begin * item, (size_t)out_n * item, previous,
                    combining ? come : in_data, (size_t)in_n * item) != 0)
            return -1;
        if (combining) msa_combine(op, dtype, in_data, come, in_n);
    }
    return 0;
}

int msa_reduce_blocks(const msa_call *call, msa_reduce_op op, msa_dtype dtype, void *data, int64_t n, int root) {
    int size = msa_mesh_size(call->mesh), me = (msa_mesh_rank(call->mesh) - root + size) % size;
    size_t bytes = (size_t)n * msa_dtype_size(dtype);
    bool leaf = me & 1 || size == 1;
    msa_auto_free char *come = leaf ? NULL : msa_malloc(bytes + 1);
    msa_auto_free char *own = leaf || me == 0 ? NULL : msa_malloc(bytes + 1);
    if (!leaf && (!come || (me && !own))) return -1;
    if (own) memcpy(own, data, bytes);
    char *sum = own ? own : data;
    for (int bit = 1; bit < size; bit <<= 1) {
        if (me & bit) return send_to(call, (me - bit + root) % size, sum, bytes);
        if (me + bit >= size) continue;
        if (receive_from(call, (me + bit + root) % size, come, bytes) != 0) return -1;
        msa_combine(op, dtype, sum, come, n);
    }
    return 0;
}

int msa_reduce_scatter_blocks(const msa_call *call, msa_reduce_op op, msa_dtype dtype, void *out, void *const *in,
                              int64_t n) {
    int size = msa_mesh_size(call->mesh), me = msa_mesh_rank(call->mesh), next = (me + 1) % size,
        previous = (me + size - 1) % size;
    size_t bytes = (size_t)n * msa_dtype_size(dtype);
    msa_auto_free char *sum = msa_malloc(bytes + 1), *come = msa_malloc(bytes + 1);
    if (!sum || !come) return -1;
    memcpy(sum, in[previous], bytes); /* block b starts behind process b and ends there after one round */
    for (int step = 1; step < size; step++) {
        if (pass_on(call, next, sum, bytes, previous, come, bytes) != 0) return -1;
        char *combined = come;
        msa_combine(op, dtype, combined, in[(me + 2 * size - 1 - step) % size], n);
        come = sum;
        sum = combined;
    }
    memcpy(out, size == 1 ? in[0] : sum, bytes);
    return 0;
}

int msa_exchange_blocks(const msa_call *call, const msa_block *send, const msa_block *receive) {
    int size = msa_mesh_size(call->mesh), me = msa_mesh_rank(call->mesh), status = 0;
    if (send && receive && send[me].data && receive[me].data && send[me].data != receive[me].data) {
        if (send[me].bytes != receive[me].bytes)
            status = msa_fail(MSA_RUNTIME_ERROR, "%zu bytes for rank %d itself do not fit %zu bytes", send[me].bytes,
                              me, receive[me].bytes);
        else
            memmove(receive[me].data, send[me].data, send[me].bytes);
    }
    msa_auto_free msa_request **requests = msa_calloc(2 * (size_t)size, sizeof *requests);
    if (!requests) return -1;
    for (int step = 1; step < size && status == 0; step++) {
        int to = (me + step) % size, from = (me + size - step) % size;
        if (receive && receive[from].data &&
            !(requests[2 * from] =
                  msa_mesh_receive(call->mesh, from, call->tag, receive[from].data, receive[from].bytes)))
            status = -1;
        if (status == 0 && send && send[to].data &&
            !(requests[2 * to + 1] = msa_mesh_send(call->mesh, to, call->tag, send[to].data, send[to].bytes)))
            status = -1;
    }
    for (int i = 0; i < 2 * size; i++) {
        if (!requests[i]) continue;
        if (status == 0)
            status = settle(call, requests[i], i & 1 ? "send" : "recv");
        else
            msa_request_release(requests[i]);
    }
    return status;
}

int msa_barrier_blocks(const msa_call *call) {
    int size = msa_mesh_size(call->mesh), me = msa_mesh_rank(call->mesh);
    char out = 0, in;
    for (int distance = 1; distance < size; distance <<= 1)
        if (pass_on(call, (me + distance) % size, &out, 1, (me + size - distance % size) % size, &in, 1) != 0)
            return -1;
    return 0;
}
