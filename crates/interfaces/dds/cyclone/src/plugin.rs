//! The plug-in itself, and how it is loaded.

use crate::abi::{Cryptography, Exception, Exchange, FAILED, Factory, SUCCESS, Transform};
use crate::fault::{Outcome, guard};
use crate::host::Host;
use crate::registry::Registry;
use crate::{exchange, factory, transform};
use bywash_dds::{BLOCKS_MAX, Sessions, variable};
use core::ffi::{c_char, c_int, c_void};
use core::ptr;
use std::panic::{AssertUnwindSafe, catch_unwind};

/// What every call works on.
pub struct Plugin {
    pub(crate) host: Host,
    pub(crate) registry: Registry,
    /// Blocks after which a session gets a new key.
    pub(crate) blocks_max: u64,
}

/// A table as the host sees it, and the plug-in that it belongs to.
#[repr(C)]
struct Owned<T> {
    table: T,
    plugin: *const Plugin,
}

/// All that one `init` makes. The host has the address of its first field.
#[repr(C)]
struct Instance {
    cryptography: Cryptography,
    factory: Owned<Factory>,
    exchange: Owned<Exchange>,
    transform: Owned<Transform>,
    plugin: *mut Plugin,
}

impl Drop for Instance {
    fn drop(&mut self) {
        // SAFETY: it was made by `into_tables` from a box, and whoever drops this has no table any more.
        drop(unsafe { Box::from_raw(self.plugin) });
        // What others in this process use they have at hand.
        Sessions::shared().clear();
    }
}

/// The plug-in of a table.
///
/// # Safety
/// The table is one of an [`Instance`] that lives.
#[inline]
pub(crate) unsafe fn plugin<'a, T>(table: *mut T) -> &'a Plugin {
    // SAFETY: as the caller says, so that what stands behind the table is the pointer.
    unsafe { &*(*table.cast::<Owned<T>>()).plugin }
}

impl Plugin {
    /// A plug-in of this host; after so many blocks of 16 bytes its sessions get new keys.
    pub fn new(host: Host, blocks_max: u64) -> Self {
        Self { host, registry: Registry::new(), blocks_max }
    }

    /// The tables of a plug-in, for whoever calls them as the host does; [`finalize_crypto`] ends it.
    pub fn into_tables(self) -> *mut Cryptography {
        let plugin = Box::into_raw(Box::new(self));
        let at = plugin.cast_const();
        let none = Cryptography { gv: ptr::null_mut(), transform: ptr::null_mut(), factory: ptr::null_mut(), exchange: ptr::null_mut() };
        let instance = Box::new(Instance {
            cryptography: none,
            factory: Owned { table: factory::TABLE, plugin: at },
            exchange: Owned { table: exchange::TABLE, plugin: at },
            transform: Owned { table: transform::TABLE, plugin: at },
            plugin,
        });
        let instance = Box::into_raw(instance);
        // SAFETY: it was just made.
        unsafe {
            (*instance).cryptography.factory = (&raw mut (*instance).factory).cast();
            (*instance).cryptography.exchange = (&raw mut (*instance).exchange).cast();
            (*instance).cryptography.transform = (&raw mut (*instance).transform).cast();
        }
        instance.cast()
    }

    /// Runs the body of a function that the host calls; what is refused becomes its exception.
    ///
    /// # Safety
    /// `exception` is null or the host's.
    #[inline]
    pub(crate) unsafe fn run<T>(&self, what: &str, exception: *mut Exception, fallback: T, body: impl FnOnce(&Self) -> Outcome<T>) -> T {
        // SAFETY: as the caller says.
        unsafe { guard(&self.host, what, exception, fallback, || body(self)) }
    }
}

/// Makes a plug-in: the `initFunction` of its configuration.
///
/// # Safety
/// `context` is where the host wants its address.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn init_crypto(_argument: *const c_char, context: *mut *mut c_void, gv: *mut c_void) -> c_int {
    if context.is_null() {
        return FAILED;
    }
    let made = catch_unwind(AssertUnwindSafe(|| {
        // What is wrong with the settings is said now, not when the first message goes.
        bywash_dds::say_if_alone();
        Host::find().map(|host| Plugin::new(host, blocks_max()).into_tables())
    }));
    let made = match made {
        Ok(Ok(tables)) => tables,
        Ok(Err(why)) => {
            eprintln!("bywash: the cryptographic plug-in cannot start: {why}");
            return FAILED;
        }
        Err(_) => return FAILED,
    };
    // SAFETY: the tables were just made; the host's place for them is its own.
    unsafe {
        (*made).gv = gv;
        *context = made.cast();
    }
    SUCCESS
}

/// Ends a plug-in, and wipes its keys: the `finalizeFunction` of its configuration.
///
/// # Safety
/// `context` is what [`init_crypto`] has made, and nobody uses it any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn finalize_crypto(context: *mut c_void) -> c_int {
    if !context.is_null() {
        // SAFETY: as the caller says.
        let instance = unsafe { Box::from_raw(context.cast::<Instance>()) };
        let _ = catch_unwind(AssertUnwindSafe(|| drop(instance)));
    }
    SUCCESS
}

/// After how many blocks of 16 bytes a session gets a new key: `BYWASH_DDS_BLOCKS`, or what AES-GCM bears easily.
fn blocks_max() -> u64 {
    let Some(blocks) = variable("BYWASH_DDS_BLOCKS") else { return BLOCKS_MAX };
    let number = blocks.to_str().and_then(|blocks| blocks.parse().ok()).filter(|blocks| *blocks > 0);
    number.unwrap_or_else(|| {
        // A slip here would leave keys in use far longer than was meant, and nothing else tells of it.
        eprintln!(
            "bywash: BYWASH_DDS_BLOCKS={}: not a number from 1 to 18446744073709551615; keys are changed after {BLOCKS_MAX} blocks",
            blocks.display()
        );
        BLOCKS_MAX
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::borrowed::copy_with_borrowed_rights;
    use std::path::Path;
    use std::process::Command;

    /// Not a test of its own: what the program started below says.
    #[test]
    #[ignore = "run by the test below"]
    fn says_what_it_sees() {
        println!("blocks: {}", blocks_max());
    }

    fn said(program: &Path) -> String {
        let mut command = Command::new(program);
        command.args(["--exact", "plugin::tests::says_what_it_sees", "--ignored", "--nocapture"]).env("BYWASH_DDS_BLOCKS", "17");
        let output = command.output().unwrap();
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn a_program_with_borrowed_rights_believes_no_variable() {
        let program = std::env::current_exe().unwrap();
        assert!(said(&program).contains("blocks: 17\n"), "an ordinary program believes it");
        let folder = tempfile::tempdir().unwrap();
        let Some(borrowed) = copy_with_borrowed_rights(folder.path()) else { return };
        let said = said(&borrowed);
        assert!(said.contains(&format!("blocks: {BLOCKS_MAX}\n")), "{said}");
    }
}
