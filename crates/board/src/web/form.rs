//! The fields of forms and of the queries of addresses.

use form_urlencoded::{parse, Serializer};

/// Fields with their values. Of two with the same name the first counts.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Form(Vec<(String, String)>);

impl Form {
    pub(crate) fn parse(text: &[u8]) -> Self {
        Self(parse(text).into_owned().collect())
    }

    /// The value of a field; empty if it is not there.
    pub(crate) fn get(&self, name: &str) -> &str {
        let field = self.0.iter().find(|(known, _)| known == name);
        field.map_or("", |(_, value)| value)
    }
}

/// An address with a query.
pub(crate) fn address(path: &str, fields: &[(&str, &str)]) -> String {
    let mut query = Serializer::new(String::new());
    query.extend_pairs(fields.iter().filter(|(_, value)| !value.is_empty()));
    format!("{path}?{}", query.finish())
}
