//! The bytes of Redis (RESP 2): words of commands, and replies that come in pieces.
//!
//! Every byte of a reply is looked at once, however it is cut. A reply has bounds of size and depth;
//! what breaks them, or the protocol, ends the connection.

const CR_LF: &[u8] = b"\r\n";
/// A status, an error or a number; errors of scripts have a few hundred bytes.
const MOST_LINE: usize = 64 * 1024;
const MOST_DEPTH: usize = 16;
/// Room that is made for what is only announced.
const AHEAD_BYTES: usize = 1024 * 1024;
const AHEAD_ITEMS: usize = 1024;

#[derive(Clone, Debug, PartialEq)]
pub enum Reply {
    Int(i64),
    Bytes(Vec<u8>),
    Array(Vec<Reply>),
    Error(Vec<u8>),
    Nothing,
}

impl Reply {
    /// The number; 0 = it is none.
    pub fn int(&self) -> i64 {
        match self {
            Reply::Int(value) => *value,
            _ => 0,
        }
    }

    /// The same of what is not below nothing.
    pub fn count(&self) -> u64 {
        u64::try_from(self.int()).unwrap_or(0)
    }

    /// The items; empty = it is no array, or has none.
    pub fn items(&self) -> &[Reply] {
        match self {
            Reply::Array(items) => items,
            _ => &[],
        }
    }

    /// The bytes of a string or of an error; empty = it is neither, or has none.
    pub fn bytes(&self) -> &[u8] {
        match self {
            Reply::Bytes(bytes) | Reply::Error(bytes) => bytes,
            _ => &[],
        }
    }
}

/// Why a reply can't be read.
pub type Broken = &'static str;

/// An array that is not whole.
struct Open {
    items: Vec<Reply>,
    count: usize,
}

/// A string that is not whole: its bytes so far, and how many there will be with the end of line.
struct Text {
    bytes: Vec<u8>,
    size: usize,
}

/// Reads replies out of pieces.
pub struct Parser {
    most: usize,
    line: Vec<u8>,
    text: Option<Text>,
    open: Vec<Open>,
    used: usize,
}

impl Parser {
    /// A reply takes at most so many bytes of memory.
    pub fn new(most: usize) -> Self {
        Self { most, line: Vec::new(), text: None, open: Vec::new(), used: 0 }
    }

    /// The next whole reply, with `input` moved behind what was read; None = all of `input` was read.
    pub fn next(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, Broken> {
        while !input.is_empty() {
            let value = match self.text.take() {
                Some(text) => self.more_text(text, input)?,
                None => self.value(input)?,
            };
            if let Some(reply) = value.and_then(|value| self.close(value)) {
                self.used = 0;
                return Ok(Some(reply));
            }
        }
        Ok(None)
    }

    /// A value that has begun, or what there is of it; None = it is not whole, or is an array's head.
    fn value(&mut self, input: &mut &[u8]) -> Result<Option<Reply>, Broken> {
        let Some(end) = memchr::memchr(b'\n', input) else {
            self.keep_line(input)?;
            *input = &[];
            return Ok(None);
        };
        let (line, after) = input.split_at(end + 1);
        *input = after;
        if self.line.is_empty() {
            return self.read_line(line, input);
        }
        self.keep_line(line)?;
        let mut whole = std::mem::take(&mut self.line);
        let value = self.read_line(&whole, input);
        whole.clear();
        self.line = whole;
        value
    }

    fn keep_line(&mut self, part: &[u8]) -> Result<(), Broken> {
        if self.line.len() + part.len() > MOST_LINE {
            return Err("a line of a reply is too long");
        }
        self.line.extend_from_slice(part);
        Ok(())
    }

    fn read_line(&mut self, line: &[u8], input: &mut &[u8]) -> Result<Option<Reply>, Broken> {
        let (Some(line), true) = (line.strip_suffix(CR_LF), line.len() <= MOST_LINE) else {
            return Err("a line of a reply is too long, or does not end as it should");
        };
        let Some((kind, words)) = line.split_first() else { return Err("a reply has an empty line") };
        let value = match kind {
            b':' => Reply::Int(number(words)?),
            b'+' => Reply::Bytes(words.to_vec()),
            b'-' => Reply::Error(words.to_vec()),
            b'$' => match size(words)? {
                Some(size) => return self.begin_text(size, input),
                None => Reply::Nothing,
            },
            b'*' => match size(words)? {
                Some(0) => Reply::Array(Vec::new()),
                Some(count) => return self.begin_array(count),
                None => Reply::Nothing,
            },
            _ => return Err("a reply is of a kind that is not known"),
        };
        self.charge(value.bytes().len())?;
        Ok(Some(value))
    }

    fn begin_text(&mut self, size: usize, input: &mut &[u8]) -> Result<Option<Reply>, Broken> {
        self.charge(size)?;
        let size = size + CR_LF.len();
        self.more_text(Text { bytes: Vec::with_capacity(size.min(input.len().max(AHEAD_BYTES))), size }, input)
    }

    fn more_text(&mut self, mut text: Text, input: &mut &[u8]) -> Result<Option<Reply>, Broken> {
        let (part, after) = input.split_at(input.len().min(text.size - text.bytes.len()));
        text.bytes.extend_from_slice(part);
        *input = after;
        if text.bytes.len() < text.size {
            self.text = Some(text);
            return Ok(None);
        }
        if !text.bytes.ends_with(CR_LF) {
            return Err("a string of a reply does not end as it should");
        }
        text.bytes.truncate(text.size - CR_LF.len());
        Ok(Some(Reply::Bytes(text.bytes)))
    }

    fn begin_array(&mut self, count: usize) -> Result<Option<Reply>, Broken> {
        if self.open.len() == MOST_DEPTH {
            return Err("a reply is nested too deep");
        }
        if count > self.most / size_of::<Reply>() {
            return Err("a reply is too large");
        }
        self.charge(0)?;
        self.open.push(Open { items: Vec::with_capacity(count.min(AHEAD_ITEMS)), count });
        Ok(None)
    }

    fn charge(&mut self, bytes: usize) -> Result<(), Broken> {
        self.used = self.used.saturating_add(bytes).saturating_add(size_of::<Reply>());
        if self.used > self.most {
            return Err("a reply is too large");
        }
        Ok(())
    }

    /// Puts a whole value into the array that it is of; a reply that is whole by it.
    fn close(&mut self, mut value: Reply) -> Option<Reply> {
        while let Some(mut array) = self.open.pop() {
            array.items.push(value);
            if array.items.len() < array.count {
                self.open.push(array);
                return None;
            }
            value = Reply::Array(array.items);
        }
        Some(value)
    }
}

fn number(words: &[u8]) -> Result<i64, Broken> {
    std::str::from_utf8(words).ok().and_then(|text| text.parse().ok()).ok_or("a reply has a number that is none")
}

/// How much follows; None = nothing is there (-1).
fn size(words: &[u8]) -> Result<Option<usize>, Broken> {
    match number(words)? {
        -1 => Ok(None),
        size => usize::try_from(size).map(Some).map_err(|_| "a reply has a size that is none"),
    }
}

/// Begins a command, or an array, of so many words.
pub fn put_array(output: &mut Vec<u8>, count: usize) {
    put_head(output, b'*', count as i64);
}

pub fn put_word(output: &mut Vec<u8>, word: &[u8]) {
    put_head(output, b'$', word.len() as i64);
    output.extend_from_slice(word);
    output.extend_from_slice(CR_LF);
}

/// A number as a word of a command.
pub fn put_number(output: &mut Vec<u8>, value: i64) {
    let mut room = [0; 20];
    let at = digits(value, &mut room);
    put_word(output, &room[at..]);
}

pub fn put_head(output: &mut Vec<u8>, kind: u8, value: i64) {
    let mut room = [0; 20];
    let at = digits(value, &mut room);
    output.push(kind);
    output.extend_from_slice(&room[at..]);
    output.extend_from_slice(CR_LF);
}

/// Writes a number to the end of `room`; where it begins.
fn digits(value: i64, room: &mut [u8; 20]) -> usize {
    let (mut left, mut at) = (value.unsigned_abs(), room.len());
    loop {
        at -= 1;
        room[at] = b'0' + (left % 10) as u8;
        left /= 10;
        if left == 0 {
            break;
        }
    }
    if value < 0 {
        at -= 1;
        room[at] = b'-';
    }
    at
}
