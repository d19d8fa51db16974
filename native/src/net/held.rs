//! How much of what clients have sent is held here.

/// Bytes of a connection's input: of a part of a request, or of what is asked and all that came with
/// it; and whether there is a part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Held {
    pub part: usize,
    pub asked: usize,
    pub parts: usize,
}

impl Held {
    /// Counts one connection in a sum by what it holds now.
    pub fn replace(&mut self, counted: &mut Self, now: Self) {
        let before = std::mem::replace(counted, now);
        self.part = self.part + now.part - before.part;
        self.asked = self.asked + now.asked - before.asked;
        self.parts = self.parts + now.parts - before.parts;
    }
}
