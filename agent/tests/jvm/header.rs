//! Compares the agent's JVMTI bindings with the JDK's header, and checks the symbols that the agent's library exports.

use std::collections::HashMap;
use std::fs;
use std::process::Command;

use heapdiff_agent::{Places, capability};

use crate::{cc, jdks, library};

const PROBE: &str = r#"
#include <jvmti.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#define OFFSET(name, type, field) printf(name " %zu\n", offsetof(type, field))
#define SIZE(name, type) printf(name " %zu\n", sizeof(type))
#define BIT(name, field) do { \
    jvmtiCapabilities c; memset(&c, 0, sizeof c); c.field = 1; \
    const unsigned char *b = (const unsigned char *) &c; \
    for (unsigned i = 0; i < 8 * sizeof c; i++) if (b[i / 8] >> (i % 8) & 1) printf(name " %u\n", i); \
} while (0)
int main(void) {
    OFFSET("set_heap_sampling_interval", struct jvmtiInterface_1_, SetHeapSamplingInterval);
    OFFSET("get_stack_trace", struct jvmtiInterface_1_, GetStackTrace);
    OFFSET("set_event_callbacks", struct jvmtiInterface_1_, SetEventCallbacks);
    OFFSET("set_event_notification_mode", struct jvmtiInterface_1_, SetEventNotificationMode);
    OFFSET("run_agent_thread", struct jvmtiInterface_1_, RunAgentThread);
    OFFSET("get_line_number_table", struct jvmtiInterface_1_, GetLineNumberTable);
    OFFSET("vm_init", jvmtiEventCallbacks, VMInit);
    OFFSET("class_load", jvmtiEventCallbacks, ClassLoad);
    OFFSET("garbage_collection_start", jvmtiEventCallbacks, GarbageCollectionStart);
    OFFSET("garbage_collection_finish", jvmtiEventCallbacks, GarbageCollectionFinish);
    OFFSET("sampled_object_alloc", jvmtiEventCallbacks, SampledObjectAlloc);
    SIZE("capabilities_size", jvmtiCapabilities);
    SIZE("frame_info_size", jvmtiFrameInfo);
    SIZE("thread_info_size", jvmtiThreadInfo);
    SIZE("interface_size", struct jvmtiInterface_1_);
    SIZE("callbacks_size", jvmtiEventCallbacks);
    BIT("cap_gc", can_generate_garbage_collection_events);
    BIT("cap_source", can_get_source_file_name);
    BIT("cap_lines", can_get_line_numbers);
    BIT("cap_retransform", can_retransform_classes);
    BIT("cap_sampled", can_generate_sampled_object_alloc_events);
    printf("event_sampled %d\n", JVMTI_EVENT_SAMPLED_OBJECT_ALLOC);
    printf("event_gc_start %d\n", JVMTI_EVENT_GARBAGE_COLLECTION_START);
    printf("version_11 %d\n", 0x30000000 + (11 << 16));
    return 0;
}
"#;

#[test]
fn bindings_match_the_header() {
    for jdk in jdks() {
        let folder = tempfile::tempdir().unwrap();
        let (source, program) = (folder.path().join("probe.c"), folder.path().join("probe"));
        fs::write(&source, PROBE).unwrap();
        cc(&jdk, &source, &[], &program);
        let output = Command::new(&program).output().unwrap();
        let text = String::from_utf8(output.stdout).unwrap();
        let found: HashMap<&str, usize> = text
            .lines()
            .map(|line| line.split_once(' ').unwrap())
            .map(|(name, value)| (name, value.parse().unwrap()))
            .collect();
        let get = |name| found[name];
        let ours = Places::own_layout();
        let header = Places {
            set_heap_sampling_interval: get("set_heap_sampling_interval"),
            get_stack_trace: get("get_stack_trace"),
            set_event_callbacks: get("set_event_callbacks"),
            set_event_notification_mode: get("set_event_notification_mode"),
            run_agent_thread: get("run_agent_thread"),
            get_line_number_table: get("get_line_number_table"),
            vm_init: get("vm_init"),
            class_load: get("class_load"),
            garbage_collection_start: get("garbage_collection_start"),
            garbage_collection_finish: get("garbage_collection_finish"),
            sampled_object_alloc: get("sampled_object_alloc"),
            capabilities_size: get("capabilities_size"),
            frame_info_size: get("frame_info_size"),
            thread_info_size: get("thread_info_size"),
            // Later JDKs may append fields to these structures. This does not change the offsets of the other fields.
            interface_size: ours.interface_size,
            callbacks_size: ours.callbacks_size,
        };
        assert_eq!(ours, header, "JDK {}", jdk.version());
        assert!(ours.interface_size <= get("interface_size"));
        assert!(ours.callbacks_size <= get("callbacks_size"));
        for (bit, name) in [
            (capability::GARBAGE_COLLECTION_EVENTS, "cap_gc"),
            (capability::SOURCE_FILE_NAME, "cap_source"),
            (capability::LINE_NUMBERS, "cap_lines"),
            (capability::RETRANSFORM_CLASSES, "cap_retransform"),
            (capability::SAMPLED_OBJECT_ALLOC_EVENTS, "cap_sampled"),
        ] {
            assert_eq!(bit as usize, get(name), "{name}, JDK {}", jdk.version());
        }
        assert_eq!(get("event_sampled"), 86);
        assert_eq!(get("event_gc_start"), 81);
        assert_eq!(get("version_11"), 0x300B_0000);
        assert_eq!(ours.sampled_object_alloc, 288);
    }
}

#[test]
fn only_the_entry_points_are_exported() {
    let output = Command::new("nm")
        .args(["-D", "--defined-only", "-f", "posix"])
        .arg(library())
        .output()
        .unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let mut names: Vec<&str> = text
        .lines()
        .map(|line| line.split(' ').next().unwrap())
        .collect();
    names.sort_unstable();
    assert_eq!(names, ["Agent_OnAttach", "Agent_OnLoad", "Agent_OnUnload"]);
}
