//! What the manager itself costs: an engine that does nothing, so that all the time measured is overhead. Also the time of a calibration.
//!
//! `cargo bench -p bywash-manager --bench overhead`

mod common;

use bywash_core::{Algorithm, CostSheet, Data, Direction, Engine, Keyed, Operation, OwnedOperation, Result, SecretBytes, SessionParams};
use bywash_engine_cpu::CpuEngine;
use bywash_manager::{Costs, Manager, ManagerConfig, PolicyKind, calibrate};
use common::{NoKey, hand_over_together, operation, params};
use std::sync::{Arc, mpsc};
use std::time::{Duration, Instant};

struct Nothing {
    local: bool,
}

impl Engine for Nothing {
    fn name(&self) -> &str {
        "nothing"
    }
    fn describe(&self) -> String {
        "answers at once".into()
    }
    fn is_local(&self) -> bool {
        self.local
    }
    fn capabilities(&self) -> &[Algorithm] {
        Algorithm::ALL
    }
    fn workers(&self) -> usize {
        2
    }
    fn open(&self, _params: &SessionParams) -> Result<Box<dyn Keyed>> {
        Ok(Box::new(NoKey))
    }
}

/// The processor's engine with as many threads as a large machine has: most of them sleep when something comes.
struct Wide(CpuEngine);

impl Engine for Wide {
    fn name(&self) -> &str {
        self.0.name()
    }
    fn describe(&self) -> String {
        self.0.describe()
    }
    fn is_local(&self) -> bool {
        self.0.is_local()
    }
    fn capabilities(&self) -> &[Algorithm] {
        self.0.capabilities()
    }
    fn workers(&self) -> usize {
        16
    }
    fn open(&self, params: &SessionParams) -> Result<Box<dyn Keyed>> {
        self.0.open(params)
    }
    fn cost_sheet(&self) -> Option<CostSheet> {
        self.0.cost_sheet()
    }
}

fn main() {
    for policy in [PolicyKind::Fifo, PolicyKind::Placement] {
        report(&format!("run, lone caller, {policy}"), &run_alone(policy.clone(), 200_000));
        report(&format!("run, 4 callers on 2 workers, {policy}"), &run_crowded(policy.clone()));
        report(&format!("submit and wait, {policy}"), &submit(policy.clone(), true));
        report(&format!("submit and wait, distant engine, {policy}"), &submit(policy, false));
    }
    for bytes in [256, 16 << 10, 256 << 10] {
        for policy in [PolicyKind::Fifo, "mediator".parse().expect("a policy")] {
            report(&format!("handed over together, {bytes} bytes of AES-128-CTR, {policy}, for each"), &together(policy, bytes));
        }
    }
    let begun = Instant::now();
    let sheet = calibrate::measure(&CpuEngine::new(), Algorithm::ALL, calibrate::BUDGET);
    println!("calibration of the CPU engine: {} algorithms in {} ms", sheet.algorithms.len(), begun.elapsed().as_millis());
}

fn manager(policy: PolicyKind, local: bool) -> Arc<Manager> {
    let mut config = ManagerConfig::new(vec![Arc::new(Nothing { local })]);
    config.policy = policy;
    config.costs = Costs::Given(vec![CostSheet::empty("nothing")]);
    Manager::new(config).expect("a manager over one engine")
}

fn run_alone(policy: PolicyKind, count: usize) -> Vec<u64> {
    runs(&manager(policy, true), count)
}

fn run_crowded(policy: PolicyKind) -> Vec<u64> {
    let manager = manager(policy, true);
    std::thread::scope(|scope| {
        let callers: Vec<_> = (0..4).map(|_| scope.spawn(|| runs(&manager, 50_000))).collect();
        callers.into_iter().flat_map(|caller| caller.join().expect("a caller")).collect()
    })
}

fn runs(manager: &Manager, count: usize) -> Vec<u64> {
    let session = manager.open(1, params()).expect("a session");
    let one = || {
        let mut data = [0; 16];
        let data = Data::InPlace(&mut data);
        let mut operation = Operation { direction: Direction::Encrypt, iv: &[0; 16], aad: &[], data, tag: &mut [] };
        let begun = Instant::now();
        manager.run(session, &mut operation).expect("nothing can fail");
        begun.elapsed().as_nanos() as u64
    };
    (0..count).map(|_| one()).collect()
}

fn submit(policy: PolicyKind, local: bool) -> Vec<u64> {
    let manager = manager(policy, local);
    let session = manager.open(1, params()).expect("a session");
    let (tell, told) = mpsc::channel();
    let one = || {
        let input = SecretBytes::zeroed(16);
        let operation =
            OwnedOperation { direction: Direction::Encrypt, iv: vec![0; 16], aad: vec![], output: input.clone(), input, tag: vec![] };
        let tell = tell.clone();
        let begun = Instant::now();
        manager.submit(session, operation, Box::new(move |completion| drop(tell.send(completion))));
        told.recv_timeout(Duration::from_secs(60)).expect("a completion").outcome.expect("nothing can fail");
        begun.elapsed().as_nanos() as u64
    };
    (0..20_000).map(|_| one()).collect()
}

/// Nanoseconds for each of requests that are handed over together.
fn together(policy: PolicyKind, bytes: usize) -> Vec<u64> {
    let mut config = ManagerConfig::new(vec![Arc::new(Wide(CpuEngine::new()))]);
    config.policy = policy;
    let manager = Manager::new(config).expect("a manager over the processor");
    let session = manager.open(1, params()).expect("a session");
    let count = ((16 << 20) / bytes).min(1024);
    let mut waiting: Vec<_> = (0..count).map(|_| operation(bytes)).collect();
    let mut round = || hand_over_together(&manager, session, &mut waiting).as_nanos() as u64 / count as u64;
    (0..200).map(|_| round()).collect()
}

fn report(what: &str, ns: &[u64]) {
    let mut ns = ns.to_vec();
    ns.sort_unstable();
    let at = |share: f64| ns[((ns.len() - 1) as f64 * share) as usize];
    println!("{what}: p50 {} ns, p99 {} ns, min {} ns", at(0.5), at(0.99), ns[0]);
}
