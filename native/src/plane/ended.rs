//! How a drain has ended.

use crate::pack::Packer;

/// `engine/plane/library.py` has the same.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
pub enum End {
    Done,
    /// Another owns the unit.
    Fenced,
    /// The journal may lack what was appended last.
    NotAppended,
    /// Python is to go on by itself.
    Passed,
}

/// What has come of a drain.
#[derive(Debug, PartialEq, Eq)]
pub struct Ended {
    pub number: u64,
    pub end: End,
    /// Entries that the journal has got.
    pub moved: u64,
    /// The journal has the entries up to there, and the outbox may have them still; 0 = it has not.
    pub done_seq: i64,
    /// When the oldest entry of the last look was made; 0 = there was none.
    pub since_ms: i64,
    /// There may be more.
    pub has_more: bool,
    /// Of the last append: when it was begun and answered (us of the clock that nobody sets), and the
    /// time that the broker gave it (ms).
    pub append: Option<[i64; 3]>,
    pub text: String,
}

impl Ended {
    /// `[number, end, moved, done seq, since ms, has more, [begun us, answered us, at ms] or [], text]`
    pub fn write(&self, packer: &mut Packer) {
        packer.uint(self.number);
        packer.uint(self.end as u64);
        packer.uint(self.moved);
        packer.int(self.done_seq);
        packer.int(self.since_ms);
        packer.uint(u64::from(self.has_more));
        let append = self.append.as_ref().map_or(&[][..], |times| &times[..]);
        packer.array(append.len());
        append.iter().for_each(|time| packer.int(*time));
        packer.text(self.text.as_bytes());
    }

    pub const FIELDS: usize = 8;
}
