//! Real processes that hold the module, or wait for it, and are killed: the broker goes on as if they had never been.

mod support;

use bywash_broker::TenantRule;
use bywash_core::{Algorithm, Data, Direction, Key, Operation, Result, SessionParams};
use bywash_manager::{Costs, Manager, ManagerConfig, Tenant};
use std::os::unix::process::ExitStatusExt;
use std::path::Path;
use std::process::{Child, Command, Stdio};
use support::{Raw, Served, serve, until};

/// Where the child finds its broker; without it this test file is no child.
const SOCKET: &str = "BYWASH_TEST_KILLED";
const DEATHS: usize = 36;

fn module(policy: &str) -> Served {
    let mut managed = ManagerConfig::new(bywash_manager::find(&["board:ixp425".parse().unwrap()]).unwrap().present);
    (managed.policy, managed.costs) = (policy.parse().unwrap(), Costs::Given(Vec::new()));
    let manager = Manager::new(managed).unwrap();
    let tenant = Tenant { weight: 3, goal_ns: Some(60_000_000_000) };
    serve(move |config| {
        config.manager = manager;
        config.tenants = vec![TenantRule { matches: "program:test".parse().unwrap(), tenant }];
    })
}

fn params() -> SessionParams {
    SessionParams::new(Algorithm::TripleDesCbc, Key::Symmetric((0..24).collect::<Vec<u8>>().into())).unwrap()
}

/// The child's part: holds the module, or asks for it, until it is killed.
#[test]
#[ignore = "the other test's child"]
fn child() {
    let Some(socket) = std::env::var_os(SOCKET) else { return };
    let mut client = Raw::connect(Path::new(&socket)).unwrap();
    let session = client.open(&params()).unwrap();
    println!("ready");
    loop {
        encrypt(&client, session).unwrap();
    }
}

fn encrypt(client: &Raw, session: u32) -> Result<usize> {
    let mut text = [0; 64];
    let data = Data::InPlace(&mut text);
    let mut operation = Operation { direction: Direction::Encrypt, iv: &[0; 8], aad: &[], data, tag: &mut [] };
    client.run(session, Algorithm::TripleDesCbc, &mut operation)
}

fn start(socket: &Path) -> Child {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "child", "--ignored", "--nocapture"]).env(SOCKET, socket).stdout(Stdio::piped());
    command.spawn().unwrap()
}

#[test]
fn processes_killed_at_the_module_leave_it_to_the_others() {
    for policy in ["exclusive", "default"] {
        let served = module(policy);
        let mut children: Vec<Child> = (0..3).map(|_| start(&served.path)).collect();
        for death in 0..DEATHS {
            // One after the other is killed wherever it happens to be; another takes its place.
            let mut child = children.remove(0);
            std::thread::sleep(std::time::Duration::from_millis(2 * (death % 7) as u64));
            child.kill().unwrap();
            assert_eq!(child.wait().unwrap().signal(), Some(9));
            children.push(start(&served.path));
            let mut honest = Raw::connect(&served.path).unwrap();
            let session = honest.open(&params()).unwrap();
            // Whom the holder lets in never, exclusive lets in when it has died: there it is tried at the end.
            if policy == "default" {
                encrypt(&honest, session).unwrap_or_else(|error| panic!("{policy}, death {death}: {error}"));
            }
        }
        children.iter_mut().for_each(|child| {
            child.kill().unwrap();
            child.wait().unwrap();
        });
        let mut honest = Raw::connect(&served.path).unwrap();
        let session = honest.open(&params()).unwrap();
        encrypt(&honest, session).unwrap_or_else(|error| panic!("{policy}, at the end: {error}"));
        drop(honest);
        until("all of the dead are gone", || {
            let stats = served.handle.stats();
            (stats.clients.len(), stats.queue_depth, stats.sessions) == (0, 0, 0)
        });
        let stats = served.handle.stats();
        let tenant = stats.tenants.iter().find(|tenant| tenant.tenant == "program:test").expect("they were known");
        assert!(tenant.requests > 0 && tenant.weight == 3 && tenant.deadlines == tenant.requests, "{tenant:?}");
        assert!(stats.engines[0].switches.is_some_and(|switches| switches > 0));
    }
}
