//! The machine: what its CPU can do, what its limits allow, what encloses us.

use super::Finding;
use bywash_protocol::turns::{First, NotFirst};
use rustix::io::Errno;
use rustix::process::{Resource, getrlimit};
use std::path::Path;

/// Below this many bytes of locked memory a broker with a few clients cannot keep its keys from swap.
const MEMLOCK_MIN: u64 = 8 << 20;

pub(super) fn look() -> Vec<Finding> {
    let mut findings = vec![cpu(), memory_lock(getrlimit(Resource::Memlock).current)];
    findings.extend(core_dumps(getrlimit(Resource::Core).current));
    findings.push(shared_memory());
    findings.push(precedence(may_go_first()));
    findings.extend(enclosure());
    findings
}

/// Tried by a thread that ends at once.
fn may_go_first() -> Result<(), NotFirst> {
    let thread = std::thread::Builder::new().spawn(|| First::begin().map(drop));
    thread.ok().and_then(|thread| thread.join().ok()).unwrap_or(Err(NotFirst::Refused(Errno::AGAIN)))
}

#[cfg(target_arch = "x86_64")]
fn cpu() -> Finding {
    use std::arch::is_x86_feature_detected as has;
    let features = [
        ("AES-NI", has!("aes")),
        ("PCLMUL", has!("pclmulqdq")),
        ("VAES", has!("vaes")),
        ("VPCLMUL", has!("vpclmulqdq")),
        ("AVX-512", has!("avx512f")),
        ("IFMA", has!("avx512ifma")),
        ("SHA", has!("sha")),
    ];
    judge_cpu(&features)
}

#[cfg(target_arch = "aarch64")]
fn cpu() -> Finding {
    use std::arch::is_aarch64_feature_detected as has;
    judge_cpu(&[("AES-NI", has!("aes")), ("PMULL", has!("pmull")), ("SHA2", has!("sha2")), ("SVE", has!("sve"))])
}

#[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
fn cpu() -> Finding {
    judge_cpu(&[])
}

/// The first feature of the list is the one without which everything is slow.
fn judge_cpu(features: &[(&str, bool)]) -> Finding {
    let names = |wanted| features.iter().filter(|(_, has)| *has == wanted).map(|(name, _)| *name).collect::<Vec<_>>().join(" ");
    let (there, missing) = (names(true), names(false));
    let text = if missing.is_empty() { there.clone() } else { format!("{there} (not: {missing})") };
    if features.first().is_some_and(|(_, has)| *has) {
        Finding::ok("CPU", text)
    } else {
        Finding::note("CPU", format!("no AES instructions; {text}"), "none in software: ciphers run, slowly")
    }
}

fn memory_lock(limit: Option<u64>) -> Finding {
    match limit {
        Some(bytes) if bytes < MEMLOCK_MIN => Finding::note(
            "memory lock",
            format!("at most {} KiB can be locked: keys beyond that may be swapped out", bytes >> 10),
            "ulimit -l unlimited, or LimitMEMLOCK=infinity in the broker's unit",
        ),
        Some(bytes) => Finding::ok("memory lock", format!("{} MiB", bytes >> 20)),
        None => Finding::ok("memory lock", "unlimited"),
    }
}

/// The broker takes itself out of core dumps; a program that computes in place has its own policy.
fn core_dumps(limit: Option<u64>) -> Option<Finding> {
    let found = "programs may leave core dumps, with their keys in them (the broker never does)";
    (limit != Some(0)).then(|| Finding::note("core dumps", found, "ulimit -c 0"))
}

fn shared_memory() -> Finding {
    match rustix::fs::memfd_create("bywash-doctor", rustix::fs::MemfdFlags::ALLOW_SEALING | rustix::fs::MemfdFlags::CLOEXEC) {
        Ok(_) => Finding::ok("shared memory", "sealed memory files can be made"),
        Err(error) => Finding::broken(
            "shared memory",
            format!("memfd_create: {error}"),
            "allow memfd_create in the seccomp profile; without it use bywash run --route here",
        ),
    }
}

fn precedence(tried: Result<(), NotFirst>) -> Finding {
    match tried {
        Ok(()) => Finding::ok("processor", "a broker started like this may have the thread of a single module go before other programs"),
        Err(why) => Finding::note(
            "processor",
            format!(
                "a broker started like this has the thread of a single module wait as others do, so that goals are missed while programs use all processors: {why}"
            ),
            "run the broker as root, or with LimitRTPRIO=1 in its unit",
        ),
    }
}

fn enclosure() -> Vec<Finding> {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mut findings = Vec::new();
    if status.lines().any(|line| line.split_whitespace().eq(["Seccomp:", "2"])) {
        let found = "a seccomp filter is in force; it must allow memfd_create, futex, sendmsg and recvmsg";
        findings.push(Finding::note("seccomp", found, "only if something fails: try another profile (--security-opt seccomp=FILE)"));
    }
    if let Some(kind) = container() {
        let found = format!("this looks like a {kind} container");
        let mend = "to share a broker with the host, mount the folder of its socket and set BYWASH_SOCKET";
        findings.push(Finding::note("container", found, mend));
    }
    findings
}

fn container() -> Option<&'static str> {
    if Path::new("/.dockerenv").exists() {
        return Some("Docker");
    }
    if Path::new("/run/.containerenv").exists() {
        return Some("Podman");
    }
    let cgroup = std::fs::read_to_string("/proc/1/cgroup").unwrap_or_default();
    [("kubepods", "Kubernetes"), ("docker", "Docker"), ("lxc", "LXC")].iter().find(|(mark, _)| cgroup.contains(mark)).map(|(_, name)| *name)
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn limits_are_judged() {
        assert_eq!(memory_lock(Some(64 << 10)).level, Level::Note);
        assert!(memory_lock(Some(64 << 10)).found.contains("64 KiB"));
        assert_eq!(memory_lock(Some(64 << 20)).level, Level::Ok);
        assert_eq!(memory_lock(None).level, Level::Ok);
        assert!(core_dumps(Some(0)).is_none());
        assert!(core_dumps(None).is_some());
    }

    #[test]
    fn a_module_that_waits_as_others_is_a_note() {
        assert_eq!(precedence(Ok(())).level, Level::Ok);
        let refused = precedence(Err(NotFirst::Refused(Errno::PERM)));
        assert!(refused.level == Level::Note && refused.mend.unwrap().contains("LimitRTPRIO=1"));
    }

    #[test]
    fn a_cpu_without_aes_is_noted() {
        assert_eq!(judge_cpu(&[("AES-NI", true), ("VAES", false)]).found, "AES-NI (not: VAES)");
        assert_eq!(judge_cpu(&[("AES-NI", false)]).level, Level::Note);
    }
}
