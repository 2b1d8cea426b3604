//! How items become bytes.

pub use requeue::{Codec, CodecError};

use serde::de::DeserializeOwned;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::any::Any;

/// What becomes of an item on the disk that cannot be decoded when its queue is opened; see
/// [`Builder::on_undecodable`](crate::Builder::on_undecodable).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum OnUndecodable {
    /// It becomes a [dead letter](crate::DeadLetters::undecodable), with its bytes.
    #[default]
    Bury,
    /// The queue is not opened: [`StoreError::Codec`](crate::StoreError::Codec).
    Refuse,
    /// It is removed.
    Discard,
}

/// The default [`Codec`]: the [postcard](https://docs.rs/postcard) format of a type of `serde`.
///
/// Postcard is not self-describing: a changed type decodes old bytes only if its fields are the same. Use an `enum` of
/// versions, or another codec, if the type is to change.
///
/// An item that is a `Vec<u8>` is copied as a whole; bytes in other types are encoded one by one, unless they are marked for that with
/// [`serde_bytes`](https://docs.rs/serde_bytes), which changes nothing of the format.
#[derive(Clone, Copy, Debug, Default)]
pub struct Postcard;

impl<T: Serialize + DeserializeOwned + 'static> Codec<T> for Postcard {
    #[inline]
    fn encode(&self, item: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        let appended = match (item as &dyn Any).downcast_ref::<Vec<u8>>() {
            Some(item) => postcard::serialize_with_flavor(&Bytes(item), Append(bytes)),
            None => postcard::serialize_with_flavor(item, Append(bytes)),
        };
        appended.map_err(CodecError::new)
    }

    #[inline]
    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        let mut item: Option<T> = None;
        if let Some(item) = (&mut item as &mut dyn Any).downcast_mut::<Option<Vec<u8>>>() {
            *item = Some(take::<Bytes<'_>>(bytes)?.0.to_vec());
        }
        item.map_or_else(|| take(bytes), Ok)
    }
}

/// All bytes are those of the item.
#[inline]
fn take<'b, T: Deserialize<'b>>(bytes: &'b [u8]) -> Result<T, CodecError> {
    let (item, rest) = postcard::take_from_bytes(bytes).map_err(CodecError::new)?;
    if rest.is_empty() {
        Ok(item)
    } else {
        Err(CodecError::new(format!("{} bytes too many", rest.len())))
    }
}

/// What `serde` takes for bytes: of a vector it would take each by itself. The format is the same.
struct Bytes<'b>(&'b [u8]);

impl Serialize for Bytes<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_bytes(self.0)
    }
}

impl<'b> Deserialize<'b> for Bytes<'b> {
    fn deserialize<D: Deserializer<'b>>(deserializer: D) -> Result<Self, D::Error> {
        Deserialize::deserialize(deserializer).map(Self)
    }
}

/// The [`Codec`] of JSON text: of a type of `serde`, readable by other programs and by `requeue-inspect`.
///
/// JSON names its fields: a changed type decodes old text if its new fields have defaults (`#[serde(default)]`).
///
/// ```
/// # let directory = tempfile::tempdir()?;
/// # let store = requeue_durable::Store::open(directory.path())?;
/// use requeue_durable::{DurableQueue, Json};
///
/// let jobs: DurableQueue<(String, u32)> = store.builder("jobs").codec(Json).build()?;
/// jobs.push(("fetch".to_string(), 3))?;
/// # drop(jobs);
/// let items: Result<Vec<_>, _> = store.inspector().items("jobs", ..)?.collect();
/// assert_eq!(items?[0].bytes, br#"["fetch",3]"#);
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[cfg(feature = "json")]
#[derive(Clone, Copy, Debug, Default)]
pub struct Json;

#[cfg(feature = "json")]
impl<T: Serialize + DeserializeOwned> Codec<T> for Json {
    fn encode(&self, item: &T, bytes: &mut Vec<u8>) -> Result<(), CodecError> {
        serde_json::to_writer(bytes, item).map_err(CodecError::new)
    }

    fn decode(&self, bytes: &[u8]) -> Result<T, CodecError> {
        serde_json::from_slice(bytes).map_err(CodecError::new)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_encoded_as_serde_would() {
        for length in [0, 1, 127, 128, 20_000] {
            let item: Vec<u8> = (0..=255).cycle().take(length).collect();
            let mut bytes = vec![7];
            Postcard.encode(&item, &mut bytes).unwrap();
            assert_eq!(bytes[1..], postcard::to_allocvec(&item).unwrap());
            let decoded: Vec<u8> = Postcard.decode(&bytes[1..]).unwrap();
            assert_eq!(decoded, item);
            bytes.push(0);
            let more = Codec::<Vec<u8>>::decode(&Postcard, &bytes[1..]);
            assert_eq!(more.unwrap_err().to_string(), "1 bytes too many");
            bytes.truncate(bytes.len() - 2);
            assert!(Codec::<Vec<u8>>::decode(&Postcard, &bytes[1..]).is_err());
        }
    }
}
