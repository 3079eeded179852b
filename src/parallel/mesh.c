/* The mesh of mesh.h: connecting, and the thread that moves messages. */
#include "parallel/mesh.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

#include "base/memory.h"

enum { DATA = 0x6d736130, ABORT = 0x6d736131, HELLO = 0x6d736132 };
enum { ABORT_TEXT = 200 };
#define MAX_MESSAGE ((uint64_t)1 << 46)

typedef struct {
    uint32_t kind, rank; /* rank: of the greeting */
    uint64_t tag, bytes;
} header;

typedef enum { PENDING, DONE, FAILED } state;

struct msa_request {
    msa_mesh *mesh;
    msa_request *next;
    int peer;
    bool sends;
    state state;
    uint64_t tag;
    char *data;
    size_t bytes;
    header head;  /* of a message that is sent */
    size_t moved; /* bytes of head and data that have left */
    bool owned;   /* made by the mesh itself: freed when it has left */
    char error[256];
};

typedef struct message {
    struct message *next;
    uint64_t tag;
    size_t bytes;
    char data[];
} message;

typedef struct {
    int socket; /* -1: closed */
    char name[80];
    char error[200]; /* why it is closed */
    msa_request *sending, **sending_end;
    msa_request *receiving, **receiving_end;
    message *kept, **kept_end;
    /* The message that is arriving: into a request, into `kept_now`, or (neither) nowhere. */
    header head;
    size_t head_got, body_got;
    msa_request *into;
    message *kept_now;
    char abort_text[ABORT_TEXT];
} peer;

struct msa_mesh {
    msa_mesh *next; /* of all meshes of the process */
    pid_t process;
    int rank, size, wake;
    bool closing, stopped;
    pthread_t thread;
    pthread_mutex_t lock;
    pthread_cond_t changed;
    uint64_t aborted_from; /* collectives from this tag on have failed elsewhere */
    char abort_text[ABORT_TEXT];
    msa_request *from_any, **from_any_end;
    peer peers[];
};

int64_t msa_now(void) {
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (int64_t)t.tv_sec * 1000 + t.tv_nsec / 1000000;
}

int64_t msa_deadline(int64_t timeout_ms) {
    int64_t deadline;
    return timeout_ms < 0 || __builtin_add_overflow(msa_now(), timeout_ms, &deadline) ? INT64_MAX : deadline;
}

/* Milliseconds until the deadline, as poll() takes them. */
static int remaining(int64_t deadline) {
    int64_t left = deadline == INT64_MAX ? 1000 : deadline - msa_now();
    return left < 0 ? 0 : left > 1000 ? 1000 : (int)left;
}

int msa_mesh_rank(const msa_mesh *mesh) {
    return mesh->rank;
}
int msa_mesh_size(const msa_mesh *mesh) {
    return mesh->size;
}

/* A child of fork() has none of the threads. It closes the sockets, or a child that lives on would keep the others from
 * seeing that this process has ended. */
static msa_mesh *meshes;
static pthread_mutex_t meshes_lock = PTHREAD_MUTEX_INITIALIZER;

static void before_fork(void) {
    pthread_mutex_lock(&meshes_lock);
    for (msa_mesh *m = meshes; m; m = m->next) pthread_mutex_lock(&m->lock);
}
static void after_fork_in_parent(void) {
    for (msa_mesh *m = meshes; m; m = m->next) pthread_mutex_unlock(&m->lock);
    pthread_mutex_unlock(&meshes_lock);
}
static void after_fork_in_child(void) {
    for (msa_mesh *m = meshes; m; m = m->next) {
        for (int i = 0; i < m->size; i++)
            if (m->peers[i].socket >= 0) close(m->peers[i].socket), m->peers[i].socket = -1;
        close(m->wake);
        pthread_mutex_unlock(&m->lock);
    }
    meshes = NULL;
    pthread_mutex_unlock(&meshes_lock);
}
__attribute__((constructor)) static void watch_forks(void) {
    pthread_atfork(before_fork, after_fork_in_parent, after_fork_in_child);
}

/* Connecting. */

static int resolve(const char *host, int port, int flags, struct addrinfo **found) {
    char service[16];
    snprintf(service, sizeof service, "%d", port);
    struct addrinfo hints = {.ai_family = AF_UNSPEC, .ai_socktype = SOCK_STREAM, .ai_flags = flags | AI_NUMERICSERV};
    int status = getaddrinfo(host, service, &hints, found);
    return status == 0 ? 0
                       : msa_fail(MSA_RUNTIME_ERROR, "cannot find the address of '%s': %s", host, gai_strerror(status));
}

int msa_mesh_listen(const char *host, int *port) {
    struct addrinfo *found;
    if (resolve(host, 0, AI_PASSIVE, &found) != 0) return -1;
    int s = -1;
    for (struct addrinfo *a = found; a && s < 0; a = a->ai_next) {
        struct sockaddr_storage own;
        socklen_t length = sizeof own;
        s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
        if (s < 0) continue;
        if (bind(s, a->ai_addr, a->ai_addrlen) != 0 || listen(s, 256) != 0 ||
            getsockname(s, (struct sockaddr *)&own, &length) != 0) {
            int error = errno;
            close(s);
            errno = error;
            s = -1;
        } else {
            *port = ntohs(own.ss_family == AF_INET6 ? ((struct sockaddr_in6 *)&own)->sin6_port
                                                    : ((struct sockaddr_in *)&own)->sin_port);
        }
    }
    freeaddrinfo(found);
    return s >= 0 ? s : msa_fail(MSA_RUNTIME_ERROR, "cannot listen on '%s': %s", host, strerror(errno));
}

/* Move all bytes of a greeting before the deadline. */
static bool move_all(int s, void *data, size_t bytes, bool sends, int64_t deadline) {
    for (char *at = data, *end = at + bytes; at < end;) {
        struct pollfd p = {s, sends ? POLLOUT : POLLIN, 0};
        if (msa_now() >= deadline || (poll(&p, 1, remaining(deadline)) < 0 && errno != EINTR)) return false;
        ssize_t n = sends ? send(s, at, (size_t)(end - at), MSG_NOSIGNAL | MSG_DONTWAIT)
                          : recv(s, at, (size_t)(end - at), MSG_DONTWAIT);
        if (n == 0 && !sends) return false;
        if (n < 0 && errno != EAGAIN && errno != EINTR) return false;
        if (n > 0) at += n;
    }
    return true;
}

static void prepare(peer *p, int s) {
    int on = 1;
    struct sockaddr_storage there;
    socklen_t length = sizeof there;
    char host[64] = "?", service[16] = "?";
    setsockopt(s, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
    setsockopt(s, SOL_SOCKET, SO_KEEPALIVE, &on, sizeof on);
    fcntl(s, F_SETFL, fcntl(s, F_GETFL) | O_NONBLOCK);
    if (getpeername(s, (struct sockaddr *)&there, &length) == 0)
        getnameinfo((struct sockaddr *)&there, length, host, sizeof host, service, sizeof service,
                    NI_NUMERICHOST | NI_NUMERICSERV);
    snprintf(p->name, sizeof p->name, "[%s]:%s", host, service);
    p->socket = s;
}

/* One of lower rank is called; it may not listen yet. */
static int call(msa_mesh *m, int rank, const char *host, int port, uint64_t token, int64_t deadline) {
    for (int wait_ms = 10;; wait_ms = wait_ms < 500 ? 2 * wait_ms : wait_ms) {
        struct addrinfo *found;
        if (resolve(host, port, 0, &found) != 0) return -1;
        for (struct addrinfo *a = found; a; a = a->ai_next) {
            int s = socket(a->ai_family, SOCK_STREAM | SOCK_CLOEXEC, 0);
            header hello = {HELLO, (uint32_t)m->rank, token, 0};
            if (s >= 0 && connect(s, a->ai_addr, a->ai_addrlen) == 0 &&
                move_all(s, &hello, sizeof hello, true, deadline)) {
                freeaddrinfo(found);
                prepare(&m->peers[rank], s);
                return 0;
            }
            if (s >= 0) close(s);
        }
        freeaddrinfo(found);
        if (msa_now() + wait_ms >= deadline)
            return msa_fail(MSA_RUNTIME_ERROR, "Connect timeout [%s]:%d (rank %d)", host, port, rank);
        poll(NULL, 0, wait_ms);
    }
}

/* Those of higher rank call here. A caller without the token is a stranger, and sent away. */
static int answer(msa_mesh *m, int listener, uint64_t token, int64_t deadline) {
    for (int missing = m->size - 1 - m->rank; missing > 0;) {
        struct pollfd p = {listener, POLLIN, 0};
        if (msa_now() >= deadline)
            return msa_fail(MSA_RUNTIME_ERROR, "Connect timeout: %d of %d processes have not called rank %d", missing,
                            m->size, m->rank);
        if (poll(&p, 1, remaining(deadline)) <= 0) continue;
        int s = accept4(listener, NULL, NULL, SOCK_CLOEXEC);
        header hello;
        if (s < 0) continue;
        if (move_all(s, &hello, sizeof hello, false, deadline < msa_now() + 2000 ? deadline : msa_now() + 2000) &&
            hello.kind == HELLO && hello.tag == token && hello.rank > (uint32_t)m->rank &&
            hello.rank < (uint32_t)m->size && m->peers[hello.rank].socket < 0) {
            prepare(&m->peers[hello.rank], s);
            missing--;
        } else {
            close(s);
        }
    }
    return 0;
}

static void *run(void *mesh);

static void free_mesh(msa_mesh *m) {
    for (int i = 0; i < m->size; i++) {
        peer *p = &m->peers[i];
        if (p->socket >= 0) close(p->socket);
        for (message *k = p->kept, *next; k; k = next) next = k->next, free(k);
        free(p->kept_now);
        for (msa_request *r = p->sending, *next; r; r = next) {
            next = r->next;
            if (r->owned) free(r);
        }
    }
    if (m->wake >= 0) close(m->wake);
    pthread_mutex_destroy(&m->lock);
    pthread_cond_destroy(&m->changed);
    free(m);
}

msa_mesh *msa_mesh_connect(int listener, int rank, int size, const char *const *hosts, const int *ports, uint64_t token,
                           int64_t timeout_ms) {
    msa_mesh *m = msa_calloc(1, sizeof *m + (size_t)size * sizeof *m->peers);
    if (!m) {
        close(listener);
        return NULL;
    }
    m->process = getpid();
    m->rank = rank;
    m->size = size;
    m->aborted_from = UINT64_MAX;
    m->from_any_end = &m->from_any;
    pthread_condattr_t monotonic;
    pthread_condattr_init(&monotonic);
    pthread_condattr_setclock(&monotonic, CLOCK_MONOTONIC);
    pthread_cond_init(&m->changed, &monotonic);
    pthread_condattr_destroy(&monotonic);
    pthread_mutex_init(&m->lock, NULL);
    for (int i = 0; i < size; i++) {
        peer *p = &m->peers[i];
        p->socket = -1;
        p->sending_end = &p->sending;
        p->receiving_end = &p->receiving;
        p->kept_end = &p->kept;
    }
    m->wake = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    int64_t deadline = msa_deadline(timeout_ms);
    int status = m->wake >= 0 ? 0 : msa_fail(MSA_RUNTIME_ERROR, "cannot make an eventfd: %s", strerror(errno));
    for (int i = 0; i < rank && status == 0; i++) status = call(m, i, hosts[i], ports[i], token, deadline);
    if (status == 0) status = answer(m, listener, token, deadline);
    close(listener);
    if (status == 0 && pthread_create(&m->thread, NULL, run, m) != 0)
        status = msa_fail(MSA_RUNTIME_ERROR, "cannot start a thread");
    if (status != 0) {
        free_mesh(m);
        return NULL;
    }
    pthread_mutex_lock(&meshes_lock);
    m->next = meshes;
    meshes = m;
    pthread_mutex_unlock(&meshes_lock);
    return m;
}

static void wake(msa_mesh *m) {
    uint64_t one = 1;
    ssize_t ignored = write(m->wake, &one, sizeof one);
    (void)ignored; /* full: it is awake */
}

/* Requests. What follows runs with the lock held. */

static void finish(msa_request *r, const char *error) {
    if (r->owned) {
        free(r);
        return;
    }
    r->state = error ? FAILED : DONE;
    if (error) snprintf(r->error, sizeof r->error, "%s", error);
    pthread_cond_broadcast(&r->mesh->changed);
}

static void append(msa_request ***end, msa_request *r) {
    r->next = NULL;
    **end = r;
    *end = &r->next;
}

static void take_out(msa_request **list, msa_request ***end, msa_request *r) {
    for (msa_request **at = list; *at; at = &(*at)->next)
        if (*at == r) {
            *at = r->next;
            if (!*at) *end = at;
            return;
        }
}

static void fail_all(msa_request **list, msa_request ***end, uint64_t from_tag, const char *error) {
    for (msa_request **at = list; *at;) {
        msa_request *r = *at;
        if (r->tag < from_tag) {
            at = &r->next;
            continue;
        }
        *at = r->next;
        finish(r, error);
    }
    *end = list;
    while (**end) *end = &(**end)->next;
}

static void hang_up(msa_mesh *m, peer *p, const char *error) {
    if (p->socket < 0) return;
    close(p->socket);
    p->socket = -1;
    snprintf(p->error, sizeof p->error, "%s", error);
    if (p->into) finish(p->into, error);
    p->into = NULL;
    free(p->kept_now);
    p->kept_now = NULL;
    fail_all(&p->sending, &p->sending_end, 0, error);
    fail_all(&p->receiving, &p->receiving_end, 0, error);
    int open = 0;
    for (int i = 0; i < m->size; i++) open += m->peers[i].socket >= 0;
    if (!open) fail_all(&m->from_any, &m->from_any_end, 0, error); /* nobody is left to send anything */
}

static void hang_up_errno(msa_mesh *m, peer *p, int error) {
    char text[200];
    if (error == 0 || error == ECONNRESET || error == EPIPE)
        snprintf(text, sizeof text, "Connection closed by peer %s (rank %d)", p->name, (int)(p - m->peers));
    else
        snprintf(text, sizeof text, "Connection with peer %s (rank %d) failed: %s", p->name, (int)(p - m->peers),
                 strerror(error));
    hang_up(m, p, text);
}

static void wrong_size(msa_request *r, size_t bytes) {
    char text[160];
    snprintf(text, sizeof text, "a message of %zu bytes came from rank %d where %zu bytes were expected", bytes,
             r->peer, r->bytes);
    finish(r, text);
}

/* The request that waits longest for a message of this peer and tag, taken out of its list; NULL when there is none. */
static msa_request *claim(msa_mesh *m, peer *p, uint64_t tag) {
    for (msa_request *r = p->receiving; r; r = r->next)
        if (r->tag == tag) {
            take_out(&p->receiving, &p->receiving_end, r);
            return r;
        }
    for (msa_request *r = m->from_any; r; r = r->next)
        if (r->tag == tag) {
            take_out(&m->from_any, &m->from_any_end, r);
            r->peer = (int)(p - m->peers);
            return r;
        }
    return NULL;
}

static void aborted(msa_mesh *m, uint64_t tag, const char *why) {
    if (tag >= m->aborted_from) return;
    m->aborted_from = tag;
    snprintf(m->abort_text, sizeof m->abort_text, "%s", why);
    for (int i = 0; i < m->size; i++) {
        peer *p = &m->peers[i];
        fail_all(&p->receiving, &p->receiving_end, tag, why);
        if (p->into && p->into->tag >= tag) {
            finish(p->into, why);
            p->into = NULL;
        }
    }
}

/* A header has arrived: where does the message go? False when the peer talks nonsense. */
static bool begin_message(msa_mesh *m, peer *p) {
    header h = p->head;
    p->body_got = 0;
    if (h.kind == ABORT) return h.bytes < ABORT_TEXT && (h.tag & MSA_TAG_COLLECTIVE);
    if (h.kind != DATA || h.bytes > MAX_MESSAGE) return false;
    msa_request *r = claim(m, p, h.tag);
    if (r && r->bytes != h.bytes)
        wrong_size(r, h.bytes); /* the message is read and dropped */
    else if (r)
        p->into = r;
    else {
        p->kept_now = malloc(sizeof(message) + h.bytes);
        if (!p->kept_now) return false;
        *p->kept_now = (message){NULL, h.tag, h.bytes};
    }
    return true;
}

static void deliver(msa_request *r, message *k) {
    if (r->bytes != k->bytes)
        wrong_size(r, k->bytes);
    else {
        if (k->bytes) memcpy(r->data, k->data, k->bytes);
        finish(r, NULL);
    }
    free(k);
}

static void end_message(msa_mesh *m, peer *p) {
    p->head_got = 0;
    if (p->head.kind == ABORT) {
        p->abort_text[p->head.bytes] = 0;
        aborted(m, p->head.tag, p->abort_text);
    } else if (p->into) {
        finish(p->into, NULL);
        p->into = NULL;
    } else if (p->kept_now) {
        message *k = p->kept_now;
        p->kept_now = NULL;
        msa_request *r = claim(m, p, k->tag); /* it may have been asked for since */
        if (r)
            deliver(r, k);
        else {
            *p->kept_end = k;
            p->kept_end = &k->next;
        }
    }
}

static void read_from(msa_mesh *m, peer *p) {
    char waste[4096];
    for (int turns = 0; p->socket >= 0 && turns < 64; turns++) {
        bool in_head = p->head_got < sizeof p->head;
        size_t left = in_head ? sizeof p->head - p->head_got : p->head.bytes - p->body_got;
        char *to = in_head                 ? (char *)&p->head + p->head_got
                   : p->head.kind == ABORT ? p->abort_text + p->body_got
                   : p->into               ? p->into->data + p->body_got
                   : p->kept_now           ? p->kept_now->data + p->body_got
                                           : waste;
        if (to == waste && left > sizeof waste) left = sizeof waste;
        ssize_t n = recv(p->socket, to, left, 0);
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n <= 0) {
            hang_up_errno(m, p, n == 0 ? 0 : errno);
            return;
        }
        if (!in_head)
            p->body_got += (size_t)n;
        else if ((p->head_got += (size_t)n) < sizeof p->head)
            continue;
        else if (!begin_message(m, p)) {
            hang_up(m, p, "a peer sent what is no message");
            return;
        }
        if (p->body_got == p->head.bytes) end_message(m, p);
    }
}

static void write_to(msa_mesh *m, peer *p) {
    while (p->socket >= 0 && p->sending) {
        msa_request *r = p->sending;
        bool in_head = r->moved < sizeof r->head;
        const char *from = in_head ? (const char *)&r->head + r->moved : r->data + (r->moved - sizeof r->head);
        size_t left = in_head ? sizeof r->head - r->moved : sizeof r->head + r->bytes - r->moved;
        ssize_t n = left ? send(p->socket, from, left, MSG_NOSIGNAL | (in_head && r->bytes ? MSG_MORE : 0)) : 0;
        if (n < 0 && errno == EINTR) continue;
        if (n < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) return;
        if (n < 0) {
            hang_up_errno(m, p, errno);
            return;
        }
        r->moved += (size_t)n;
        if (r->moved == sizeof r->head + r->bytes) {
            take_out(&p->sending, &p->sending_end, r);
            finish(r, NULL);
        }
    }
}

/* The mesh's thread: until closing, and then until all has been sent or 5 seconds are over. */
static void *run(void *mesh) {
    msa_mesh *m = mesh;
    struct pollfd *polls = malloc(((size_t)m->size + 1) * sizeof *polls);
    int64_t last = INT64_MAX;
    pthread_mutex_lock(&m->lock);
    while (polls) {
        bool sending = false;
        polls[m->size] = (struct pollfd){m->wake, POLLIN, 0};
        for (int i = 0; i < m->size; i++) {
            peer *p = &m->peers[i];
            polls[i] = (struct pollfd){p->socket, (short)(POLLIN | (p->sending ? POLLOUT : 0)), 0};
            sending |= p->socket >= 0 && p->sending;
        }
        if (m->closing && last == INT64_MAX) last = msa_deadline(5000);
        if (m->closing && (!sending || msa_now() >= last)) break;
        pthread_mutex_unlock(&m->lock);
        int ready = poll(polls, (nfds_t)m->size + 1, m->closing ? remaining(last) : -1);
        pthread_mutex_lock(&m->lock);
        if (ready <= 0) continue;
        uint64_t count;
        ssize_t ignored = polls[m->size].revents ? read(m->wake, &count, sizeof count) : 0;
        (void)ignored;
        for (int i = 0; i < m->size; i++) {
            if (polls[i].fd < 0 || polls[i].fd != m->peers[i].socket) continue;
            if (polls[i].revents & POLLOUT) write_to(m, &m->peers[i]);
            if (polls[i].revents & (POLLIN | POLLERR | POLLHUP)) read_from(m, &m->peers[i]);
        }
    }
    for (int i = 0; i < m->size; i++)
        if (m->peers[i].socket >= 0) shutdown(m->peers[i].socket, SHUT_WR);
    pthread_mutex_unlock(&m->lock);
    free(polls);
    return NULL;
}

/* Posting and waiting. */

static msa_request *post(msa_mesh *m, int to, bool sends, uint64_t tag, void *data, size_t bytes) {
    if (m->process != getpid())
        return msa_fail_null(MSA_RUNTIME_ERROR, "this process group belongs to the parent of a forked process");
    if (to == m->rank || to >= m->size || (to < 0 && (sends || to != MSA_ANY_PEER)))
        return msa_fail_null(MSA_RUNTIME_ERROR, "rank %d cannot exchange messages with rank %d of %d", m->rank, to,
                             m->size);
    msa_request *r = msa_calloc(1, sizeof *r);
    if (!r) return NULL;
    *r = (msa_request){.mesh = m,
                       .peer = to,
                       .sends = sends,
                       .tag = tag,
                       .data = data,
                       .bytes = bytes,
                       .head = {DATA, (uint32_t)m->rank, tag, bytes}};
    return r;
}

msa_request *msa_mesh_send(msa_mesh *m, int to, uint64_t tag, const void *data, size_t bytes) {
    msa_request *r = post(m, to, true, tag, (void *)data, bytes);
    if (!r) return NULL;
    pthread_mutex_lock(&m->lock);
    peer *p = &m->peers[to];
    if (p->socket < 0)
        finish(r, p->error);
    else {
        bool first = !p->sending;
        append(&p->sending_end, r);
        if (first) write_to(m, p); /* most messages leave at once, without waking the thread */
        if (p->sending) wake(m);
    }
    pthread_mutex_unlock(&m->lock);
    return r;
}

static message *find_kept(peer *p, uint64_t tag) {
    for (message **at = &p->kept; *at; at = &(*at)->next) {
        message *k = *at;
        if (k->tag != tag) continue;
        *at = k->next;
        if (!*at) p->kept_end = at;
        return k;
    }
    return NULL;
}

msa_request *msa_mesh_receive(msa_mesh *m, int from, uint64_t tag, void *data, size_t bytes) {
    msa_request *r = post(m, from, false, tag, data, bytes);
    if (!r) return NULL;
    pthread_mutex_lock(&m->lock);
    message *k = NULL;
    int open = 0;
    bool failed = tag >= m->aborted_from;
    for (int i = from < 0 ? 0 : from; i < (from < 0 ? m->size : from + 1) && !k && !failed; i++) {
        k = find_kept(&m->peers[i], tag);
        if (k) r->peer = i;
        open += m->peers[i].socket >= 0;
    }
    if (k)
        deliver(r, k);
    else if (failed)
        finish(r, m->abort_text);
    else if (!open)
        finish(r, from < 0 ? "Connection closed by all peers" : m->peers[from].error);
    else
        append(from < 0 ? &m->from_any_end : &m->peers[from].receiving_end, r);
    pthread_mutex_unlock(&m->lock);
    return r;
}

int msa_request_wait(msa_request *r, int64_t deadline) {
    msa_mesh *m = r->mesh;
    if (m->process != getpid())
        return msa_fail(MSA_RUNTIME_ERROR, "this process group belongs to the parent of a forked process");
    pthread_mutex_lock(&m->lock);
    while (r->state == PENDING) {
        struct timespec until = {deadline / 1000, deadline % 1000 * 1000000};
        if (deadline == INT64_MAX)
            pthread_cond_wait(&m->changed, &m->lock);
        else if (pthread_cond_timedwait(&m->changed, &m->lock, &until) == ETIMEDOUT)
            break;
    }
    int status = r->state == DONE ? 0 : r->state == FAILED ? msa_fail(MSA_RUNTIME_ERROR, "%s", r->error) : 1;
    pthread_mutex_unlock(&m->lock);
    return status;
}

bool msa_request_done(msa_request *r) {
    if (r->mesh->process != getpid()) return true;
    pthread_mutex_lock(&r->mesh->lock);
    bool done = r->state != PENDING;
    pthread_mutex_unlock(&r->mesh->lock);
    return done;
}

int msa_request_peer(const msa_request *r) {
    return r->peer;
}

void msa_request_release(msa_request *r) {
    if (!r) return;
    msa_mesh *m = r->mesh;
    if (m->process != getpid()) return;
    pthread_mutex_lock(&m->lock);
    if (r->state == PENDING && r->sends) {
        peer *p = &m->peers[r->peer];
        if (r->moved) { /* half a message cannot be taken back */
            r->moved = 0;
            hang_up(m, p, "Application timeout caused pair closure");
        } else {
            take_out(&p->sending, &p->sending_end, r);
        }
    } else if (r->state == PENDING) {
        take_out(&m->from_any, &m->from_any_end, r);
        for (int i = 0; i < m->size; i++) {
            peer *p = &m->peers[i];
            take_out(&p->receiving, &p->receiving_end, r);
            if (p->into == r) p->into = NULL; /* the rest of its message is read and dropped */
        }
    }
    pthread_mutex_unlock(&m->lock);
    free(r);
}

void msa_mesh_abort(msa_mesh *m, uint64_t tag, const char *why) {
    if (m->process != getpid()) return;
    size_t bytes = strnlen(why, ABORT_TEXT - 1);
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->size; i++) {
        peer *p = &m->peers[i];
        msa_request *r = p->socket >= 0 ? malloc(sizeof *r + bytes) : NULL;
        if (!r) continue;
        *r = (msa_request){.mesh = m,
                           .peer = i,
                           .sends = true,
                           .owned = true,
                           .bytes = bytes,
                           .data = (char *)(r + 1),
                           .head = {ABORT, (uint32_t)m->rank, tag, bytes}};
        memcpy(r->data, why, bytes);
        append(&p->sending_end, r);
    }
    aborted(m, tag, why);
    wake(m);
    pthread_mutex_unlock(&m->lock);
}

void msa_mesh_hang_up(msa_mesh *m, const char *why) {
    pthread_mutex_lock(&m->lock);
    for (int i = 0; i < m->size; i++) hang_up(m, &m->peers[i], why);
    pthread_mutex_unlock(&m->lock);
}

void msa_mesh_stop(msa_mesh *m) {
    if (m->process != getpid() || m->stopped) return; /* in a fork's child the memory stays, there is nothing else */
    m->stopped = true;
    pthread_mutex_lock(&meshes_lock);
    for (msa_mesh **at = &meshes; *at; at = &(*at)->next)
        if (*at == m) {
            *at = m->next;
            break;
        }
    pthread_mutex_unlock(&meshes_lock);
    pthread_mutex_lock(&m->lock);
    m->closing = true;
    pthread_mutex_unlock(&m->lock);
    wake(m);
    pthread_join(m->thread, NULL);
    msa_mesh_hang_up(m, "the process group has been destroyed");
}

void msa_mesh_close(msa_mesh *m) {
    if (m->process != getpid()) return;
    msa_mesh_stop(m);
    free_mesh(m);
}
