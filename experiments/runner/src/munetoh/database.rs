//! PostgreSQL behind the server: nginx passes each request on to a small program that asks the database for the page.

use super::Bench;
use super::open_points::line;
use crate::process::{Process, on_core, output};
use crate::rivals::{Behind, Engine, Rival};
use crate::sample::{Sample, csv};
use crate::servers::Server;
use crate::stage::{Key, Stage, free_port};
use crate::{Error, Result};
use std::fmt::Write;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PYTHON: &str = "/usr/bin/python3";
const PAGES: &str = "create table page (id int primary key, body text not null);
insert into page select id, repeat(md5(id::text), 32) from generate_series(0, 9999) id;
analyze page;";
const CONNECTIONS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(20);

pub(super) fn run(bench: &mut Bench<'_>, engines: &[Engine]) -> Result<String> {
    let Some(programs) = programs() else {
        bench.note("skipped: a database behind the server: apt-get install postgresql python3-psycopg2".into());
        return Ok(String::new());
    };
    let behind = start(&bench.stage, &programs)?;
    let rival = |&engine| Rival::start(Server::Nginx, engine, bench.options, &bench.stage, Some(&behind));
    let rivals = engines.iter().map(rival).collect::<Result<Vec<_>>>()?;
    bench.begin("database", 2 * rivals.len() * bench.effort.rounds);
    let (mut text, mut all) = (String::new(), Vec::new());
    for tls in ["1.2", "1.3"] {
        let mut load = bench.load(Key::Rsa2048, tls, CONNECTIONS);
        load.page = "db".into();
        let pairs: Vec<_> = rivals.iter().map(|rival| (rival, load.clone())).collect();
        let samples = bench.interleaved(&pairs, Some(&behind))?;
        text += &line(&format!("TLS {tls}, a page from PostgreSQL"), &samples);
        let whole = |sample: &Sample| 1e6 / (sample.server_cpu_us + sample.behind_cpu_us);
        if let [software, bywash] = &samples[..] {
            let (before, after) = (whole(software), whole(bywash));
            let _ = writeln!(text, "  {:<36} {before:>6.0} -> {after:>6.0}  x{:.2}", "    database and all counted in", after / before);
        }
        all.extend(samples);
    }
    bench.table("database", &csv(&all), &all)?;
    Ok(text)
}

/// The folder of PostgreSQL's programs, if all that is needed is here.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    let folder = versions.map(|version| version.path().join("bin")).find(|folder| folder.join("initdb").is_file())?;
    output(Command::new(PYTHON).args(["-c", "import psycopg2"])).ok().map(|_| folder)
}

/// A database of its own, reachable by a socket in the scratch folder alone; and the program that makes pages of it. Both on the server's core.
fn start(stage: &Stage, programs: &Path) -> Result<Behind> {
    let folder = stage.make_folder("database")?;
    let data = folder.join("data");
    if rustix::process::geteuid().is_root() {
        output(Command::new("chown").arg("postgres").arg(&folder))?;
    }
    let program = |name: &str| programs.join(name);
    output(as_postgres(Command::new(program("initdb"))).args(["-U", "postgres", "-A", "trust", "-D"]).arg(&data))?;
    let mut server = as_postgres(on_core(0, &program("postgres")));
    server.arg("-D").arg(&data).arg("-k").arg(&folder).args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
    let database = Process::start(&mut server, &stage.path("postgres.log"))?;
    let end = Instant::now() + PATIENCE;
    let mut psql = Command::new(program("psql"));
    psql.args(["-q", "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c", PAGES, "-h"]).arg(&folder);
    while let Err(error) = output(&mut psql) {
        if Instant::now() > end {
            return Err(Error(format!("PostgreSQL does not answer: {error}")));
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    let script = stage.path("database.py");
    stage.write(&script, include_bytes!("database.py"))?;
    let port = free_port()?;
    let mut pages = on_core(0, Path::new(PYTHON));
    pages.arg(&script).arg(port.to_string()).arg(&folder);
    let mut pages = Process::start(&mut pages, &stage.path("pages.log"))?;
    pages.await_port(port)?;
    Ok(Behind { port, processes: vec![pages, database] })
}

/// PostgreSQL refuses to run as root.
fn as_postgres(command: Command) -> Command {
    if !rustix::process::geteuid().is_root() {
        return command;
    }
    let mut switched = Command::new("setpriv");
    switched
        .args(["--reuid", "postgres", "--regid", "postgres", "--init-groups", "--"])
        .arg(command.get_program())
        .args(command.get_args());
    switched
}
