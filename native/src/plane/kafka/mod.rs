//! The plane's own way to append to Kafka.
//!
//! `Producer` is driven by the one thread that has the poll: it registers sockets there, is called when
//! they are ready, and never waits. `append` begins, `outcomes` has the results by token.
//!
//! What was surely not stored may be sent again, and is, when another broker leads. What may have been
//! stored is never sent again: its outcome is unknown. A broker that refuses a batch before it writes
//! it names no offset; one that has written it, and then stops leading or gets no answer of its
//! replicas, names it beside the same error. So an error alone does not say that nothing was stored.

mod appends;
#[cfg(test)]
mod appends_tests;
mod bytes;
mod leaders;
mod link;
mod login;
mod lost;
mod names;
mod nodes;
mod outcomes;
mod partitions;
mod producer;
mod records;
mod scram;
mod settings;
pub mod trial;
mod wire;
#[cfg(test)]
mod wire_tests;

pub use outcomes::{Outcome, Reason};
pub use producer::Producer;
pub use records::{Record, Until};
pub use settings::Settings;
