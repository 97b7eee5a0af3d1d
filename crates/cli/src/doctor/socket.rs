//! The broker's socket: is a broker there, may we connect?

use super::Finding;
use crate::broker_link::Link;
use crate::run::NO_BROKER;
use std::io::ErrorKind;
use std::path::Path;

pub(super) fn look(named: Option<&Path>) -> Vec<Finding> {
    let path = crate::broker_link::socket_path(named);
    if path.as_os_str() == NO_BROKER {
        return vec![Finding::note("broker", "BYWASH_SOCKET is `none`: nobody looks for one", "unset BYWASH_SOCKET")];
    }
    let Err(failure) = Link::connect(&path) else { return vec![judge(&path, Ok(()))] };
    // What accepts a connection may still turn one away, or be stopped.
    vec![match crate::broker_link::probe(&path) {
        Ok(()) => Finding::broken("broker", failure.message, format!("see its log; bywash stats --socket {}", path.display())),
        refused => judge(&path, refused),
    }]
}

fn judge(path: &Path, answer: std::io::Result<()>) -> Finding {
    let name = path.display();
    let start = format!("for one broker for all programs: bywash serve --socket {name}");
    match answer {
        Ok(()) => Finding::ok("broker", format!("answers at {name}")),
        Err(error) => match error.kind() {
            ErrorKind::NotFound => Finding::note("broker", format!("none at {name}; each bywash run hosts its own"), start),
            ErrorKind::ConnectionRefused => Finding::note("broker", format!("{name} is left over from one that is gone"), start),
            ErrorKind::PermissionDenied => Finding::broken(
                "broker",
                format!("no permission to connect to {name}"),
                format!("run as the broker's user, or start it with --socket-mode 0666 or --allow-uid (now: ls -l {name})"),
            ),
            _ => Finding::broken("broker", format!("{name}: {error}"), "bywash serve --socket PATH, and --socket PATH here"),
        },
    }
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn answers_are_judged() {
        let [unasked] = &look(Some(Path::new(NO_BROKER)))[..] else { panic!("one finding") };
        assert!(unasked.level == Level::Note && unasked.found.contains("nobody looks"));
        let of = |kind: ErrorKind| judge(Path::new("/run/x"), Err(kind.into()));
        assert_eq!(judge(Path::new("/run/x"), Ok(())).level, Level::Ok);
        assert_eq!(of(ErrorKind::NotFound).level, Level::Note);
        assert_eq!(of(ErrorKind::ConnectionRefused).level, Level::Note);
        let refused = of(ErrorKind::PermissionDenied);
        assert_eq!(refused.level, Level::Broken);
        assert!(refused.mend.unwrap().contains("--socket-mode"));
    }
}
