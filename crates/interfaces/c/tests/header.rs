//! The committed header is what the sources say.

use std::path::Path;

#[test]
fn the_committed_header_is_up_to_date() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut builder = cbindgen::Builder::new().with_config(cbindgen::Config::from_file(folder.join("cbindgen.toml")).unwrap());
    for module in ["client", "operation", "many", "pending", "session", "status"] {
        builder = builder.with_src(folder.join("src").join(module).with_extension("rs"));
    }
    let mut generated = Vec::new();
    builder.generate().unwrap().write(&mut generated);
    let generated = String::from_utf8(generated).unwrap();
    let committed = folder.join("include/bywash.h");
    if std::env::var_os("BYWASH_WRITE_HEADER").is_some() {
        std::fs::write(&committed, &generated).unwrap();
    }
    let text = std::fs::read_to_string(&committed).unwrap_or_default();
    assert!(
        text == generated,
        "include/bywash.h is out of date; write it anew: BYWASH_WRITE_HEADER=1 cargo test -p bywash-c --test header"
    );
}
