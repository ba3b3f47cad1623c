//! A macro for enums whose values have names in files and options.

/// Declares an enum with a name for each value, which is the same in files, the store and output. Further names after
/// it are old ones, which are read but not written.
macro_rules! named {
    ($(#[$meta:meta])* pub enum $Enum:ident { $($(#[$about:meta])* $Value:ident = $name:literal $(| $old:literal)*,)* }) => {
        $(#[$meta])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        pub enum $Enum {
            $($(#[$about])* #[serde(rename = $name, $(alias = $old,)*)] $Value,)*
        }

        impl $Enum {
            /// Every value.
            pub const ALL: &[Self] = &[$(Self::$Value,)*];

            /// The name used in files, the store and output.
            pub const fn name(self) -> &'static str {
                match self {
                    $(Self::$Value => $name,)*
                }
            }

            /// The value with this name; `None` for an unknown name.
            pub fn of_name(name: &str) -> Option<Self> {
                match name {
                    $($name $(| $old)* => Some(Self::$Value),)*
                    _ => None,
                }
            }
        }
    };
}
