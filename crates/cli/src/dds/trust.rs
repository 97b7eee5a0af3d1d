//! Whether the files belong together: certificates and documents are signed by their authorities, the key is the certificate's. Asked of `openssl`, the library with which
//! participants verify as well.

use super::config::{Part, Security};
use super::{documents, xml};
use crate::doctor::Finding;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};
use zeroize::Zeroizing;

/// Why there is no answer.
enum Why {
    /// The command is absent.
    Absent,
    /// It says no, in these words.
    No(String),
}

/// A question and its answer.
struct Asked<'a> {
    part: Part,
    path: &'a Path,
    answer: Result<(), Why>,
    /// What is the matter if the answer is no, and what mends it.
    otherwise: String,
    mend: &'static str,
}

/// Looks at chain, signatures and key. A file that is absent, or is none, has been spoken of already and is passed over.
pub(super) fn look(security: &Security) -> Vec<Finding> {
    let [identity, identity_ca, private_key, permissions_ca] =
        [Part::Identity, Part::IdentityCa, Part::PrivateKey, Part::PermissionsCa].map(|part| security.part(part));
    let mut asked: Vec<Asked<'_>> = Vec::new();
    if let (Some(path), Some(authority)) = (identity, identity_ca) {
        let mend = "sign it with that authority's key, or name the authority that has; no participant starts without";
        let otherwise = format!("not signed by {}", authority.display());
        let answer = signed_by(Part::Identity, path, authority);
        asked.extend(answer.map(|answer| Asked { part: Part::Identity, path, answer, otherwise, mend }));
    }
    for part in [Part::Governance, Part::Permissions] {
        if let (Some(path), Some(authority)) = (security.part(part), permissions_ca) {
            let mend = documents::SIGN;
            let Some(answer) = signed_by(part, path, authority) else { continue };
            let otherwise = match &answer {
                Err(Why::No(why)) if why.contains("certificate purpose") => {
                    format!("signed with a certificate that may not sign documents, by {}", authority.display())
                }
                _ => format!("its signature is not one of {}, or its text was changed", authority.display()),
            };
            asked.push(Asked { part, path, answer, otherwise, mend });
        }
    }
    if let (Some(certificate), Some(path)) = (identity, private_key) {
        asked.extend(belongs(certificate, path));
    }
    judge(asked)
}

fn judge(asked: Vec<Asked<'_>>) -> Vec<Finding> {
    if asked.iter().any(|asked| matches!(asked.answer, Err(Why::Absent))) {
        let found = "not checked: signatures, and whether the key is the certificate's; there is no openssl command here";
        return vec![Finding::note("signatures", found, "apt install openssl")];
    }
    let good: Vec<&str> = asked.iter().filter(|asked| asked.answer.is_ok()).map(|asked| asked.part.name()).collect();
    let all = (!good.is_empty()).then(|| Finding::ok("signatures", format!("right: {}", good.join(", "))));
    let broken = asked.iter().filter_map(|Asked { part, path, answer, otherwise, mend }| match answer {
        Err(Why::No(why)) => {
            let why = if why.is_empty() { String::new() } else { format!(" ({why})") };
            Some(Finding::broken(part.name(), format!("{}: {otherwise}{why}", path.display()), *mend))
        }
        _ => None,
    });
    all.into_iter().chain(broken).collect()
}

/// Whether an authority's signature is on it; nothing if that cannot be told.
pub(super) fn is_signed_by(part: Part, what: &Path, authority: &Path) -> Option<bool> {
    match signed_by(part, what, authority)? {
        Ok(()) => Some(true),
        Err(Why::No(_)) => Some(false),
        Err(Why::Absent) => None,
    }
}

/// The text of a document, as participants get it; nothing if that authority has not signed it, or it cannot be told.
pub(super) fn text(document: &str, authority: &Path) -> Option<String> {
    xml::read(authority).ok()?;
    verified(document, authority).ok()
}

/// Whether an authority's signature is on it; dates are another matter, and spoken of elsewhere, as is what has none.
fn signed_by(part: Part, what: &Path, authority: &Path) -> Option<Result<(), Why>> {
    let text = xml::read(what).ok()?;
    xml::read(authority).ok()?;
    match part {
        Part::Identity => Some(ask(by(&["verify"], authority), text.as_bytes()).map(drop)),
        _ if !documents::has_signature(&text) => None,
        _ => Some(verified(&text, authority).map(drop)),
    }
}

/// A document's text, if that authority has signed it. The text has a header of its own, for both implementations ask for one; and what signs must be for that, as PKCS7_verify(3) wants it.
fn verified(document: &str, authority: &Path) -> Result<String, Why> {
    ask(by(&["smime", "-verify", "-text"], authority), document.as_bytes())
}

/// The question whether it is signed by that authority and no other: the system's are nobody's here.
fn by(command: &[&str], authority: &Path) -> Command {
    let mut openssl = Command::new("openssl");
    openssl.args(command).args(["-no_check_time", "-no-CApath", "-no-CAstore", "-CAfile"]).arg(authority);
    openssl
}

/// The public half of a private key that is not encrypted.
fn public_half(key: &str) -> Result<String, Why> {
    let mut openssl = Command::new("openssl");
    openssl.args(["pkey", "-pubout", "-passin", "pass:"]);
    ask(openssl, key.as_bytes())
}

/// Whether it is a key, and the certificate's; nothing of one that is encrypted.
fn belongs<'a>(certificate: &Path, path: &'a Path) -> Option<Asked<'a>> {
    let (text, key) = (xml::read(certificate).ok()?, Zeroizing::new(xml::read(path).ok()?));
    if key.contains("ENCRYPTED") {
        return None;
    }
    let mut of_certificate = Command::new("openssl");
    of_certificate.args(["x509", "-noout", "-pubkey"]);
    // A certificate that cannot be read is spoken of elsewhere.
    let expected = match ask(of_certificate, text.as_bytes()) {
        Err(Why::No(_)) => return None,
        other => other,
    };
    let found = public_half(&key);
    let (otherwise, mend) = match &found {
        Err(Why::No(_)) => {
            ("no private key in PEM form that openssl can read".into(), "name the certificate's key; no participant starts without")
        }
        _ => (
            format!("not the key of {}", certificate.display()),
            "name the key that the certificate was made for; with another one participants start, and never meet",
        ),
    };
    let answer = expected.and_then(|expected| if found? == expected { Ok(()) } else { Err(Why::No(String::new())) });
    Some(Asked { part: Part::PrivateKey, path, answer, otherwise, mend })
}

/// The subject of a certificate as permissions name it, `CN=alice,O=robots`; nothing if it cannot be told. Cyclone writes letters beyond ASCII as `\C3\A9`, Fast DDS as they are.
pub(super) fn subject(certificate: &Path, is_ascii: bool) -> Option<String> {
    let text = xml::read(certificate).ok()?;
    let mut openssl = Command::new("openssl");
    openssl.args(["x509", "-noout", "-subject", "-nameopt", if is_ascii { "RFC2253" } else { "RFC2253,-esc_msb" }]);
    let said = ask(openssl, text.as_bytes()).ok()?;
    Some(said.trim().strip_prefix("subject=")?.trim().to_owned())
}

/// What openssl answers about what it reads from its standard input.
fn ask(mut openssl: Command, input: &[u8]) -> Result<String, Why> {
    for variable in ["OPENSSL_CONF", "SSL_CERT_FILE", "SSL_CERT_DIR"] {
        openssl.env_remove(variable);
    }
    let started = openssl.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).env("LC_ALL", "C").spawn();
    let mut child = started.map_err(|_| Why::Absent)?;
    let stdin = child.stdin.take();
    // It may answer before it has read all, and waits then for who reads that.
    let output = std::thread::scope(|scope| {
        // Who has understood enough reads no further.
        scope.spawn(move || stdin.map(|mut stdin| stdin.write_all(input)));
        child.wait_with_output()
    });
    let output = output.map_err(|_| Why::Absent)?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Why::No(reason(&String::from_utf8_lossy(&output.stderr))))
}

/// The part of openssl's words that tells something: what follows `lookup:`, or the reason in the first line of its error queue, whose fields are set off by colons.
fn reason(said: &str) -> String {
    if said.contains("no content type") {
        return "it was signed without -text".into();
    }
    let lookup = said.lines().find_map(|line| line.split_once("lookup:").or_else(|| line.split_once("Verify error:")));
    let queued = said.lines().find_map(|line| line.split(':').nth(5).filter(|_| line.contains(":error:")));
    lookup.map(|(_, why)| why).or(queued).unwrap_or_default().trim().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_openssl_says_is_cut_to_its_reason() {
        for (said, why) in [
            (
                "CN = x\nerror 20 at 0 depth lookup: unable to get local issuer certificate\nerror stdin: verification failed\n",
                "unable to get local issuer certificate",
            ),
            (
                "Verification failure\n00BE:error:10800065:PKCS7 routines:PKCS7_signatureVerify:digest failure:../crypto/pk7_doit.c:1136:\n",
                "digest failure",
            ),
            (
                "Error reading S/MIME message\n00BE:error:068000CD:asn1 encoding routines:SMIME_text:mime no content type:../crypto/asn1/x.c:1:\n",
                "it was signed without -text",
            ),
            ("", ""),
        ] {
            assert_eq!(reason(said), why);
        }
    }
}
