//! What becomes of appends, and how many bytes of them are here.

use super::partitions::{Append, Group};

/// Why an append was not stored, or may not be: a code of Kafka or of its client, and what there is to
/// say about it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    pub code: i16,
    pub text: String,
}

impl Reason {
    pub fn new(code: i16, text: &str) -> Self {
        Self { code, text: text.to_owned() }
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// The time is None where the topic keeps the times of producers.
    Stored { base_offset: i64, log_append_ms: Option<i64> },
    /// Nothing of it is in the log, nor will be.
    NotStored(Reason),
    /// A broker may have got it. It is not sent again.
    Unknown(Reason),
}

#[derive(Default)]
pub struct Outcomes {
    pub news: Vec<(u64, Outcome)>,
    /// Bytes of all appends that have not ended.
    pub held: usize,
}

impl Outcomes {
    pub fn answer(&mut self, append: Append, outcome: Outcome) {
        self.held -= append.size();
        self.news.extend(append.token.map(|token| (token, outcome)));
    }

    pub fn answer_all(&mut self, group: Group, outcome: &Outcome) {
        group.appends.into_iter().for_each(|append| self.answer(append, outcome.clone()));
    }
}
