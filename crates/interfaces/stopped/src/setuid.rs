//! Programs whose file gives them rights. Under the filter the kernel would start them without, and they would fail in ways of their own.

use crate::Error;
use rustix::fs::{Access, access};
use rustix::process::{getegid, geteuid};
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::MetadataExt;
use std::path::PathBuf;
use std::process::Command;

const SETUID: u32 = 0o4000;
const SETGID: u32 = 0o2000;

/// Refuses a command whose file would change the user or the group.
pub(crate) fn refuse(command: &Command, option: &'static str) -> Result<(), Error> {
    let Some(program) = file_of(command) else { return Ok(()) };
    let Ok(data) = program.metadata() else { return Ok(()) };
    let changes_user = data.mode() & SETUID != 0 && data.uid() != geteuid().as_raw();
    let changes_group = data.mode() & SETGID != 0 && data.gid() != getegid().as_raw();
    if changes_user || changes_group { Err(Error::Privileged { program, option }) } else { Ok(()) }
}

/// The file that a command names, as execvp finds it.
pub fn file_of(command: &Command) -> Option<PathBuf> {
    let name = command.get_program();
    if name.as_bytes().contains(&b'/') {
        return Some(name.into());
    }
    let set = command.get_envs().find(|(variable, _)| *variable == "PATH").map(|(_, value)| value.map(ToOwned::to_owned));
    let path = set.unwrap_or_else(|| std::env::var_os("PATH"))?;
    let is_program = |file: &PathBuf| file.is_file() && access(file, Access::EXEC_OK).is_ok();
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(is_program)
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn what_nobody_may_execute_is_no_program() {
        let folder = tempfile::tempdir().unwrap();
        let [data, programs] = ["data", "programs"].map(|name| folder.path().join(name));
        for (folder, mode) in [(&data, 0o644), (&programs, 0o755)] {
            std::fs::create_dir(folder).unwrap();
            std::fs::write(folder.join("program"), "").unwrap();
            std::fs::set_permissions(folder.join("program"), std::fs::Permissions::from_mode(mode)).unwrap();
        }
        let path = std::env::join_paths([&data, &programs]).unwrap();
        assert_eq!(file_of(Command::new("program").env("PATH", path)), Some(programs.join("program")));
    }

    #[test]
    fn a_program_that_would_change_the_group_is_refused_by_name() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("program");
        std::fs::write(&program, "").unwrap();
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o2755)).unwrap();
        assert!(refuse(&Command::new(&program), "--static").is_ok(), "it would change nothing");
        if rustix::fs::chown(&program, None, Some(rustix::process::Gid::from_raw(65534))).is_err() {
            eprintln!("skipped: only root may give a file to another group");
            return;
        }
        std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o2755)).unwrap();
        let error = refuse(&Command::new(&program), "--static").unwrap_err().to_string();
        assert!(error.contains(&*program.to_string_lossy()) && error.contains("without --static"), "{error}");
        let mut by_path = Command::new("program");
        assert!(refuse(by_path.env("PATH", folder.path()), "--static").is_err());
        assert!(refuse(&Command::new("no-such-command-anywhere"), "--static").is_ok());
    }
}
