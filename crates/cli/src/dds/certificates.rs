//! Certificates: whether they hold, and whether both implementations take them.

use super::config::{Part, Security};
use super::not_named;
use super::xml;
use crate::doctor::Finding;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::time::{Duration, SystemTime};
use x509_cert::Certificate;
use x509_cert::der::DecodePem;
use x509_cert::der::oid::ObjectIdentifier;
use x509_cert::ext::pkix::{ExtendedKeyUsage, KeyUsage};

/// How long before its end a certificate is spoken of.
const SOON: Duration = Duration::from_secs(30 * 86_400);

/// Looks at the three certificates and the private key.
pub(super) fn look(security: &Security) -> Vec<Finding> {
    let now = SystemTime::now();
    let mut findings = Vec::new();
    for part in [Part::IdentityCa, Part::Identity, Part::PermissionsCa] {
        let about = part.name();
        let Some(path) = security.part(part) else {
            findings.extend(not_named(security, part));
            continue;
        };
        match read(path) {
            Ok(certificate) => findings.extend(judge(about, path, &certificate, now)),
            Err(why) => findings.push(Finding::broken(about, why, "name a certificate in PEM form; no participant starts without it")),
        }
    }
    findings.extend(security.part(Part::PrivateKey).map_or_else(|| not_named(security, Part::PrivateKey), private_key));
    findings
}

fn read(path: &Path) -> Result<Certificate, String> {
    let text = xml::read(path).map_err(|failure| failure.message)?;
    // A bundle's first certificate counts.
    let start = text.find("-----BEGIN CERTIFICATE-----").ok_or_else(|| format!("{}: no certificate in PEM form", path.display()))?;
    let end = text[start..].find("-----END CERTIFICATE-----").map(|end| start + end + "-----END CERTIFICATE-----".len());
    let one = &text[start..end.ok_or_else(|| format!("{}: a certificate without an end", path.display()))?];
    Certificate::from_pem(one).map_err(|error| format!("{}: no certificate: {error}", path.display()))
}

fn judge(about: &'static str, path: &Path, certificate: &Certificate, now: SystemTime) -> Vec<Finding> {
    let mut findings = vec![validity(about, path, certificate, now)];
    if about == "permissions CA" {
        findings.extend(usage(path, certificate));
        findings.extend(purposes(path, certificate));
    }
    findings
}

fn validity(about: &'static str, path: &Path, certificate: &Certificate, now: SystemTime) -> Finding {
    let validity = certificate.tbs_certificate().validity();
    let (begin, end) = (validity.not_before.to_system_time(), validity.not_after.to_system_time());
    let (shown, mend) = (path.display(), "make a new one in time; participants refuse it from then on");
    if now < begin {
        return Finding::broken(about, format!("{shown}: does not hold before {}", validity.not_before), "look at this machine's clock");
    }
    match end.duration_since(now) {
        Err(_) => Finding::broken(about, format!("{shown}: expired on {}", validity.not_after), "make a new one; participants refuse it"),
        Ok(left) if left < SOON => {
            Finding::note(about, format!("{shown}: expires in {} days, on {}", left.as_secs() / 86_400, validity.not_after), mend)
        }
        Ok(_) => Finding::ok(about, format!("{shown}: holds until {}", validity.not_after)),
    }
}

/// The permissions CA signs documents. OpenSSL, which both implementations verify them with, wants that among the key's uses if any are said; with `keyCertSign` alone
/// Cyclone DDS, and Fast DDS before 2.10, refuse governance and permissions.
fn usage(path: &Path, certificate: &Certificate) -> Option<Finding> {
    let usage = certificate.tbs_certificate().get_extension::<KeyUsage>();
    let mend = "make it with keyUsage = digitalSignature, keyCertSign, or without keyUsage";
    match usage {
        Ok(Some((_, usage))) if !usage.digital_signature() && !usage.non_repudiation() => Some(Finding::broken(
            "permissions CA",
            format!(
                "{}: its key may not sign documents (keyUsage lacks digitalSignature): Cyclone DDS, and Fast DDS before 2.10, will refuse the governance",
                path.display()
            ),
            mend,
        )),
        Ok(_) => None,
        Err(error) => Some(Finding::broken("permissions CA", format!("{}: keyUsage cannot be read: {error}", path.display()), mend)),
    }
}

/// id-kp-emailProtection (RFC 5280 s4.2.1.12).
const OF_MAIL: ObjectIdentifier = ObjectIdentifier::new_unwrap("1.3.6.1.5.5.7.3.4");

/// Likewise for its purposes: a document is signed as a mail is. anyExtendedKeyUsage will not do for OpenSSL.
fn purposes(path: &Path, certificate: &Certificate) -> Option<Finding> {
    let mend = "make it with extendedKeyUsage = emailProtection, or without extendedKeyUsage";
    let found = match certificate.tbs_certificate().get_extension::<ExtendedKeyUsage>() {
        Ok(Some((_, purposes))) if !purposes.0.contains(&OF_MAIL) => {
            "may not sign documents (extendedKeyUsage lacks emailProtection): Cyclone DDS, and Fast DDS before 2.10, will refuse the governance"
                .into()
        }
        Ok(_) => return None,
        Err(error) => format!("extendedKeyUsage cannot be read: {error}"),
    };
    Some(Finding::broken("permissions CA", format!("{}: {found}", path.display()), mend))
}

fn private_key(path: &Path) -> Option<Finding> {
    match std::fs::metadata(path) {
        Err(error) => {
            Some(Finding::broken("private key", format!("{}: {error}", path.display()), "name the key of the identity certificate"))
        }
        Ok(found) if !found.is_file() => {
            Some(Finding::broken("private key", format!("{}: not a file", path.display()), "name the key of the identity certificate"))
        }
        Ok(found) if found.permissions().mode() & 0o077 != 0 => Some(Finding::note(
            "private key",
            format!("{}: others on this machine may read it", path.display()),
            format!("chmod 600 {}", path.display()),
        )),
        Ok(_) => std::fs::File::open(path).err().map(|error| {
            let mend = format!("let the user who starts the participant read it: chown USER {}", path.display());
            Finding::broken("private key", format!("{}: {error}", path.display()), mend)
        }),
    }
}
