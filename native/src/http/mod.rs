//! HTTP as bytes: heads and bodies of requests.

pub mod head;
#[cfg(test)]
mod head_tests;
