/* A mesh: processes that are connected with each other by TCP, each pair once, and exchange tagged messages.
 *
 * One thread for each mesh moves all bytes, so messages pass each other freely: sends and receives are requests that
 * are posted, then waited for. Between two processes messages of one tag arrive in the order in which they were sent. A
 * message that nobody has asked for yet is kept. When a connection ends, every request that needs it fails, now and
 * later. */
#ifndef MSA_PARALLEL_MESH_H
#define MSA_PARALLEL_MESH_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "msadapter/error.h"

typedef struct msa_mesh msa_mesh;
typedef struct msa_request msa_request;

/* Milliseconds on a clock that only goes forward. A deadline of INT64_MAX never comes. */
int64_t msa_now(void);
MSA_API int64_t msa_deadline(int64_t timeout_ms); /* negative: never */

/* A socket that listens on `host`, on a free port that is written to *port; -1 with an error. */
MSA_API int msa_mesh_listen(const char *host, int *port);
/* Connect with all others. `hosts` and `ports` tell where each listens; `token` is this mesh's and no other's. The
 * listening socket is closed in any case. */
MSA_API msa_mesh *msa_mesh_connect(int listener, int rank, int size, const char *const *hosts, const int *ports,
                                   uint64_t token, int64_t timeout_ms);
/* End all connections: what has been sent is still delivered, what is waited for fails. */
MSA_API void msa_mesh_stop(msa_mesh *mesh);
/* Stop, and free it. There are no requests any more. */
MSA_API void msa_mesh_close(msa_mesh *mesh);

int msa_mesh_rank(const msa_mesh *mesh);
int msa_mesh_size(const msa_mesh *mesh);

enum { MSA_ANY_PEER = -1 };
#define MSA_TAG_COLLECTIVE (1ull << 63) /* with the number of the collective in the lower bits */

/* The memory has to stay until the request is released. NULL with an error. */
msa_request *msa_mesh_send(msa_mesh *mesh, int peer, uint64_t tag, const void *data, size_t bytes);
msa_request *msa_mesh_receive(msa_mesh *mesh, int peer, uint64_t tag, void *data, size_t bytes);
/* 0 done, -1 failed with an error, 1 not done when the deadline came; `what` is "send" or "recv" in the message. */
int msa_request_wait(msa_request *request, int64_t deadline);
bool msa_request_done(msa_request *request);
int msa_request_peer(const msa_request *request); /* who it came from */
void msa_request_release(msa_request *request);   /* gives up on it when it is not done */

/* Tell all others that the collective `tag` has failed here: what they wait for of it and of later ones fails at once.
 */
void msa_mesh_abort(msa_mesh *mesh, uint64_t tag, const char *why);
/* End all connections at once. */
void msa_mesh_hang_up(msa_mesh *mesh, const char *why);

#endif
