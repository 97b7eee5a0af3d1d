//! Whether there is room for what was written and is not in the file yet.

use super::Container;
use crate::error::Result;

/// Whether there is room for what was written to a container.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Room {
    /// There is, or it is in the file.
    Had,
    /// It is a new file's of one chunk, which costs the same to write now as later: [`finish`](Container::finish) finds out.
    Short,
    /// Nobody knows. Where a file is changed in place its journal needs some as well, and not every disk can be asked.
    Unknown,
}

impl Container {
    /// Sees to it, as far as that is quick, that what was written finds room: so that who is told of errors now and later of none is told of this one.
    ///
    /// # Errors
    /// [`Error::ReadOnly`](crate::Error::ReadOnly), [`Error::Poisoned`](crate::Error::Poisoned); the operating system's, such as no space left: what was written is kept all the same, as after
    /// any other failure of that kind.
    pub fn reserve(&self) -> Result<Room> {
        let state = self.writable()?;
        if !state.is_newborn {
            return Ok(Room::Unknown);
        }
        let Some((&first, _)) = state.gathered.first_key_value() else { return Ok(Room::Had) };
        if self.geometry.last_chunk(state.len) == 0 {
            return Ok(Room::Short);
        }
        let range = self.geometry.offset(first)..self.geometry.file_len(state.len);
        Ok(if self.disk.reserve(range)? { Room::Had } else { Room::Unknown })
    }
}
