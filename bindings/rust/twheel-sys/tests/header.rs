// SPDX-License-Identifier: MIT
//! Compares the declarations with those of C, as the compiler of C understands them.
#![allow(non_camel_case_types)]

use std::fmt::Write as _;
use std::mem::{align_of, size_of, MaybeUninit};
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use twheel_sys::*;

const SOURCE: &str = include_str!("../src/lib.rs");

const INCLUDES: &str = "\
#define TWHEEL_NO_INLINE
#include <stdio.h>
#include <linux/twheel.h>
#include <twheel.h>
#include <twheel/device.h>
#include <twheel/table.h>
#include <twheel/tcp.h>
";

fn file(name: &str) -> PathBuf {
    Path::new(env!("CARGO_TARGET_TMPDIR")).join(name)
}

fn compile(name: &str, program: &str, options: &[&str]) -> Output {
    let source = file(&format!("{name}.c"));
    std::fs::write(&source, program).unwrap();
    Command::new("cc")
        .args(["-std=c11", "-Wall", "-Wextra", "-Werror"])
        .args(env!("TWHEEL_CFLAGS").split_whitespace())
        .args(options)
        .arg("-o")
        .arg(file(name))
        .arg(&source)
        .output()
        .expect("this test needs cc, a compiler of C")
}

fn must(output: &Output) {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
}

/// `name size align` or `name.member offset size` of a struct.
macro_rules! layout {
    ($lines:ident, $program:ident, $type:ident, $($member:ident)*) => {
        writeln!($lines, "{} {} {}", stringify!($type), size_of::<$type>(), align_of::<$type>())
            .unwrap();
        writeln!($program, "printf(\"{0} %zu %zu\\n\", sizeof(struct {0}), _Alignof(struct {0}));",
            stringify!($type)).unwrap();
        $({
            let whole = MaybeUninit::<$type>::uninit();
            // SAFETY: only addresses are computed.
            let member = unsafe { std::ptr::addr_of!((*whole.as_ptr()).$member) };
            let size = |_: *const _| -> usize { size_of_pointee(member) };
            writeln!($lines, "{}.{} {} {}", stringify!($type), stringify!($member),
                member as usize - whole.as_ptr() as usize, size(member)).unwrap();
            writeln!($program, "printf(\"{0}.{1} %zu %zu\\n\", offsetof(struct {0}, {1}), \
                sizeof(((struct {0} *)0)->{1}));", stringify!($type), stringify!($member)).unwrap();
        })*
    };
}

fn size_of_pointee<T>(_: *const T) -> usize {
    size_of::<T>()
}

#[test]
fn structs_are_laid_out_as_in_c() {
    let mut lines = String::new();
    let mut program = format!("{INCLUDES}int main(void)\n{{\n");

    layout!(lines, program, twheel_timer, next callback pprev interval_ns deadline);
    layout!(lines, program, twheel_options, size clock flags reserved tick_ns slack_ns data);
    layout!(lines, program, twheel_stats, pending called dispatches vain settings moved
        slowest_ns late);
    layout!(lines, program, twheel_table_options, size backend flags clock tick_ns fd reserved);
    layout!(lines, program, twheel_table_change, number result deadline_ns);
    layout!(lines, program, twheel_setup, size clock tick_ns slots max_pending flags event_size
        slack_ns name);
    layout!(lines, program, twheel_info, size flags clock setup_flags tick_ns slots state
        max_pending max_pending_limit max_vector event_size slack_ns features refresh_size
        refresh_shift reserved now_ns next_expiry_ns armed pending unread live expirations
        delivered completed cancelled revoked drained rearmed changes late last_late_ns
        last_late_at_ns late_ticks unread_ticks longest_unread_at_ns alarm_ns name);
    layout!(lines, program, twheel_vector, size entry_size nr flags entries nr_done reserved);
    layout!(lines, program, twheel_arm, expires_ns interval_ns user_data flags repeats id result
        slack_ticks was_deadline_ns);
    layout!(lines, program, twheel_cancel, id result reserved);
    layout!(lines, program, twheel_status, id result state user_data deadline_ns left_ns
        interval_ns flags repeats_left count deliveries slack_ticks reserved fired_ns);
    layout!(lines, program, twheel_list, size entry_size nr flags cursor entries changes);
    layout!(lines, program, twheel_advance, size reserved to_ns);
    layout!(lines, program, twheel_reopen, size flags event_size reserved);
    layout!(lines, program, twheel_event, id user_data deadline_ns fired_ns count flags);
    layout!(lines, program, twheel_record, op flags key expires_ns interval_ns repeats slack_ticks);
    layout!(lines, program, twheel_setup_record, op flags clock event_size tick_ns slack_ns
        slots max_pending);
    program += "return 0;\n}\n";
    must(&compile("layouts", &program, &[]));
    let output = Command::new(file("layouts")).output().unwrap();
    let in_c = String::from_utf8(output.stdout).unwrap();
    for (line, in_c) in lines.lines().zip(in_c.lines()) {
        assert_eq!(line, in_c);
    }
    assert_eq!(lines, in_c);
    // SAFETY: the function has no conditions.
    assert_eq!(size_of::<twheel_timer>(), unsafe { twheel_timer_size() });
}

#[test]
fn no_struct_is_left_out_of_the_comparison() {
    let own = include_str!("header.rs");
    let mut members = 0;

    for part in SOURCE.split("pub struct ").skip(1) {
        let name = part.split(' ').next().unwrap();
        let body = part.split("\n}").next().unwrap();
        if body.contains("_private") {
            continue;
        }
        let listed = own.split(&format!("program, {name},")).nth(1).expect(name);
        let listed: Vec<_> = listed
            .split(')')
            .next()
            .unwrap()
            .split_whitespace()
            .collect();
        let declared: Vec<_> = body
            .lines()
            .filter_map(|line| line.trim().strip_prefix("pub ")?.split(':').next())
            .collect();
        assert_eq!(listed, declared, "{name}");
        members += declared.len();
    }
    assert!(members > 20);
}

/// The value of a constant of lib.rs, as C writes it.
fn value_in_c(value: &str) -> String {
    match value {
        "u64::MAX" => "UINT64_MAX".to_string(),
        _ => value.replace('_', ""),
    }
}

#[test]
fn constants_have_the_values_of_c() {
    let mut program = INCLUDES.to_string();
    let mut nr = 0;

    for line in SOURCE.lines().filter(|line| line.starts_with("pub const ")) {
        let words = line.trim_end_matches(';').split_once(" = ").unwrap();
        let name = words.0["pub const ".len()..].split(':').next().unwrap();
        writeln!(
            program,
            "_Static_assert({name} == {}, \"{name}\");",
            value_in_c(words.1)
        )
        .unwrap();
        nr += 1;
    }
    assert!(nr > 30, "{nr}");
    must(&compile("constants", &program, &["-c"]));
}

/// A type of Rust, as C writes it.
fn type_in_c(rust: &str) -> String {
    if let Some(pointee) = rust.strip_prefix("*mut ") {
        return format!("{} *", type_in_c(pointee));
    }
    if let Some(pointee) = rust.strip_prefix("*const ") {
        return format!("{} const *", type_in_c(pointee));
    }
    match rust {
        "" | "c_void" => "void".to_string(),
        "u32" => "uint32_t".to_string(),
        "u64" => "uint64_t".to_string(),
        "i32" => "int32_t".to_string(),
        "i64" => "int64_t".to_string(),
        "c_char" => "char".to_string(),
        "c_int" => "int".to_string(),
        "c_uint" => "unsigned int".to_string(),
        "usize" => "size_t".to_string(),
        "bool" => "bool".to_string(),
        "Option<twheel_callback>" => "twheel_callback *".to_string(),
        "Option<twheel_visitor>" => "twheel_visitor *".to_string(),
        "twheel_word_t" => rust.to_string(),
        _ if rust.starts_with("twheel") => format!("struct {rust}"),
        _ => panic!("which type of C is {rust:?}?"),
    }
}

/// The functions of lib.rs: name, and declaration in C.
fn functions() -> Vec<(String, String)> {
    let mut functions = Vec::new();

    for part in SOURCE.split("    pub fn ").skip(1) {
        let (name, rest) = part.split_once('(').unwrap();
        let (arguments, rest) = rest.split_once(')').unwrap();
        let result = rest
            .split(';')
            .next()
            .unwrap()
            .trim()
            .trim_start_matches("-> ");
        let types: Vec<_> = arguments
            .split(',')
            .map(str::trim)
            .filter(|argument| !argument.is_empty())
            .map(|argument| type_in_c(argument.split_once(": ").unwrap().1))
            .collect();
        let types = if types.is_empty() {
            "void".to_string()
        } else {
            types.join(", ")
        };
        functions.push((
            name.to_string(),
            format!("{} {name}({types});", type_in_c(result)),
        ));
    }
    functions
}

#[test]
fn functions_have_the_types_of_c() {
    let functions = functions();
    let mut program = INCLUDES.to_string();

    for (_, declaration) in &functions {
        writeln!(program, "{declaration}").unwrap();
    }
    assert!(functions.len() > 40);
    must(&compile("functions", &program, &["-c"]));
    // The compiler of C refuses another type: so what it accepted above is right.
    program += "int twheel_table_now(struct twheel_table *);\n";
    assert!(!compile("wrong", &program, &["-c"]).status.success());
}

#[test]
fn all_functions_of_the_headers_are_declared() {
    let output = Command::new("cc")
        .args(["-E", "-P", "-xc"])
        .args(env!("TWHEEL_CFLAGS").split_whitespace())
        .arg("-")
        .stdin({
            std::fs::write(file("includes.c"), INCLUDES).unwrap();
            std::fs::File::open(file("includes.c")).unwrap()
        })
        .output()
        .unwrap();
    must(&output);
    let text = String::from_utf8(output.stdout).unwrap();
    let mut declared: Vec<_> = functions().into_iter().map(|(name, _)| name).collect();
    let mut in_c: Vec<_> = text
        .lines()
        .filter(|line| !line.starts_with("typedef"))
        .filter_map(|line| line.split_once('(')?.0.rsplit([' ', '*']).next())
        .filter(|name| name.starts_with("twheel_"))
        .map(str::to_string)
        .collect();

    declared.sort();
    in_c.sort();
    assert_eq!(declared, in_c);
}
