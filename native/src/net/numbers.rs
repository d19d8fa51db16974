//! The numbers by which Python and the plane tell each other of what they speak; `engine/plane/library.py` has
//! the same.

/// What Python tells.
pub mod told {
    pub const CLOCK: u32 = 0;
    pub const OPEN: u32 = 1;
    pub const ROUTE: u32 = 2;
    pub const CLOSE: u32 = 3;
    pub const WOKEN: u32 = 4;
    pub const ADMIT: u32 = 5;
    pub const SHUT: u32 = 6;
    pub const EMPTY: u32 = 7;
    pub const STOP: u32 = 8;
    pub const WATCH: u32 = 9;
    pub const LEAVE: u32 = 10;
    pub const RETELL: u32 = 11;
    pub const DRAIN: u32 = 12;
    pub const GRANT: u32 = 13;
    pub const LEARNT: u32 = 14;
    pub const JOURNALED: u32 = 15;
    pub const GRANT_DELAYS: u32 = 16;
}

/// What Python asks.
pub mod asked {
    pub const COUNTS: u32 = 0;
    pub const WAITING: u32 = 1;
    pub const RETURNING: u32 = 2;
    pub const WHYS: u32 = 3;
    pub const WAITS: u32 = 4;
    pub const ALLOWANCES: u32 = 5;
    pub const UNHEARD: u32 = 6;
    pub const CALLS: u32 = 7;
    pub const WAITERS: u32 = 8;
    pub const TIMES: u32 = 9;
    pub const STORED: u32 = 10;
    pub const OF_LANES: u32 = 11;
}

/// What the plane tells.
pub mod news {
    pub const GREETED: u32 = 0;
    pub const LOST: u32 = 1;
    pub const SEEN: u32 = 2;
    pub const REFRESH: u32 = 3;
    pub const RETURNED: u32 = 4;
    pub const RETURN: u32 = 5;
    pub const CLOSED: u32 = 6;
    pub const DYING: u32 = 7;
    pub const FAILED: u32 = 8;
    pub const SUSPECT: u32 = 9;
    pub const USED: u32 = 10;
    pub const UNLOADED: u32 = 11;
    pub const AHEAD: u32 = 12;
    pub const VISIBLE: u32 = 13;
    pub const DRAINED: u32 = 14;
    pub const LOW: u32 = 15;
    pub const WRITTEN: u32 = 16;
    pub const LOW_DELAYS: u32 = 17;
    pub const REFUSED: u32 = 18;
    pub const SERVED: u32 = 19;
}
