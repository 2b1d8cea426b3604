//! How the items of a queue that is not in memory become bytes.

use std::error::Error;
use std::fmt;
use std::sync::Arc;

/// Encodes and decodes the items of a queue of `requeue-durable` or `requeue-postgres`.
///
/// The bytes of an item must say the same to all later versions of the program: a codec that changes its encoding
/// must still decode what earlier versions wrote. Bytes that it does not decode make a dead letter.
///
/// ```
/// use requeue::{Codec, CodecError};
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
///
/// let mut bytes = Vec::new();
/// Lines.encode(&"first".to_string(), &mut bytes)?;
/// assert_eq!(Lines.decode(&bytes)?, "first");
/// assert!(Lines.decode(&[0xff]).is_err());
/// # Ok::<(), CodecError>(())
/// ```
pub trait Codec<T>: Send + Sync + 'static {
    /// Appends the bytes of `item` to `bytes`, of which it changes nothing else.
    ///
    /// # Errors
    ///
    /// If the item cannot be encoded; the push fails.
    fn encode(&self, item: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError>;

    /// Decodes what [`encode`](Codec::encode) appended.
    ///
    /// # Errors
    ///
    /// If the bytes are not those of an item.
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError>;
}

/// An item that cannot be encoded, or bytes that are no item.
#[derive(Clone, Debug)]
pub struct CodecError {
    error: Arc<dyn Error + Send + Sync>,
    place: Option<(Arc<str>, Option<u64>)>,
}

impl CodecError {
    /// An error of a codec.
    ///
    /// ```
    /// let error = requeue::CodecError::new("too long");
    /// assert_eq!(error.to_string(), "too long");
    /// ```
    pub fn new(error: impl Into<Box<dyn Error + Send + Sync>>) -> Self {
        let error = Arc::from(error.into());
        Self { error, place: None }
    }

    /// The error with the name of its queue, and the number of its item if it has one.
    ///
    /// ```
    /// let error = requeue::CodecError::new("too long");
    /// assert_eq!(error.at(&"jobs".into(), Some(7)).to_string(), r#"item 7 of queue "jobs": too long"#);
    /// ```
    #[must_use = "it is the error with its place"]
    pub fn at(self, queue: &Arc<str>, item: Option<u64>) -> Self {
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
