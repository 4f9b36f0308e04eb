//! Labels of the threads that allocated objects, such as `tenant=acme`.

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Labels of the threads that allocated objects. Programs set them with the library heapdiff-labels.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Labels {
    /// The labels that most of the bytes have in common. The first label is the one with the most bytes, at least half
    /// of all. A further label has at least 90 % of the bytes that have all earlier labels. Missing if no label has half
    /// of the bytes, or if there are fewer than 10 samples.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "LabelShare")]
    pub common: Option<LabelShare>,
    /// Each single label, the most bytes first, at most 10.
    #[schemars(extend("minItems" = 1, "maxItems" = 10))]
    pub shares: Vec<LabelShare>,
    /// Number of samples, with or without labels.
    pub samples: u64,
}

impl Labels {
    /// Number of samples below which shares are not reliable.
    pub const FEW_SAMPLES: u64 = 10;
}

/// The share of objects that threads with certain labels allocated.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct LabelShare {
    /// The labels.
    #[schemars(extend("minItems" = 1, "maxItems" = 3))]
    pub labels: Vec<Label>,
    /// Part of the bytes, in thousandths.
    #[schemars(extend("maximum" = 1000))]
    pub permille: u64,
    /// Number of samples with these labels.
    pub samples: u64,
    /// Share of these labels in the bytes of all live samples of the dump or run, in thousandths.
    #[schemars(extend("maximum" = 1000))]
    pub live_permille: u64,
}

/// A label of a thread.
#[derive(
    Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema,
)]
pub struct Label {
    /// The key, such as `tenant`.
    pub key: String,
    /// The value, such as `acme`.
    pub value: String,
}
