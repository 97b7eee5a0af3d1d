//! Function numbers of `core_dispatch.h`, by operation.
#![allow(missing_docs, reason = "each constant is the OpenSSL name without its prefix OSSL_FUNC_")]

/// What the core offers, and what a provider offers the core.
pub mod core {
    pub const GET_PARAMS: i32 = 2;
    pub const THREAD_START: i32 = 3;
    pub const BIO_READ: i32 = 42;
    pub const BIO_GETS: i32 = 49;
    pub const NEW_ERROR: i32 = 5;
    pub const SET_ERROR_DEBUG: i32 = 6;
    pub const VSET_ERROR: i32 = 7;
    pub const PROVIDER_TEARDOWN: i32 = 1024;
    pub const PROVIDER_GETTABLE_PARAMS: i32 = 1025;
    pub const PROVIDER_GET_PARAMS: i32 = 1026;
    pub const PROVIDER_QUERY_OPERATION: i32 = 1027;
    pub const PROVIDER_GET_REASON_STRINGS: i32 = 1029;
    pub const PROVIDER_GET_CAPABILITIES: i32 = 1030;
}

/// `OSSL_OP_*`.
pub mod operation {
    pub const CIPHER: i32 = 2;
    pub const KDF: i32 = 4;
    pub const KEYMGMT: i32 = 10;
    pub const KEYEXCH: i32 = 11;
    pub const SIGNATURE: i32 = 12;
    pub const ASYM_CIPHER: i32 = 13;
    pub const DECODER: i32 = 21;
    pub const STORE: i32 = 22;
}

/// `OSSL_FUNC_KDF_*`.
pub mod kdf {
    pub const NEWCTX: i32 = 1;
    pub const DUPCTX: i32 = 2;
    pub const FREECTX: i32 = 3;
    pub const RESET: i32 = 4;
    pub const DERIVE: i32 = 5;
    pub const GETTABLE_CTX_PARAMS: i32 = 7;
    pub const SETTABLE_CTX_PARAMS: i32 = 8;
    pub const GET_CTX_PARAMS: i32 = 10;
    pub const SET_CTX_PARAMS: i32 = 11;
}

/// `OSSL_FUNC_DECODER_*`.
pub mod decoder {
    pub const NEWCTX: i32 = 1;
    pub const FREECTX: i32 = 2;
    pub const DOES_SELECTION: i32 = 10;
    pub const DECODE: i32 = 11;
    pub const EXPORT_OBJECT: i32 = 20;
}

/// `OSSL_FUNC_STORE_*`.
pub mod store {
    pub const OPEN: i32 = 1;
    pub const SETTABLE_CTX_PARAMS: i32 = 3;
    pub const SET_CTX_PARAMS: i32 = 4;
    pub const LOAD: i32 = 5;
    pub const EOF: i32 = 6;
    pub const CLOSE: i32 = 7;
    pub const EXPORT_OBJECT: i32 = 8;
}

/// `OSSL_FUNC_CIPHER_*`.
pub mod cipher {
    pub const NEWCTX: i32 = 1;
    pub const ENCRYPT_INIT: i32 = 2;
    pub const DECRYPT_INIT: i32 = 3;
    pub const UPDATE: i32 = 4;
    pub const FINAL: i32 = 5;
    pub const CIPHER: i32 = 6;
    pub const FREECTX: i32 = 7;
    pub const DUPCTX: i32 = 8;
    pub const GET_PARAMS: i32 = 9;
    pub const GET_CTX_PARAMS: i32 = 10;
    pub const SET_CTX_PARAMS: i32 = 11;
    pub const GETTABLE_PARAMS: i32 = 12;
    pub const GETTABLE_CTX_PARAMS: i32 = 13;
    pub const SETTABLE_CTX_PARAMS: i32 = 14;
}

/// `OSSL_FUNC_KEYMGMT_*`.
pub mod keymgmt {
    pub const NEW: i32 = 1;
    pub const GEN_INIT: i32 = 2;
    pub const GEN_SET_TEMPLATE: i32 = 3;
    pub const GEN_SET_PARAMS: i32 = 4;
    pub const GEN_SETTABLE_PARAMS: i32 = 5;
    pub const GEN: i32 = 6;
    pub const GEN_CLEANUP: i32 = 7;
    pub const LOAD: i32 = 8;
    pub const FREE: i32 = 10;
    pub const GET_PARAMS: i32 = 11;
    pub const GETTABLE_PARAMS: i32 = 12;
    pub const SET_PARAMS: i32 = 13;
    pub const SETTABLE_PARAMS: i32 = 14;
    pub const QUERY_OPERATION_NAME: i32 = 20;
    pub const HAS: i32 = 21;
    pub const VALIDATE: i32 = 22;
    pub const MATCH: i32 = 23;
    pub const IMPORT: i32 = 40;
    pub const IMPORT_TYPES: i32 = 41;
    pub const EXPORT: i32 = 42;
    pub const EXPORT_TYPES: i32 = 43;
    pub const DUP: i32 = 44;
    pub const SELECT_PRIVATE_KEY: i32 = 0x01;
    pub const SELECT_PUBLIC_KEY: i32 = 0x02;
    pub const SELECT_DOMAIN_PARAMETERS: i32 = 0x04;
    pub const SELECT_OTHER_PARAMETERS: i32 = 0x80;
}

/// `OSSL_FUNC_KEYEXCH_*`.
pub mod keyexch {
    pub const NEWCTX: i32 = 1;
    pub const INIT: i32 = 2;
    pub const DERIVE: i32 = 3;
    pub const SET_PEER: i32 = 4;
    pub const FREECTX: i32 = 5;
    pub const DUPCTX: i32 = 6;
    pub const SET_CTX_PARAMS: i32 = 7;
    pub const SETTABLE_CTX_PARAMS: i32 = 8;
    pub const GET_CTX_PARAMS: i32 = 9;
    pub const GETTABLE_CTX_PARAMS: i32 = 10;
}

/// `OSSL_FUNC_SIGNATURE_*`.
pub mod signature {
    pub const NEWCTX: i32 = 1;
    pub const SIGN_INIT: i32 = 2;
    pub const SIGN: i32 = 3;
    pub const VERIFY_INIT: i32 = 4;
    pub const VERIFY: i32 = 5;
    pub const VERIFY_RECOVER_INIT: i32 = 6;
    pub const VERIFY_RECOVER: i32 = 7;
    pub const DIGEST_SIGN_INIT: i32 = 8;
    pub const DIGEST_SIGN_UPDATE: i32 = 9;
    pub const DIGEST_SIGN_FINAL: i32 = 10;
    pub const DIGEST_SIGN: i32 = 11;
    pub const DIGEST_VERIFY_INIT: i32 = 12;
    pub const DIGEST_VERIFY_UPDATE: i32 = 13;
    pub const DIGEST_VERIFY_FINAL: i32 = 14;
    pub const DIGEST_VERIFY: i32 = 15;
    pub const FREECTX: i32 = 16;
    pub const DUPCTX: i32 = 17;
    pub const GET_CTX_PARAMS: i32 = 18;
    pub const GETTABLE_CTX_PARAMS: i32 = 19;
    pub const SET_CTX_PARAMS: i32 = 20;
    pub const SETTABLE_CTX_PARAMS: i32 = 21;
    pub const GET_CTX_MD_PARAMS: i32 = 22;
    pub const GETTABLE_CTX_MD_PARAMS: i32 = 23;
    pub const SET_CTX_MD_PARAMS: i32 = 24;
    pub const SETTABLE_CTX_MD_PARAMS: i32 = 25;
}

/// `OSSL_FUNC_ASYM_CIPHER_*`.
pub mod asym_cipher {
    pub const NEWCTX: i32 = 1;
    pub const ENCRYPT_INIT: i32 = 2;
    pub const ENCRYPT: i32 = 3;
    pub const DECRYPT_INIT: i32 = 4;
    pub const DECRYPT: i32 = 5;
    pub const FREECTX: i32 = 6;
    pub const DUPCTX: i32 = 7;
    pub const GET_CTX_PARAMS: i32 = 8;
    pub const GETTABLE_CTX_PARAMS: i32 = 9;
    pub const SET_CTX_PARAMS: i32 = 10;
    pub const SETTABLE_CTX_PARAMS: i32 = 11;
}
