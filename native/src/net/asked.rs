//! The request that a connection has asked, and what comes of its body.

use std::time::Instant;

use crate::dialects::Repeats;
use crate::http::body::Body;
use crate::http::pace::Pace;
use crate::plane::routes::Route;

/// The request that is being answered. Of a plain one, what its reply repeats, and the bytes of the
/// input that it has.
#[derive(Debug, Default)]
pub struct Asked {
    pub bytes: usize,
    pub repeats: Option<Box<Repeats>>,
    /// Of what the plane serves, and since when.
    pub route: Option<Route>,
    pub lane: u64,
    pub began: Option<Instant>,
    /// It waits until Python has heard of its lane.
    pub is_unlearnt: bool,
    /// A part of its reply was written.
    pub is_started: bool,
}

/// A body that is not whole yet, of a request that Python has.
#[derive(Debug)]
pub struct Coming {
    pub body: Body,
    pub pace: Pace,
    /// The client waits for "100 Continue".
    pub waits: bool,
    /// It is short enough to be read to its end when nobody wants it.
    pub is_short: bool,
}
