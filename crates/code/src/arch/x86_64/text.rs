//! Instructions in AT&T syntax.

use std::collections::HashMap;

use iced_x86::{
    Code, Formatter, GasFormatter, Instruction, OpKind, Register, SymbolResolver, SymbolResult,
};

use crate::image::Image;

/// The text of each instruction.
pub(super) fn of(instructions: &[Instruction], image: &Image<'_>) -> Vec<String> {
    let names = Box::new(Names::of(instructions, image));
    let mut formatter = GasFormatter::with_options(Some(names), None);
    formatter.options_mut().set_uppercase_hex(false);
    let text = |it: &Instruction| {
        let mut text = String::new();
        formatter.format(it, &mut text);
        text
    };
    instructions.iter().map(text).collect()
}

/// The names of the addresses in some instructions.
struct Names {
    places: HashMap<u64, String>,
    per_cpu: HashMap<u64, String>,
}

impl Names {
    fn of(instructions: &[Instruction], image: &Image<'_>) -> Self {
        let immediates = |it: &Instruction| {
            let it = *it;
            (0..it.op_count()).filter_map(move |operand| it.try_immediate(operand).ok())
        };
        let addresses = instructions.iter().flat_map(|it| {
            [it.near_branch_target(), it.memory_displacement64()].into_iter().chain(immediates(it))
        });
        let (mut places, mut per_cpu) = (HashMap::new(), HashMap::new());
        for address in addresses {
            places.extend(image.name(address).map(|name| (address, name)));
            let variable = image.per_cpu(address).and_then(|it| it.name());
            per_cpu.extend(variable.map(|name| (address, name)));
        }
        Self { places, per_cpu }
    }
}

impl SymbolResolver for Names {
    fn symbol(
        &mut self,
        instruction: &Instruction,
        _: u32,
        operand: Option<u32>,
        address: u64,
        _: u32,
    ) -> Option<SymbolResult<'_>> {
        let is_memory = operand.is_some_and(|it| instruction.op_kind(it) == OpKind::Memory);
        let is_per_cpu = match is_memory {
            true => instruction.segment_prefix() == Register::GS,
            // The number 0 is the address of the first per-CPU variable, too, but hardly ever means it.
            false => instruction.code() == Code::Mov_rm64_imm32 && address != 0,
        };
        let names = if is_per_cpu { &self.per_cpu } else { &self.places };
        let names = names.get(&address).or_else(|| self.places.get(&address));
        names.map(|name| SymbolResult::with_str(address, name))
    }
}
