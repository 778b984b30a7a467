// The owner's events on their way to the site: in order, one in flight, and
// none after a failure, so that a password with a lost character is never
// submitted (SURF-02, SURF-03). Text lives here only until it is sent.

export class Events {
  #send;
  #failed;
  #queue = [];
  #seq = 0;
  #waiting = 0; // seq of the event in flight, 0 for none
  #open = false;

  /**
   * @param {(message: object) => boolean} send  false when there is no connection
   * @param {() => void} failed  called once for each failure, with the queue empty
   */
  constructor(send, failed) {
    this.#send = send;
    this.#failed = failed;
  }

  open() { this.#open = true; }

  /** The connection is gone: what was in flight may be lost, so all of it is. */
  close() {
    const lost = this.#waiting !== 0 || this.#queue.length > 0;
    this.#open = false;
    this.#empty();
    if (lost) this.#failed();
  }

  click(x, y) { this.#push({ kind: "click", x, y }); }
  key(key) { this.#push({ kind: "key", key }); }

  /** At most 4096 characters go in one event; a longer paste is several. */
  text(text) {
    const characters = Array.from(text.replace(/\r\n?/g, "\n"));
    for (let i = 0; i < characters.length; i += 4096) {
      this.#push({ kind: "text", text: characters.slice(i, i + 4096).join("") });
    }
  }

  acknowledged(seq, ok) {
    if (seq !== this.#waiting) return;
    this.#waiting = 0;
    if (ok) {
      this.#next();
      return;
    }
    this.#empty();
    this.#failed();
  }

  #push(event) {
    if (!this.#open) return;
    this.#queue.push(event);
    this.#next();
  }

  #next() {
    if (this.#waiting !== 0 || this.#queue.length === 0) return;
    this.#waiting = ++this.#seq;
    if (!this.#send({ seq: this.#seq, event: this.#queue.shift() })) {
      this.#empty();
      this.#failed();
    }
  }

  #empty() {
    this.#queue.length = 0;
    this.#waiting = 0;
  }
}
