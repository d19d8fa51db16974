//! Sockets: who is connected, what has come, and what waits to be sent.

pub mod asked;
mod asks;
mod bodies;
pub mod bounds;
pub mod client;
pub mod connection;
mod door;
pub mod front;
#[cfg(test)]
mod front_tests;
mod hear;
mod news;
mod numbers;
pub mod output;
pub mod planes;
#[cfg(test)]
mod random_tests;
mod room;
pub mod stream;
pub mod thread;
pub mod tls;
mod upkeep;
