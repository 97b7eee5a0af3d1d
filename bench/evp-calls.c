/* What one message costs a program that calls EVP, by the default provider and by Bywash in turn, in one process and one thread. See evp-calls.sh.

   evp-calls CONFIGURATION CIPHER,... SIZE,... [enc|dec [PATTERN,... [CONFIGURATION]]]

   A second configuration is of another build, or of other settings, to be measured in the same rounds.

   update    one more piece of a message without end
   iv        a message under a new IV: init, associated data of 5 bytes if there can be any, text, final, tag
   key       the same under a new key
   context   a message in a context of its own, made and freed, always under the same key
   keys16    the same under 16 keys in turn
   keys200   the same under 200 keys in turn
   fresh     the same under a new key
   copy      a message in a copy of a context that has the key, made and freed, as Python's `cryptography` has one for each
   speed     what `openssl speed -evp` does for an AEAD: IV length, key and IV, padding, text */
#include <openssl/evp.h>
#include <openssl/provider.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { ROUNDS = 25 };

typedef struct {
    EVP_CIPHER *cipher;
    EVP_CIPHER_CTX *context;
    int is_aead, encrypt, size;
} Subject;

static unsigned char text[1 << 20], key[64], iv[16], aad[5], tag[16];

static void check(int done, const char *what) {
    if (done > 0) return;
    fprintf(stderr, "evp-calls: %s failed\n", what);
    exit(1);
}

static void message(const Subject *subject, EVP_CIPHER_CTX *context) {
    int length;
    unsigned char rest[32];
    if (subject->is_aead) check(EVP_CipherUpdate(context, NULL, &length, aad, sizeof aad), "associated data");
    check(EVP_CipherUpdate(context, text, &length, text, subject->size), "text");
    if (subject->is_aead && !subject->encrypt) check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag), "the tag");
    /* The text is noise, so a tag is wrong when decrypting. Padding is off: that it is wrong would cost more than the message. */
    (void)EVP_CipherFinal_ex(context, rest, &length);
    if (subject->is_aead && subject->encrypt) check(EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag), "the tag");
}

static void update(const Subject *subject) {
    int length;
    check(EVP_CipherUpdate(subject->context, text, &length, text, subject->size), "text");
}

static void in_copy(const Subject *subject) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    check(EVP_CIPHER_CTX_copy(context, subject->context), "copy");
    check(EVP_CipherInit_ex(context, NULL, NULL, NULL, iv, -1), "init");
    message(subject, context);
    EVP_CIPHER_CTX_free(context);
}

static void under_iv(const Subject *subject) {
    check(EVP_CipherInit_ex(subject->context, NULL, NULL, NULL, iv, -1), "init");
    message(subject, subject->context);
}

/* No key comes twice. */
static void next_key(void) {
    static unsigned long number;
    number++;
    memcpy(key, &number, sizeof number);
}

static void under_key(const Subject *subject) {
    next_key();
    check(EVP_CipherInit_ex(subject->context, NULL, NULL, key, iv, -1), "init");
    message(subject, subject->context);
}

static void in_context(const Subject *subject) {
    EVP_CIPHER_CTX *context = EVP_CIPHER_CTX_new();
    check(EVP_CipherInit_ex(context, subject->cipher, NULL, key, iv, subject->encrypt), "init");
    check(EVP_CIPHER_CTX_set_padding(context, 0), "padding");
    message(subject, context);
    EVP_CIPHER_CTX_free(context);
}

static void under_keys(const Subject *subject, unsigned keys) {
    static unsigned turn;
    key[0] = (unsigned char)(turn++ % keys);
    in_context(subject);
}

static void under_16(const Subject *subject) { under_keys(subject, 16); }
static void under_200(const Subject *subject) { under_keys(subject, 200); }

static void under_new(const Subject *subject) {
    next_key();
    in_context(subject);
}

static void speed(const Subject *subject) {
    int length;
    if (subject->is_aead) check(EVP_CIPHER_CTX_ctrl(subject->context, EVP_CTRL_AEAD_SET_IVLEN, 12, NULL), "the IV's length");
    check(EVP_CipherInit_ex(subject->context, NULL, NULL, key, iv, -1), "init");
    check(EVP_CIPHER_CTX_set_padding(subject->context, 0), "padding");
    check(EVP_CipherUpdate(subject->context, text, &length, text, subject->size), "text");
}

static double now_ns(void) {
    struct timespec time;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &time);
    return time.tv_sec * 1e9 + time.tv_nsec;
}

static int ascending(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* Of the first library the default provider and Bywash; of a second one Bywash. */
static void compare(OSSL_LIB_CTX *libraries[2], const char *name, const char *what, void (*run)(const Subject *), int size, int encrypt) {
    Subject subjects[3];
    double ns[3][ROUNDS];
    int rivals = libraries[1] ? 3 : 2;
    long count = 0;
    for (int i = 0; i < rivals; i++) {
        Subject *subject = &subjects[i];
        subject->cipher = EVP_CIPHER_fetch(libraries[i == 2], name, i ? "provider=bywash" : "provider=default");
        check(subject->cipher != NULL, "finding the cipher with both providers");
        subject->context = EVP_CIPHER_CTX_new();
        subject->is_aead = (EVP_CIPHER_get_flags(subject->cipher) & EVP_CIPH_FLAG_AEAD_CIPHER) != 0;
        subject->encrypt = encrypt;
        subject->size = size;
        check(EVP_CipherInit_ex(subject->context, subject->cipher, NULL, key, iv, encrypt), "init");
        check(EVP_CIPHER_CTX_set_padding(subject->context, 0), "padding");
        double begun = now_ns();
        for (count = 0; now_ns() - begun < 5e5; count++) run(subject);
    }
    for (int round = 0; round < ROUNDS; round++) {
        for (int i = 0; i < rivals; i++) {
            double begun = now_ns();
            for (long n = 0; n <= count; n++) run(&subjects[i]);
            ns[i][round] = (now_ns() - begun) / (count + 1);
        }
    }
    for (int i = 0; i < rivals; i++) {
        qsort(ns[i], ROUNDS, sizeof ns[i][0], ascending);
        EVP_CIPHER_CTX_free(subjects[i].context);
        EVP_CIPHER_free(subjects[i].cipher);
    }
    double theirs = ns[0][ROUNDS / 4], ours = ns[1][ROUNDS / 4];
    printf("%-18s %-8s %7d B   openssl %8.0f ns   bywash %8.0f ns   ratio %5.2f", name, what, size, theirs, ours, theirs / ours);
    if (rivals == 3) printf("   the other %8.0f ns   ratio %5.2f", ns[2][ROUNDS / 4], ns[2][ROUNDS / 4] / ours);
    putchar('\n');
    fflush(stdout);
}

int main(int count, char **arguments) {
    static const struct {
        const char *name;
        void (*run)(const Subject *);
    } PATTERNS[] = {{"update", update},   {"iv", under_iv},       {"key", under_key},   {"context", in_context},
                    {"keys16", under_16}, {"keys200", under_200}, {"fresh", under_new}, {"copy", in_copy}, {"speed", speed}};
    if (count < 4) return fprintf(stderr, "usage: evp-calls CONFIGURATION CIPHER,... SIZE,... [enc|dec [PATTERN,... [CONFIGURATION]]]\n"), 2;
    for (unsigned i = 0; i < sizeof key; i++) key[i] = (unsigned char)(7 * i + 1);
    OSSL_LIB_CTX *libraries[2] = {OSSL_LIB_CTX_new(), count > 6 ? OSSL_LIB_CTX_new() : NULL};
    check(OSSL_LIB_CTX_load_config(libraries[0], arguments[1]), "loading the configuration");
    if (libraries[1]) check(OSSL_LIB_CTX_load_config(libraries[1], arguments[6]), "loading the second configuration");
    char *rest_of_names = NULL;
    for (char *name = strtok_r(arguments[2], ",", &rest_of_names); name; name = strtok_r(NULL, ",", &rest_of_names)) {
        EVP_CIPHER *ours = EVP_CIPHER_fetch(libraries[0], name, "provider=bywash");
        int offered = ours != NULL;
        EVP_CIPHER_free(ours);
        if (!offered) printf("%-18s is not offered by bywash: programs find the default provider's\n", name);
        for (unsigned i = 0; offered && i < sizeof PATTERNS / sizeof PATTERNS[0]; i++) {
            if (count > 5 && !strstr(arguments[5], PATTERNS[i].name)) continue;
            char *sizes = strdup(arguments[3]), *rest_of_sizes = NULL;
            for (char *size = strtok_r(sizes, ",", &rest_of_sizes); size; size = strtok_r(NULL, ",", &rest_of_sizes)) {
                if (atoi(size) > (int)sizeof text) return fprintf(stderr, "evp-calls: at most 1 MiB\n"), 2;
                compare(libraries, name, PATTERNS[i].name, PATTERNS[i].run, atoi(size), count < 5 || strcmp(arguments[4], "dec") != 0);
            }
            free(sizes);
        }
    }
    OSSL_LIB_CTX_free(libraries[1]);
    OSSL_LIB_CTX_free(libraries[0]);
    return 0;
}
