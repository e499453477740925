//! Quantities, as Kubernetes writes amounts of memory and processor time.

/// The suffixes of `resource.Quantity`; an exponent is left to the parser of numbers.
const QUANTITY_SUFFIXES: [(&str, f64); 15] = [
    ("Ki", 1024.0),
    ("Mi", 1_048_576.0),
    ("Gi", 1_073_741_824.0),
    ("Ti", 1_099_511_627_776.0),
    ("Pi", 1_125_899_906_842_624.0),
    ("Ei", 1_152_921_504_606_846_976.0),
    ("n", 1e-9),
    ("u", 1e-6),
    ("m", 1e-3),
    ("k", 1e3),
    ("M", 1e6),
    ("G", 1e9),
    ("T", 1e12),
    ("P", 1e15),
    ("E", 1e18),
];

/// Returns the amount that a quantity stands for (`1000m` and `1`, `1Gi` and `1073741824`); none
/// where it is none.
pub(crate) fn parse_quantity(text: &str) -> Option<f64> {
    let text = text.trim();
    let (digits, factor) = QUANTITY_SUFFIXES
        .iter()
        .find_map(|(suffix, factor)| Some((text.strip_suffix(suffix)?, *factor)))
        .unwrap_or((text, 1.0));
    digits.parse::<f64>().ok().filter(|number| number.is_finite()).map(|number| number * factor)
}
