/* Process groups whose processes are threads of this one: collectives against their definitions, strangers who call a mesh's port. */
#include <arpa/inet.h>
#include <netinet/in.h>
#include <pthread.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "check.h"
#include "parallel/group.h"

enum { MOST = 4, ELEMENTS = 11 };

typedef struct {
    int rank, size, listener;
    const char *const *hosts;
    const int *ports;
    int failures; /* the checks of a thread are counted by the thread that joins it */
} process;

#define HOLDS(p, condition) ((p)->failures += !(condition))

static msa_tensor *filled(float value) {
    msa_tensor *t = msa_tensor_new(MSA_INTS(ELEMENTS), MSA_FLOAT32);
    for (int i = 0; i < ELEMENTS; i++) ((float *)msa_tensor_data(t))[i] = value + (float)i;
    return t;
}

static bool holds(msa_tensor *t, float value, float step) {
    for (int i = 0; i < ELEMENTS; i++)
        if (((float *)msa_tensor_data(t))[i] != value + step * (float)i) return false;
    return true;
}

static bool finishes(msa_work *work) {
    const bool good = work && msa_work_wait(work, msa_deadline(20000)) == 0;
    if (work) msa_work_release(work);
    return good;
}

static void *live(void *argument) {
    process *p = argument;
    msa_mesh *mesh = msa_mesh_connect(p->listener, p->rank, p->size, p->hosts, p->ports, 42, 20000);
    HOLDS(p, mesh != NULL);
    if (!mesh) return NULL;
    msa_group *g = msa_group_new(mesh, 20000);
    const int n = p->size;
    const msa_tensors none = {NULL, 0};
    {
        msa_auto msa_tensor *sum = filled((float)p->rank), *root = filled((float)p->rank);
        HOLDS(p, finishes(msa_group_start(g, MSA_ALL_REDUCE, MSA_SUM, 0, (msa_tensors){&sum, 1}, none)));
        HOLDS(p, holds(sum, (float)(n * (n - 1) / 2), (float)n));
        HOLDS(p, finishes(msa_group_start(g, MSA_BROADCAST, MSA_SUM, n - 1, (msa_tensors){&root, 1}, none)));
        HOLDS(p, holds(root, (float)(n - 1), 1));
    }
    {
        msa_tensor *all[MOST];
        msa_auto msa_tensor *own = filled(10.0F * (float)p->rank), *part = filled(0);
        for (int i = 0; i < n; i++) all[i] = filled(-1);
        HOLDS(p, finishes(msa_group_start(g, MSA_ALL_GATHER, MSA_SUM, 0, (msa_tensors){all, n}, (msa_tensors){&own, 1})));
        for (int i = 0; i < n; i++) HOLDS(p, holds(all[i], 10.0F * (float)i, 1));
        HOLDS(p, finishes(msa_group_start(g, MSA_REDUCE_SCATTER, MSA_MAX, 0, (msa_tensors){&part, 1}, (msa_tensors){all, n})));
        HOLDS(p, holds(part, 10.0F * (float)p->rank, 1));
        /* What cannot be: too few inputs, bits of floating point numbers. */
        HOLDS(p, !msa_group_start(g, MSA_REDUCE_SCATTER, MSA_MAX, 0, (msa_tensors){&part, 1}, (msa_tensors){all, n - 1}));
        HOLDS(p, !msa_group_start(g, MSA_ALL_REDUCE, MSA_BAND, 0, (msa_tensors){&part, 1}, none));
        for (int i = 0; i < n; i++) msa_tensor_release(all[i]);
    }
    {
        msa_auto msa_tensor *out = filled((float)p->rank), *in = filled(-1);
        msa_work *sent = msa_group_send(g, (p->rank + 1) % n, 7, out);
        HOLDS(p, finishes(msa_group_receive(g, MSA_ANY_PEER, 7, in)));
        HOLDS(p, finishes(sent));
        HOLDS(p, holds(in, (float)((p->rank + n - 1) % n), 1));
    }
    HOLDS(p, finishes(msa_group_start(g, MSA_BARRIER, MSA_SUM, 0, none, none)));
    msa_group_release(g);
    return NULL;
}

/* One that has no token, says nonsense, and stays on the line. */
static int stranger(int port) {
    const int s = socket(AF_INET, SOCK_STREAM, 0);
    const struct sockaddr_in there = {.sin_family = AF_INET, .sin_port = htons((uint16_t)port), .sin_addr.s_addr = htonl(INADDR_LOOPBACK)};
    char nonsense[64];
    memset(nonsense, 0x6d, sizeof nonsense);
    CHECK(connect(s, (const struct sockaddr *)&there, sizeof there) == 0);
    CHECK(send(s, nonsense, sizeof nonsense, MSG_NOSIGNAL) == sizeof nonsense);
    return s;
}

static void groups_of(int size) {
    static const char *const hosts[MOST] = {"127.0.0.1", "127.0.0.1", "127.0.0.1", "127.0.0.1"};
    int ports[MOST];
    process processes[MOST];
    pthread_t threads[MOST];
    for (int i = 0; i < size; i++) {
        processes[i] = (process){.rank = i, .size = size, .hosts = hosts, .ports = ports};
        processes[i].listener = msa_mesh_listen("127.0.0.1", &ports[i]);
        CHECK(processes[i].listener >= 0);
    }
    const int caller = stranger(ports[0]);
    for (int i = 0; i < size; i++) CHECK(pthread_create(&threads[i], NULL, live, &processes[i]) == 0);
    for (int i = 0; i < size; i++) {
        CHECK(pthread_join(threads[i], NULL) == 0);
        CHECK(processes[i].failures == 0);
    }
    close(caller);
}

/* Nobody comes: an error that says so, after the time that was given. */
static void nobody_calls(void) {
    const char *const hosts[2] = {"127.0.0.1", "127.0.0.1"};
    int ports[2] = {0, 0};
    const int listener = msa_mesh_listen("127.0.0.1", &ports[0]);
    CHECK(!msa_mesh_connect(listener, 0, 2, hosts, ports, 1, 50));
    CHECK(strstr(msa_error_message(), "1 of 2 processes have not called rank 0") != NULL);
}

int main(void) {
    for (int size = 2; size <= MOST; size++) groups_of(size);
    nobody_calls();
    return check_report();
}
