//! The processor architecture of a machine and of the kernels that it boots.

named! {
    /// An architecture, as the kernel names it (`uname -m`; `arm64` is `aarch64` there).
    #[derive(Default)]
    pub enum Architecture {
        /// x86-64.
        #[default]
        X86_64 = "x86_64",
        /// 64-bit Arm.
        Arm64 = "arm64",
    }
}

impl Architecture {
    /// Whether it is the usual one, which records leave out.
    pub fn is_usual(&self) -> bool {
        *self == Self::default()
    }

    /// The architecture, unless it is the usual one.
    pub fn unless_usual(self) -> Option<Self> {
        Some(self).filter(|it| !it.is_usual())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Kernel, Machine};

    #[test]
    fn records_name_only_the_unusual_architecture() {
        let text = |machine: &Machine| serde_json::to_string(machine).unwrap();
        let kernel = serde_json::to_string(&Kernel::default()).unwrap();
        assert!(!text(&Machine::default()).contains("arch") && !kernel.contains("arch"));
        let arm64 = Machine { arch: Architecture::Arm64, ..Machine::default() };
        assert!(text(&arm64).starts_with("{\"arch\":\"arm64\","), "{}", text(&arm64));
        assert_eq!(serde_json::from_str::<Machine>(&text(&arm64)).unwrap(), arm64);
    }
}
