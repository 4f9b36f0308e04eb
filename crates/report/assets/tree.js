// Trees for flame graphs: the tree of stacks, which is decoded, and the tree of holder paths, which is built here.

/**
 * Computes parents, ends and total values from the depths of nodes in preorder. Node 0 is the common root. The nodes
 * below node i have the numbers from i + 1 to the end of node i, exclusive.
 */
const completed = (tree) => {
  const { count, depth } = tree;
  tree.parent = new Int32Array(count).fill(-1);
  tree.end = new Int32Array(count);
  const open = [];
  for (let i = 0; i < count; i++) {
    while (open.length > depth[i]) tree.end[open.pop()] = i;
    if (open.length) tree.parent[i] = open[open.length - 1];
    open.push(i);
  }
  while (open.length) tree.end[open.pop()] = count;
  // Add each node to its parent, the last node first. In preorder, all nodes below a node come after it.
  for (const values of Object.values(tree.values)) {
    for (let i = count - 1; i > 0; i--) values[tree.parent[i]] += values[i];
  }
  return tree;
};

/** Adds the names to a tree of stacks. Names of classes begin at `first_class`. */
const withNames = (tree, { names, first_class }) => {
  tree.names = ["all stacks", ...names.map(printable)];
  tree.isClass = (node) => tree.name[node] > first_class;
  tree.kindOf = (node) => (tree.isClass(node) ? ["the class that was allocated"] : []);
  return tree;
};

/**
 * Decodes the tree of stacks, which consists of LEB128 numbers. The first three numbers belong only to the total: bytes
 * that grew, bytes that shrank, and live bytes in the last dump. Each node has five numbers: its depth, the index of
 * its name, and its own growth, decrease and live bytes.
 */
const stackTree = (data) => {
  const text = atob(data.tree);
  // The last byte of a number is the only one below 0x80.
  let numbers = 0;
  for (let i = 0; i < text.length; i++) if (text.charCodeAt(i) < 128) numbers++;
  const count = 1 + (numbers - 3) / 5;
  const tree = {
    count,
    depth: new Int32Array(count),
    name: new Int32Array(count),
    values: {
      grown: new Float64Array(count),
      shrunk: new Float64Array(count),
      after: new Float64Array(count),
    },
  };
  let at = 0;
  const next = () => {
    let value = 0;
    for (let scale = 1; ; scale *= 128) {
      const byte = text.charCodeAt(at++);
      value += (byte & 127) * scale;
      if (byte < 128) return value;
    }
  };
  const { grown, shrunk, after } = tree.values;
  for (let i = 0; i < count; i++) {
    if (i > 0) {
      tree.depth[i] = next();
      tree.name[i] = next() + 1;
    }
    grown[i] = next();
    shrunk[i] = next();
    after[i] = next();
  }
  tree.details = (node) => {
    const before = after[node] - grown[node] + shrunk[node];
    const place = data.places[tree.name[node] - 1];
    const basis = data.estimated ? " (estimated)" : "";
    const sizes = `${size(before)} before, ${size(after[node])} after${basis}`;
    const change = `${signedSize(grown[node] - shrunk[node])}: ${sizes}`;
    return [...(place ? [`at ${printable(place)}`] : []), ...tree.kindOf(node), ...(data.single ? [] : [change])];
  };
  return completed(withNames(tree, data));
};

/**
 * Builds the tree of holder paths, from the GC root to the content. `paths` has the path of each suspect. Widths are
 * the growth of retained bytes.
 */
const holderTree = (suspects, paths) => {
  const top = { children: new Map(), own: 0, ranks: [] };
  for (const [i, suspect] of suspects.entries()) {
    const grown = suspect.growth.retained_bytes;
    if (grown <= 0) continue;
    let node = top;
    for (const step of [...paths[i], `\u2192 ${suspect.class}`]) {
      if (!node.children.has(step)) node.children.set(step, { children: new Map(), own: 0, ranks: [] });
      node = node.children.get(step);
      node.ranks.push(suspect.rank);
    }
    node.own += grown;
  }
  const names = ["all suspects"];
  const nodes = [];
  const work = [["", top, 0]];
  const numbers = new Map();
  while (work.length) {
    const [label, node, depth] = work.pop();
    if (depth > 0 && !numbers.has(label)) {
      numbers.set(label, names.length);
      names.push(printable(label));
    }
    nodes.push([depth > 0 ? numbers.get(label) : 0, depth, node]);
    for (const [step, child] of [...node.children].reverse()) work.push([step, child, depth + 1]);
  }
  const count = nodes.length;
  const tree = {
    count,
    names,
    depth: Int32Array.from(nodes, (n) => n[1]),
    name: Int32Array.from(nodes, (n) => n[0]),
    values: { grown: Float64Array.from(nodes, (n) => n[2].own) },
    isClass: (node) => node > 0 && nodes[node][2].children.size === 0,
    details: (node) => {
      const ranks = nodes[node][2].ranks;
      const more = ranks.length > 8 ? ", \u2026" : "";
      const word = ranks.length > 1 ? "suspects" : "suspect";
      return ranks.length ? [`${word} ${ranks.slice(0, 8).join(", ")}${more}`] : [];
    },
  };
  return completed(tree);
};
