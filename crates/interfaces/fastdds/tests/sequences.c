/* Random sequences of the EVP calls that Fast DDS makes, with the errors it could make among them. What comes out of each call is printed, so that two runs with the
   same seed can be compared. Compiled as a library whose name begins with libfastrtps.so: its calls are taken over as those of Fast DDS are. */
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct
{
    uint64_t state;
    FILE* out;
} Run;

static unsigned below(Run* run, unsigned bound)
{
    run->state = run->state * 6364136223846793005u + 1442695040888963407u;
    return (unsigned)((run->state >> 33) % bound);
}

static void fill(Run* run, unsigned char* bytes, size_t count)
{
    for (size_t i = 0; i < count; ++i)
    {
        bytes[i] = (unsigned char)below(run, 256);
    }
}

static void show(Run* run, const char* what, int result, const unsigned char* bytes, size_t count)
{
    unsigned sum = 5381;
    for (size_t i = 0; bytes != NULL && i < count; ++i)
    {
        sum = sum * 33 + bytes[i];
    }
    fprintf(run->out, "%s %d %zu %08x\n", what, result, count, sum);
}

enum { ROOM = 70000 };

/* Keys from a small set: what is kept must be found, and not confused. */
static void key_of(Run* run, unsigned char* key)
{
    unsigned which = below(run, 5);
    memset(key, (int)which, 64);
    if (which == 4)
    {
        fill(run, key, 64);
    }
}

/* One context, from new to free, over several messages. */
static void cipher(Run* run, unsigned char* text, unsigned char* other)
{
    unsigned char key[64], iv[16], tag[16];
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    int has_begun = 0, is_dead = 0, has_key = 0, encrypts = 1, is_ctr = 0;
    unsigned steps = below(run, 4) == 0 ? below(run, 24) : 3;
    /* Most of the time what Fast DDS does. */
    int usual = steps == 3;
    for (unsigned step = 0; step <= steps; ++step)
    {
        int length = 0;
        unsigned what = usual ? (unsigned[]){0, 1, 2, 3}[step] : below(run, 6);
        int mistakes = !usual && below(run, 6) == 0;
        int calls_encrypt = mistakes ? !encrypts : encrypts;
        if (is_dead && what != 0)
        {
            continue;
        }
        if (what == 0)
        {
            int whole = usual || has_begun || is_dead || below(run, 3) != 0;
            unsigned parts = whole ? 7 : below(run, 8);
            const EVP_CIPHER* kind = below(run, 2) ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
            if (!usual && below(run, 12) == 0)
            {
                kind = EVP_aes_128_ctr();
                is_ctr |= parts & 1;
            }
            encrypts = (int)below(run, 2);
            key_of(run, key);
            fill(run, iv, sizeof iv);
            int (*init)(EVP_CIPHER_CTX*, const EVP_CIPHER*, const unsigned char*, const unsigned char*) = encrypts ? EVP_EncryptInit : EVP_DecryptInit;
            int done = init(context, parts & 1 ? kind : NULL, parts & 2 ? key : NULL, parts & 4 ? iv : NULL);
            show(run, "init", done, NULL, 0);
            has_key = parts & 1 ? (parts & 2) != 0 : has_key || (parts & 2);
            has_begun = is_dead = 0;
            /* Half-made contexts of libcrypto's may take anything for a key. */
            is_dead = !done || !has_key || !(parts & 4) || (!(parts & 1) && parts);
        }
        else if (what == 1 || what == 4)
        {
            int count = (int)(below(run, 8) == 0 ? below(run, ROOM - 64) : below(run, 300));
            unsigned char* to = below(run, 3) == 0 && !is_ctr ? NULL : below(run, 2) ? text : other;
            fill(run, text, count < 300 ? (size_t)count : 300);
            int done = (calls_encrypt ? EVP_EncryptUpdate : EVP_DecryptUpdate)(context, to, &length, text, count);
            show(run, "update", done, done == 1 && to ? to : NULL, done == 1 ? (size_t)length : 0);
            has_begun |= done == 1 && count > 0;
        }
        else if (what == 2)
        {
            if (!encrypts)
            {
                fill(run, tag, sizeof tag);
                int size = mistakes ? (int)below(run, 20) : 16;
                show(run, "set tag", EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, size, tag) == 1, NULL, 0);
            }
            int done = (calls_encrypt ? EVP_EncryptFinal : below(run, 2) ? EVP_DecryptFinal : EVP_DecryptFinal_ex)(context, other, &length);
            show(run, "final", done, NULL, 0);
            /* The IV is spent: a half init would ask libcrypto to go on under it. */
            has_begun = 1;
            is_dead |= !encrypts && done != 1;
        }
        else if (what == 3)
        {
            memset(tag, 0, sizeof tag);
            int size = mistakes ? (int)below(run, 17) : 16;
            int done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, size, tag) == 1;
            show(run, "get tag", done, tag, done ? (size_t)size : 0);
        }
        else if (!has_begun && has_key)
        {
            int done = EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_IVLEN, 16, NULL) == 1;
            show(run, "iv length", done, NULL, 0);
            /* It wants a new IV now. */
            is_dead = 1;
        }
    }
    EVP_CIPHER_CTX_free(context);
}

/* What was enciphered is deciphered with its tag, as a receiver does; and with a wrong one. */
static void both_ways(Run* run, unsigned char* text, unsigned char* other)
{
    unsigned char key[64], iv[16], tag[16];
    int length = 0, more = 0, count = (int)(below(run, 4) == 0 ? below(run, ROOM - 64) : below(run, 2000));
    const EVP_CIPHER* kind = below(run, 2) ? EVP_aes_128_gcm() : EVP_aes_256_gcm();
    key_of(run, key);
    fill(run, iv, sizeof iv);
    memset(text, (int)below(run, 256), (size_t)count);
    EVP_CIPHER_CTX* context = EVP_CIPHER_CTX_new();
    EVP_EncryptInit(context, kind, key, iv);
    EVP_EncryptUpdate(context, other, &length, text, count);
    EVP_EncryptFinal(context, other + length, &more);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_GET_TAG, 16, tag);
    EVP_CIPHER_CTX_free(context);
    show(run, "sealed", length + more, other, (size_t)length);
    show(run, "tag", 1, tag, 16);
    int spoils = below(run, 4) == 0;
    tag[below(run, 16)] ^= spoils ? 0x20 : 0;
    context = EVP_CIPHER_CTX_new();
    EVP_DecryptInit(context, kind, key, iv);
    EVP_DecryptUpdate(context, text, &length, other, count);
    EVP_CIPHER_CTX_ctrl(context, EVP_CTRL_AEAD_SET_TAG, 16, tag);
    show(run, spoils ? "spoilt" : "opened", EVP_DecryptFinal(context, text + length, &more), text, (size_t)length);
    EVP_CIPHER_CTX_free(context);
}

static void mac(Run* run)
{
    unsigned char key[64], message[200], value[64];
    key_of(run, key);
    EVP_PKEY* made = EVP_PKEY_new_mac_key(EVP_PKEY_HMAC, NULL, key, (int[]){16, 32, 1, 64}[below(run, 4)]);
    EVP_MD_CTX* context = EVP_MD_CTX_new();
    show(run, "reset", EVP_MD_CTX_reset(context), NULL, 0);
    for (unsigned times = 1 + below(run, 2); times > 0; --times)
    {
        const EVP_MD* digest = below(run, 10) == 0 ? EVP_sha512() : EVP_sha256();
        show(run, "sign", EVP_DigestSignInit(context, NULL, digest, NULL, made), NULL, 0);
        /* What is found again are the keys of sessions. */
        const char* label = (const char*[]){"SessionKey", "SessionReceiverKey", ""}[below(run, 3)];
        show(run, "label", EVP_DigestSignUpdate(context, label, strlen(label)), NULL, 0);
        for (unsigned updates = below(run, 4); updates > 0; --updates)
        {
            size_t count = below(run, 8) == 0 ? below(run, 200) : 8 * below(run, 5);
            memset(message, (int)below(run, 3), sizeof message);
            show(run, "digest", EVP_DigestSignUpdate(context, message, count), NULL, 0);
        }
        for (unsigned finals = 1 + below(run, 3); finals > 0; --finals)
        {
            size_t length = below(run, 6) == 0 ? below(run, 64) : 64;
            int asks = below(run, 2) == 0;
            int done = EVP_DigestSignFinal(context, asks ? NULL : value, &length) == 1;
            show(run, "value", done, value, done && !asks ? length : 0);
            fprintf(run->out, "length %zu\n", done ? length : 0);
        }
        /* Half of the time the context is begun anew as it stands. */
        if (below(run, 2))
        {
            EVP_MD_CTX_reset(context);
        }
    }
    if (below(run, 2))
    {
        EVP_MD_CTX_free(context);
        EVP_PKEY_free(made);
    }
    else
    {
        EVP_PKEY_free(made);
        EVP_MD_CTX_free(context);
    }
}

#ifdef LICENCE
/* What Fast DDS 3 checks a licence with: a signature at one stroke (RFC 8032 s7.1, test 2), and a spoilt one. */
static void licence(Run* run)
{
    static const unsigned char key[] = "\x3d\x40\x17\xc3\xe8\x43\x89\x5a\x92\xb7\x0a\xa7\x4d\x1b\x7e\xbc\x9c\x98\x2c\xcf\x2e\xc4\x96\x8c\xc0\xcd\x55\xf1\x2a\xf4\x66\x0c";
    unsigned char signature[] = "\x92\xa0\x09\xa9\xf0\xd4\xca\xb8\x72\x0e\x82\x0b\x5f\x64\x25\x40\xa2\xb2\x7b\x54\x16\x50\x3f\x8f\xb3\x76\x22\x23\xeb\xdb\x69\xda"
                                "\x08\x5a\xc1\xe4\x3e\x15\x99\x6e\x45\x8f\x36\x13\xd0\xf1\x1d\x8c\x38\x7b\x2e\xae\xb4\x30\x2a\xee\xb0\x0d\x29\x16\x12\xbb\x0c\x00";
    for (int spoils = 0; spoils < 2; ++spoils)
    {
        EVP_PKEY* made = EVP_PKEY_new_raw_public_key(EVP_PKEY_ED25519, NULL, key, 32);
        EVP_MD_CTX* context = EVP_MD_CTX_new();
        signature[0] ^= spoils ? 1 : 0;
        show(run, "verify init", EVP_DigestVerifyInit(context, NULL, NULL, NULL, made), NULL, 0);
        show(run, spoils ? "forged" : "licence", EVP_DigestVerify(context, signature, 64, (const unsigned char*)"\x72", 1), NULL, 0);
        EVP_MD_CTX_free(context);
        EVP_PKEY_free(made);
    }
}
#endif

/* Runs so many sequences and gives what they printed; the caller frees it. */
char* sequences(uint64_t seed, unsigned count)
{
    char* text = NULL;
    size_t length = 0;
    Run run = {seed, open_memstream(&text, &length)};
    unsigned char* buffers = calloc(2, ROOM);
    mac(&run);
#ifdef LICENCE
    licence(&run);
#endif
    for (unsigned i = 0; i < count; ++i)
    {
        switch (below(&run, 3))
        {
        case 0: mac(&run); break;
        case 1: both_ways(&run, buffers, buffers + ROOM); break;
        default: cipher(&run, buffers, buffers + ROOM); break;
        }
    }
    fclose(run.out);
    free(buffers);
    return text;
}

int random_iv(unsigned char* iv)
{
    return RAND_bytes(iv, 8);
}
