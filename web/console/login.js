// Logging in with the one-time code that the program printed.
import { logIn } from "./api.js";
import { el } from "./dom.js";

// codeFromAddress takes a code out of the address' fragment, which no server
// sees, and wipes it from the address and the history entry at once.
export function codeFromAddress() {
  const found = /^#code=([A-Za-z0-9-]{1,128})$/.exec(location.hash);
  if (!found) return "";
  history.replaceState(null, "", location.pathname);
  return found[1];
}

export function loginPage(main, code, done) {
  const input = el("input", {
    id: "code", name: "code", class: "code", required: true, maxlength: 128, value: code,
    autocomplete: "off", autocapitalize: "characters", spellcheck: "false", "aria-describedby": "login-help",
  });
  const failure = el("p", { class: "error", role: "alert" });
  const button = el("button", { class: "main" }, "Log in");
  const form = el("form", { class: "card login", method: "post", action: "/" },
    el("span", { class: "brand" }, el("img", { src: "/icon.svg", alt: "", width: 28, height: 28 }), "Chaperone"),
    el("div", { class: "field" }, el("label", { for: "code" }, "One-time code"), input),
    failure, button,
    el("p", { class: "soft small", id: "login-help" },
      "Chaperone prints a code when it starts. ", el("span", { class: "mono" }, "chaperone console"), " makes a new one. A code works once, for ten minutes."));
  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    failure.textContent = "";
    button.disabled = true;
    try {
      await logIn(input.value.trim());
      done();
    } catch (err) {
      failure.textContent = err.code === "authentication_error" ? "That code is not valid, was used already, or is too old." : err.message;
      button.disabled = false;
      input.select();
    }
  });
  main.replaceChildren(form);
  (code ? button : input).focus();
}
