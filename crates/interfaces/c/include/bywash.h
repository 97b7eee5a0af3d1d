// Bywash, the C interface. Generated from the Rust sources by the test `header`; do not edit.

#ifndef BYWASH_H
#define BYWASH_H

#include <stddef.h>
#include <stdint.h>

// The routing table decides.
#define BYWASH_ROUTE_AUTO 0

// Everything in the caller's place.
#define BYWASH_ROUTE_HERE 1

// Everything through the queue.
#define BYWASH_ROUTE_QUEUE 2

// Plaintext in, ciphertext and tag out.
#define BYWASH_ENCRYPT 0

// Ciphertext and tag in, plaintext out.
#define BYWASH_DECRYPT 1

// Digest, MAC or public-key operation.
#define BYWASH_COMPUTE 2

// How a call went.
enum bywash_status
#if defined(__cplusplus) || __STDC_VERSION__ >= 202311L
  : int32_t
#endif // defined(__cplusplus) || __STDC_VERSION__ >= 202311L
 {
  // Done.
  BYWASH_STATUS_OK = 0,
  // Not done yet; ask again.
  BYWASH_STATUS_PENDING = 1,
  // A null pointer, a length that does not fit, or buffers that overlap in part.
  BYWASH_STATUS_ERROR_ARGUMENT = -1,
  // No algorithm of that name.
  BYWASH_STATUS_ERROR_ALGORITHM = -2,
  // A key of the wrong kind or length, or one that may not be used.
  BYWASH_STATUS_ERROR_KEY = -3,
  // Wrong IV length.
  BYWASH_STATUS_ERROR_IV = -4,
  // Wrong tag length.
  BYWASH_STATUS_ERROR_TAG = -5,
  // Wrong input length, or a value out of range.
  BYWASH_STATUS_ERROR_INPUT = -6,
  // Not enough room for the output.
  BYWASH_STATUS_ERROR_OUTPUT = -7,
  // The algorithm does not do that.
  BYWASH_STATUS_ERROR_OPERATION = -8,
  // Tag or signature does not verify, or the peer's public value is unusable.
  BYWASH_STATUS_ERROR_AUTHENTICATION = -9,
  // No engine does it, or the engine failed.
  BYWASH_STATUS_ERROR_ENGINE = -10,
  // Not done within its bound.
  BYWASH_STATUS_ERROR_TIMEOUT = -11,
  // A quota is used up.
  BYWASH_STATUS_ERROR_QUOTA = -12,
  // Shutting down, or the result was taken before.
  BYWASH_STATUS_ERROR_UNAVAILABLE = -13,
  // A configuration value cannot be read.
  BYWASH_STATUS_ERROR_CONFIG = -14,
  // A fault of this library.
  BYWASH_STATUS_ERROR_INTERNAL = -15,
};
#ifndef __cplusplus
#if __STDC_VERSION__ >= 202311L
typedef enum bywash_status bywash_status;
#else
typedef int32_t bywash_status;
#endif // __STDC_VERSION__ >= 202311L
#endif // __cplusplus

// A process's access to engines.
typedef struct bywash_client bywash_client;

// An operation under way.
typedef struct bywash_pending bywash_pending;

// An algorithm bound to a key.
typedef struct bywash_session bywash_session;

// What a client is told when it is made.
typedef struct {
  // Path of the broker's socket; null works without a broker.
  const char *socket;
  // One of `BYWASH_ROUTE_AUTO`, `BYWASH_ROUTE_HERE`, `BYWASH_ROUTE_QUEUE`.
  uint32_t route;
  // Names the run this process belongs to, for the broker's accounts; may be null.
  const char *run;
} bywash_config;

// What a client has done.
typedef struct {
  // Operations of the algorithm run in the caller's place.
  uint64_t here_operations;
  // Bytes of input of the algorithm run in the caller's place.
  uint64_t here_bytes;
  // Operations of all algorithms that a queue completed.
  uint64_t queued;
  // Operations of all algorithms given to a queue and run here after all: the broker died, hung or refused.
  uint64_t reruns;
  // Operations of all algorithms meant for the queue and run here at once: no room in the ring, or no broker just then.
  uint64_t overflows;
  // Connections to brokers made.
  uint64_t connections;
} bywash_stats;

// One operation. For work in place (ciphers only) `output` is `input`; otherwise no buffer may overlap one that is written.
typedef struct {
  // `BYWASH_ENCRYPT`, `BYWASH_DECRYPT` or `BYWASH_COMPUTE`.
  uint32_t direction;
  // IV, nonce, counter block or tweak; null where there is none.
  const uint8_t *iv;
  // Its length.
  size_t iv_len;
  // Associated data of an AEAD.
  const uint8_t *aad;
  // Its length.
  size_t aad_len;
  // What is read.
  const uint8_t *input;
  // Its length.
  size_t input_len;
  // What is written.
  uint8_t *output;
  // Before: the room there is. After: the bytes written.
  size_t output_len;
  // AEAD: written by encryption, read by decryption. ECDSA verification: the signature, read.
  uint8_t *tag;
  // Its length, which must be the session's.
  size_t tag_len;
} bywash_operation;

// A number or a key: unsigned, big-endian; leading zeros are allowed in RSA numbers.
typedef struct {
  // The first byte.
  const uint8_t *data;
  // How many.
  size_t len;
} bywash_bytes;

// An RSA private key with its CRT parts (RFC 8017 s3.2).
typedef struct {
  // n
  bywash_bytes modulus;
  // e
  bywash_bytes public_exponent;
  // d
  bywash_bytes private_exponent;
  // p
  bywash_bytes prime1;
  // q
  bywash_bytes prime2;
  // d mod (p - 1)
  bywash_bytes exponent1;
  // d mod (q - 1)
  bywash_bytes exponent2;
  // q^-1 mod p
  bywash_bytes coefficient;
} bywash_rsa_private;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

// Makes a client. A null configuration means what the environment says (`BYWASH_SOCKET`, `BYWASH_ROUTE`, `BYWASH_RUN`).
// A broker that cannot be reached is no error: the work is then done in this process. Starts no thread.
//
// # Safety
// `config` must be null or valid, with valid strings; `client` must be valid for writing.
bywash_status bywash_client_new(const bywash_config *config, bywash_client **client);

// Frees a client; sessions opened on it go on working.
//
// # Safety
// `client` must be null or come from `bywash_client_new`, and not be used again.
void bywash_client_free(bywash_client *client);

// Where an operation of this size would run: writes 0 for "here, in the calling thread" or 1 for "in the queue".
//
// # Safety
// `client`, `algorithm` and `where_` must be valid or null.
bywash_status bywash_place(const bywash_client *client, const char *algorithm, size_t bytes, uint32_t *where_);

// What this client has done so far, with one algorithm in place and with all in the queue.
//
// # Safety
// `client`, `algorithm` and `stats` must be valid or null.
bywash_status bywash_stats_of(const bywash_client *client, const char *algorithm, bywash_stats *stats);

// How things stand with the broker, in words: connected, or why not and what would mend it. Writes at most `len` bytes with the final zero.
//
// # Safety
// `client` must be valid or null, `words` for `len` bytes.
bywash_status bywash_client_status(const bywash_client *client,
                                   char *words,
                                   size_t len);

// Runs one operation to its end, where the routing table says. Bounded: a broker that dies or hangs is replaced by this process itself.
//
// # Safety
// `session` and `operation` must be valid or null, every buffer for its length.
bywash_status bywash_run(const bywash_session *session,
                         bywash_operation *operation);

// Runs `count` operations that are there together, each on the session at the same place: `operations[i]` on `sessions[i]`, which may be the same for several.
// Those that the routing table keeps in this process go side by side where that gains: CBC encryptions and public-key operations of any sessions of one client.
//
// Each operation's own outcome, what `bywash_run` would return, is written to its place in `statuses`. Returns `BYWASH_STATUS_OK` if all are that, or else the
// status of the first that is not, which `bywash_error_message` names; the others have been run all the same.
//
// What one operation writes (output, tag) no other may read or write. If one does, or an array is null, nothing is run, no status is written, and
// `BYWASH_STATUS_ERROR_ARGUMENT` is returned. With a `count` of 0 there is nothing to do.
//
// # Safety
// The arrays must be valid for `count` entries or null, each session valid or null, every buffer for its length.
bywash_status bywash_run_many(const bywash_session *const *sessions,
                              bywash_operation *operations,
                              bywash_status *statuses,
                              size_t count);

// Hands one operation over and returns at once. Input, IV, AAD and tag are copied; of `output` only `output_len`, the room, is used.
//
// # Safety
// Every pointer must be valid or null, every buffer for its length.
bywash_status bywash_submit(const bywash_session *session,
                            const bywash_operation *operation,
                            bywash_pending **pending);

// Whether an operation is done: `BYWASH_STATUS_OK` if `bywash_wait` will not wait, `BYWASH_STATUS_PENDING` if not. Never waits.
//
// # Safety
// `pending` must be valid or null, and no other thread may use it meanwhile.
bywash_status bywash_poll(bywash_pending *pending);

// Waits at most `timeout_ms`, then delivers output and tag into the buffers of `operation` (its input fields are not used), or returns
// `BYWASH_STATUS_PENDING`. A result is delivered once; free the handle afterwards.
//
// # Safety
// Every pointer must be valid or null, `output` and `tag` for their lengths, and no other thread may use `pending` meanwhile.
bywash_status bywash_wait(bywash_pending *pending,
                          uint32_t timeout_ms,
                          bywash_operation *operation);

// Frees a pending operation, done or not; one not done still runs, and its result is wiped.
//
// # Safety
// `pending` must be null or come from `bywash_submit`, and not be used again.
void bywash_pending_free(bywash_pending *pending);

// Opens a session of a cipher, an AEAD or an HMAC; with a null key of length 0, of a digest. `tag_len` 0 is the algorithm's full tag.
//
// # Safety
// Every pointer must be valid or null, `key` for `key_len` bytes.
bywash_status bywash_session_symmetric(const bywash_client *client,
                                       const char *algorithm,
                                       const uint8_t *key,
                                       size_t key_len,
                                       size_t tag_len,
                                       bywash_session **session);

// Opens a session of an RSA private operation (`"RSA-2048 private"`).
//
// # Safety
// Every pointer must be valid or null, and every part of the key for its length.
bywash_status bywash_session_rsa_private(const bywash_client *client,
                                         const char *algorithm,
                                         const bywash_rsa_private *key,
                                         bywash_session **session);

// Opens a session of an RSA public operation (`"RSA-2048 public"`).
//
// # Safety
// Every pointer must be valid or null, modulus and exponent for their lengths.
bywash_status bywash_session_rsa_public(const bywash_client *client,
                                        const char *algorithm,
                                        bywash_bytes modulus,
                                        bywash_bytes exponent,
                                        bywash_session **session);

// Opens a session with an elliptic-curve private key: the big-endian scalar (P-256) or the 32 bytes of RFC 7748 (X25519).
//
// # Safety
// Every pointer must be valid or null, `key` for its length.
bywash_status bywash_session_ec_private(const bywash_client *client,
                                        const char *algorithm,
                                        bywash_bytes key,
                                        bywash_session **session);

// Opens a session with an elliptic-curve public key: the uncompressed point (SEC 1 s2.3.3).
//
// # Safety
// Every pointer must be valid or null, `key` for its length.
bywash_status bywash_session_ec_public(const bywash_client *client,
                                       const char *algorithm,
                                       bywash_bytes key,
                                       bywash_session **session);

// Closes a session and zeroises its key. Operations under way are finished first.
//
// # Safety
// `session` must be null or come from one of the functions above, and not be used again.
void bywash_session_free(bywash_session *session);

// What went wrong in the calling thread's last call that failed; an empty string if none did. Valid until the thread's next call.
const char *bywash_error_message(void);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* BYWASH_H */
