//! Reasons for suspects of a single dump. They describe how large the suspect's content is and what it consists of,
//! because no growth is known.

use heapdiff_model::diff::Suspect;
use heapdiff_units::Size;

use super::{MANY, class_of_holders, dominant_holder_sentence, grown};
use crate::evidence::context::{Nested, SuspectContext};
use crate::growth;
use crate::sentence::Evidence;
use crate::trie::StepId;

/// Returns the sentences about the suspect's content, and about the number of objects that hold it.
pub(super) fn reasons(context: &SuspectContext<'_>, holders: StepId) -> Vec<Evidence> {
    let candidate = context.candidate;
    let mut reasons: Vec<Evidence> = Vec::new();
    if let Some(&content) = candidate.content.first() {
        let step = &context.trie()[content];
        let largest = step.samples.first();
        let largest = largest.and_then(|&o| context.dump()?.retained_bytes(o));
        let largest = largest.unwrap_or(0);
        // An object that retains most of the suspect's content may hold all other objects of the trie node.
        let may_nest = largest > step.retained_bytes / 2 && !candidate.in_place;
        reasons.push(form(&Form {
            class: context.class(content),
            objects: step.objects,
            shallow: step.shallow_bytes,
            retained: step.retained_bytes,
            largest,
            nested: may_nest.then(|| context.nested(content)).flatten(),
            in_place: candidate.in_place,
        }));
    }
    reasons.extend(holder_count_sentence(context, holders));
    reasons.extend(inner_field_sentence(context));
    reasons
}

/// Maximum number of trie nodes to inspect below the suspect's content.
const BELOW: usize = 64;

/// Returns the sentence about an application field below the suspect's objects. The field must hold at least half of
/// the bytes that the suspect's objects retain. It must lead to at least [`MANY`] times as many objects as the suspect
/// has. Returns `None` if there is no such field.
fn inner_field_sentence(context: &SuspectContext<'_>) -> Option<Evidence> {
    let trie = context.trie();
    let &content = context.candidate.content.first()?;
    let of = &trie[content];
    let heaviest = |s: &StepId| {
        let child = trie[*s].children.first().copied();
        child.filter(|&c| trie[c].retained_bytes >= of.retained_bytes / 2)
    };
    let below = std::iter::successors(heaviest(&content), heaviest).take(BELOW);
    let mut field: Option<&str> = None;
    for step in below {
        if growth::is_application(context.aligned.kind(trie[step].via)) {
            field = Some(context.via(step));
        }
        let this = &trie[step];
        let many = of.objects > 1 && this.objects >= of.objects.saturating_mul(MANY);
        if let Some(field) = field.filter(|_| many) {
            return Some(Evidence::HeldInEach {
                field: field.to_owned(),
                objects: this.objects,
                class: context.class(step).to_owned(),
            });
        }
    }
    None
}

/// The figures of the objects of one trie node.
struct Form<'a> {
    class: &'a str,
    objects: u64,
    shallow: u64,
    retained: u64,
    /// Bytes that the largest object retains.
    largest: u64,
    nested: Option<Nested>,
    in_place: bool,
}

/// Returns the sentence that describes the suspect's content: a single object, many objects, a chain or a tree.
fn form(of: &Form<'_>) -> Evidence {
    let objects = of.objects;
    let class = of.class.to_owned();
    let mean = Size(of.retained.checked_div(objects).unwrap_or(0));
    match (objects, of.in_place) {
        (0 | 1, _) if of.shallow > of.retained / 2 => Evidence::OneLargeObject {
            class,
            size: Size(of.shallow),
        },
        (0 | 1, _) => Evidence::OneObject { class },
        (_, true) => Evidence::SmallParts {
            objects,
            class,
            mean,
        },
        (_, false) => match of.nested {
            Some(Nested::Chain) => Evidence::Chain {
                objects,
                class,
                mean,
            },
            Some(Nested::Tree) => Evidence::Tree {
                objects,
                class,
                mean,
            },
            None => Evidence::Objects {
                objects,
                class,
                mean,
                largest: Size(of.largest),
            },
        },
    }
}

/// Returns the sentence about the number of holders. Returns `None` if there are fewer than [`MANY`] holders.
fn holder_count_sentence(context: &SuspectContext<'_>, at: StepId) -> Option<Evidence> {
    let count = context.trie()[at].objects;
    if at == StepId::ROOT || count < MANY || context.candidate.in_place {
        return None;
    }
    if let Some(one) = dominant_holder_sentence(context, at) {
        return Some(one);
    }
    let all = context.candidate.retained.last().copied().unwrap_or(0);
    Some(Evidence::Spread {
        holders: count,
        class: class_of_holders(context, at).to_owned(),
        mean: all / count,
        before: None,
    })
}

/// Returns the sentence which says that the collection in another field holds the same objects as a suspect.
pub(crate) fn holds_same_objects(collection: &Suspect) -> Evidence {
    Evidence::CollectionHolds {
        field: collection.holder.clone(),
        size: grown(collection),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suspect::tests::suspect;

    fn described(
        objects: u64,
        shallow: u64,
        largest: u64,
        nested: Option<Nested>,
        in_place: bool,
    ) -> String {
        form(&Form {
            class: "a.B",
            objects,
            shallow,
            retained: 10_240,
            largest,
            nested,
            in_place,
        })
        .to_string()
    }

    #[test]
    fn held_objects_are_described_by_their_figures() {
        let of = |objects: u64, shallow: u64, largest: u64, in_place: bool| {
            described(objects, shallow, largest, None, in_place)
        };
        let one = "one object of class a.B takes most of the bytes: its own size is 8.0 KiB";
        assert_eq!(of(1, 8192, 10_240, true), one);
        let apart = "one object of class a.B dominates many small objects";
        assert_eq!(of(1, 16, 10_240, true), apart);
        let few = "10 objects of class a.B retain 1.0 KiB each on average, in small parts";
        assert_eq!(of(10, 160, 9000, true), few);
        let many = "it consists of 10 objects of class a.B, which retain 1.0 KiB each on average and 2.0 KiB at most";
        assert_eq!(of(10, 160, 2048, false), many);
    }

    #[test]
    fn nested_objects_are_a_chain_if_each_holds_one() {
        let of = |nested| described(10, 160, 10_240, nested, false);
        let chain = "it consists of a chain of 10 objects of class a.B, 1.0 KiB each on average";
        assert_eq!(of(Some(Nested::Chain)), chain);
        let tree = "one of 10 objects of class a.B holds all others, 1.0 KiB each on average";
        assert_eq!(of(Some(Nested::Tree)), tree);
        // If one of ten objects is large, this is not evidence that it holds the other nine.
        let large = "it consists of 10 objects of class a.B, which retain 1.0 KiB each on average and 10.0 KiB at most";
        assert_eq!(of(None), large);
    }

    #[test]
    fn a_collection_of_one_dump_is_described_without_growth() {
        let one = suspect("B.all", "java.util.HashMap$Node", &[], (5000, 160_000));
        let described = holds_same_objects(&one).to_string();
        let grew = super::super::grew_with_content(&one).to_string();
        assert!(!grew.contains("and its own size is"), "{grew}");
        assert_eq!(
            described,
            "the collection in B.all holds the same objects, and its own size is 156.3 KiB"
        );
    }
}
