//! A program: can its cryptography be routed?

use super::Finding;
use super::elf;
use super::libraries::closure;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Scripts whose interpreter is a script are rare, chains of them absurd.
const INTERPRETERS_MAX: usize = 4;

/// Looks at the file that a command names, and at its interpreter if it is a script.
pub(super) fn look(command: &OsStr) -> Vec<Finding> {
    let Some(path) = resolve(command) else {
        let (name, path) = (command.display(), Path::new(command));
        return vec![if path.components().count() > 1 && path.is_file() {
            Finding::broken("program", format!("{name}: not executable"), format!("chmod +x {name}, or its interpreter with it"))
        } else {
            Finding::broken("program", format!("{name}: no such command"), "check its spelling, or install it")
        }];
    };
    let mut findings = Vec::new();
    let program = follow(path, &mut findings, INTERPRETERS_MAX);
    if is_shell(&program) {
        let found = "a shell does no cryptography itself; the programs that it starts are reached if they use OpenSSL";
        findings.push(Finding::note("program", found, "bywash doctor -- PROGRAM, for each program that the script starts"));
        return findings;
    }
    match std::fs::read(&program) {
        Ok(data) => findings.extend(judge(&program, &data)),
        Err(error) => findings.push(Finding::broken(
            "program",
            format!("cannot read {}: {error}", program.display()),
            format!("run doctor as a user who may, or chmod a+r {}", program.display()),
        )),
    }
    findings
}

/// The largest program that is read before it is run; linking is told by far smaller ones.
const READ_MAX: u64 = 64 << 20;

/// Whether a command's program itself names a library whose file name begins so. What cannot be read does not.
pub(crate) fn needs(command: &OsStr, library: &str) -> bool {
    linked(command).is_some_and(|elf| elf.needed.iter().any(|needed| needed.starts_with(library)))
}

/// Whether a command's program is statically linked, so that no library can be put before it. What cannot be read is not.
pub(crate) fn is_static(command: &OsStr) -> bool {
    linked(command).is_some_and(|elf| !elf.dynamic)
}

/// Whether a command's program itself names `/dev/crypto`. What cannot be read does not.
pub(crate) fn names_the_device(command: &OsStr) -> bool {
    read(command).is_some_and(|(_, data)| elf::names_the_device(&data))
}

fn linked(command: &OsStr) -> Option<elf::Elf> {
    let (path, data) = read(command)?;
    elf::read(&path, &data)
}

fn read(command: &OsStr) -> Option<(PathBuf, Vec<u8>)> {
    let path = resolve(command).filter(|path| path.metadata().is_ok_and(|data| data.len() <= READ_MAX))?;
    let data = std::fs::read(&path).ok()?;
    Some((path, data))
}

/// As a shell finds it.
fn resolve(command: &OsStr) -> Option<PathBuf> {
    let direct = PathBuf::from(command);
    let executable = |path: &PathBuf| path.metadata().is_ok_and(|data| data.is_file() && data.permissions().mode() & 0o111 != 0);
    let found = if direct.components().count() > 1 {
        Some(direct).filter(executable)
    } else {
        let path = std::env::var_os("PATH")?;
        std::env::split_paths(&path).map(|folder| folder.join(command)).find(executable)
    };
    found.map(|path| path.canonicalize().unwrap_or(path))
}

fn is_shell(path: &Path) -> bool {
    let name = path.file_name().and_then(OsStr::to_str).unwrap_or_default();
    ["sh", "bash", "dash", "zsh", "ksh", "busybox"].contains(&name)
}

/// From a script to what runs it.
fn follow(path: PathBuf, findings: &mut Vec<Finding>, left: usize) -> PathBuf {
    let head = std::fs::read(&path).map(|data| String::from_utf8_lossy(&data[..data.len().min(256)]).into_owned()).unwrap_or_default();
    let Some(line) = head.strip_prefix("#!").and_then(|rest| rest.lines().next()).filter(|_| left > 0) else { return path };
    let mut words = line.split_whitespace().filter(|word| !word.starts_with('-'));
    let first = words.next().unwrap_or_default();
    let name = if first.ends_with("/env") { words.next().unwrap_or_default() } else { first };
    match resolve(OsStr::new(name)) {
        Some(interpreter) => {
            findings.push(Finding::ok("program", format!("{} is a script of {}", path.display(), interpreter.display())));
            follow(interpreter, findings, left - 1)
        }
        None => path,
    }
}

fn judge(path: &Path, data: &[u8]) -> Vec<Finding> {
    let name = path.display();
    let Some(elf) = elf::read(path, data) else {
        return vec![Finding::broken("program", format!("{name} is not a program of this machine"), "give the program itself")];
    };
    if !elf.dynamic {
        let what = elf::built_in(data).map_or(String::new(), |library| format!(" (it carries {library})"));
        if elf::names_the_device(data) {
            let found = format!("{name} is statically linked{what} and names /dev/crypto: that it can have, but no provider reaches it");
            return vec![Finding::note("program", found, format!("bywash run --static -- {name} ..."))];
        }
        let found = format!("{name} is statically linked{what}: no provider reaches it");
        return vec![Finding::broken("program", found, "use a build that is linked to the system's libcrypto.so.3")];
    }
    let libraries = closure(path, &elf);
    let mut findings = vec![verdict(&name.to_string(), &libraries, || elf::built_in(data))];
    findings.extend(dds(&name.to_string(), &libraries));
    findings.extend(device(&name.to_string(), data));
    findings.extend(batches(&elf.imports));
    findings.extend(privileged(path));
    findings
}

fn verdict(name: &str, libraries: &BTreeSet<String>, built_in: impl Fn() -> Option<&'static str>) -> Finding {
    let has = |library: &str| libraries.iter().any(|needed| needed.starts_with(library));
    if has("libcrypto.so.3") || has("libcrypto.so.4") {
        return Finding::ok("program", format!("{name} uses the system's libcrypto: it is reached"));
    }
    if let Some(old) = libraries.iter().find(|needed| needed.starts_with("libcrypto.so")) {
        let found = format!("{name} uses {old}, which is not OpenSSL 3");
        return Finding::broken("program", found, "use a build for OpenSSL 3.0 or later");
    }
    if let Some(library) = built_in() {
        let found = format!("{name} carries {library}: no provider reaches that");
        return Finding::broken("program", found, "use a build that is linked to the system's libcrypto.so.3");
    }
    if let Some(other) =
        libraries.iter().find(|needed| ["libgnutls", "libnss3", "libmbedcrypto", "libwolfssl"].iter().any(|l| needed.starts_with(l)))
    {
        let found = format!("{name} uses {other}, not OpenSSL: it is not reached");
        return Finding::broken("program", found, "use a build for OpenSSL (Debian: the package without -gnutls)");
    }
    let found =
        format!("{name} does not name libcrypto; it is reached if it loads it later (Python's ssl, Apache's mod_ssl and nginx modules do)");
    Finding::note("program", found, format!("look at the summary of: bywash run -- {name} ..."))
}

/// Which implementation of DDS it is linked to: the cryptography of each is reached in a way of its own.
fn dds(name: &str, libraries: &BTreeSet<String>) -> Vec<Finding> {
    const WAYS: [(&[&str], &str, &str); 3] = [
        (
            &["libfastrtps.so", "libfastdds.so"],
            "is Fast DDS, whose cryptography is compiled in: it derives and keys anew for every message",
            "bywash run --dds -- PROGRAM ...\nbywash dds doctor CONFIG, for its security's configuration",
        ),
        (
            &["libddsc.so"],
            "is Cyclone DDS, whose cryptography is a plug-in that its configuration names",
            "name libbywash_dds_cyclone.so there (<Cryptographic><Library path=.../>, as crates/interfaces/dds/README.md has it)\nbywash dds doctor CONFIG",
        ),
        (
            &["librmw_implementation.so"],
            "is ROS 2's choice of a DDS, made at its start by $RMW_IMPLEMENTATION: Fast DDS, unless something else is said",
            "bywash run --dds -- PROGRAM ...; for rmw_cyclonedds_cpp the plug-in, see crates/interfaces/dds/README.md",
        ),
    ];
    let finding = |(names, what, mend): &(&[&str], &str, &str)| {
        let library = libraries.iter().find(|library| names.iter().any(|name| library.starts_with(name)))?;
        Some(Finding::note("DDS", format!("{library} {what}"), mend.replace("PROGRAM", name)))
    };
    WAYS.iter().filter_map(finding).collect()
}

/// Whether the program itself speaks the interface of `/dev/crypto`.
fn device(name: &str, data: &[u8]) -> Option<Finding> {
    elf::names_the_device(data).then(|| {
        let found = format!("{name} names /dev/crypto: under bywash run --devcrypto it has that, and what it asks is answered by Bywash");
        Finding::ok("/dev/crypto", found)
    })
}

/// Whether the handshakes of a server would wait for each other: it must call libssl itself, and wait for events in a way that can be watched.
fn batches(imports: &BTreeSet<String>) -> Option<Finding> {
    const WAITS: [&str; 7] = ["epoll_wait", "epoll_pwait", "epoll_pwait2", "poll", "ppoll", "select", "pselect"];
    let shakes = ["SSL_do_handshake", "SSL_accept"].iter().any(|name| imports.contains(*name));
    let has = |name: &str| imports.contains(name) || imports.contains(&format!("__{name}_chk"));
    if !shakes {
        return None;
    }
    Some(match WAITS.iter().find(|name| has(name)) {
        Some(wait) => Finding::ok(
            "batches",
            format!(
                "it shakes hands by the system's libssl and waits by {wait}: as a server with non-blocking connections it computes them in batches"
            ),
        ),
        None => Finding::note(
            "batches",
            "it shakes hands by the system's libssl, but waits by none of epoll_wait, poll and select itself: a library may do so for it",
            "look at the summary of bywash run: it tells how many operations went in batches",
        ),
    })
}

/// OpenSSL does not trust the environment of a program with another's rights.
fn privileged(path: &Path) -> Option<Finding> {
    let mode = path.metadata().ok()?.permissions().mode();
    (mode & 0o6000 != 0).then(|| {
        let found = format!("{} is setuid or setgid: OpenSSL ignores OPENSSL_CONF there", path.display());
        Finding::broken("program", found, "activate the provider in the system's openssl.cnf instead")
    })
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    fn judged(libraries: &[&str], built_in: Option<&'static str>) -> Finding {
        verdict("prog", &libraries.iter().map(|name| (*name).to_owned()).collect(), || built_in)
    }

    #[test]
    fn verdicts_by_library() {
        assert_eq!(judged(&["libssl.so.3", "libcrypto.so.3"], None).level, Level::Ok);
        assert_eq!(judged(&["libcrypto.so.3"], Some("rustls")).level, Level::Ok);
        assert!(judged(&["libcrypto.so.1.1"], None).found.contains("libcrypto.so.1.1"));
        assert!(judged(&["libc.so.6"], Some("BoringSSL")).found.contains("BoringSSL"));
        assert!(judged(&["libgnutls.so.30"], None).found.contains("libgnutls.so.30"));
        assert_eq!(judged(&["libc.so.6"], None).level, Level::Note);
    }

    #[test]
    fn each_implementation_of_dds_has_its_way() {
        let told = |libraries: &[&str]| dds("prog", &libraries.iter().map(|name| (*name).to_owned()).collect());
        for library in ["libfastrtps.so.2.9", "libfastdds.so.3.6"] {
            let findings = told(&["libc.so.6", library, "libcrypto.so.3"]);
            assert!(findings.len() == 1 && findings[0].found.starts_with(library) && findings[0].level == Level::Note);
            assert!(findings[0].mend.as_deref().is_some_and(|mend| mend.contains("bywash run --dds -- prog")), "{findings:?}");
        }
        let cyclone = told(&["libddsc.so.0debian"]);
        assert!(cyclone[0].mend.as_deref().is_some_and(|mend| mend.contains("libbywash_dds_cyclone.so") && mend.contains("dds doctor")));
        assert!(told(&["librmw_implementation.so"])[0].found.contains("RMW_IMPLEMENTATION"));
        assert!(told(&["libc.so.6", "libcrypto.so.3"]).is_empty());
    }

    #[test]
    fn the_openssl_command_is_reached() {
        let Some(path) = resolve(OsStr::new("openssl")) else {
            eprintln!("skipped: there is no openssl command");
            return;
        };
        assert_eq!(look(path.as_os_str())[0].level, Level::Ok);
    }

    #[test]
    fn a_script_is_followed_to_its_interpreter() {
        let folder = tempfile::tempdir().unwrap();
        let script = folder.path().join("script");
        std::fs::write(&script, "#!/usr/bin/env -S sh -e\n").unwrap();
        std::fs::set_permissions(&script, std::fs::Permissions::from_mode(0o755)).unwrap();
        let findings = look(script.as_os_str());
        assert!(findings[0].found.contains("is a script of"), "{findings:?}");
        assert_eq!(findings[1].level, Level::Note, "a shell names no libcrypto");
    }

    #[test]
    fn a_static_program_that_names_the_device_is_told_of_the_supervisor() {
        // The shortest file that is an ELF file of this machine without an interpreter.
        let mut file = vec![0x7f, b'E', b'L', b'F', 2, 1, 1];
        file.resize(16, 0);
        let machine: u16 = if cfg!(target_arch = "x86_64") { 62 } else { 183 };
        [2, machine].iter().for_each(|half| file.extend(half.to_ne_bytes()));
        file.extend(1u32.to_ne_bytes());
        file.resize(52, 0);
        [64u16, 56, 0, 64, 0, 0].iter().for_each(|half| file.extend(half.to_ne_bytes()));
        let plain = judge(Path::new("prog"), &file);
        assert_eq!(plain[0].level, Level::Broken, "{plain:?}");
        file.extend(b"/dev/crypto\0");
        let named = judge(Path::new("prog"), &file);
        assert_eq!(named[0].level, Level::Note, "{named:?}");
        assert_eq!(named[0].mend.as_deref(), Some("bywash run --static -- prog ..."));
    }

    #[test]
    fn event_driven_servers_are_told_apart() {
        let judged = |imports: &[&str]| batches(&imports.iter().map(|name| (*name).to_owned()).collect()).map(|finding| finding.level);
        assert_eq!(judged(&["SSL_do_handshake", "epoll_wait"]), Some(Level::Ok));
        assert_eq!(judged(&["SSL_accept", "__poll_chk"]), Some(Level::Ok));
        assert_eq!(judged(&["SSL_accept", "read"]), Some(Level::Note));
        assert_eq!(judged(&["epoll_wait"]), None);
    }

    #[test]
    fn programs_that_name_the_device_are_told_apart() {
        assert_eq!(device("prog", b"... /dev/crypto\0 ...").map(|finding| finding.level), Some(Level::Ok));
        assert!(device("prog", b"... /dev/null\0 ...").is_none());
    }

    #[test]
    fn nothing_of_that_name() {
        assert_eq!(look(OsStr::new("no-such-command-anywhere"))[0].level, Level::Broken);
    }
}
