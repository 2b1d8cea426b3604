//! How items become a payload: `jsonb`, or bytes of a codec.

pub use requeue::{Codec, CodecError};

use serde::de::DeserializeOwned;
use serde::Serialize;

/// An item as the database stores it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Payload {
    /// Text of JSON.
    Json(String),
    /// The bytes of a [`Codec`].
    Bytes(Vec<u8>),
}

impl Payload {
    /// The number of bytes.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Json(text) => text.len(),
            Self::Bytes(bytes) => bytes.len(),
        }
    }

    /// The columns `json` and `bytes`.
    pub(crate) fn columns(&self) -> (Option<&str>, Option<&[u8]>) {
        match self {
            Self::Json(text) => (Some(text), None),
            Self::Bytes(bytes) => (None, Some(bytes)),
        }
    }
}

/// How the items of a queue become payloads.
pub(crate) trait Encoding<T>: Send + Sync + 'static {
    fn encode(&self, item: &T) -> Result<Payload, CodecError>;
    fn decode(&self, payload: &Payload) -> Result<T, CodecError>;
}

/// A NUL in a text of JSON, which `jsonb` refuses.
const NUL: &str = "\\u0000";

/// `jsonb`, by `serde`.
#[derive(Clone, Copy, Debug)]
#[allow(unreachable_pub)] // the default of a parameter of `Builder`
pub struct Json;

impl<T: Serialize + DeserializeOwned> Encoding<T> for Json {
    fn encode(&self, item: &T) -> Result<Payload, CodecError> {
        let text = serde_json::to_string(item).map_err(CodecError::new)?;
        // An escape, and no escaped backslash before these letters.
        if text.contains(NUL) && text.replace("\\\\", "").contains(NUL) {
            return Err(CodecError::new("jsonb cannot hold the character U+0000"));
        }
        Ok(Payload::Json(text))
    }

    fn decode(&self, payload: &Payload) -> Result<T, CodecError> {
        match payload {
            Payload::Json(text) => serde_json::from_str(text).map_err(CodecError::new),
            Payload::Bytes(_) => Err(CodecError::new("bytes of a codec, not jsonb")),
        }
    }
}

/// `bytea`, by a codec of the user.
#[derive(Clone, Copy, Debug)]
#[allow(unreachable_pub)]
pub struct Bytes<C>(pub(crate) C);

impl<T, C: Codec<T>> Encoding<T> for Bytes<C> {
    fn encode(&self, item: &T) -> Result<Payload, CodecError> {
        let mut bytes = Vec::new();
        self.0.encode(item, &mut bytes)?;
        Ok(Payload::Bytes(bytes))
    }

    fn decode(&self, payload: &Payload) -> Result<T, CodecError> {
        match payload {
            Payload::Bytes(bytes) => self.0.decode(bytes),
            Payload::Json(_) => Err(CodecError::new("jsonb, not bytes of a codec")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Encoding, Json};

    #[test]
    fn a_nul_is_refused_and_an_escaped_backslash_is_not() {
        assert!(Json.encode(&"a\0".to_string()).is_err());
        assert!(Json.encode(&"\\\0".to_string()).is_err());
        assert!(Json.encode(&"\\u0000 \"é".to_string()).is_ok());
    }
}
