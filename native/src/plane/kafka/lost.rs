//! Why connections end.

use super::bytes::Malformed;

/// Why a connection is no more.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Lost {
    pub cause: Cause,
    pub text: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Cause {
    Transport,
    Tls,
    Authentication,
    Unsupported,
    TimedOut,
    Resolve,
    Stopped,
    /// It was closed while nothing was asked.
    Idle,
}

impl From<Malformed> for Lost {
    fn from(_: Malformed) -> Self {
        Self::new(Cause::Transport, "the broker's answer is not of Kafka's protocol")
    }
}

impl From<std::io::Error> for Lost {
    fn from(error: std::io::Error) -> Self {
        match error.get_ref().is_some_and(|inner| inner.is::<rustls::Error>()) {
            true => Self::new(Cause::Tls, &error.to_string()),
            false => Self::new(Cause::Transport, &error.to_string()),
        }
    }
}

impl Lost {
    pub fn new(cause: Cause, text: &str) -> Self {
        Self { cause, text: text.to_owned() }
    }
}
