//! Holds answers against the document that describes them: as much of JSON Schema as that uses, and
//! no more.

use serde_json::Value;

/// The document of a running daemon.
pub(crate) struct Schema(Value);

impl Schema {
    /// Reads it.
    pub(crate) fn of(document: Value) -> Self {
        assert_eq!(document["openapi"], "3.1.0");
        Self(document)
    }

    /// Fails unless an answer to a question has the form that the document says.
    #[track_caller]
    pub(crate) fn holds(&self, method: &str, route: &str, code: u16, answer: &Value) {
        let responses = &self.0["paths"][route][method]["responses"];
        let schema = &responses[code.to_string()]["content"]["application/json"]["schema"];
        assert!(schema.is_object(), "{method} {route} {code} is not described");
        let mut faults = Vec::new();
        self.check(schema, answer, "", &mut faults);
        assert!(faults.is_empty(), "{method} {route} {code}: {faults:#?} in {answer:#}");
    }

    /// Fails unless a value has the form of this name.
    #[track_caller]
    pub(crate) fn has_form(&self, name: &str, value: &Value) {
        let mut faults = Vec::new();
        self.check(&self.0["components"]["schemas"][name], value, "", &mut faults);
        assert!(faults.is_empty(), "{name}: {faults:#?} in {value:#}");
    }

    fn check(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        if let Some(reference) = schema["$ref"].as_str() {
            let found = self.0.pointer(reference.trim_start_matches('#'));
            return self.check(found.unwrap_or_else(|| panic!("{reference}")), value, at, faults);
        }
        let right = match schema["type"].as_str().unwrap_or_else(|| panic!("{at}: no type in {schema}")) {
            "string" => value.is_string(),
            "boolean" => value.is_boolean(),
            "integer" => value.is_i64() || value.is_u64(),
            "number" => value.is_number(),
            "array" => value.is_array(),
            "object" => value.is_object(),
            other => panic!("{at}: {other}"),
        };
        if !right {
            return faults.push(format!("{at}: {value} is no {}", schema["type"]));
        }
        if !schema["const"].is_null() && schema["const"] != *value {
            faults.push(format!("{at}: {value} is not {}", schema["const"]));
        }
        if schema["enum"].as_array().is_some_and(|known| !known.contains(value)) {
            faults.push(format!("{at}: {value} is none of {}", schema["enum"]));
        }
        if let (Some(least), Some(number)) = (schema["minimum"].as_f64(), value.as_f64())
            && number < least
        {
            faults.push(format!("{at}: {value} is less than {least}"));
        }
        if schema["format"] == "date-time" && value.as_str().is_none_or(|text| !is_time(text)) {
            faults.push(format!("{at}: {value} is no time"));
        }
        for (number, item) in value.as_array().into_iter().flatten().enumerate() {
            self.check(&schema["items"], item, &format!("{at}[{number}]"), faults);
        }
        self.check_fields(schema, value, at, faults);
    }

    fn check_fields(&self, schema: &Value, value: &Value, at: &str, faults: &mut Vec<String>) {
        for (key, field) in value.as_object().into_iter().flatten() {
            let at = format!("{at}.{key}");
            match (&schema["properties"][key], &schema["additionalProperties"]) {
                (Value::Null, Value::Object(_)) => {
                    self.check(&schema["propertyNames"], &key.as_str().into(), &at, faults);
                    self.check(&schema["additionalProperties"], field, &at, faults);
                }
                (Value::Null, _) => faults.push(format!("{at} is not described")),
                (described, _) => self.check(described, field, &at, faults),
            }
        }
        for key in schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            if value.get(key).is_none() {
                faults.push(format!("{at}.{key} is missing"));
            }
        }
    }
}

/// Returns whether a text is a time such as `2030-01-02T03:04:05.6Z`.
fn is_time(text: &str) -> bool {
    text.parse::<jiff::Timestamp>().is_ok()
}
