/* GnuTLS built with --enable-cryptodev, asked for all that it gives to /dev/crypto: a line for each algorithm, and a status of 1 if any is wrong.
 *
 * Its own self-tests cover CBC. Of hashes and HMACs it gives the device whole messages alone, which its self-tests do not ask for, so they are compared with what it computes
 * itself piece by piece. Its GCM looks for the tag of what it has deciphered behind the text in the output, where a device does not put it (GnuTLS 3.7.9, aes_gcm_decrypt in
 * lib/accelerated/cryptodev-gcm.c), so it can only be used in place, and its self-tests fail: here it is used in place. */
#include <gnutls/crypto.h>
#include <gnutls/gnutls.h>
#include <gnutls/self-test.h>
#include <stdio.h>
#include <string.h>

static int failures;

static void said(const char *kind, const char *name, int ok) {
    printf("%s %s%s\n", ok ? "ok" : "failed", kind, name);
    failures += !ok;
}

static void hashes(const unsigned char *text, size_t length) {
    static const gnutls_digest_algorithm_t all[] = {GNUTLS_DIG_MD5, GNUTLS_DIG_SHA1, GNUTLS_DIG_SHA256, GNUTLS_DIG_SHA384, GNUTLS_DIG_SHA512};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) {
        unsigned char whole[64], pieces[64];
        gnutls_hash_hd_t hash;
        int size = gnutls_hash_get_len(all[i]);
        int ok = !gnutls_hash_fast(all[i], text, length, whole) && !gnutls_hash_init(&hash, all[i]);
        if (ok) {
            ok = !gnutls_hash(hash, text, length / 3) && !gnutls_hash(hash, text + length / 3, length - length / 3);
            gnutls_hash_deinit(hash, pieces);
        }
        said("", gnutls_digest_get_name(all[i]), ok && !memcmp(whole, pieces, size));
        gnutls_hmac_hd_t hmac;
        gnutls_mac_algorithm_t mac = (gnutls_mac_algorithm_t)all[i];
        ok = !gnutls_hmac_fast(mac, "a key of 19 octets.", 19, text, length, whole) && !gnutls_hmac_init(&hmac, mac, "a key of 19 octets.", 19);
        if (ok) {
            ok = !gnutls_hmac(hmac, text, length / 3) && !gnutls_hmac(hmac, text + length / 3, length - length / 3);
            gnutls_hmac_deinit(hmac, pieces);
        }
        said("HMAC-", gnutls_mac_get_name(mac), ok && !memcmp(whole, pieces, size));
    }
}

static void gcm(gnutls_cipher_algorithm_t cipher, const unsigned char *text, size_t length) {
    unsigned char key[32] = "and this is a key of 32 octets.", nonce[12] = "nonce of 12", data[2048];
    gnutls_datum_t secret = {key, gnutls_cipher_get_key_size(cipher)};
    gnutls_aead_cipher_hd_t aead;
    size_t sealed = sizeof data, opened = sizeof data;
    memcpy(data, text, length);
    int ok = !gnutls_aead_cipher_init(&aead, cipher, &secret);
    ok = ok && !gnutls_aead_cipher_encrypt(aead, nonce, 12, "header", 6, 16, data, length, data, &sealed) && sealed == length + 16 && memcmp(data, text, length);
    ok = ok && !gnutls_aead_cipher_decrypt(aead, nonce, 12, "header", 6, 16, data, sealed, data, &opened) && opened == length && !memcmp(data, text, length);
    sealed = sizeof data;
    ok = ok && !gnutls_aead_cipher_encrypt(aead, nonce, 12, "header", 6, 16, data, length, data, &sealed);
    data[3] ^= 1;
    ok = ok && gnutls_aead_cipher_decrypt(aead, nonce, 12, "header", 6, 16, data, sealed, data, &opened) < 0;
    if (ok) gnutls_aead_cipher_deinit(aead);
    said("", gnutls_cipher_get_name(cipher), ok);
}

int main(void) {
    unsigned char text[1500];
    for (size_t i = 0; i < sizeof text; i++) text[i] = i * 7 + (i >> 8);
    static const gnutls_cipher_algorithm_t cbc[] = {GNUTLS_CIPHER_AES_128_CBC, GNUTLS_CIPHER_AES_192_CBC, GNUTLS_CIPHER_AES_256_CBC, GNUTLS_CIPHER_3DES_CBC};
    for (size_t i = 0; i < sizeof cbc / sizeof *cbc; i++) said("", gnutls_cipher_get_name(cbc[i]), !gnutls_cipher_self_test(0, cbc[i]));
    hashes(text, sizeof text);
    gcm(GNUTLS_CIPHER_AES_128_GCM, text, sizeof text);
    gcm(GNUTLS_CIPHER_AES_256_GCM, text, sizeof text);
    return failures != 0;
}
