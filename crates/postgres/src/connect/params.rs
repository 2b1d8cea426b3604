//! Parameters of statements.

use std::time::SystemTime;
use tokio_postgres::types::{ToSql, Type};

pub(crate) type Params<'p> = &'p [&'p dyn Param];

/// A parameter that knows its type: a statement without a name is sent together with the types, before the server has told them.
pub(crate) trait Param: ToSql + Sync {
    fn ty(&self) -> Type;
}

macro_rules! params {
    ($($rust:ty => $name:ident,)*) => { $(
        impl Param for $rust {
            fn ty(&self) -> Type {
                Type::$name
            }
        }
    )* };
}

params! {
    bool => BOOL,
    i16 => INT2,
    i32 => INT4,
    i64 => INT8,
    &str => TEXT,
    String => TEXT,
    SystemTime => TIMESTAMPTZ,
    Option<bool> => BOOL,
    Option<SystemTime> => TIMESTAMPTZ,
    Option<i32> => INT4,
    Option<i64> => INT8,
    Option<&str> => TEXT,
    Option<String> => TEXT,
    Option<&[u8]> => BYTEA,
    Vec<i16> => INT2_ARRAY,
    Vec<i32> => INT4_ARRAY,
    Vec<i64> => INT8_ARRAY,
    Option<Vec<&str>> => TEXT_ARRAY,
    Option<Vec<&[u8]>> => BYTEA_ARRAY,
    Option<Vec<i64>> => INT8_ARRAY,
    Vec<Option<i64>> => INT8_ARRAY,
    Vec<&str> => TEXT_ARRAY,
    Vec<Option<&str>> => TEXT_ARRAY,
    Vec<Option<&[u8]>> => BYTEA_ARRAY,
}
