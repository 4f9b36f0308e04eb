//! Checks `examples/small.hprof`, the dump that the documentation and the examples use. With `BLESS=1` it is written
//! again.

use std::path::Path;

use testdata::writer::{Elements, FieldType, Frame, HeapBuilder, Options, Ref, Root, Value};

/// Returns a dump of a shop that keeps all its orders, and of a thread that serves an order.
fn shop() -> Vec<u8> {
    let mut heap = HeapBuilder::new(Options::default());
    let boot = heap.boot();
    let object = Some(boot.object);
    let loader_class = heap.add_class(
        "jdk.internal.loader.ClassLoaders$AppClassLoader",
        Some(boot.class_loader),
        &[],
        &[],
    );
    let loader = heap.add_class_loader(loader_class, "app");
    heap.add_root(Root::JniGlobal { global_ref: 0 }, loader);
    let list_fields = [("size", FieldType::Int), ("elementData", FieldType::Object)];
    let list_class = heap.add_class("java.util.ArrayList", object, &list_fields, &[]);
    let order_fields = [
        ("id", FieldType::Int),
        ("customer", FieldType::Object),
        ("invoice", FieldType::Object),
    ];
    let order = heap.add_class("com.acme.Order", object, &order_fields, &[]);
    let statics = [("orders", Value::NULL)];
    let shop = heap.add_class(
        "com.acme.Shop",
        object,
        &[("cart", FieldType::Object)],
        &statics,
    );
    for class in [order, shop] {
        heap.set_loader(class, loader);
    }
    let customer = heap.add_string("Ada");
    let mut orders: Vec<Ref> = Vec::new();
    for id in 0..40 {
        let invoice = heap.add_primitive_array(Elements::Byte(vec![b'.'; 200]));
        let values = [Value::Int(id), customer.into(), invoice.into()];
        orders.push(heap.add_instance(order, &values).into());
    }
    orders.resize(64, Ref::Null);
    let cart = heap.add_object_array(order, orders[39..40].to_vec());
    let elements = heap.add_object_array(boot.object, orders);
    let list = heap.add_instance(list_class, &[Value::Int(40), elements.into()]);
    heap.set_static(shop, "orders", list);
    let server = heap.add_instance(shop, &[cart.into()]);
    let frames = [
        Frame::new(&heap, shop, "serve", 42),
        Frame::new(&heap, shop, "main", 7),
    ];
    let main = heap.add_thread("main", &frames);
    heap.add_local(main, 0, server);
    heap.try_build().unwrap().bytes
}

#[test]
fn the_small_dump_equals_the_output_of_the_writer() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/small.hprof");
    let bytes = shop();
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &bytes).unwrap();
    }
    assert!(
        std::fs::read(&path).unwrap() == bytes,
        "BLESS=1 writes {}",
        path.display()
    );
    assert!(bytes.len() < 32 << 10);
}
