//! Sockets: who is connected, what has come, and what waits to be sent.

pub mod connection;
pub mod front;
#[cfg(test)]
mod front_tests;
mod idle;
pub mod slots;
pub mod stream;
pub mod tls;
