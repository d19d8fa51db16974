//! SQS over JSON.

mod attributes;
mod names;
mod replies;
mod requests;
mod traces;

use crate::replies::Head;

pub use attributes::digest_of;
pub use names::Names;
pub use replies::{done, received, sent};
pub use requests::read;

pub const HEAD: Head = Head { media: "application/x-amz-json-1.0", id: "x-amzn-requestid" };
