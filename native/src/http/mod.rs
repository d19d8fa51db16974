//! HTTP as bytes: heads and bodies of requests, and why some are refused.

pub mod body;
pub mod framing;
pub mod head;
#[cfg(test)]
mod head_tests;
pub mod pace;
pub mod plain;
#[cfg(test)]
mod plain_tests;
pub mod refusal;
pub mod stream;
