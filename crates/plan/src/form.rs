//! Reads TOML into forms. A mistake is kept as data, with its place and its keys.

pub mod excerpt;
pub mod mistake;
pub mod near;
pub mod text;

use std::borrow::Cow;

use serde::de::value::MapAccessDeserializer;
use serde::de::{
    self, DeserializeOwned, DeserializeSeed, Deserializer, Expected, IntoDeserializer, MapAccess,
    SeqAccess, Unexpected, Visitor,
};
use serde::forward_to_deserialize_any;
use serde_spanned::de::{SpannedDeserializer, is_spanned};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use mistake::{Kind, Mistake};

/// Reads a form from TOML. The error is the first mistake.
pub fn read<T: DeserializeOwned>(text: &str) -> Result<T, Mistake> {
    let table = DeTable::parse(text).map_err(|error| Mistake {
        place: error.span(),
        ..Mistake::new(Kind::Other, error.message().to_owned())
    })?;
    read_table(table.get_ref())
}

/// Reads a form from a parsed table. The error is the first mistake.
pub fn read_table<T: DeserializeOwned>(table: &DeTable<'_>) -> Result<T, Mistake> {
    T::deserialize(MapAccessDeserializer::new(Entries::of(table)))
}

/// A value of the text.
#[derive(Clone, Copy)]
struct Node<'a>(&'a Spanned<DeValue<'a>>);

impl Node<'_> {
    /// The mistake that this value is not what was expected.
    fn is_not(self, expected: &dyn Expected) -> Mistake {
        let found = match self.0.get_ref() {
            DeValue::String(text) => Unexpected::Str(text),
            DeValue::Integer(_) => {
                self.whole().map_or(Unexpected::Other("integer"), Unexpected::Signed)
            }
            DeValue::Float(_) => Unexpected::Float(self.decimal()),
            DeValue::Boolean(flag) => Unexpected::Bool(*flag),
            DeValue::Datetime(_) => Unexpected::Other("date"),
            DeValue::Array(_) => Unexpected::Other("list"),
            DeValue::Table(_) => Unexpected::Other("table"),
        };
        de::Error::invalid_type(found, expected)
    }

    /// The mistake that this value is no whole number, or another than expected.
    fn is_no_number(self) -> Mistake {
        let mut mistake = self.is_not(&"a whole number");
        mistake.kind = Kind::Number;
        if let DeValue::Integer(number) = self.0.get_ref() {
            mistake.problem = format!("invalid value: integer `{number}`");
        }
        mistake
    }

    fn whole(self) -> Option<i64> {
        let DeValue::Integer(number) = self.0.get_ref() else { return None };
        i64::from_str_radix(number.as_str(), number.radix()).ok()
    }

    fn decimal(self) -> f64 {
        self.0.get_ref().as_float().and_then(|it| it.as_str().parse().ok()).unwrap_or(f64::NAN)
    }
}

/// Methods for whole numbers of all sizes.
macro_rules! whole_numbers {
    ($($method:ident)*) => {
        $(fn $method<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
            let number = self.whole().ok_or_else(|| self.is_no_number())?;
            visitor.visit_i64(number).map_err(|_: Mistake| self.is_no_number())
        })*
    };
}

impl<'de> Deserializer<'de> for Node<'_> {
    type Error = Mistake;

    whole_numbers!(
        deserialize_i8 deserialize_i16 deserialize_i32 deserialize_i64
        deserialize_u8 deserialize_u16 deserialize_u32 deserialize_u64
    );

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.0.get_ref() {
            DeValue::String(text) => visitor.visit_str(text),
            DeValue::Integer(_) => {
                self.whole().ok_or_else(|| self.is_no_number()).and_then(|it| visitor.visit_i64(it))
            }
            DeValue::Float(_) => visitor.visit_f64(self.decimal()),
            DeValue::Boolean(flag) => visitor.visit_bool(*flag),
            DeValue::Datetime(_) => Err(self.is_not(&visitor)),
            DeValue::Array(list) => visitor.visit_seq(Items(list.iter().enumerate())),
            DeValue::Table(table) => visitor.visit_map(Entries::of(table)),
        }
    }

    fn deserialize_str<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        if self.0.get_ref().is_str() {
            return self.deserialize_any(visitor);
        }
        Err(Mistake { kind: Kind::Text, ..self.is_not(&"a string") })
    }

    fn deserialize_string<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        self.deserialize_str(visitor)
    }

    fn deserialize_seq<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        if self.0.get_ref().is_array() {
            return self.deserialize_any(visitor);
        }
        Err(Mistake { kind: Kind::List, ..self.is_not(&"a list") })
    }

    fn deserialize_map<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        match self.0.get_ref().is_table() {
            true => self.deserialize_any(visitor),
            false => Err(self.is_not(&"a table")),
        }
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match is_spanned(name) {
            true => visitor.visit_map(SpannedDeserializer::new(self, self.0.span())),
            false => self.deserialize_map(visitor),
        }
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        _: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        let word = self.0.get_ref().as_str().ok_or_else(|| self.is_not(&"a string"))?;
        visitor.visit_enum(word.into_deserializer())
    }

    fn deserialize_option<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_some(self)
    }

    forward_to_deserialize_any! {
        bool i128 u128 f32 f64 char bytes byte_buf unit unit_struct newtype_struct tuple tuple_struct
        identifier ignored_any
    }
}

impl IntoDeserializer<'_, Mistake> for Node<'_> {
    type Deserializer = Self;

    fn into_deserializer(self) -> Self {
        self
    }
}

/// The values of a list with their places.
struct Items<I>(I);

impl<'de, 'a, I: Iterator<Item = (usize, &'a Spanned<DeValue<'a>>)>> SeqAccess<'de> for Items<I> {
    type Error = Mistake;

    fn next_element_seed<T: DeserializeSeed<'de>>(
        &mut self,
        seed: T,
    ) -> Result<Option<T::Value>, Mistake> {
        let Some((place, value)) = self.0.next() else { return Ok(None) };
        let read = seed.deserialize(Node(value)).map(Some);
        read.map_err(|it| it.at(value.span()).below(&place.to_string()))
    }
}

/// The keys and the values of a table.
struct Entries<'a, I> {
    rest: I,
    /// The entry whose key was read last.
    current: Option<(&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>)>,
}

impl<'a> Entries<'a, toml::map::Iter<'a, Spanned<Cow<'a, str>>, Spanned<DeValue<'a>>>> {
    fn of(table: &'a DeTable<'a>) -> Self {
        Self { rest: table.iter(), current: None }
    }
}

impl<'de, 'a, I> MapAccess<'de> for Entries<'a, I>
where
    I: Iterator<Item = (&'a Spanned<Cow<'a, str>>, &'a Spanned<DeValue<'a>>)>,
{
    type Error = Mistake;

    fn next_key_seed<K: DeserializeSeed<'de>>(
        &mut self,
        seed: K,
    ) -> Result<Option<K::Value>, Mistake> {
        self.current = self.rest.next();
        let Some((key, _)) = self.current else { return Ok(None) };
        let read = seed.deserialize(Key(key));
        read.map(Some).map_err(|it| it.at(key.span()).below(key.get_ref()))
    }

    fn next_value_seed<V: DeserializeSeed<'de>>(&mut self, seed: V) -> Result<V::Value, Mistake> {
        let (key, value) = self.current.take().expect("a key comes before its value");
        let read = seed.deserialize(Node(value));
        read.map_err(|it| it.at(value.span()).below(key.get_ref()))
    }
}

/// A key of the text.
struct Key<'a>(&'a Spanned<Cow<'a, str>>);

impl<'de> Deserializer<'de> for Key<'_> {
    type Error = Mistake;

    fn deserialize_any<V: Visitor<'de>>(self, visitor: V) -> Result<V::Value, Mistake> {
        visitor.visit_str(self.0.get_ref())
    }

    fn deserialize_struct<V: Visitor<'de>>(
        self,
        name: &'static str,
        _: &'static [&'static str],
        visitor: V,
    ) -> Result<V::Value, Mistake> {
        match is_spanned(name) {
            true => {
                let key: &str = self.0.get_ref();
                visitor.visit_map(SpannedDeserializer::new(key, self.0.span()))
            }
            false => self.deserialize_any(visitor),
        }
    }

    forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option unit unit_struct
        newtype_struct seq tuple tuple_struct map enum identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use proptest::prelude::*;
    use serde::Deserialize;

    use super::*;

    #[derive(Debug, Deserialize)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    struct Form {
        name: Spanned<String>,
        number: Option<Spanned<u8>>,
        word: Option<Word>,
        #[serde(default)]
        parts: Vec<Part>,
        #[serde(default)]
        named: BTreeMap<Spanned<String>, f64>,
    }

    #[derive(Debug, Deserialize)]
    #[allow(dead_code)]
    struct Part {
        size: model::Bytes,
    }

    #[derive(Debug, Deserialize)]
    #[serde(rename_all = "lowercase")]
    enum Word {
        Yes,
        No,
    }

    #[test]
    fn a_mistake_has_its_place_its_keys_and_a_hint() {
        let told = |text: &str| {
            let it = read::<Form>(text).unwrap_err();
            let place = it.place.clone().map_or("", |place| &text[place]).to_owned();
            let hint = it.hint().map(|hint| format!("; {hint}")).unwrap_or_default();
            let keys = it.keys.join(".");
            format!("{text:?}: {keys} at `{place}`: {it}{hint}")
        };
        let texts = [
            "",
            "nam = ''",
            "name = 1",
            "name = ['']",
            "number = 256",
            "number = 0x10000000000000000",
            "number = 'a'",
            "word = 'yess'",
            "word = true",
            "parts = 1",
            "parts = [{ size = '1G' }, ['1G']]",
            "[[parts]]\nsize = '2X'",
            "[[parts]]",
            "named = 1979-05-27",
            "named.a = 'x'",
            "name =",
        ];
        insta::assert_snapshot!(texts.map(told).join("\n"), @r#"
        "": name at ``: missing field `name`
        "nam = ''": nam at `nam`: unknown field `nam`, expected one of `name`, `number`, `word`, `parts`, `named`; did you mean `name`?
        "name = 1": name at `1`: invalid type: integer `1`, expected a string; write it in quotation marks, with its unit if it has one: "1G"
        "name = ['']": name at `['']`: invalid type: list, expected a string; write it in quotation marks, with its unit if it has one: "1G"
        "number = 256": number at `256`: invalid value: integer `256`, expected a whole number
        "number = 0x10000000000000000": number at `0x10000000000000000`: invalid value: integer `0x10000000000000000`, expected a whole number
        "number = 'a'": number at `'a'`: invalid type: string "a", expected a whole number
        "word = 'yess'": word at `'yess'`: unknown value `yess`, expected `yes` or `no`; did you mean `yes`?
        "word = true": word at `true`: invalid type: boolean `true`, expected a string
        "parts = 1": parts at `1`: invalid type: integer `1`, expected a list; write a list in brackets, also of one value
        "parts = [{ size = '1G' }, ['1G']]": parts.1 at `['1G']`: invalid type: list, expected a table
        "[[parts]]\nsize = '2X'": parts.0.size at `'2X'`: `2X` is not a size such as `512M` or `4G`
        "[[parts]]": parts.0.size at `[[parts]]`: missing field `size`
        "named = 1979-05-27": named at `1979-05-27`: invalid type: date, expected a table
        "named.a = 'x'": named.a at `'x'`: invalid type: string "x", expected f64
        "name =":  at ``: string values must be quoted, expected literal string
        "#);
    }

    #[test]
    fn values_have_their_places() {
        let text = "name = 'x'\nnumber = 0x1f\nword = 'no'\nnamed = { 'a b' = 1, c = 2.5 }\n";
        let form: Form = read(text).unwrap();
        assert_eq!((form.name.get_ref().as_str(), &text[form.name.span()]), ("x", "'x'"));
        let number = form.number.unwrap();
        assert_eq!((*number.get_ref(), &text[number.span()]), (31, "0x1f"));
        assert!(matches!(form.word, Some(Word::No)));
        let named: Vec<_> = form.named.iter().map(|(key, it)| (&text[key.span()], *it)).collect();
        assert_eq!(named, [("'a b'", 1.0), ("c", 2.5)]);
    }

    fn value() -> impl Strategy<Value = toml::Value> {
        let leaf = prop_oneof![
            any::<bool>().prop_map(toml::Value::from),
            any::<i64>().prop_map(toml::Value::from),
            any::<f64>().prop_map(toml::Value::from),
            "\\PC{0,9}".prop_map(toml::Value::from),
        ];
        leaf.prop_recursive(3, 24, 4, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..4).prop_map(toml::Value::from),
                prop::collection::btree_map("\\PC{0,5}", inner, 0..4)
                    .prop_map(|table| toml::Value::Table(table.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn any_table_is_read_as_by_its_crate(table in prop::collection::btree_map("\\PC{0,5}", value(), 0..4)) {
            let table: toml::Table = table.into_iter().collect();
            let text = toml::to_string(&table).unwrap();
            prop_assert_eq!(read::<toml::Table>(&text), Ok(table));
        }
    }
}
