/* A whole program over bywash.h: AES-256-GCM both ways, HMAC-SHA-256, a batch of operations under way at once, one computed side by side, and errors in words.
 *
 *   cargo build --release -p bywash-c
 *   cc -o demo crates/interfaces/c/examples/demo.c -Icrates/interfaces/c/include -Ltarget/release -lbywash_c -Wl,-rpath,$PWD/target/release
 *   ./demo
 */
#include "bywash.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void check(bywash_status status, const char *what)
{
    if (status == BYWASH_STATUS_OK)
        return;
    fprintf(stderr, "%s: %s\n", what, bywash_error_message());
    exit(1);
}

static void expect(const void *got, const void *wanted, size_t len, const char *what)
{
    if (memcmp(got, wanted, len) == 0) {
        printf("%s: ok\n", what);
        return;
    }
    fprintf(stderr, "%s: wrong bytes\n", what);
    exit(1);
}

/* CAVS 14.0, gcmEncryptExtIV256.rsp, [Keylen 256, IVlen 96, PTlen 128, AADlen 0, Taglen 128], count 0. */
static const uint8_t KEY[32] = {0x31, 0xbd, 0xad, 0xd9, 0x66, 0x98, 0xc2, 0x04, 0xaa, 0x9c, 0xe1, 0x44, 0x8e, 0xa9, 0x4a, 0xe1,
                                0xfb, 0x4a, 0x9a, 0x0b, 0x3c, 0x9d, 0x77, 0x3b, 0x51, 0xbb, 0x18, 0x22, 0x66, 0x6b, 0x8f, 0x22};
static const uint8_t IV[12] = {0x0d, 0x18, 0xe0, 0x6c, 0x7c, 0x72, 0x5a, 0xc9, 0xe3, 0x62, 0xe1, 0xce};
static const uint8_t PLAIN[16] = {0x2d, 0xb5, 0x16, 0x8e, 0x93, 0x25, 0x56, 0xf8, 0x08, 0x9a, 0x06, 0x22, 0x98, 0x1d, 0x01, 0x7d};
static const uint8_t CIPHER[16] = {0xfa, 0x43, 0x62, 0x18, 0x96, 0x61, 0xd1, 0x63, 0xfc, 0xd6, 0xa5, 0x6d, 0x8b, 0xf0, 0x40, 0x5a};
static const uint8_t TAG[16] = {0xd6, 0x36, 0xac, 0x1b, 0xbe, 0xdd, 0x5c, 0xc3, 0xee, 0x72, 0x7d, 0xc2, 0xab, 0x4a, 0x94, 0x89};

static void gcm(const bywash_session *session)
{
    uint8_t text[16], tag[16];
    memcpy(text, PLAIN, sizeof text);
    bywash_operation op = {.direction = BYWASH_ENCRYPT, .iv = IV, .iv_len = sizeof IV,
                           .input = text, .input_len = sizeof text, .output = text, .output_len = sizeof text,
                           .tag = tag, .tag_len = sizeof tag};
    check(bywash_run(session, &op), "encrypt");
    expect(text, CIPHER, sizeof text, "AES-256-GCM ciphertext");
    expect(tag, TAG, sizeof tag, "AES-256-GCM tag");

    op.direction = BYWASH_DECRYPT;
    check(bywash_run(session, &op), "decrypt");
    expect(text, PLAIN, sizeof text, "AES-256-GCM plaintext");

    memcpy(text, CIPHER, sizeof text);
    tag[0] ^= 1;
    if (bywash_run(session, &op) != BYWASH_STATUS_ERROR_AUTHENTICATION) {
        fprintf(stderr, "a forged tag was accepted\n");
        exit(1);
    }
    printf("forged tag: %s\n", bywash_error_message());
}

static void hmac(const bywash_client *client)
{
    /* RFC 4231 s4.3 */
    static const uint8_t wanted[32] = {0x5b, 0xdc, 0xc1, 0x46, 0xbf, 0x60, 0x75, 0x4e, 0x6a, 0x04, 0x24, 0x26, 0x08, 0x95, 0x75, 0xc7,
                                       0x5a, 0x00, 0x3f, 0x08, 0x9d, 0x27, 0x39, 0x83, 0x9d, 0xec, 0x58, 0xb9, 0x64, 0xec, 0x38, 0x43};
    static const char text[] = "what do ya want for nothing?";
    bywash_session *session;
    check(bywash_session_symmetric(client, "HMAC-SHA-256", (const uint8_t *)"Jefe", 4, 0, &session), "open HMAC");
    uint8_t mac[32];
    bywash_operation op = {.direction = BYWASH_COMPUTE, .input = (const uint8_t *)text, .input_len = sizeof text - 1,
                           .output = mac, .output_len = sizeof mac};
    check(bywash_run(session, &op), "HMAC");
    expect(mac, wanted, sizeof mac, "HMAC-SHA-256");
    bywash_session_free(session);
}

enum { BATCH = 16 };

static void batch(const bywash_session *session)
{
    bywash_pending *pending[BATCH];
    bywash_operation op = {.direction = BYWASH_ENCRYPT, .iv = IV, .iv_len = sizeof IV, .input = PLAIN, .input_len = sizeof PLAIN};
    uint8_t text[16], tag[16] = {0};
    op.output_len = sizeof text;
    op.tag = tag;
    op.tag_len = sizeof tag;
    for (int i = 0; i < BATCH; i++)
        check(bywash_submit(session, &op, &pending[i]), "submit");
    op.output = text;
    for (int i = 0; i < BATCH; i++) {
        memset(text, 0, sizeof text);
        check(bywash_wait(pending[i], 10000, &op), "wait");
        if (memcmp(text, CIPHER, sizeof text) != 0 || memcmp(tag, TAG, sizeof tag) != 0) {
            fprintf(stderr, "batch: wrong bytes in operation %d\n", i);
            exit(1);
        }
        bywash_pending_free(pending[i]);
    }
    printf("batch of %d: ok\n", BATCH);
}

enum { MESSAGES = 16, LENGTH = 1024 };

/* AES-128-CBC, a key for each message: encryption of one is a chain, so sixteen side by side take little longer than one. */
static void many(const bywash_client *client)
{
    /* SP 800-38A s F.2.1, its first block; ours goes on with zeros. */
    static const uint8_t key[16] = {0x2b, 0x7e, 0x15, 0x16, 0x28, 0xae, 0xd2, 0xa6, 0xab, 0xf7, 0x15, 0x88, 0x09, 0xcf, 0x4f, 0x3c};
    static const uint8_t plain[16] = {0x6b, 0xc1, 0xbe, 0xe2, 0x2e, 0x40, 0x9f, 0x96, 0xe9, 0x3d, 0x7e, 0x11, 0x73, 0x93, 0x17, 0x2a};
    static const uint8_t wanted[16] = {0x76, 0x49, 0xab, 0xac, 0x81, 0x19, 0xb2, 0x46, 0xce, 0xe9, 0x8e, 0x9b, 0x12, 0xe9, 0x19, 0x7d};
    static uint8_t text[MESSAGES][LENGTH], back[MESSAGES][LENGTH], iv[16];
    bywash_session *sessions[MESSAGES];
    bywash_operation ops[MESSAGES];
    bywash_status statuses[MESSAGES];
    for (int i = 0; i < 16; i++)
        iv[i] = (uint8_t)i;
    for (int i = 0; i < MESSAGES; i++) {
        uint8_t other[16];
        memcpy(other, key, sizeof other);
        other[0] ^= (uint8_t)i;
        check(bywash_session_symmetric(client, "AES-128-CBC", other, sizeof other, 0, &sessions[i]), "open AES-128-CBC");
        memcpy(text[i], plain, sizeof plain);
        ops[i] = (bywash_operation){.direction = BYWASH_ENCRYPT, .iv = iv, .iv_len = sizeof iv,
                                    .input = text[i], .input_len = LENGTH, .output = text[i], .output_len = LENGTH};
    }
    check(bywash_run_many((const bywash_session *const *)sessions, ops, statuses, MESSAGES), "encrypt together");
    if (memcmp(text[0], wanted, sizeof wanted) != 0)
        exit(1);
    for (int i = 0; i < MESSAGES; i++) {
        bywash_operation op = ops[i];
        op.direction = BYWASH_DECRYPT;
        op.output = back[i];
        check(bywash_run(sessions[i], &op), "decrypt");
        if (memcmp(back[i], plain, sizeof plain) != 0 || statuses[i] != BYWASH_STATUS_OK || ops[i].output_len != LENGTH) {
            fprintf(stderr, "many: wrong bytes in message %d\n", i);
            exit(1);
        }
    }
    printf("%d CBC messages together: ok\n", MESSAGES);

    /* One that fails leaves the others alone; one that writes where another reads fails them all. */
    ops[3].input_len = 15;
    if (bywash_run_many((const bywash_session *const *)sessions, ops, statuses, MESSAGES) != BYWASH_STATUS_ERROR_INPUT
        || statuses[3] != BYWASH_STATUS_ERROR_INPUT || statuses[4] != BYWASH_STATUS_OK)
        exit(1);
    printf("one of many: %s\n", bywash_error_message());
    ops[3].output = ops[4].output + 1;
    if (bywash_run_many((const bywash_session *const *)sessions, ops, statuses, MESSAGES) != BYWASH_STATUS_ERROR_ARGUMENT)
        exit(1);
    printf("overlap: %s\n", bywash_error_message());
    for (int i = 0; i < MESSAGES; i++)
        bywash_session_free(sessions[i]);
}

static void errors(const bywash_client *client)
{
    bywash_session *session = NULL;
    if (bywash_session_symmetric(client, "AES-257-GCM", KEY, 32, 16, &session) != BYWASH_STATUS_ERROR_ALGORITHM)
        exit(1);
    printf("unknown algorithm: %s\n", bywash_error_message());
    if (bywash_session_symmetric(client, "AES-256-GCM", KEY, 16, 16, &session) != BYWASH_STATUS_ERROR_KEY)
        exit(1);
    printf("short key: %s\n", bywash_error_message());
    if (bywash_run(NULL, NULL) != BYWASH_STATUS_ERROR_ARGUMENT || session != NULL)
        exit(1);
    printf("null session: %s\n", bywash_error_message());
}

int main(void)
{
    bywash_client *client;
    bywash_session *session;
    check(bywash_client_new(NULL, &client), "client");
    check(bywash_session_symmetric(client, "AES-256-GCM", KEY, sizeof KEY, 16, &session), "open AES-256-GCM");
    gcm(session);
    hmac(client);
    batch(session);
    many(client);
    errors(client);
    bywash_stats stats;
    check(bywash_stats_of(client, "AES-256-GCM", &stats), "stats");
    printf("AES-256-GCM: %llu operations here\n", (unsigned long long)stats.here_operations);
    char words[200];
    check(bywash_client_status(client, words, sizeof words), "status");
    printf("status: %s\n", words);
    bywash_session_free(session);
    bywash_client_free(client);
    return 0;
}
