//! Parses formulas.

use std::fmt;
use std::iter::Peekable;
use std::vec::IntoIter;

use serde::Deserialize;

use super::Expr;

/// A formula with its text.
#[derive(Debug, Deserialize)]
#[serde(try_from = "String")]
pub struct Formula {
    text: String,
    /// The parsed formula.
    pub expr: Expr,
}

impl fmt::Display for Formula {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl TryFrom<String> for Formula {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        let mut plain = text.replace("[_ZONE]", "*");
        for bracket in ["(", ")", "[", "]"] {
            plain = plain.replace(bracket, &format!(" {bracket} "));
        }
        let mut tokens = plain.split_whitespace().collect::<Vec<_>>().into_iter().peekable();
        match choice(&mut tokens).filter(|_| tokens.peek().is_none()) {
            Some(expr) => Ok(Self { text, expr }),
            None => Err(format!("not a formula: {text}")),
        }
    }
}

type Tokens<'a> = Peekable<IntoIter<&'a str>>;

fn choice(tokens: &mut Tokens<'_>) -> Option<Expr> {
    let first = sum(tokens)?;
    let mut choices = vec![first];
    while tokens.next_if_eq(&"or").is_some() {
        tokens.next_if_eq(&"else")?;
        choices.push(sum(tokens)?);
    }
    if choices.len() > 1 { Some(Expr::First(choices)) } else { choices.pop() }
}

fn sum(tokens: &mut Tokens<'_>) -> Option<Expr> {
    let mut terms = vec![term(tokens)?];
    while let Some(sign) = tokens.next_if(|token| ["+", "-"].contains(token)) {
        let (weight, term) = term(tokens)?;
        terms.push((if sign == "-" { -weight } else { weight }, term));
    }
    match terms.as_slice() {
        [(1.0, _)] => Some(terms.pop()?.1),
        _ => Some(Expr::Sum(terms)),
    }
}

/// A term of a sum and its weight.
fn term(tokens: &mut Tokens<'_>) -> Option<(f64, Expr)> {
    let mut weight = 1.0;
    if let Ok(number) = tokens.peek()?.parse() {
        tokens.next();
        tokens.next_if_eq(&"x")?;
        weight = number;
    }
    let part = factor(tokens)?;
    if tokens.next_if_eq(&"/").is_none() {
        return Some((weight, part));
    }
    let part = Box::new(part);
    let ratio = match (weight, *tokens.peek()?) {
        (1.0, "seconds") => tokens.next().map(|_| Expr::PerSecond(part)),
        (1.0, "10^6") => tokens.next().map(|_| Expr::Millions(part)),
        (100.0, _) => Some(Expr::Percent(part, Box::new(factor(tokens)?))),
        _ => None,
    };
    Some((1.0, ratio?))
}

fn factor(tokens: &mut Tokens<'_>) -> Option<Expr> {
    let is_name = |name: &str| name.bytes().all(|it| it.is_ascii_alphanumeric() || it == b'_');
    let token = tokens.next()?;
    let expr = match (token, token.strip_suffix('*')) {
        ("(", _) => choice(tokens)?,
        ("[", _) => Expr::OrZero(Box::new(choice(tokens)?)),
        (_, Some(name)) => return is_name(name).then(|| Expr::Zones(name.to_owned())),
        _ => return is_name(token).then(|| Expr::Counter(token.to_owned())),
    };
    tokens.next_if_eq(if token == "(" { &")" } else { &"]" })?;
    Some(expr)
}

#[cfg(test)]
mod tests {
    use super::super::{Differences, ZONES};
    use super::*;

    fn formula(text: &str) -> Formula {
        Formula::try_from(text.to_owned()).unwrap()
    }

    fn value(text: &str, counters: &[(&str, f64)]) -> Option<f64> {
        let difference = |name: &str| {
            let found = counters.iter().find(|(counter, _)| *counter == name);
            found.map(|(_, value)| *value)
        };
        formula(text).expr.value(&Differences { of: &difference, seconds: Some(2.0) })
    }

    #[test]
    fn a_formula_needs_its_counters() {
        let writes = "a - b - 7 x [c]";
        assert_eq!(value(writes, &[("a", 5.0), ("b", 1.0)]), Some(4.0));
        assert_eq!(value(writes, &[("a", 5.0), ("b", 1.0), ("c", 2.0)]), Some(-10.0));
        assert_eq!(value(writes, &[("a", 5.0)]), None);
    }

    #[test]
    fn zones_are_added_up() {
        let stalls = "allocstall[_ZONE]";
        assert_eq!(value(stalls, &[("allocstall", 3.0)]), Some(3.0));
        let zones = [("allocstall_normal", 100.0), ("allocstall_movable", 16.0)];
        assert_eq!(value(stalls, &zones), Some(116.0));
        assert_eq!(value(stalls, &[("allocstall_moveable", 1.0)]), None);
    }

    #[test]
    fn a_share_of_0_has_no_value() {
        let share = "100 x a / (b + c)";
        assert_eq!(value(share, &[("a", 1.0), ("b", 3.0), ("c", 1.0)]), Some(25.0));
        assert_eq!(value(share, &[("a", 0.0), ("b", 0.0), ("c", 0.0)]), None);
        assert_eq!(value(share, &[("a", 1.0), ("b", -4.0), ("c", 0.0)]), None);
    }

    #[test]
    fn rates_choices_and_millions() {
        let rate = "(kswapd_steal or else pgsteal_kswapd[_ZONE]) / seconds";
        assert_eq!(value(rate, &[("pgsteal_kswapd_dma", 3.0)]), Some(1.5));
        assert_eq!(value(rate, &[("pgsteal_kswapd", 3.0), ("kswapd_steal", 8.0)]), Some(4.0));
        let counters = formula(rate).expr.counters();
        assert_eq!(counters[..2], ["kswapd_steal", "pgsteal_kswapd"]);
        assert_eq!(counters.len(), 2 + ZONES.len());
        assert_eq!(formula(rate).to_string(), rate);
        assert_eq!(value("(7 x a + b) / 10^6", &[("a", 1e6), ("b", 2e6)]), Some(9.0));
    }

    #[test]
    fn what_is_no_formula_is_refused() {
        for text in
            ["", "a b", "a +", "(a", "[a", "a)", "7 a", "5 x a / b", "a / b", "a or b", "a-b"]
        {
            assert!(Formula::try_from(text.to_owned()).is_err(), "{text}");
        }
    }
}
