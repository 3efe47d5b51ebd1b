"use strict";
// The page checks itself. Its own words and numbers are held against the digest that was written with them, and the
// certificate is recomputed from the rows (or the sums over them) that the page carries:
//
//   P(β, b) = Σ wᵢ φᵢ(β·xᵢ + b) + λ/2 |β|²,   every φ convex; at any β with the best intercept, g the slope in β:
//   P(β', b') >= P(β, b) - |g|² / 2λ   for all β', b', since P grows by λ/2 |β' - β|² at least beside its tangent.
//
// The objective is that of the model's coefficients; the bound is taken at the witness, a point next to the minimum.
//
// Nothing is loaded from anywhere, and nothing is sent.

function bytesOf(base64) {
  const text = atob(base64), out = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) out[i] = text.charCodeAt(i);
  return out;
}

function numbersOf(base64) {
  const bytes = bytesOf(base64), view = new DataView(bytes.buffer), out = new Float64Array(bytes.length / 8);
  for (let i = 0; i < out.length; i++) out[i] = view.getFloat64(8 * i, true);
  return out;
}

// A column: its numbers, or its different numbers and the place of each row's among them.
function columnOf(packed) {
  const values = numbersOf(packed.values);
  if (!packed.codes) return values;
  const codes = bytesOf(packed.codes), size = packed.size, out = new Float64Array(codes.length / size);
  for (let i = 0; i < out.length; i++) out[i] = values[size === 1 ? codes[i] : codes[2 * i] + 256 * codes[2 * i + 1]];
  return out;
}

// SHA-256 (FIPS 180-4), written out: crypto.subtle is not there for pages that came over plain HTTP.
const PRIMES = [];
for (let n = 2; PRIMES.length < 64; n++) if (PRIMES.every((p) => n % p)) PRIMES.push(n);
const fraction = (x) => Math.floor((x - Math.floor(x)) * 4294967296) | 0;
const ROUND = PRIMES.map((p) => fraction(Math.cbrt(p)));

class Sha256 {
  constructor() {
    this.state = PRIMES.slice(0, 8).map((p) => fraction(Math.sqrt(p)));
    this.block = new Uint8Array(64);
    this.words = new Int32Array(64);
    this.length = 0;
  }

  add(bytes) {
    for (let i = 0; i < bytes.length; i++) {
      this.block[this.length++ % 64] = bytes[i];
      if (this.length % 64 === 0) this.mix();
    }
    return this;
  }

  mix() {
    const w = this.words, turn = (x, n) => (x >>> n) | (x << (32 - n));
    const view = new DataView(this.block.buffer);
    for (let t = 0; t < 16; t++) w[t] = view.getInt32(4 * t);
    for (let t = 16; t < 64; t++) {
      const a = w[t - 15], b = w[t - 2];
      const first = turn(a, 7) ^ turn(a, 18) ^ (a >>> 3), second = turn(b, 17) ^ turn(b, 19) ^ (b >>> 10);
      w[t] = (w[t - 16] + first + w[t - 7] + second) | 0;
    }
    let [a, b, c, d, e, f, g, h] = this.state;
    for (let t = 0; t < 64; t++) {
      const one = (h + (turn(e, 6) ^ turn(e, 11) ^ turn(e, 25)) + ((e & f) ^ (~e & g)) + ROUND[t] + w[t]) | 0;
      const two = ((turn(a, 2) ^ turn(a, 13) ^ turn(a, 22)) + ((a & b) ^ (a & c) ^ (b & c))) | 0;
      [h, g, f, e, d, c, b, a] = [g, f, e, (d + one) | 0, c, b, a, (one + two) | 0];
    }
    this.state = [a, b, c, d, e, f, g, h].map((x, i) => (x + this.state[i]) | 0);
  }

  hex() {
    const bits = this.length * 8, pad = new Uint8Array(((119 - (this.length % 64)) % 64) + 9);
    pad[0] = 128;
    new DataView(pad.buffer).setUint32(pad.length - 4, bits >>> 0);
    new DataView(pad.buffer).setUint32(pad.length - 8, Math.floor(bits / 4294967296));
    this.add(pad);
    return this.state.map((x) => (x >>> 0).toString(16).padStart(8, "0")).join("");
  }
}

// Half the deviance of a row, or its logistic loss, with slope and curvature in the score; as `report/sealing/proof.py` has it.
const FAMILIES = {
  gaussian: (s, y) => [0.5 * (s - y) * (s - y), s - y, 1],
  logistic: (s, y) => {
    const small = Math.exp(-Math.abs(s)), p = s > 0 ? 1 / (1 + small) : small / (1 + small);
    return [Math.log1p(small) + Math.max(s, 0) - y * s, p - y, small / (1 + small) / (1 + small)];
  },
  squared_hinge: (s, y) => {
    const side = 2 * y - 1, short = Math.max(0, 1 - side * s);
    return [short * short, -2 * side * short, short > 0 ? 2 : 0];
  },
  poisson: (s, y) => {
    const mean = Math.exp(s);
    return [mean - y - (y > 0 ? y * (s - Math.log(y)) : 0), mean - y, mean];
  },
  gamma: (s, y) => {
    const ratio = y * Math.exp(-s);
    return [ratio - 1 + s - Math.log(y), 1 - ratio, ratio];
  },
  negative_binomial: (s, y, theta) => {
    const mean = Math.exp(s), share = mean / (mean + theta), own = y > 0 ? y * (Math.log(y) - s) : 0;
    return [own + (y + theta) * Math.log((mean + theta) / (y + theta)), theta * share - y * (1 - share),
      (y + theta) * share * (1 - share)];
  },
};

// Sums over all rows at coefficients β (k, d) and intercepts b (k,).
function measure(data, beta, b) {
  const { X, y, w, n, d, k } = data;
  const out = { loss: 0, g: new Float64Array(k * d), off: new Float64Array(k), H: new Float64Array(k * k) };
  const score = new Float64Array(k), slope = new Float64Array(k);
  for (let i = 0; i < n; i++) {
    for (let c = 0; c < k; c++) {
      let s = b[c];
      for (let j = 0; j < d; j++) s += beta[c * d + j] * X[i * d + j];
      score[c] = s;
    }
    if (data.family !== "softmax") {
      for (let c = 0; c < k; c++) {  // several scores tell each class from all others
        const [loss, u, h] = FAMILIES[data.family](score[c], k === 1 ? y[i] : Number(y[i] === c), data.theta);
        out.loss += w[i] * loss;
        slope[c] = u;
        out.H[c * k + c] += w[i] * h;
      }
    } else {
      const top = Math.max(...score), parts = Array.from(score, (s) => Math.exp(s - top));
      const total = parts.reduce((a, part) => a + part, 0);
      out.loss += w[i] * (Math.log(total) + top - score[y[i]]);
      for (let c = 0; c < k; c++) {
        const p = parts[c] / total;
        slope[c] = p - (y[i] === c ? 1 : 0);
        for (let e = 0; e < k; e++) out.H[c * k + e] += w[i] * ((c === e ? p : 0) - (p * parts[e]) / total);
      }
    }
    for (let c = 0; c < k; c++) {
      const u = w[i] * slope[c];
      out.off[c] += u;
      for (let j = 0; j < d; j++) out.g[c * d + j] += u * X[i * d + j];
    }
  }
  return out;
}

// One Newton step of the intercepts. Of a softmax the last keeps its own: only differences matter.
function intercepts(b, off, H, { k, family }) {
  const m = family === "softmax" ? k - 1 : k, rows = [];
  for (let r = 0; r < m; r++) rows.push([...Array.from({ length: m }, (_, c) => H[r * k + c]), off[r]]);
  for (let c = 0; c < m; c++) {
    let pivot = c;
    for (let r = c + 1; r < m; r++) if (Math.abs(rows[r][c]) > Math.abs(rows[pivot][c])) pivot = r;
    [rows[c], rows[pivot]] = [rows[pivot], rows[c]];
    for (let r = 0; r < m; r++) {
      const share = r === c ? 0 : rows[r][c] / rows[c][c];
      for (let e = c; e <= m; e++) rows[r][e] -= share * rows[c][e];
    }
  }
  return b.map((value, c) => (c < m ? value - rows[c][m] / rows[c][c] : value));
}

function squared(values) {
  return values.reduce((total, value) => total + value * value, 0);
}

// What no parameters can be below, where some have this objective: `report/sealing/proof.py` says why.
function boundOf(loss, g, beta, { lam, lam1 }, objective) {
  const over = g.map((slope) => Math.max(0, Math.abs(slope) - lam1)), along = g.reduce((sum, slope, j) => sum + slope * beta[j], 0);
  return loss - along - (lam > 0 ? squared(over) / (2 * lam) : over.reduce((a, b) => Math.max(a, b), 0) * objective / lam1);
}

function unpack(proof) {
  const [n, d] = proof.shape, X = new Float64Array(n * d);
  proof.columns.forEach((packed, j) => columnOf(packed).forEach((value, i) => { X[i * d + j] = value; }));
  const y = columnOf(proof.y), given = proof.w ? columnOf(proof.w) : null;
  const weights = proof.class_weights;
  const w = Float64Array.from(y, (value, i) => proof.unit * (given ? given[i] : 1) * (weights ? weights[value] : 1));
  return { X, y, given, w, n, d, k: proof.k, family: proof.family, theta: proof.theta };
}

// The digest of encoded rows, labels and weights that the model file carries as its fingerprint.
function fingerprintOf(proof, data) {
  const sha = new Sha256().add(new TextEncoder().encode(proof.head)), bytes = (array) => new Uint8Array(array.buffer);
  sha.add(bytes(data.X));
  if (proof.labels) {
    const labels = proof.labels.map(bytesOf);
    data.y.forEach((code) => sha.add(labels[code]));
  } else sha.add(bytes(data.y));
  return (data.given ? sha.add(bytes(data.given)) : sha).hex();
}

// Objective at the model's own intercepts, the bound at the best ones. A penalised intercept is the coefficient of a
// column of `bias`es.
function recompute(proof) {
  const own = (values, b) => (proof.bias ? Float64Array.of(...values, ...b.map((x) => x / proof.bias)) : values);
  const beta = numbersOf(proof.coef), witness = numbersOf(proof.witness), intercept = numbersOf(proof.intercept);
  const paid = 0.5 * proof.lam * squared(own(beta, intercept)) + proof.lam1 * beta.reduce((sum, x) => sum + Math.abs(x), 0);
  if (proof.form === "sums") {
    const objective = proof.loss + paid, point = own(witness, numbersOf(proof.witness_intercept));
    const bound = boundOf(proof.best_loss, numbersOf(proof.slopes), point, proof, objective);
    return { objective, bound, fingerprint: proof.fingerprint };
  }
  const data = unpack(proof);
  const objective = measure(data, beta, intercept).loss + paid;
  let b = numbersOf(proof.witness_intercept), here = measure(data, witness, b);
  const balanced = 1e-13 * data.w.reduce((total, weight) => total + weight, 0);
  for (let step = 0; step < 8 && proof.free_intercept && here.off.some((off) => Math.abs(off) > balanced); step++) {
    b = intercepts(b, here.off, here.H, data);
    here = measure(data, witness, b);
  }
  const slopes = proof.bias ? Float64Array.of(...here.g, ...here.off.map((x) => x * proof.bias)) : here.g;
  const bound = boundOf(here.loss, slopes, own(witness, b), proof, objective);
  return { objective, bound, fingerprint: fingerprintOf(proof, data) };
}

// What the page says, in the order of the document, without white space: words, and the places of what is drawn.
const DRAWN = ["d", "points", "x", "y", "x1", "x2", "y1", "y2", "cx", "cy", "r", "width", "height"];

function written(root) {
  const parts = [], walk = (node) => {
    if (node.nodeType === 3) parts.push(node.data);
    if (node.nodeType !== 1 || node.id === "seal") return;
    if (node.namespaceURI.endsWith("svg")) DRAWN.forEach((name) => parts.push(node.getAttribute(name) || ""));
    node.childNodes.forEach(walk);
  };
  walk(root);
  return parts.join("").replace(/[ \t\n\r\f]+/g, "");
}

function verdict(proof, digest, told) {
  const text = new TextEncoder().encode(written(document.querySelector("main")) + "\n" + told);
  if (new Sha256().add(text).hex() !== digest) return ["red", "This page was changed after it was written: its words and numbers do not have the digest that was written with them."];
  if (proof.form === "none") return ["grey", "No digit of this page was changed since it was written. The certificate is not recomputed here: " + proof.why + "."];
  const found = recompute(proof), said = proof.certificate, close = 1e-9 * Math.max(said.scale, Math.abs(said.objective));
  const gap = Math.max(0, found.objective - found.bound), show = (value) => value.toPrecision(10).replace(/\.?0+($|e)/, "$1");
  const numbers = ` Recomputed in this browser: objective ${show(found.objective)}, lower bound ${show(found.bound)}, gap ${gap.toExponential(2)}.`;
  const wrong = [];
  if (!(Math.abs(found.objective - said.objective) <= close)) wrong.push("the objective is another");
  if (!(said.bound <= found.objective + close)) wrong.push("the bound lies above the objective");
  if (!(Math.abs(found.bound - said.bound) <= said.limit + close)) wrong.push("the bound is another");
  if (said.holds !== gap <= said.limit + close) wrong.push("the gap says otherwise than the verdict");
  if (found.fingerprint !== document.getElementById("fingerprint").textContent) wrong.push("the rows are not those of the fingerprint");
  if (wrong.length) return ["red", "This page does not prove what it says: " + wrong.join("; ") + "." + numbers];
  const source = proof.form === "rows" ? "from the rows and coefficients in this page" : "from sums over the rows, which the page carries in place of the rows";
  return [said.holds ? "green" : "grey", `The certificate was recomputed ${source}, and agrees with what is printed.` + numbers];
}

function seal() {
  const box = document.getElementById("seal"), told = document.getElementById("proof").textContent;
  let result;
  try {
    result = verdict(JSON.parse(told), box.dataset.digest, told);
  } catch (error) {
    result = ["red", "This page could not check itself: " + error.message];
  }
  box.className = "seal " + result[0];
  box.querySelector("b").textContent = { green: "Checked", red: "Not as written", grey: "Unchanged" }[result[0]];
  box.querySelector("span").textContent = result[1];
}

seal();
