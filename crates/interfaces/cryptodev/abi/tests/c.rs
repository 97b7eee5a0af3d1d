//! The Linux dialect against what a C compiler makes of `include/crypto/cryptodev.h`.
#![forbid(unsafe_code)]

use bywash_cryptodev_abi::linux::*;
use std::fmt::Write;
use std::path::Path;
use std::process::Command;

/// Lines of C and what the compiled program is to print for each.
struct Expectations {
    prints: String,
    expected: String,
}

impl Expectations {
    fn value(&mut self, expression: &str, value: u64) {
        writeln!(self.prints, "    printf(\"{expression} %llu\\n\", (unsigned long long)({expression}));").unwrap();
        writeln!(self.expected, "{expression} {value}").unwrap();
    }
}

macro_rules! structures {
    ($all:expr, $($rust:ident = $c:literal { $($field:ident)* })*) => {$(
        $all.value(concat!("sizeof(struct ", $c, ")"), size_of::<$rust>() as u64);
        $($all.value(concat!("offsetof(struct ", $c, ", ", stringify!($field), ")"), core::mem::offset_of!($rust, $field) as u64);)*
    )*};
}

fn expectations() -> Expectations {
    let mut all = Expectations { prints: String::new(), expected: String::new() };
    for (number, name) in REQUESTS.iter().chain(ALGORITHMS) {
        all.value(name, u64::from(*number));
    }
    structures! { all,
        SessionOp = "session_op" { cipher mac keylen key mackeylen mackey ses }
        SessionInfoOp = "session_info_op" { ses cipher_info hash_info alignmask flags }
        AlgInfo = "alg_info" { cra_name cra_driver_name }
        CryptOp = "crypt_op" { ses op flags len src dst mac iv }
        CryptAuthOp = "crypt_auth_op" { ses op flags len auth_len auth_src src dst tag tag_len iv iv_len }
        CrParam = "crparam" { crp_p crp_nbits }
        CryptKop = "crypt_kop" { crk_op crk_status crk_iparams crk_oparams crk_pad1 crk_param }
        CphashOp = "cphash_op" { dst_ses src_ses }
    }
    let flags = [COP_FLAG_UPDATE, COP_FLAG_FINAL, COP_FLAG_WRITE_IV, COP_FLAG_NO_ZC, COP_FLAG_RESET, COP_ENCRYPT, COP_DECRYPT];
    let names =
        ["COP_FLAG_UPDATE", "COP_FLAG_FINAL", "COP_FLAG_WRITE_IV", "COP_FLAG_NO_ZC", "COP_FLAG_RESET", "COP_ENCRYPT", "COP_DECRYPT"];
    for (name, value) in names.into_iter().zip(flags) {
        all.value(name, u64::from(value));
    }
    all.value("COP_FLAG_AEAD_TLS_TYPE", u64::from(COP_FLAG_AEAD_TLS_TYPE));
    all.value("COP_FLAG_AEAD_SRTP_TYPE", u64::from(COP_FLAG_AEAD_SRTP_TYPE));
    let keys = [CRF_MOD_EXP, CRF_MOD_EXP_CRT, CRF_DSA_SIGN, CRF_DSA_VERIFY, CRF_DH_COMPUTE_KEY, SIOP_FLAG_KERNEL_DRIVER_ONLY];
    let names = ["CRF_MOD_EXP", "CRF_MOD_EXP_CRT", "CRF_DSA_SIGN", "CRF_DSA_VERIFY", "CRF_DH_COMPUTE_KEY", "SIOP_FLAG_KERNEL_DRIVER_ONLY"];
    for (name, value) in names.into_iter().zip(keys) {
        all.value(name, u64::from(value));
    }
    all
}

#[test]
fn a_c_compiler_agrees() {
    let folder = tempfile::tempdir().unwrap();
    let (source, program) = (folder.path().join("layout.c"), folder.path().join("layout"));
    let Expectations { prints, expected } = expectations();
    let includes = "#include <stddef.h>\n#include <stdio.h>\n#include <crypto/cryptodev.h>\n";
    std::fs::write(&source, format!("{includes}int main(void) {{\n{prints}    return 0;\n}}\n")).unwrap();
    let include = Path::new(env!("CARGO_MANIFEST_DIR")).join("include");
    let mut compiler = Command::new("cc");
    compiler.args(["-std=c99", "-Wall", "-Werror", "-D_DEFAULT_SOURCE", "-I"]).arg(include).arg(&source).arg("-o").arg(&program);
    let status = match compiler.status() {
        Ok(status) => status,
        Err(error) => {
            eprintln!("skipped: there is no C compiler 'cc' ({error}); Debian's package gcc has one");
            return;
        }
    };
    assert!(status.success(), "the header does not compile");
    let printed = Command::new(&program).output().unwrap();
    assert_eq!(String::from_utf8_lossy(&printed.stdout), expected);
}
