//! Threads that go before others on the processor: hardware would wait for none.

use rustix::process::setpriority_process;
use rustix::thread::gettid;

/// The most that priorities know.
const FIRST: i32 = -20;

/// Gives the calling thread the processor's first place from now on; whether that was granted (`CAP_SYS_NICE`).
pub(crate) fn take() -> bool {
    setpriority_process(Some(gettid()), FIRST).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use rustix::process::getpriority_process;

    #[test]
    fn a_thread_goes_first_and_no_other() {
        let own = || getpriority_process(Some(gettid())).unwrap();
        let before = own();
        let granted = std::thread::spawn(move || {
            let granted = take();
            assert!(!granted || own() == FIRST);
            granted
        });
        if !granted.join().unwrap() {
            println!("skipped: this user may not go before others");
        }
        assert_eq!(own(), before);
    }
}
