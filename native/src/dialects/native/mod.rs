//! The native API.

mod attributes;
mod replies;
mod requests;

use crate::replies::Head;

pub use replies::{acted, received, sent};
pub use requests::read;

pub const HEAD: Head = Head { media: "application/json", id: "x-request-id" };
