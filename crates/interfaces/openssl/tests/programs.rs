//! The module under programs as they are installed, by configuration alone; and where a program does what breaks naive modules.

mod common;

use common::*;
use std::path::Path;
use std::process::{Command, Output};

fn openssl(configuration: &Path, arguments: &[&str]) -> Output {
    let mut command = Command::new("openssl");
    command.args(arguments).env("OPENSSL_CONF", configuration).env_remove("BYWASH_LOG").env_remove("BYWASH_ROUTE");
    command.output().expect("the openssl command is installed")
}

/// A configuration of the default provider alone.
fn plain(folder: &Path) -> std::path::PathBuf {
    let file = folder.join("plain.cnf");
    std::fs::write(&file, "").expect("a temporary folder can be written");
    file
}

#[test]
fn openssl_enc_writes_the_same_files() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("input"), folder.path().join("output"));
    std::fs::write(&input, Random::new(30).bytes(100_003)).unwrap();
    let plain = plain(folder.path());
    for route in ["here", "queue"] {
        let routed = configuration(route, folder.path());
        for cipher in ["aes-128-ecb", "aes-192-cbc", "aes-256-cbc", "aes-128-ctr", "aes-256-ctr"] {
            let crypt = |configuration: &Path, way: &str, from: &Path| {
                let (from, to) = (from.to_str().unwrap(), output.to_str().unwrap());
                let done = openssl(
                    configuration,
                    &["enc", way, "-in", from, "-out", to, &format!("-{cipher}"), "-pbkdf2", "-k", "word", "-S", "0011223344556677"],
                );
                assert!(done.status.success() && done.stderr.is_empty(), "{cipher} {way}: {}", String::from_utf8_lossy(&done.stderr));
                std::fs::read(&output).unwrap()
            };
            let sealed = crypt(&plain, "-e", &input);
            assert_eq!(crypt(&routed, "-e", &input), sealed, "{cipher} {route}");
            let kept = folder.path().join("sealed");
            std::fs::write(&kept, &sealed).unwrap();
            assert_eq!(crypt(&routed, "-d", &kept), std::fs::read(&input).unwrap(), "{cipher} {route}");
        }
    }
}

#[test]
fn openssl_speed_runs_and_is_counted() {
    let folder = tempfile::tempdir().unwrap();
    let routed = configuration("auto", folder.path());
    let mut command = Command::new("openssl");
    command.args(["speed", "-seconds", "1", "-bytes", "1024", "-evp", "aes-256-gcm"]).env("OPENSSL_CONF", &routed).env("BYWASH_LOG", "1");
    let done = command.output().unwrap();
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{said}");
    assert!(said.contains("used here: AES-256-GCM"), "{said}");
}

#[test]
fn the_module_is_quiet_and_comes_first() {
    let folder = tempfile::tempdir().unwrap();
    let done = openssl(&configuration("auto", folder.path()), &["list", "-providers"]);
    let listed = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(done.status.success() && done.stderr.is_empty(), "{}", String::from_utf8_lossy(&done.stderr));
    let (ours, theirs) = (listed.find("bywash").expect("bywash is listed"), listed.find("default").expect("default is listed"));
    assert!(ours < theirs, "{listed}");
}

#[test]
fn bad_settings_and_an_absent_broker_break_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let file = configuration("auto", folder.path());
    let text = std::fs::read_to_string(&file).unwrap();
    for (setting, value) in [("route", "sideways"), ("socket", "/nowhere/at/all.sock"), ("run", "")] {
        let lines: Vec<_> = text.lines().filter(|line| !line.starts_with(setting)).collect();
        let broken = lines.join("\n").replace("[default_sect]", &format!("{setting} = {value}\n[default_sect]"));
        std::fs::write(&file, broken).unwrap();
        let done = openssl(&file, &["enc", "-aes-128-cbc", "-pbkdf2", "-k", "word", "-in", file.to_str().unwrap(), "-a"]);
        assert!(done.status.success() && done.stderr.is_empty(), "{setting}: {}", String::from_utf8_lossy(&done.stderr));
        let odd = Command::new("openssl").args(["list", "-providers"]).env("OPENSSL_CONF", &file).env("BYWASH_ROUTE", "sideways").output();
        assert!(String::from_utf8_lossy(&odd.unwrap().stdout).contains("bywash"));
    }
}

#[test]
fn valgrind_finds_no_bad_access_and_no_leak() {
    if Command::new("valgrind").arg("--version").output().is_err() {
        println!("skipped: valgrind is not installed (apt install valgrind)");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("input");
    std::fs::write(&file, Random::new(31).bytes(20_011)).unwrap();
    for (route, cipher) in [("here", "-aes-256-cbc"), ("here", "-aes-128-ctr"), ("queue", "-aes-192-ecb")] {
        let done = Command::new("valgrind")
            // Values: the block kernels of both libraries read whole vectors and mask them, which valgrind cannot follow.
            .args(["-q", "--error-exitcode=99", "--undef-value-errors=no", "--leak-check=full", "--show-leak-kinds=definite"])
            .args(["--errors-for-leak-kinds=definite", "openssl", "enc", cipher, "-pbkdf2", "-k", "word", "-out", "/dev/null", "-in"])
            .arg(&file)
            .env("OPENSSL_CONF", configuration(route, folder.path()))
            .output()
            .unwrap();
        assert!(done.status.success(), "{route} {cipher}: {}", String::from_utf8_lossy(&done.stderr));
    }
}

/// Seals and opens messages; true if all came back.
fn round_trips(library: &Library, seed: u64) -> bool {
    let mut random = Random::new(seed);
    let cipher = library.cipher("AES-256-GCM", "bywash");
    (0..200).all(|_| {
        let (key, iv, len) = (random.bytes(32), random.bytes(12), random.below(3000));
        let text = random.bytes(len);
        let (sealer, opener) = (Context::new(), Context::new());
        let sealed = sealer.init(Some(&cipher), Some(&key), Some(&iv), 1).then(|| sealer.update(&text)).flatten();
        let tag = sealer.finish().and_then(|_| sealer.tag(16));
        let (Some(sealed), Some(tag)) = (sealed, tag) else { return false };
        opener.init(Some(&cipher), Some(&key), Some(&iv), 0)
            && opener.set_tag(&tag)
            && opener.update(&sealed) == Some(text)
            && opener.finish().is_some()
    })
}

#[test]
fn threads_share_a_library() {
    for route in ["here", "queue"] {
        let library = Library::new(route);
        let shared = SharedLibrary(&library);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8).map(|seed| scope.spawn(move || round_trips(shared.get(), 100 + seed))).collect();
            assert!(threads.into_iter().all(|thread| thread.join().is_ok_and(|done| done)));
        });
    }
}

#[derive(Clone, Copy)]
struct SharedLibrary<'a>(&'a Library);
impl<'a> SharedLibrary<'a> {
    fn get(self) -> &'a Library {
        self.0
    }
}
// SAFETY: a library context is made to be shared by threads (OSSL_LIB_CTX(3)).
unsafe impl Send for SharedLibrary<'_> {}

/// It calls whichever has loaded it, OpenSSL 3's or 4's.
#[test]
fn the_module_is_linked_to_no_libcrypto() {
    let output = Command::new("readelf").args(["--dynamic", "--wide"]).arg(module()).output().expect("binutils come with the C compiler");
    let dynamic = String::from_utf8(output.stdout).unwrap();
    assert!(output.status.success() && dynamic.contains("[libc.so.6]"), "{dynamic}");
    assert!(!dynamic.contains("libcrypto") && !dynamic.contains("libssl"), "{dynamic}");
}
