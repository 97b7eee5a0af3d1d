//! The probe's checks against the dispatcher called directly, without a device: addresses are those of this process, bad ones too.

use bywash_client::{Client, Config};
use bywash_cryptodev::{Answer, Device, Errno, Memory};
use bywash_cryptodev_probe::{Port, Tally, Wrong, all};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

/// The memory of this process, copied by the kernel, which says of a bad address that it is one.
struct Own;

fn copied(result: isize, length: usize) -> Result<(), Errno> {
    if result == length as isize { Ok(()) } else { Err(Errno::EFAULT) }
}

impl Memory for Own {
    fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Errno> {
        let local = libc::iovec { iov_base: into.as_mut_ptr().cast(), iov_len: into.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: into.len() };
        // SAFETY: the kernel writes into `into` alone, and refuses what is not mapped.
        copied(unsafe { libc::process_vm_readv(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) }, into.len())
    }

    fn write(&self, address: u64, from: &[u8]) -> Result<(), Errno> {
        let local = libc::iovec { iov_base: from.as_ptr().cast_mut().cast(), iov_len: from.len() };
        let remote = libc::iovec { iov_base: address as *mut _, iov_len: from.len() };
        // SAFETY: the addresses are those of the checks' own buffers, or not mapped.
        copied(unsafe { libc::process_vm_writev(libc::getpid(), &raw const local, 1, &raw const remote, 1, 0) }, from.len())
    }
}

struct Direct {
    client: Client,
    open: Mutex<(i32, HashMap<i32, Arc<Device>>)>,
    sees_other_letters: bool,
}

impl Direct {
    fn new(sees_other_letters: bool) -> Self {
        Self { client: Client::new(Config::default()), open: Mutex::default(), sees_other_letters }
    }

    fn add(&self, device: Arc<Device>) -> i32 {
        let mut open = self.open.lock().unwrap();
        open.0 += 1;
        let number = open.0;
        open.1.insert(number, device);
        number
    }

    fn device(&self, descriptor: i32) -> Arc<Device> {
        Arc::clone(&self.open.lock().unwrap().1[&descriptor])
    }
}

impl Port for Direct {
    fn open(&self) -> Result<i32, String> {
        Ok(self.add(Arc::new(Device::new(self.client.clone()))))
    }

    fn ioctl(&self, descriptor: i32, number: u32, argument: u64) -> Result<i32, i32> {
        let device = self.device(descriptor);
        match device.request(number, argument, &Own).map_err(|errno| errno.0)? {
            Answer::Value(value) => Ok(value),
            Answer::NewDescriptor => {
                let number = self.add(device);
                Own.write(argument, &number.to_ne_bytes()).map_err(|errno| errno.0)?;
                Ok(0)
            }
        }
    }

    fn close(&self, descriptor: i32) {
        let closed = self.open.lock().unwrap().1.remove(&descriptor);
        drop(closed);
    }

    fn duplicate(&self, descriptor: i32) -> Option<i32> {
        Some(self.add(self.device(descriptor)))
    }

    fn poll(&self, descriptor: i32) -> (bool, bool) {
        let readiness = self.device(descriptor).readiness();
        (readiness.readable, readiness.writable)
    }

    fn forks(&self) -> bool {
        false
    }

    fn sees_other_letters(&self) -> bool {
        self.sees_other_letters
    }
}

#[test]
fn every_check_of_the_probe_holds() {
    let port = Direct::new(true);
    let tally = Tally::of(&port);
    println!("{tally} (they need a process that forks)");
    assert!(tally.wrong.is_empty(), "\n{}\n", tally.wrong.join("\n"));
    assert!(tally.good > 300, "only {} checks ran", tally.good);
}

/// What is expected of a supervisor is another answer to two questions, not fewer answers: the dispatcher itself fails them.
#[test]
fn a_transport_that_is_not_asked_everything_answers_otherwise() {
    let port = Direct::new(false);
    let errors = all().into_iter().filter(|check| check.name.starts_with("errors/unknown-request"));
    let differing = errors.filter(|check| matches!(check.run(&port), Err(Wrong::Differs { expected, .. }) if expected == "ENOTTY"));
    let names: Vec<_> = differing.map(|check| check.name).collect();
    assert_eq!(names, ["errors/unknown-request-0xffffffff", "errors/unknown-request-0x5401"]);
}

#[test]
fn names_of_checks_are_unique() {
    let mut names: Vec<_> = all().into_iter().map(|check| check.name).collect();
    let count = names.len();
    names.sort();
    names.dedup();
    assert_eq!(names.len(), count);
}
