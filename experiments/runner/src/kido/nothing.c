/* What is left of the latency of Fast DDS, or of Cyclone DDS with its own plug-in, where cryptography takes no time: a preload library under which they encrypt, authenticate and derive
   nothing. For measuring alone; both sides must have it. `bywash reproduce kido` compiles it on the spot, and it is part of nothing that is installed. */
#define _GNU_SOURCE
#include <dlfcn.h>
#include <link.h>
#include <openssl/evp.h>
#include <openssl/rand.h>
#include <stdint.h>
#include <string.h>

static _Atomic uintptr_t from, to;

/* Where the code of the plug-in lies: the calls of others, libcrypto's own among them, go where they always went. */
static int find(struct dl_phdr_info* info, size_t size, void* data)
{
    (void)size, (void)data;
    int is_it = strstr(info->dlpi_name, "/libfastrtps.so") != NULL || strstr(info->dlpi_name, "/libdds_security_crypto.so") != NULL;
    for (int i = 0; is_it && i < info->dlpi_phnum; ++i)
    {
        if (info->dlpi_phdr[i].p_type == PT_LOAD && (info->dlpi_phdr[i].p_flags & PF_X))
        {
            to = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr + info->dlpi_phdr[i].p_memsz;
            from = info->dlpi_addr + info->dlpi_phdr[i].p_vaddr;
        }
    }
    return 0;
}

/* Cyclone loads its plug-in when its first participant is made. */
static int is_from_there(uintptr_t caller)
{
    if (from == 0)
    {
        dl_iterate_phdr(find, NULL);
    }
    return from != 0 && caller >= from && caller < to;
}

/* A function that does RUN if the plug-in calls it and OURS holds, and is libcrypto's otherwise. */
#define FUNCTION(result, name, parameters, arguments, ours, run)           \
    result name parameters                                                 \
    {                                                                      \
        static result(*real) parameters;                                   \
        if (is_from_there((uintptr_t)__builtin_return_address(0)) && (ours)) \
        {                                                                  \
            run;                                                           \
        }                                                                  \
        if (real == NULL)                                                  \
        {                                                                  \
            real = (result(*) parameters)dlsym(RTLD_NEXT, #name);          \
        }                                                                  \
        return real arguments;                                             \
    }

/* Handles of nothing. */
static char key, cipher;
#define KEY ((EVP_PKEY*)&key)
#define CIPHER ((EVP_CIPHER_CTX*)&cipher)
typedef const unsigned char* Bytes;
/* Digest contexts are libcrypto's: signatures of the handshake need them. This one is within a derivation. */
static __thread EVP_MD_CTX* derives;

FUNCTION(EVP_PKEY*, EVP_PKEY_new_mac_key, (int type, ENGINE* engine, Bytes bytes, int len), (type, engine, bytes, len), type == EVP_PKEY_HMAC, return KEY)
FUNCTION(void, EVP_PKEY_free, (EVP_PKEY* freed), (freed), freed == KEY, return)
FUNCTION(int, EVP_DigestSignInit, (EVP_MD_CTX* ctx, EVP_PKEY_CTX** made, const EVP_MD* md, ENGINE* engine, EVP_PKEY* with), (ctx, made, md, engine, with),
         with == KEY, derives = ctx; return 1)
FUNCTION(int, EVP_DigestSignUpdate, (EVP_MD_CTX* ctx, const void* data, size_t len), (ctx, data, len), ctx == derives, return 1)
FUNCTION(int, EVP_DigestSignFinal, (EVP_MD_CTX* ctx, unsigned char* out, size_t* len), (ctx, out, len), ctx == derives, {
    *len = 32;
    if (out != NULL)
    {
        memset(out, 1, 32);
        derives = NULL;
    }
    return 1;
})
FUNCTION(EVP_CIPHER_CTX*, EVP_CIPHER_CTX_new, (void), (), 1, return CIPHER)
FUNCTION(void, EVP_CIPHER_CTX_free, (EVP_CIPHER_CTX* ctx), (ctx), ctx == CIPHER, return)
FUNCTION(int, EVP_CIPHER_CTX_ctrl, (EVP_CIPHER_CTX* ctx, int what, int len, void* bytes), (ctx, what, len, bytes), ctx == CIPHER, {
    if (what == EVP_CTRL_AEAD_GET_TAG)
    {
        memset(bytes, 0, (size_t)len);
    }
    return 1;
})

#define INIT(name) FUNCTION(int, name, (EVP_CIPHER_CTX* ctx, const EVP_CIPHER* type, Bytes with, Bytes iv), (ctx, type, with, iv), ctx == CIPHER, return 1)
/* Text is copied: where it is encrypted, a pass over it is not spared. */
#define UPDATE(name)                                                                                                                          \
    FUNCTION(int, name, (EVP_CIPHER_CTX* ctx, unsigned char* out, int* written, Bytes text, int len), (ctx, out, written, text, len), ctx == CIPHER, { \
        *written = len;                                                                                                                       \
        if (out != NULL)                                                                                                                      \
        {                                                                                                                                     \
            memmove(out, text, (size_t)len);                                                                                                  \
        }                                                                                                                                     \
        return 1;                                                                                                                             \
    })
#define FINAL(name)                                                                                                                       \
    FUNCTION(int, name, (EVP_CIPHER_CTX* ctx, unsigned char* out, int* written), (ctx, out, written), ctx == CIPHER, *written = 0; return 1)

#define INIT_EX(name)                                                                                                                                       \
    FUNCTION(int, name, (EVP_CIPHER_CTX* ctx, const EVP_CIPHER* type, ENGINE* engine, Bytes with, Bytes iv), (ctx, type, engine, with, iv), ctx == CIPHER, return 1)

INIT(EVP_EncryptInit)
INIT(EVP_DecryptInit)
INIT_EX(EVP_EncryptInit_ex)
INIT_EX(EVP_DecryptInit_ex)
UPDATE(EVP_EncryptUpdate)
UPDATE(EVP_DecryptUpdate)
FINAL(EVP_EncryptFinal)
FINAL(EVP_EncryptFinal_ex)
FINAL(EVP_DecryptFinal)
FINAL(EVP_DecryptFinal_ex)
/* Cyclone's derivation. */
FUNCTION(unsigned char*, HMAC, (const EVP_MD* md, const void* with, int with_len, Bytes text, size_t len, unsigned char* out, unsigned int* out_len),
         (md, with, with_len, text, len, out, out_len), out != NULL, {
             memset(out, 1, 32);
             if (out_len != NULL)
             {
                 *out_len = 32;
             }
             return out;
         })
FUNCTION(int, RAND_bytes, (unsigned char* bytes, int len), (bytes, len), len == 8, memset(bytes, 2, 8); return 1)
