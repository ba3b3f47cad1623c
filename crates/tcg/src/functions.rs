//! The functions of the kernel's image, by the addresses at which they begin.

/// The functions, in order; empty if they are not known.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Functions(Vec<u64>);

/// The position of an address relative to functions.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Place {
    /// At the beginning of a function.
    Beginning,
    /// Elsewhere in the image, or anywhere if no functions are known.
    Elsewhere,
    /// Outside of the image.
    Outside,
}

impl Functions {
    /// The functions that begin at these addresses, which are in order.
    pub fn new(beginnings: Vec<u64>) -> Self {
        Self(beginnings)
    }

    /// The position of `address`.
    pub fn place(&self, address: u64) -> Place {
        let (Some(first), Some(last)) = (self.0.first(), self.0.last()) else {
            return Place::Elsewhere;
        };
        match self.0.binary_search(&address) {
            Ok(_) => Place::Beginning,
            Err(_) if (first..=last).contains(&&address) => Place::Elsewhere,
            Err(_) => Place::Outside,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_begin_at_known_addresses() {
        let functions = Functions::new(vec![10, 20, 30]);
        let places = [5, 10, 15, 30, 31].map(|address| functions.place(address));
        use Place::{Beginning, Elsewhere, Outside};
        assert_eq!(places, [Outside, Beginning, Elsewhere, Beginning, Outside]);
        assert_eq!(Functions::default().place(10), Elsewhere);
    }
}
