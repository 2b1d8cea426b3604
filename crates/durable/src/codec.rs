//! How items become bytes.

use crate::error::StoreError;
use serde::de::DeserializeOwned;
use serde::Serialize;
use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// What becomes of an item on the disk that cannot be decoded when its queue is opened; see
/// [`Builder::on_undecodable`](crate::Builder::on_undecodable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUndecodable {
    /// It becomes a [dead letter](crate::DeadLetters::undecodable), with its bytes.
    #[default]
    Bury,
    /// The queue is not opened: [`StoreError::Codec`].
    Refuse,
    /// It is removed.
    Discard,
}

/// Encodes and decodes the items of a queue. [`Postcard`] does so for all types of `serde`.
///
/// The bytes of an item must say the same to all later versions of the program: a codec that changes its encoding
/// must still decode what earlier versions wrote.
///
/// ```
/// use requeue_durable::{Codec, CodecError};
///
/// struct Lines;
///
/// impl Codec<String> for Lines {
///     fn encode(&self, item: &String, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
///         bytes.extend_from_slice(item.as_bytes());
///         Ok(())
///     }
///     fn decode(&self, bytes: &[u8]) -> Result<String, CodecError> {
///         String::from_utf8(bytes.to_vec()).map_err(CodecError::new)
///     }
/// }
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// let lines = store.builder("lines").codec(Lines).build()?;
/// lines.push("first".to_string())?;
/// assert_eq!(lines.pop()?, "first");
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
pub trait Codec<T>: Send + Sync + 'static {
    /// Appends the bytes of `item` to `bytes`, of which it changes nothing else.
    ///
    /// # Errors
    ///
    /// If the item cannot be encoded; the push returns it.
    fn encode(&self, item: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Decodes what [`encode`](Codec::encode) appended.
    ///
    /// # Errors
    ///
    /// If the bytes are not those of an item.
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError>;
}

/// The default [`Codec`]: the [postcard](https://docs.rs/postcard) format of a type of `serde`.
///
/// Postcard is not self-describing: a changed type decodes old bytes only if its fields are the same. Use an `enum` of
/// versions, or another codec, if the type is to change.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl<T: Serialize + DeserializeOwned> Codec<T> for Postcard {
    #[inline]
    fn encode(&self, item: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        let appended = postcard::serialize_with_flavor(item, Append(bytes));
        appended.map_err(CodecError::new)
    }

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        let (item, rest) = postcard::take_from_bytes(bytes).map_err(CodecError::new)?;
        if rest.is_empty() {
            Ok(item)
        } else {
            Err(CodecError::new(format!("{} bytes too many", rest.len())))
        }
    }
}

/// Appends to a vector.
struct Append<'b>(&'b mut Vec<u8>);

impl postcard::ser_flavors::Flavor for Append<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        // Short numbers without a call that copies.
        match *bytes {
            [a] => self.0.push(a),
            [a, b] => self.0.extend([a, b]),
            [a, b, c] => self.0.extend([a, b, c]),
            [a, b, c, d] => self.0.extend([a, b, c, d]),
            _ => self.0.extend_from_slice(bytes),
        }
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
}

/// An item that cannot be encoded, or bytes that are no item. It names the queue, and the item if it has a number.
#[derive(Clone, Debug)]
pub struct CodecError {
    error: Arc<dyn Error + Send + Sync>,
    place: Option<(Arc<str>, Option<u64>)>,
}

impl CodecError {
    /// An error of a codec.
    ///
    /// ```
    /// let error = requeue_durable::CodecError::new("too long");
    /// assert_eq!(error.to_string(), "too long");
    /// ```
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = Arc::from(error.into());
        Self { error, place: None }
    }

    /// The error with the name of the queue, and the number of the item.
    pub(crate) fn at(self, queue: &Arc<str>, item: Option<u64>) -> Self {
        let place = Some((Arc::clone(queue), item));
        Self { place, ..self }
    }
}

impl fmt::Display for CodecError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.place {
            Some((queue, Some(item))) => write!(f, "item {item} of queue {queue:?}: ")?,
            Some((queue, None)) => write!(f, "queue {queue:?}: ")?,
            None => {}
        }
        fmt::Display::fmt(&self.error, f)
    }
}

impl Error for CodecError {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        self.error.source()
    }
}

impl From<CodecError> for StoreError {
    fn from(error: CodecError) -> Self {
        Self::Codec(error)
    }
}
