//! Where the broker's socket is.

use crate::environment::variable;
use std::ffi::OsString;
use std::path::PathBuf;

/// The variable that overrides the default place.
pub const SOCKET_VARIABLE: &str = "BYWASH_SOCKET";

/// The socket's path: `$BYWASH_SOCKET`; else `/run/bywash/broker.sock` for root; else `$XDG_RUNTIME_DIR/bywash.sock`, and the system's
/// where there is no such directory. A program with borrowed rights asks no variable (see [`environment`](crate::environment)).
pub fn socket_path() -> PathBuf {
    choose(variable(SOCKET_VARIABLE), rustix::process::geteuid().is_root(), variable("XDG_RUNTIME_DIR"))
}

fn choose(named: Option<OsString>, root: bool, runtime: Option<OsString>) -> PathBuf {
    let set = |value: Option<OsString>| value.filter(|value| !value.is_empty());
    match (set(named), set(runtime)) {
        (Some(path), _) => path.into(),
        (None, Some(directory)) if !root => PathBuf::from(directory).join("bywash.sock"),
        _ => "/run/bywash/broker.sock".into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_variable_wins_then_root_then_the_runtime_directory() {
        let s = |text: &str| Some(OsString::from(text));
        assert_eq!(choose(s("/x/y"), true, s("/r")), PathBuf::from("/x/y"));
        assert_eq!(choose(s(""), true, s("/r")), PathBuf::from("/run/bywash/broker.sock"));
        assert_eq!(choose(None, false, s("/r")), PathBuf::from("/r/bywash.sock"));
        assert_eq!(choose(None, false, None), PathBuf::from("/run/bywash/broker.sock"));
    }
}
