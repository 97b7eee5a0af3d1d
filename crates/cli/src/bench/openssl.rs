//! The system's OpenSSL, by its own `openssl speed`: a second of every round, on its own processor time.

use super::measure::{Figure, Site, Work};
use bywash_core::{Algorithm, Error, Operation, Result, SessionParams};
use std::process::Command;

/// Which of its tests, and which of a line's figures.
struct Test {
    name: &'static str,
    /// What the line begins with.
    line: &'static str,
    /// Fields after the line's beginning; operations per second.
    field: usize,
}

fn test(algorithm: Algorithm) -> Option<Test> {
    use Algorithm as A;
    // +F2:test:bits:sign:verify (RSA), +F4:the same (ECDSA), +F5:test:bits:derive:seconds (ECDH), +F6:test:bits:name:sign:verify (EdDSA).
    let (name, line, field) = match algorithm {
        A::Rsa1024Private => ("rsa1024", "+F2:", 2),
        A::Rsa2048Private => ("rsa2048", "+F2:", 2),
        A::Rsa3072Private => ("rsa3072", "+F2:", 2),
        A::Rsa4096Private => ("rsa4096", "+F2:", 2),
        A::Rsa1024Public => ("rsa1024", "+F2:", 3),
        A::Rsa2048Public => ("rsa2048", "+F2:", 3),
        A::Rsa3072Public => ("rsa3072", "+F2:", 3),
        A::Rsa4096Public => ("rsa4096", "+F2:", 3),
        A::EcdsaP256Sign => ("ecdsap256", "+F4:", 2),
        A::EcdsaP256Verify => ("ecdsap256", "+F4:", 3),
        A::EcdsaP384Sign => ("ecdsap384", "+F4:", 2),
        A::EcdsaP384Verify => ("ecdsap384", "+F4:", 3),
        A::EcdhP256 => ("ecdhp256", "+F5:", 2),
        A::EcdhP384 => ("ecdhp384", "+F5:", 2),
        A::X25519 => ("ecdhx25519", "+F5:", 2),
        A::Ed25519Sign => ("ed25519", "+F6:", 3),
        _ => return None,
    };
    Some(Test { name, line, field })
}

/// The `openssl` command of this system.
pub(crate) struct OpenSsl;

impl Site for OpenSsl {
    fn name(&self) -> &str {
        "openssl"
    }

    fn offers(&self, algorithm: Algorithm) -> bool {
        test(algorithm).is_some()
    }

    fn open(&self, params: &SessionParams) -> Result<Box<dyn Work>> {
        let algorithm = params.algorithm();
        let test = test(algorithm).ok_or_else(|| Error::Unsupported { engine: "openssl speed".into(), algorithm })?;
        Ok(Box::new(Speed(test)))
    }
}

struct Speed(Test);

impl Work for Speed {
    fn run(&self, _: &mut Operation<'_>) -> Result<()> {
        self.figure().unwrap_or_else(|| Err(failed("it measures itself".into()))).map(drop)
    }

    fn figure(&self) -> Option<Result<Figure>> {
        // Without the user's configuration: a provider named there, Bywash's own among them, would be measured instead.
        let run = Command::new("openssl").args(["speed", "-mr", "-seconds", "1", self.0.name]).env("OPENSSL_CONF", "/dev/null").output();
        Some(match run {
            Ok(output) => self.read(&String::from_utf8_lossy(&output.stdout)),
            Err(error) => Err(failed(format!("cannot run `openssl speed`: {error}"))),
        })
    }
}

impl Speed {
    fn read(&self, text: &str) -> Result<Figure> {
        let fields = text.lines().find_map(|line| line.strip_prefix(self.0.line));
        let rate = fields.and_then(|fields| fields.split(':').nth(self.0.field)?.parse::<f64>().ok()).filter(|rate| *rate > 0.0);
        let rate = rate.ok_or_else(|| failed(format!("`openssl speed -mr {}` printed no figure", self.0.name)))?;
        Ok(Figure { ns_per_op: 1e9 / rate, ops_per_s: rate })
    }
}

fn failed(reason: String) -> Error {
    Error::EngineFailed { engine: "openssl speed".into(), reason }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What OpenSSL 3.0 prints.
    const PRINTED: &str = "+R1:rsa\n+F2:1:1024:10241.379310:164768.750000\n+F4:3:256:46858.620690:15524.242424\n\
        +F5:22:253:27800.000000:0.000036\n+F6:0:253:Ed25519:18962.962963:7353.333333\n";

    #[test]
    fn each_figure_is_found_in_its_line() {
        let rate = |algorithm| Speed(test(algorithm).unwrap()).read(PRINTED).unwrap().ops_per_s.round();
        assert_eq!(rate(Algorithm::Rsa1024Private), 10241.0);
        assert_eq!(rate(Algorithm::Rsa1024Public), 164_769.0);
        assert_eq!(rate(Algorithm::EcdsaP256Sign), 46859.0);
        assert_eq!(rate(Algorithm::EcdsaP256Verify), 15524.0);
        assert_eq!(rate(Algorithm::X25519), 27800.0);
        assert_eq!(rate(Algorithm::Ed25519Sign), 18963.0);
        let error = Speed(test(Algorithm::X25519).unwrap()).read("").unwrap_err();
        assert!(error.to_string().contains("ecdhx25519"), "{error}");
    }
}
