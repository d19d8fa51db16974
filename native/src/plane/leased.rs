//! What a receive's script has leased, before anybody looks for bodies.

use super::format::record::Packed;
use super::redis::Reply;

pub struct Leased<'a> {
    pub offset: u64,
    pub count: u64,
    pub first_ms: u64,
    pub until_ms: u64,
    pub packed: &'a [u8],
    /// Since when a message without a body was visible (ms).
    pub since_ms: i64,
}

impl Leased<'_> {
    /// Its place among those that are visible (ms): since when it was, or is due, so it goes back before
    /// none that it came behind.
    pub fn place_ms(&self) -> i64 {
        Packed::read(self.packed).map_or(self.since_ms, |packed| packed.due_ms as i64)
    }
}

/// What was leased, in the order of the offsets: rows of `offset, count, first ms, deadline ms, body`,
/// and in `more` of those that were never leased before the deadline, the offsets, and since when each
/// that has no body was visible. What does not say so was visible `at_ms`.
pub fn leased<'a>(rows: &'a Reply, more: &'a [Reply], at_ms: u64) -> Vec<Leased<'a>> {
    let (fresh_until_ms, fresh) = (more.first().map_or(0, Reply::count), more.get(1).map_or(&[][..], Reply::items));
    let since = more.get(2).map_or(&b""[..], Reply::bytes);
    let mut since = since.split(|byte| *byte == b' ').map(|text| std::str::from_utf8(text).ok()?.parse().ok());
    let mut next = |packed: &[u8]| if packed.is_empty() { since.next().flatten().unwrap_or(at_ms as i64) } else { 0 };
    let mut all = Vec::with_capacity(rows.items().len() / 5 + fresh.len());
    for row in rows.items().chunks_exact(5) {
        let (packed, first_ms, until_ms) = (row[4].bytes(), row[2].count(), row[3].count());
        let since_ms = next(packed);
        all.push(Leased { offset: row[0].count(), count: row[1].count(), first_ms, until_ms, packed, since_ms });
    }
    for offset in fresh {
        let (offset, since_ms) = (offset.count(), next(b""));
        all.push(Leased { offset, count: 1, first_ms: at_ms, until_ms: fresh_until_ms, packed: b"", since_ms });
    }
    all.sort_by_key(|one| one.offset);
    all
}
