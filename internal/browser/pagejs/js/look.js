// A pass remembers what the parts of one observation ask of the same nodes,
// while nothing on the page can change. Outside of one, all is asked anew.
let pass = null;
const inPass = (work) => {
  pass = { looks: new Map(), ink: new Map(), muted: new Map(), writing: new Map(), parts: null, disabled: disabledAround() };
  try {
    return work();
  } finally {
    pass = null;
  }
};

// Look is how an element is laid out. What not all of them are asked is asked
// when it matters.
const withOpacity = { opacityProperty: true };
class Look {
  #el;
  #box = null;
  #drawn = null;
  #shown = null;
  #lines = null;
  heard = false; // nothing around it, and nothing in its markup, makes it silent

  constructor(el) {
    this.#el = el;
    this.style = getComputedStyle(el);
  }

  get box() { return (this.#box ??= box(this.#el)); }

  // drawn is the element's display, and nothing when neither it nor anything
  // inside it is shown.
  get drawn() {
    if (this.#drawn === null) {
      const { display } = this.style;
      this.#drawn = display === 'contents' || rendered(this.#el, withOpacity) ? display : '';
    }
    return this.#drawn;
  }

  // shown: the texts of the element can be seen.
  get shown() { return (this.#shown ??= this.style.visibility === 'visible'); }

  // lines: a line break in its texts is one on screen.
  get lines() { return (this.#lines ??= /^(pre|break)/u.test(this.style.whiteSpace)); }
}

const lookOf = (el) => {
  if (!pass) return new Look(el);
  let look = pass.looks.get(el);
  if (!look) pass.looks.set(el, look = new Look(el));
  return look;
};

const styleOf = (el) => lookOf(el).style;
const boxOf = (el) => lookOf(el).box;

// hasInk: a text has a place on the page.
const hasInk = (text) => {
  const known = pass?.ink.get(text);
  if (known !== undefined) return known;
  const ink = textHasBox(text);
  pass?.ink.set(text, ink);
  return ink;
};
