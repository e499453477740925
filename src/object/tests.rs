use serde_json::json;

use super::*;

#[test]
fn numbers_are_written_as_go_writes_them() {
    fn check(value: Value, expected: &str) {
        assert_eq!(canonical_json(&value), expected);
    }
    check(json!(420), "420");
    check(json!(-0.0), "-0");
    check(json!(18_446_744_073_709_551_615_f64), "18446744073709552000");
    check(json!(0.5), "0.5");
    check(json!(1e-6), "0.000001");
    check(json!(1e-7), "1e-7");
    check(json!(1e20), "100000000000000000000");
    check(json!(1e21), "1e+21");
    check(json!(1.5e300), "1.5e+300");
    check(json!({"b": [1, {"z": null, "a": 0.1}], "a": "x"}), r#"{"a":"x","b":[1,{"a":0.1,"z":null}]}"#);
}

#[test]
fn hashes_ignore_key_order_and_read_back() {
    let hash = ContentHash::of(&json!({"a": 1, "b": 2}));
    assert_eq!(hash, ContentHash::of(&json!({"b": 2, "a": 1})));
    assert_ne!(hash, ContentHash::of(&json!({"a": 1, "b": 3})));
    assert_eq!(ContentHash::parse(&hash.to_string()), Some(hash));
    for wrong in ["", "12", "+0000000000000000000000000000012", "G0000000000000000000000000000000"] {
        assert_eq!(ContentHash::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn identities_read_as_people_write_them() {
    let web = ObjectId::new(&GroupKind::new("apps", "Deployment"), Some("shop"), "web");
    assert_eq!(web.to_string(), "Deployment shop/web");
    assert_eq!(web.resource_name(), "deployment.apps/web");
    let shop = ObjectId::new(&GroupKind::new("", "Namespace"), None, "shop");
    assert_eq!(shop.to_string(), "Namespace shop");
    assert_eq!(shop.resource_name(), "namespace/shop");
    assert_eq!(GroupKind::parse("Deployment.apps"), web.group_kind());
    assert_eq!(GroupKind::parse(&shop.group_kind().to_string()), shop.group_kind());
    assert_eq!(Gvk::from_api_version("apps/v1", "Deployment").api_version(), "apps/v1");
    assert_eq!(Gvk::from_api_version("v1", "Pod").group_kind(), GroupKind::new("", "Pod"));
}

#[test]
fn an_origin_is_shown_within_its_bound() {
    let place = |file: &str| ManifestOrigin::new(file.into(), 3, 1);
    let check = |shown: &str, begin: &str, end: &str| {
        assert!(shown.starts_with(begin) && shown.ends_with(end), "{shown}");
        assert!(shown.len() < 4000, "{} bytes", shown.len());
    };
    check(&place("deploy/web.yaml").to_string(), "deploy/web.yaml:3", ":3");
    let long = format!("{}/web.yaml", "é".repeat(5000));
    check(&place(&long).to_string(), "…é", "é/web.yaml:3");
    let render = |root: &str, renderer: &str, places: Vec<ManifestOrigin>| {
        RenderOrigin { root: root.into(), renderer: renderer.into(), places: places.into() }.to_string()
    };
    check(
        &render("prod", "helm, web 1.0.0", vec![place("a"), place("b")]),
        "prod (helm, web 1.0.0) ← a:3",
        ", b:3",
    );
    let many = render(&long, &"v".repeat(5000), vec![place(&long); 500]);
    check(&many, "…é", "é/web.yaml:3 and 492 more");
    assert!(many.contains("web.yaml (vvv") && many.contains("vvv…) ← …é"), "{many}");
}
