//! Units: the objects that references or selectors connect.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use super::selectors::{LabelSelection, SelectableLabels, SelectorNamespaces, SelectorTarget};
use crate::object::ObjectId;

/// The connected parts of a set of objects, where references connect in both directions.
#[derive(Debug, Default)]
pub(crate) struct ConnectedUnits {
    numbers: BTreeMap<ObjectId, usize>,
    parents: Vec<usize>,
    sizes: Vec<usize>,
}

/// One of the objects that [`connect_objects`] looks at.
#[derive(Clone, Copy, Debug)]
pub(crate) struct GraphNode<'a> {
    /// The object.
    pub id: &'a ObjectId,
    /// The objects that it refers to.
    pub refs: &'a [ObjectId],
    /// The objects that it selects by labels.
    pub selects: Option<&'a LabelSelection>,
    /// The labels that it is selected by.
    pub labels: Option<&'a SelectableLabels>,
}

/// Finds the connected parts among these nodes alone: by references and by selectors, in both
/// directions.
///
/// Other references connect nothing: two workloads that run as one `ServiceAccount` are two units,
/// unless the `ServiceAccount` is a node too. The cost is nearly linear in what is referred to and
/// selected.
pub(crate) fn connect_objects<'a>(nodes: impl Iterator<Item = GraphNode<'a>>) -> ConnectedUnits {
    let nodes: Vec<GraphNode<'a>> = nodes.collect();
    let mut units = ConnectedUnits::default();
    for node in &nodes {
        units.add(node.id);
    }
    for node in &nodes {
        for other in node.refs {
            units.join_known(node.id, other);
        }
    }
    let mut index = SelectionIndex::of(&nodes);
    for node in &nodes {
        if let Some(selects) = node.selects {
            index.join_selected(&mut units, &nodes, node, selects);
        }
    }
    units
}

impl ConnectedUnits {
    /// Adds an object; alone, until something joins it.
    pub(crate) fn add(&mut self, id: &ObjectId) {
        self.number(id);
    }

    /// Returns whether an object was added.
    pub(crate) fn has(&self, id: &ObjectId) -> bool {
        self.numbers.contains_key(id)
    }

    /// Returns a number that all objects of one unit have, until two are joined.
    pub(crate) fn number_of(&self, id: &ObjectId) -> Option<usize> {
        self.numbers.get(id).map(|number| self.root(*number))
    }

    /// Joins two objects, adding them where they are new.
    pub(crate) fn join(&mut self, one: &ObjectId, other: &ObjectId) {
        let (one, other) = (self.number(one), self.number(other));
        self.unite(one, other);
    }

    /// Returns whether two objects are in one unit.
    pub(crate) fn is_same_unit(&self, one: &ObjectId, other: &ObjectId) -> bool {
        match (self.numbers.get(one), self.numbers.get(other)) {
            (Some(one), Some(other)) => self.root(*one) == self.root(*other),
            _ => one == other,
        }
    }

    /// Returns the units, each with its members in order, by their first members.
    pub(crate) fn unit_members(&self) -> Vec<Vec<&ObjectId>> {
        let mut indexes: HashMap<usize, usize> = HashMap::new();
        let mut parts: Vec<Vec<&ObjectId>> = Vec::new();
        for (id, number) in &self.numbers {
            let index = *indexes.entry(self.root(*number)).or_insert(parts.len());
            match parts.get_mut(index) {
                Some(part) => part.push(id),
                None => parts.push(vec![id]),
            }
        }
        parts
    }

    fn number(&mut self, id: &ObjectId) -> usize {
        if let Some(number) = self.numbers.get(id) {
            return *number;
        }
        let number = self.parents.len();
        self.parents.push(number);
        self.sizes.push(1);
        self.numbers.insert(id.clone(), number);
        number
    }

    /// Joins two objects if both were added.
    fn join_known(&mut self, one: &ObjectId, other: &ObjectId) {
        if let (Some(one), Some(other)) = (self.numbers.get(one), self.numbers.get(other)) {
            self.unite(*one, *other);
        }
    }

    /// Joins two trees. The smaller becomes a child of the larger, which keeps paths to the root
    /// short.
    fn unite(&mut self, one: usize, other: usize) {
        let (one, other) = (self.root(one), self.root(other));
        if one == other {
            return;
        }
        let (small, large) = if self.sizes[one] < self.sizes[other] { (one, other) } else { (other, one) };
        self.parents[small] = large;
        self.sizes[large] += self.sizes[small];
    }

    fn root(&self, mut number: usize) -> usize {
        while self.parents[number] != number {
            number = self.parents[number];
        }
        number
    }
}

/// The index of objects by their labels.
#[derive(Default)]
struct SelectionIndex<'a> {
    /// The nodes with a label of this value, by namespace.
    valued: HashMap<(SelectorTarget, &'a str, &'a str, &'a str), Vec<usize>>,
    /// All that can be selected, by namespace.
    all: BTreeMap<(SelectorTarget, &'a str), Vec<usize>>,
    /// The targets and namespaces where all was joined already: the next selector of everything
    /// needs to be joined with one of them.
    joined: BTreeSet<(SelectorTarget, &'a str)>,
}

impl<'a> SelectionIndex<'a> {
    fn of(nodes: &[GraphNode<'a>]) -> Self {
        let mut index = Self::default();
        for (number, node) in nodes.iter().enumerate() {
            let Some(labels) = node.labels else { continue };
            let (target, namespace) = (labels.target(), node.id.namespace().unwrap_or_default());
            index.all.entry((target, namespace)).or_default().push(number);
            for (key, value) in labels.iter() {
                index.valued.entry((target, namespace, key, value)).or_default().push(number);
            }
        }
        index
    }

    fn join_selected(
        &mut self,
        units: &mut ConnectedUnits,
        nodes: &[GraphNode<'a>],
        node: &GraphNode<'a>,
        selects: &'a LabelSelection,
    ) {
        let own = node.id.namespace().unwrap_or_default();
        for namespace in self.namespaces(selects, own) {
            let is_repeated = selects.is_everything() && !self.joined.insert((selects.target(), namespace));
            let enough = if is_repeated { 1 } else { usize::MAX };
            for candidate in self.candidates(selects, namespace).take(enough) {
                let other = &nodes[candidate];
                if other.labels.is_some_and(|labels| selects.matches(own, labels, namespace)) {
                    units.join_known(node.id, other.id);
                }
            }
        }
    }

    fn namespaces(&self, selects: &'a LabelSelection, own: &'a str) -> Vec<&'a str> {
        match selects.namespaces() {
            SelectorNamespaces::Own => vec![own],
            SelectorNamespaces::Named(names) => names.iter().map(|name| &**name).collect(),
            SelectorNamespaces::All => {
                let all = self.all.keys().filter(|(target, _)| *target == selects.target());
                all.map(|(_, namespace)| *namespace).collect()
            }
        }
    }

    /// Returns the nodes of a namespace among which are all that it selects there.
    fn candidates(&self, selects: &'a LabelSelection, namespace: &'a str) -> impl Iterator<Item = usize> {
        let target = selects.target();
        let equality = selects.equality();
        let all = equality.is_none().then(|| self.all.get(&(target, namespace)));
        let valued = equality.into_iter().flat_map(move |(key, values)| {
            values.iter().filter_map(move |value| self.valued.get(&(target, namespace, key, &**value)))
        });
        all.flatten().into_iter().chain(valued).flatten().copied()
    }
}
