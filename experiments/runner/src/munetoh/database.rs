//! PostgreSQL behind the server, in two ways: nginx passes each request on to a small program that asks the database for the page; Apache starts a
//! program for each request (CGI), as servers did in the paper's time.

use super::Bench;
use super::open_points::line;
use crate::process::{Process, on_core, output};
use crate::rivals::{Behind, Engine, Rival};
use crate::sample::{Sample, csv};
use crate::servers::{Server, Way};
use crate::stage::{Key, free_port};
use crate::{Error, Result, io_error};
use std::fmt::Write;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

const PYTHON: &str = "/usr/bin/python3";
const PAGES: &str = "create table page (id int primary key, body text not null);
insert into page select id, repeat(md5(id::text), 32) from generate_series(0, 9999) id;
analyze page;";
const CONNECTIONS: usize = 16;
const PATIENCE: Duration = Duration::from_secs(20);

/// A database of our own, reachable by a socket in the scratch folder alone, on the server's core.
struct Database {
    process: Process,
    folder: PathBuf,
    programs: PathBuf,
}

/// nginx in front of a program that keeps its connections, to it and to the database.
pub(super) fn proxied(bench: &mut Bench<'_>, engines: &[Engine]) -> Result<String> {
    if output(Command::new(PYTHON).args(["-c", "import psycopg2"])).is_err() {
        bench.note("skipped: a database behind the server: apt-get install python3-psycopg2".into())?;
        return Ok(String::new());
    }
    let Some(database) = Database::start(bench)? else { return Ok(String::new()) };
    let script = bench.stage.path("database.py");
    bench.stage.write(&script, include_bytes!("database.py"))?;
    let port = free_port()?;
    let mut pages = on_core(0, Path::new(PYTHON));
    pages.arg(&script).arg(port.to_string()).arg(&database.folder);
    let mut pages = Process::start(&mut pages, &bench.stage.path("pages.log"))?;
    pages.await_port(port)?;
    let behind = Behind { way: Way::Proxy(port), processes: vec![pages, database.process] };
    measure(bench, engines, Server::Nginx, &behind, "db", "database")
}

/// Apache, which starts a program for each page, which connects to the database.
pub(super) fn by_cgi(bench: &mut Bench<'_>) -> Result<String> {
    if !bench.has(Server::Apache)? {
        return Ok(String::new());
    }
    let Some(database) = Database::start(bench)? else { return Ok(String::new()) };
    let program = bench.stage.make_folder("cgi")?.join("page");
    bench.stage.write(&program, include_bytes!("cgi.sh"))?;
    fs::set_permissions(&program, fs::Permissions::from_mode(0o755)).map_err(|error| io_error("make executable", &program, &error))?;
    let variable = |name, value: &Path| (name, value.display().to_string());
    let variables = vec![variable("PGHOST", &database.folder), variable("PSQL", &database.programs.join("psql"))];
    let behind = Behind { way: Way::Cgi { program, variables }, processes: vec![database.process] };
    let head = "\nCGI behind Apache, RSA-2048: connections for each second of the server's processor, software -> bywash\n";
    Ok(head.to_owned() + &measure(bench, &[Engine::Software, Engine::Bywash], Server::Apache, &behind, "cgi", "cgi")?)
}

/// A server with this behind it, by each engine, at both versions of TLS; writes TABLE.csv.
fn measure(bench: &mut Bench<'_>, engines: &[Engine], server: Server, behind: &Behind, page: &str, table: &str) -> Result<String> {
    let rival = |&engine| Rival::start(server, engine, bench.options, &bench.stage, Some(behind));
    let rivals = engines.iter().map(rival).collect::<Result<Vec<_>>>()?;
    bench.begin(table, 2 * rivals.len() * bench.effort.rounds)?;
    let (mut text, mut all) = (String::new(), Vec::new());
    for tls in ["1.2", "1.3"] {
        let mut load = bench.load(Key::Rsa2048, tls, CONNECTIONS);
        load.page = page.into();
        let pairs: Vec<_> = rivals.iter().map(|rival| (rival, load.clone())).collect();
        let samples = bench.interleaved(&pairs, Some(behind))?;
        text += &line(&format!("TLS {tls}, a page from PostgreSQL"), &samples);
        let whole = |sample: &Sample| 1e6 / (sample.server_cpu_us + sample.behind_cpu_us);
        if let [software, bywash] = &samples[..] {
            let (before, after) = (whole(software), whole(bywash));
            let _ = writeln!(text, "  {:<36} {before:>6.0} -> {after:>6.0}  x{:.2}", "    database and all counted in", after / before);
        }
        all.extend(samples);
    }
    bench.table(table, &csv(&all), &all)?;
    Ok(text)
}

impl Database {
    /// Starts it and fills it; none, and a word about it, where PostgreSQL is not installed.
    fn start(bench: &mut Bench<'_>) -> Result<Option<Self>> {
        let Some(programs) = programs() else {
            bench.note("skipped: a database behind the server: apt-get install postgresql".into())?;
            return Ok(None);
        };
        let stage = &bench.stage;
        let folder = stage.make_folder("database")?;
        let data = folder.join("data");
        // There may be another's, which has ended.
        let _ = fs::remove_dir_all(&data);
        if rustix::process::geteuid().is_root() {
            output(Command::new("chown").arg("postgres").arg(&folder))?;
        }
        let program = |name: &str| programs.join(name);
        output(as_postgres(Command::new(program("initdb"))).args(["-U", "postgres", "-A", "trust", "-D"]).arg(&data))?;
        let mut server = as_postgres(on_core(0, &program("postgres")));
        server.arg("-D").arg(&data).arg("-k").arg(&folder).args(["-c", "listen_addresses=", "-c", "max_connections=200"]);
        let process = Process::start(&mut server, &stage.path("postgres.log"))?;
        let end = Instant::now() + PATIENCE;
        let mut psql = Command::new(program("psql"));
        psql.args(["-q", "-U", "postgres", "-d", "postgres", "-v", "ON_ERROR_STOP=1", "-c", PAGES, "-h"]).arg(&folder);
        while let Err(error) = output(&mut psql) {
            if Instant::now() > end {
                return Err(Error(format!("PostgreSQL does not answer: {error}")));
            }
            std::thread::sleep(Duration::from_millis(50));
        }
        Ok(Some(Self { process, folder, programs }))
    }
}

/// The folder of PostgreSQL's programs.
fn programs() -> Option<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").ok()?.flatten();
    versions.map(|version| version.path().join("bin")).find(|folder| folder.join("initdb").is_file())
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
