//! What client and broker share: the layout of a region, the rings in it, the board page, the messages of the control socket.
//!
//! Two processes that do not trust each other meet here. The broker makes all shared memory; the client checks its seals and its
//! size before it maps it; the broker believes nothing that it reads from it. All `unsafe` is in [`mapping`], but for single calls of the
//! kernel's and a close in `kept`; everything above works through accessors that copy.
//!
//! # A connection
//!
//! 1. The client connects to the broker's socket ([`socket_path`], `SOCK_SEQPACKET`) and sends [`ClientMessage::Hello`].
//! 2. The broker reads the peer's credentials from the kernel, answers [`BrokerMessage::Welcome`] with two descriptors: the
//!    client's own *region*, and the *board page* that all clients share for reading.
//! 3. Sessions are opened and closed by messages; keys travel on the socket and never through shared memory.
//! 4. Requests travel through the region, with no system call while both sides are awake.
//!
//! # The region
//!
//! A memfd sealed against shrinking, growing and further sealing, so that neither side can be hit by a truncated mapping.
//! All numbers are native-endian, all words naturally aligned and accessed as atomics. With S slots and an arena of A bytes:
//!
//! | offset | size | what | written by |
//! |---|---|---|---|
//! | 0 | 64 | magic, version, S, A, trace cells: read once by the client, never again by the broker | broker, before sealing |
//! | 64 | 4 | `tail`: tickets given out in the submission ring | client |
//! | 128 | 4 | `asleep`: 1 while the broker sleeps; the client clears it and wakes (futex) | both |
//! | 192 | 4 | `completed`: counts completions (futex for waiting on any) | broker |
//! | 256 | 4 | `watchers`: threads that wait for any completion | client |
//! | 4096 | 32768 | usage counters: 8 stripes of 128 algorithms of (operations, bytes, batches, operations in them) | client |
//! | 36864 | 4 S, to a page | submission ring: slot number + 1, or 0 | client sets, broker clears |
//! | then | 128 S, to a page | slot table: a state line, and a line of 16 descriptor words | below |
//! | then | 4096 + 64 per cell | trace ring: its tail, then cells of a sequence number and six words | client |
//! | then | A | arena: text, IVs, tags | both |
//!
//! The slot's state word goes round: FREE, CLAIMED (client fills the descriptor), SUBMITTED (client, release), RUNNING (broker,
//! acquire, then it copies the descriptor, once), DONE (broker, release, after outcome and output), FREE (client, after reading). A client
//! thread about to sleep adds WAITED with a compare-and-swap; only then does the broker's swap to DONE cost a wake-up call.
//!
//! A ticket's cell is always empty when its owner writes it: a slot is in the ring at most once, so S cells hold all there can be.
//!
//! # Memory orders
//!
//! Descriptor and outcome words are relaxed; the state word's release and acquire order them. Two places need sequential consistency,
//! both of the shape "I publish, then look whether you sleep; you say that you sleep, then look whether I published": the ring
//! against `asleep`, and `completed` against `watchers`.
//!
//! # Who may lie
//!
//! The client may write anything anywhere at any time, even while the broker reads. So the broker keeps the geometry, its
//! position in the ring and the set of running slots to itself, copies a descriptor before looking at it, checks every range
//! against the arena with arithmetic that cannot wrap ([`Descriptor::validate`]), copies input out of the arena before it computes and results in
//! afterwards. What cannot come from an honest client is [`Corrupt`], and costs the client its connection. Counters and trace
//! cells are claims, added with saturation and shown as the client's own. The broker could lie to the client too, but it computes the client's
//! results, so the client checks only what guards its memory: seals, size, geometry, lengths.
//!
//! | part | module |
//! |---|---|
//! | shared memory, and nearly all `unsafe` | [`mapping`] |
//! | offsets; making, opening and checking a region | [`layout`], [`region`] |
//! | one request as it is described, validated, answered | [`descriptor`] |
//! | the client's half, the broker's half | [`client_ring`], [`broker_ring`] |
//! | room for texts | [`arena`] |
//! | what clients claim to have done in place | [`usage`], [`trace_ring`] |
//! | routing table and flags for all | [`board`] |
//! | spinning and sleeping | [`wait`] |
//! | control socket, its messages, its path | [`socket`], [`message`], [`params`], [`path`] |
//! | keys of the vault: what may be done with them, how they are named, their public halves | [`keys`], [`key_file`], [`public_key`], [`oid`] |
//! | forks, core dumps, swap | [`fork`], [`harden`], [`locked`] |
//! | a descriptor that a program may have closed; whether the other end has read what it was sent | `kept`, `unread` |
//! | variables, and when not to believe them | [`environment`] |

pub mod arena;
pub mod board;
pub mod broker_ring;
pub mod client_ring;
mod credentials;
pub mod descriptor;
pub mod environment;
pub mod fork;
mod groups;
pub mod harden;
mod kept;
pub mod key_file;
pub mod keys;
pub mod layout;
pub mod locked;
pub mod mapping;
pub mod message;
pub mod oid;
pub mod params;
pub mod path;
pub mod process;
pub mod public_key;
pub mod region;
pub mod socket;
pub mod standard;
pub mod trace_ring;
pub mod turns;
mod unread;
pub mod usage;
pub mod wait;

pub use board::{Board, BoardView};
pub use broker_ring::{BrokerRing, Intake};
pub use client_ring::{ClientRing, Ticket};
pub use descriptor::{Corrupt, Descriptor, Job, Outcome, Span};
pub use fork::{ForkGuard, Generation};
pub use harden::{harden_process, keep_descriptors};
pub use keys::{KeyAlgorithm, KeyCommand, KeyInfo, KeyPolicy, KeyUse};
pub use layout::Geometry;
pub use locked::LockedBytes;
pub use message::{BrokerMessage, ClientMessage, Quota, Refusal, Role, StatsFormat, VERSION};
pub use params::WireParams;
pub use path::socket_path;
pub use public_key::PublicKey;
pub use region::Region;
pub use socket::{ControlSocket, Listener, Peer};
pub use standard::{Standard, ignored_sigpipe, was_closed};
pub use trace_ring::TraceEntry;
pub use wait::{Spin, monotonic_ns, spin_then_wait};
