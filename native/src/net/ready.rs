//! What the poll says of a socket.

use mio::event::Event;
use mio::Token;

pub struct Ready {
    pub token: Token,
    pub is_readable: bool,
    pub has_end: bool,
    pub is_writable: bool,
}

impl Ready {
    pub fn of(event: &Event) -> Self {
        Self {
            token: event.token(),
            is_readable: event.is_readable(),
            has_end: event.is_read_closed() || event.is_error(),
            is_writable: event.is_writable(),
        }
    }
}
