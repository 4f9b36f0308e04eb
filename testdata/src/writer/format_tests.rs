//! Compares the body of each record with bytes written by hand.

use super::*;

const ID: u64 = 0x0102_0304_0506_0708;

fn bytes(id_size: IdSize, write: impl Fn(&mut Body)) -> Vec<u8> {
    let mut body = Body::new(id_size);
    write(&mut body);
    body.into_bytes()
}

fn narrow(write: impl Fn(&mut Body)) -> Vec<u8> {
    bytes(IdSize::Four, write)
}

#[test]
fn records_outside_the_heap() {
    let written = bytes(IdSize::Eight, |b| {
        b.utf8(ID, "aé");
    });
    assert_eq!(written, [1, 2, 3, 4, 5, 6, 7, 8, b'a', 0xc3, 0xa9]);
    let written = narrow(|b| {
        b.load_class(1, 2, 3, 4);
    });
    assert_eq!(written, [0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4]);
    let written = narrow(|b| {
        b.stack_frame(1, 2, 3, 4, 5, -3);
    });
    #[rustfmt::skip]
    let expected = [
        0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 0, 0, 0, 4, // frame, method, signature, source
        0, 0, 0, 5, 0xff, 0xff, 0xff, 0xfd, // class serial, line
    ];
    assert_eq!(written, expected);
    let written = narrow(|b| {
        b.stack_trace(7, 8, &[1, 2]);
    });
    let expected = [0, 0, 0, 7, 0, 0, 0, 8, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 2];
    assert_eq!(written, expected);
    let written = bytes(IdSize::Eight, |b| {
        b.start_thread(1, ID, 2, 3, 4, 5);
    });
    assert_eq!(written.len(), 4 + 8 + 4 + 3 * 8);
    let written = narrow(|b| {
        b.unload_class(1).end_thread(2).heap_summary(3, 4, 5, 6);
    });
    assert_eq!(written.len(), 4 + 4 + 4 + 4 + 8 + 8);
}

#[test]
fn roots() {
    let root = |root| {
        narrow(|b| {
            b.root(root, 9);
        })
    };
    let plain = [
        (Root::Unknown, 0xff),
        (Root::StickyClass, 0x05),
        (Root::MonitorUsed, 0x07),
        (Root::InternedString, 0x89),
        (Root::Finalizing, 0x8a),
        (Root::Debugger, 0x8b),
        (Root::ReferenceCleanup, 0x8c),
        (Root::VmInternal, 0x8d),
        (Root::Unreachable, 0x90),
    ];
    for (kind, tag) in plain {
        assert_eq!(root(kind), [tag, 0, 0, 0, 9]);
    }
    let global = Root::JniGlobal { global_ref: 3 };
    assert_eq!(root(global), [1, 0, 0, 0, 9, 0, 0, 0, 3]);
    let thread = 2;
    for (kind, tag) in [
        (Root::NativeStack { thread }, 0x04),
        (Root::ThreadBlock { thread }, 0x06),
    ] {
        assert_eq!(root(kind), [tag, 0, 0, 0, 9, 0, 0, 0, 2]);
    }
    for (kind, tag) in [
        (Root::JniLocal { thread, frame: -1 }, 0x02),
        (Root::JavaFrame { thread, frame: -1 }, 0x03),
    ] {
        let expected = [tag, 0, 0, 0, 9, 0, 0, 0, 2, 0xff, 0xff, 0xff, 0xff];
        assert_eq!(root(kind), expected);
    }
    for (kind, tag) in [
        (Root::ThreadObject { thread, trace: 5 }, 0x08),
        (Root::JniMonitor { thread, depth: 5 }, 0x8e),
    ] {
        let expected = [tag, 0, 0, 0, 9, 0, 0, 0, 2, 0, 0, 0, 5];
        assert_eq!(root(kind), expected);
    }
}

#[test]
fn a_class() {
    let class = ClassDump {
        id: 1,
        trace: 2,
        super_id: 3,
        loader: 4,
        signers: 5,
        protection_domain: 6,
        instance_size: 16,
        constants: vec![(7, Datum::Short(-2))],
        statics: vec![(8, Datum::Id(9)), (10, Datum::Boolean(true))],
        fields: vec![(11, FieldType::Long)],
    };
    let written = narrow(|b| {
        b.class_dump(&class);
    });
    #[rustfmt::skip]
    let expected = [
        0x20, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, // tag, id, trace, super
        0, 0, 0, 4, 0, 0, 0, 5, 0, 0, 0, 6, // loader, signers, protection domain
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 16, // reserved twice, instance size
        0, 1, 0, 7, 9, 0xff, 0xfe, // one constant: index, type, value
        0, 2, 0, 0, 0, 8, 2, 0, 0, 0, 9, 0, 0, 0, 10, 4, 1, // two statics
        0, 1, 0, 0, 0, 11, 11, // one field
    ];
    assert_eq!(written, expected);
}

#[test]
fn objects() {
    let written = bytes(IdSize::Eight, |b| {
        b.instance(ID, 1, 2, 4).datum(Datum::Int(-1));
    });
    #[rustfmt::skip]
    let expected = [
        0x21, 1, 2, 3, 4, 5, 6, 7, 8, 0, 0, 0, 1, // tag, id, trace
        0, 0, 0, 0, 0, 0, 0, 2, 0, 0, 0, 4, // class, bytes of values
        0xff, 0xff, 0xff, 0xff,
    ];
    assert_eq!(written, expected);
    // The length precedes the class in an object array.
    let written = narrow(|b| {
        b.object_array(1, 2, 3, 1).id(4);
    });
    let expected = [
        0x22, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 0, 0, 0, 3, 0, 0, 0, 4,
    ];
    assert_eq!(written, expected);
    let written = narrow(|b| {
        b.primitive_array(1, 2, FieldType::Char, 1)
            .datum(Datum::Char(0x263a));
    });
    let expected = [0x23, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 1, 5, 0x26, 0x3a];
    assert_eq!(written, expected);
    let written = narrow(|b| {
        b.primitive_array_nodata(1, 2, FieldType::Long, 3);
    });
    let expected = [0xc3, 0, 0, 0, 1, 0, 0, 0, 2, 0, 0, 0, 3, 11];
    assert_eq!(written, expected);
    let written = narrow(|b| {
        b.heap_dump_info(u32::from(b'A'), 5);
    });
    assert_eq!(written, [0xfe, 0, 0, 0, b'A', 0, 0, 0, 5]);
}

#[test]
fn values() {
    let written = narrow(|b| {
        b.datum(Datum::Float(1.0)).datum(Datum::Double(-2.0));
        b.datum(Datum::Byte(-1)).datum(Datum::Long(-2));
    });
    #[rustfmt::skip]
    let expected = [
        0x3f, 0x80, 0, 0, 0xc0, 0, 0, 0, 0, 0, 0, 0, 0xff,
        0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xfe,
    ];
    assert_eq!(written, expected);
    for kind in FieldType::PRIMITIVES {
        let written = narrow(|b| {
            b.datum(Datum::zero(kind));
        });
        assert_eq!(written, vec![0; kind.width(4)]);
    }
}
