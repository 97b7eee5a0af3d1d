//! Programs that we start, what they cost the processor, and their end.

use crate::{Error, Result, io_error};
use rustix::process::{Pid, Signal, kill_process, kill_process_group};
use rustix::time::{ClockId, clock_gettime};
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr, TcpStream};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// How long a server may take to listen, and to end.
const PATIENCE: Duration = Duration::from_secs(20);
const STEP: Duration = Duration::from_millis(10);

/// A program in the background, ended with all its children when this is dropped.
pub(crate) struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts it in a process group of its own, for Apache ends by signalling its whole group. What it says goes to a file.
    pub(crate) fn start(command: &mut Command, log: &Path) -> Result<Self> {
        let file = File::create(log).map_err(|error| io_error("create", log, &error))?;
        let both = file.try_clone().map_err(|error| io_error("create", log, &error))?;
        command.stdin(Stdio::null()).stdout(file).stderr(both).process_group(0);
        let child = command.spawn().map_err(|error| Error(format!("cannot start {:?}: {error}", command.get_program())))?;
        Ok(Self { child, log: log.to_owned() })
    }

    /// Waits until something listens on a port of 127.0.0.1.
    pub(crate) fn await_port(&mut self, port: u16) -> Result<()> {
        let address = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
        let end = Instant::now() + PATIENCE;
        while TcpStream::connect_timeout(&address, PATIENCE).is_err() {
            if Instant::now() >= end || !matches!(self.child.try_wait(), Ok(None)) {
                let said = fs::read_to_string(&self.log).unwrap_or_default();
                let last: Vec<&str> = said.lines().rev().take(5).collect();
                return Err(Error(format!("nothing listens on port {port}; {}: {}", self.log.display(), last.join(" | "))));
            }
            std::thread::sleep(STEP);
        }
        Ok(())
    }

    pub(crate) fn pid(&self) -> u32 {
        self.child.id()
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let Some(pid) = i32::try_from(self.child.id()).ok().and_then(Pid::from_raw) else { return };
        // It may have ended by itself; then there is nobody to tell.
        let _ = kill_process(pid, Signal::TERM);
        let end = Instant::now() + PATIENCE;
        while matches!(self.child.try_wait(), Ok(None)) && Instant::now() < end {
            std::thread::sleep(STEP);
        }
        let _ = kill_process_group(pid, Signal::KILL);
        let _ = self.child.wait();
    }
}

/// Processor time of this process, all its threads.
pub(crate) fn cpu_of_this() -> Duration {
    Duration::try_from(clock_gettime(ClockId::ProcessCPUTime)).unwrap_or_default()
}

/// Processor time of a process, all its threads that live.
pub(crate) fn cpu_of(pid: u32) -> Duration {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let spent = tasks.filter_map(|task| {
        let text = fs::read_to_string(task.path().join("schedstat")).ok()?;
        text.split(' ').next()?.parse::<u64>().ok()
    });
    Duration::from_nanos(spent.sum())
}

/// Processor time of a process's children that have ended and that it took note of, and of theirs, in steps of a clock tick (10 ms).
pub(crate) fn cpu_of_ended_children(pid: u32) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{pid}/stat")).unwrap_or_default();
    Duration::from_secs_f64(ended_children_ticks(&stat) as f64 / rustix::param::clock_ticks_per_second() as f64)
}

/// Fields 16 and 17 of proc_pid_stat(5), `cutime` and `cstime`; field 2, a name in parentheses, may have blanks.
fn ended_children_ticks(stat: &str) -> u64 {
    let after_name = stat.rsplit_once(')').map_or("", |(_, rest)| rest);
    after_name.split_whitespace().skip(13).take(2).filter_map(|ticks| ticks.parse::<u64>().ok()).sum()
}

/// Children, children's children, and so on.
pub(crate) fn descendants(pid: u32) -> Vec<u32> {
    let tasks = fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let children = tasks.filter_map(|task| fs::read_to_string(task.path().join("children")).ok());
    let direct: Vec<u32> =
        children.flat_map(|line| line.split_whitespace().filter_map(|pid| pid.parse().ok()).collect::<Vec<_>>()).collect();
    direct.into_iter().flat_map(|child| [vec![child], descendants(child)].concat()).collect()
}

/// A command on one core of the machine, if there are two to share.
pub(crate) fn on_core(core: usize, program: &Path) -> Command {
    if std::thread::available_parallelism().is_ok_and(|cores| cores.get() >= 2) {
        let mut command = Command::new("taskset");
        command.arg("-c").arg(core.to_string()).arg(program);
        return command;
    }
    Command::new(program)
}

/// Runs a command to its end; gives what it wrote to stdout.
pub(crate) fn output(command: &mut Command) -> Result<String> {
    let output = command.output().map_err(|error| Error(format!("cannot start {:?}: {error}", command.get_program())))?;
    if !output.status.success() {
        let said = String::from_utf8_lossy(&output.stderr);
        return Err(Error(format!("{command:?}: {}: {}", output.status, said.trim())));
    }
    Ok(String::from_utf8_lossy(&output.stdout).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_children_cost_is_found_behind_any_name() {
        let stat = "77 (a) b) S 1 77 77 0 -1 4194560 100 200 0 0 11 12 130 140 20 0 1 0 5 6 7";
        assert_eq!(ended_children_ticks(stat), 270);
        assert_eq!(ended_children_ticks(""), 0);
        let folder = tempfile::tempdir().unwrap();
        let script = "sh -c 'i=0; while [ $i -lt 400000 ]; do i=$((i+1)); done'; sleep 60";
        let process = Process::start(Command::new("sh").args(["-c", script]), &folder.path().join("log")).unwrap();
        let end = Instant::now() + PATIENCE;
        while cpu_of_ended_children(process.pid()).is_zero() {
            assert!(Instant::now() < end, "the shell's child ends, having worked");
            std::thread::sleep(STEP);
        }
        assert!(cpu_of_ended_children(process.pid()) > cpu_of(process.pid()), "the child did all of the work");
    }

    #[test]
    fn processor_time_is_that_of_the_process_and_its_children_are_found() {
        let folder = tempfile::tempdir().unwrap();
        let script = "i=0; while [ $i -lt 200000 ]; do i=$((i+1)); done; sleep 60 & wait";
        let process = Process::start(Command::new("sh").args(["-c", script]), &folder.path().join("log")).unwrap();
        let end = Instant::now() + PATIENCE;
        while descendants(process.pid()).is_empty() {
            assert!(Instant::now() < end, "the shell starts `sleep`");
            std::thread::sleep(STEP);
        }
        let child = descendants(process.pid())[0];
        assert!(cpu_of(process.pid()) > cpu_of(child));
        drop(process);
        // Whoever inherits it may take its time to collect it: until then it is a zombie.
        let ended = || fs::read_to_string(format!("/proc/{child}/stat")).map_or(true, |stat| stat.contains(") Z "));
        while !ended() {
            assert!(Instant::now() < end + PATIENCE, "children end with it");
            std::thread::sleep(STEP);
        }
    }
}
