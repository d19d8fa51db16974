//! Answers of Thrift as they go, in each of the three protocols as its library writes it.

use std::io::Write as _;

use super::{Call, Kind, Protocol};
use crate::base64;
use crate::quote;

/// Version, and that it is an answer.
const BINARY_REPLY: u32 = 0x8001_0002;
const COMPACT_REPLY: [u8; 2] = [0x82, 0x41];
/// Of a list whose size stands in its first byte: less than so many.
const SHORT_LIST: usize = 15;

/// Writes one message.
pub struct Writer<'a> {
    out: &'a mut Vec<u8>,
    protocol: Protocol,
    /// The number of the field before, in the struct that is being written.
    last: Option<u8>,
}

/// Writes the answer to a call; `fields` writes those of its result.
pub fn reply(out: &mut Vec<u8>, call: &Call, method: &str, fields: impl FnOnce(&mut Writer)) {
    let mut writer = Writer { out, protocol: call.protocol, last: None };
    match call.protocol {
        Protocol::Binary => {
            writer.word(BINARY_REPLY);
            writer.text(method.as_bytes());
            writer.word(call.seqid as u32);
            writer.fields(fields);
        }
        Protocol::Compact => {
            writer.out.extend_from_slice(&COMPACT_REPLY);
            writer.varint(u64::from(call.seqid as u32));
            writer.text(method.as_bytes());
            writer.fields(fields);
        }
        Protocol::Json | Protocol::Bare => {
            writer.print(format_args!("[1,\"{method}\",2,{},", call.seqid));
            writer.fields(fields);
            writer.out.push(b']');
        }
    }
}

impl Writer<'_> {
    fn is_json(&self) -> bool {
        matches!(self.protocol, Protocol::Json | Protocol::Bare)
    }

    /// A struct.
    pub fn fields(&mut self, write: impl FnOnce(&mut Self)) {
        let last = self.last.take();
        if self.is_json() {
            self.out.push(b'{');
        }
        write(self);
        self.out.push(if self.is_json() { b'}' } else { 0 });
        self.last = last;
    }

    pub fn text_field(&mut self, number: u8, text: &[u8]) {
        self.field(number, Kind::Text, |writer| writer.text(text));
    }

    /// Bytes, which JSON has in base64.
    pub fn bytes_field(&mut self, number: u8, bytes: &[u8]) {
        self.field(number, Kind::Text, |writer| match writer.protocol {
            Protocol::Binary | Protocol::Compact => writer.text(bytes),
            Protocol::Json | Protocol::Bare => writer.text(base64::encode(bytes).as_bytes()),
        });
    }

    pub fn i32_field(&mut self, number: u8, value: u32) {
        self.field(number, Kind::I32, |writer| match writer.protocol {
            Protocol::Binary => writer.word(value),
            _ => writer.number(u64::from(value)),
        });
    }

    pub fn i64_field(&mut self, number: u8, value: u64) {
        self.field(number, Kind::I64, |writer| match writer.protocol {
            Protocol::Binary => writer.out.extend_from_slice(&value.to_be_bytes()),
            _ => writer.number(value),
        });
    }

    pub fn struct_field(&mut self, number: u8, write: impl FnOnce(&mut Self)) {
        self.field(number, Kind::Struct, |writer| writer.fields(write));
    }

    /// A list: `write` writes each of the items.
    pub fn list_field<T>(&mut self, number: u8, kind: Kind, items: &[T], mut write: impl FnMut(&mut Self, &T)) {
        self.field(number, Kind::List, |writer| {
            let (code, count) = (kind.code(writer.protocol), items.len());
            match writer.protocol {
                Protocol::Binary => {
                    writer.out.push(code);
                    writer.word(count as u32);
                }
                Protocol::Compact if count < SHORT_LIST => writer.out.push((count as u8) << 4 | code),
                Protocol::Compact => {
                    writer.out.push(0xf0 | code);
                    writer.varint(count as u64);
                }
                Protocol::Json | Protocol::Bare => writer.print(format_args!("[\"{}\",{count}", kind.word())),
            }
            for item in items {
                if writer.is_json() {
                    writer.out.push(b',');
                }
                write(writer, item);
            }
            if writer.is_json() {
                writer.out.push(b']');
            }
        });
    }

    /// A map from texts: `write` writes what each of the keys has.
    pub fn map_field<T>(&mut self, number: u8, kind: Kind, items: &[(&str, T)], mut write: impl FnMut(&mut Self, &T)) {
        self.field(number, Kind::Map, |writer| {
            let codes = [Kind::Text, kind].map(|kind| kind.code(writer.protocol));
            match writer.protocol {
                Protocol::Binary => {
                    writer.out.extend_from_slice(&codes);
                    writer.word(items.len() as u32);
                }
                Protocol::Compact => {
                    writer.varint(items.len() as u64);
                    writer.out.push(codes[0] << 4 | codes[1]);
                }
                Protocol::Json | Protocol::Bare => {
                    writer.print(format_args!("[\"str\",\"{}\",{},{{", kind.word(), items.len()));
                }
            }
            for (place, (key, item)) in items.iter().enumerate() {
                if writer.is_json() && place > 0 {
                    writer.out.push(b',');
                }
                writer.text(key.as_bytes());
                if writer.is_json() {
                    writer.out.push(b':');
                }
                write(writer, item);
            }
            if writer.is_json() {
                writer.out.extend_from_slice(b"}]");
            }
        });
    }

    /// A text of UTF-8, as a value.
    pub fn text(&mut self, text: &[u8]) {
        match self.protocol {
            Protocol::Binary => self.word(text.len() as u32),
            Protocol::Compact => self.varint(text.len() as u64),
            Protocol::Json | Protocol::Bare => {
                self.out.push(b'"');
                quote::text(self.out, text);
                self.out.push(b'"');
                return;
            }
        }
        self.out.extend_from_slice(text);
    }

    fn field(&mut self, number: u8, kind: Kind, write: impl FnOnce(&mut Self)) {
        let code = kind.code(self.protocol);
        match self.protocol {
            Protocol::Binary => self.out.extend_from_slice(&[code, 0, number]),
            // The first may have the number 0, which no distance from it is.
            Protocol::Compact => match number - self.last.unwrap_or(0) {
                0 => self.out.extend_from_slice(&[code, 0]),
                distance => self.out.push(distance << 4 | code),
            },
            Protocol::Json | Protocol::Bare => {
                let comma = if self.last.is_some() { "," } else { "" };
                self.print(format_args!("{comma}\"{number}\":{{\"{}\":", kind.word()));
            }
        }
        self.last = Some(number);
        write(self);
        if self.is_json() {
            self.out.push(b'}');
        }
    }

    /// A number that is not negative, in the compact protocol or in JSON.
    fn number(&mut self, value: u64) {
        if self.is_json() {
            self.print(format_args!("{value}"));
        } else {
            self.varint(value << 1);
        }
    }

    fn word(&mut self, word: u32) {
        self.out.extend_from_slice(&word.to_be_bytes());
    }

    fn varint(&mut self, mut value: u64) {
        while value > 127 {
            self.out.push(value as u8 | 128);
            value >>= 7;
        }
        self.out.push(value as u8);
    }

    fn print(&mut self, text: std::fmt::Arguments) {
        // A vector takes all that is written.
        let _ = self.out.write_fmt(text);
    }
}
