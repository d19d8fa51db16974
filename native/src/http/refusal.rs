//! Why a request is refused, by a reply that is the last of its connection.

/// The status and the text of the reply; `retries`: the client may try again soon.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Refusal {
    pub status: u16,
    pub text: String,
    pub retries: bool,
}

impl Refusal {
    pub fn new(status: u16, text: impl Into<String>) -> Self {
        Self { status, text: text.into(), retries: false }
    }

    /// A request that is not HTTP as we read it.
    pub fn bad(text: impl Into<String>) -> Self {
        Self::new(400, text)
    }

    /// A head, or what comes beside a body, that is larger than it may be.
    pub fn too_much(text: impl Into<String>) -> Self {
        Self::new(431, text)
    }

    /// A request that was not whole in time.
    pub fn slow(seconds: u64) -> Self {
        Self::new(408, format!("The request came too slowly: it was not whole after {seconds} s."))
    }

    /// A request for which there was no room when others came.
    pub fn gave_way() -> Self {
        Self { retries: true, ..Self::new(503, "The request came slowly while others had no room.") }
    }

    /// The first line of the reply.
    fn first(&self) -> &'static str {
        match self.status {
            408 => "HTTP/1.1 408 Request Timeout\r\n",
            431 => "HTTP/1.1 431 Request Header Fields Too Large\r\n",
            503 => "HTTP/1.1 503 Service Unavailable\r\n",
            _ => "HTTP/1.1 400 Bad Request\r\n",
        }
    }

    /// Writes the head of the reply but its end.
    pub fn write(&self, output: &mut Vec<u8>) {
        output.extend_from_slice(self.first().as_bytes());
        let size = self.text.len();
        let lines = format!("content-type: text/plain; charset=utf-8\r\ncontent-length: {size}\r\n");
        output.extend_from_slice(lines.as_bytes());
        if self.retries {
            output.extend_from_slice(b"retry-after: 1\r\n");
        }
    }
}
