//! The few instructions that the plugin tells from their bytes.

use flight::profile::MARK;

/// What an instruction means to the plugin beside being counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Special {
    /// The agent cuts the profile.
    Marker,
    /// `lidt`: the CPU gets another table of interrupt handlers.
    LoadInterruptTable,
    /// A single move to memory: the way in which code is written.
    Store,
}

/// Looks at an instruction's bytes.
pub fn special(bytes: &[u8]) -> Option<Special> {
    if bytes == MARK {
        return Some(Special::Marker);
    }
    let prefixes = bytes.iter().take_while(|byte| is_prefix(**byte)).count();
    // Opcode maps and ModR/M: Intel SDM, volume 2, appendix A and chapter 2.
    match bytes[prefixes..] {
        [0x0f, 0x01, modrm, ..] if is_memory(modrm) && modrm >> 3 & 7 == 3 => {
            Some(Special::LoadInterruptTable)
        }
        // MOV, and MOVUPS, MOVAPS, MOVNTI, MOVQ, MOVNTQ and what prefixes make of them.
        [0x88 | 0x89 | 0xc6 | 0xc7, modrm, ..]
        | [0x0f, 0x11 | 0x29 | 0x7f | 0xc3 | 0xd6 | 0xe7, modrm, ..]
            if is_memory(modrm) =>
        {
            Some(Special::Store)
        }
        _ => None,
    }
}

/// Prefixes of segment, operand, address and repetition, and REX.
fn is_prefix(byte: u8) -> bool {
    matches!(byte, 0x26 | 0x2e | 0x36 | 0x3e | 0x40..=0x4f | 0x64..=0x67 | 0xf2 | 0xf3)
}

/// The operand of a ModR/M byte is in memory, and not a register.
fn is_memory(modrm: u8) -> bool {
    modrm >> 6 != 3
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn few_are_special() {
        assert_eq!(special(&MARK), Some(Special::Marker));
        let lidt = Some(Special::LoadInterruptTable);
        assert_eq!(special(&[0x0f, 0x01, 0x1f]), lidt); // lidt [rdi]
        assert_eq!(special(&[0x0f, 0x01, 0x1d, 1, 2, 3, 4]), lidt); // lidt [rip+0x04030201]
        assert_eq!(special(&[0x41, 0x0f, 0x01, 0x1c, 0x24]), lidt); // lidt [r12]
        assert_eq!(special(&[0x0f, 0x01, 0x17]), None); // lgdt [rdi]
        assert_eq!(special(&[0x0f, 0x01, 0xd8]), None); // vmrun
        assert_eq!(special(&[0x0f, 0x1f, 0x84, 0, 0, 0, 0, 0]), None); // an ordinary nop
        let store = Some(Special::Store);
        assert_eq!(special(&[0x4c, 0x89, 0x5c, 0x17, 0xf8]), store); // mov [rdi+rdx-8], r11
        assert_eq!(special(&[0x44, 0x88, 0x47, 0x01]), store); // mov [rdi+1], r8b
        assert_eq!(special(&[0xf3, 0x0f, 0x7f, 0x07]), store); // movdqu [rdi], xmm0
        assert_eq!(special(&[0xf3, 0xa4]), None); // rep movsb
        assert_eq!(special(&[0x89, 0xc8]), None); // mov eax, ecx
        assert_eq!(special(&[0x8b, 0x07]), None); // mov eax, [rdi]
        assert_eq!(special(&[0x90]), None);
        assert_eq!(special(&[0x66; 15]), None);
        assert_eq!(special(&[]), None);
    }
}
