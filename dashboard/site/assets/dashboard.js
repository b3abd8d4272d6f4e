// What is nicer with a script. Every page works without it.
"use strict";

// Buttons that copy: made here, because without a script they could not do anything.
for (const block of document.querySelectorAll(".copy")) {
  if (!navigator.clipboard) break;
  const button = document.createElement("button");
  button.type = "button";
  button.textContent = "Copy";
  button.setAttribute("aria-label", "Copy " + (block.dataset.what || "these lines"));
  button.addEventListener("click", async () => {
    try {
      await navigator.clipboard.writeText(block.querySelector("pre").textContent);
      button.textContent = "Copied";
    } catch {
      button.textContent = "Select it";
      getSelection().selectAllChildren(block.querySelector("pre"));
    }
    document.getElementById("said").textContent = button.textContent;
    setTimeout(() => { button.textContent = "Copy"; }, 2000);
  });
  block.append(button);
}

// A page that was answered to a form, such as the one that shows a new key, is not to
// be made once more by loading it again.
const settled = document.querySelector("[data-settled-at]");
if (settled) history.replaceState(null, "", settled.dataset.settledAt);

// Choices that only change what is shown need no button to be pressed. With the keyboard they do: each arrow
// key changes the choice, and another page would take the focus away from it.
for (const form of document.querySelectorAll("form[data-instant]")) {
  const buttons = form.querySelectorAll("button");
  let typed = false;
  form.addEventListener("keydown", () => { typed = true; });
  form.addEventListener("pointerdown", () => { typed = false; });
  for (const choice of form.querySelectorAll("select")) {
    choice.addEventListener("change", () => {
      if (typed) for (const button of buttons) button.hidden = false;
      else form.requestSubmit();
    });
  }
  for (const button of buttons) button.hidden = true;
}

// Ctrl-Enter sends the console's request.
const request = document.querySelector("textarea[data-send]");
if (request) {
  request.addEventListener("keydown", (event) => {
    if (event.key === "Enter" && (event.ctrlKey || event.metaKey)) {
      event.preventDefault();
      request.form.requestSubmit();
    }
  });
}

// A search on a page that shows everything hides what does not match while typing.
for (const form of document.querySelectorAll("form[data-filter]")) {
  const rows = [...document.querySelectorAll(form.dataset.filter)];
  const field = form.querySelector("input"), found = document.getElementById("found");
  field.addEventListener("input", () => {
    const words = field.value.toLowerCase().split(/\s+/);
    let shown = 0;
    for (const row of rows) {
      row.hidden = !words.every((word) => row.textContent.toLowerCase().includes(word));
      if (!row.hidden) shown++;
    }
    found.textContent = field.value ? shown + " found." : "";
  });
}

// Live subscriptions: one WebSocket, whose newest messages are shown first.
const live = document.getElementById("live");
if (live) {
  const state = document.getElementById("live-state"), messages = document.getElementById("live-messages");
  const [start, stop] = live.querySelectorAll("button");
  let socket, shown = [];
  const show = (text) => {
    shown = [text, ...shown].slice(0, 50);
    messages.textContent = shown.join("\n\n");
  };
  const ended = (text) => { state.textContent = text; start.disabled = false; stop.disabled = true; };
  live.addEventListener("submit", (event) => {
    event.preventDefault();
    if (socket) socket.close();
    const key = live.elements["live-key"].value.trim();
    const opened = socket = new WebSocket(location.origin.replace(/^http/, "ws") + live.dataset.socket + encodeURIComponent(key));
    start.disabled = true; stop.disabled = false; state.textContent = "connecting"; shown = [];
    opened.addEventListener("open", () => { state.textContent = "connected"; opened.send(live.elements["live-request"].value); });
    opened.addEventListener("message", (event) => {
      try { show(JSON.stringify(JSON.parse(event.data), null, 2)); } catch { show(event.data); }
    });
    opened.addEventListener("close", (event) => {
      if (opened !== socket) return;
      ended(event.code === 1006 ? "refused: check the key and its rules" : "closed" + (event.reason ? ": " + event.reason : ""));
    });
  });
  stop.addEventListener("click", () => socket.close());
  addEventListener("pagehide", () => { if (socket) socket.close(); });
}

// Programs are those for the request as it was shown.
const programs = document.getElementById("programs");
if (request && programs) {
  request.addEventListener("input", () => { programs.closest("section").hidden = request.value !== request.defaultValue; });
}

// Charts say the numbers of a position to a mouse, a finger and the arrow keys. The titles
// would show the same numbers a second time.
for (const plot of document.querySelectorAll(".plot")) {
  const bars = [...plot.querySelectorAll(".bar")];
  if (!bars.length) continue;
  const texts = bars.map((bar) => { const title = bar.querySelector("title"); title.remove(); return title.textContent; });
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  plot.append(tip);
  plot.tabIndex = 0;
  plot.setAttribute("role", "group");
  plot.setAttribute("aria-label", plot.querySelector("svg > title").textContent + ": arrow keys move through the numbers");
  let at = -1;
  const show = (i) => {
    if (i === at) return;
    if (at >= 0) bars[at].classList.remove("on");
    at = i;
    tip.hidden = i < 0;
    if (i < 0) return;
    bars[i].classList.add("on");
    tip.textContent = texts[i];
    const all = plot.getBoundingClientRect(), bar = bars[i].getBoundingClientRect();
    const right = bar.right - all.left + 6, left = bar.left - all.left - tip.offsetWidth - 6;
    tip.style.left = Math.max(0, right + tip.offsetWidth <= all.width ? right : left) + "px";
  };
  const find = (event) => show(bars.findIndex((bar) => { const box = bar.getBoundingClientRect(); return event.clientX >= box.left && event.clientX < box.right; }));
  plot.addEventListener("pointerdown", find);
  plot.addEventListener("pointermove", find);
  plot.addEventListener("pointerleave", (event) => { if (event.pointerType === "mouse") show(-1); });
  plot.addEventListener("blur", () => show(-1));
  plot.addEventListener("keydown", (event) => {
    const last = bars.length - 1;
    const to = { ArrowLeft: at < 0 ? last : Math.max(0, at - 1), ArrowRight: Math.min(last, at + 1), Home: 0, End: last, Escape: -1 }[event.key];
    if (to === undefined) return;
    event.preventDefault();
    show(to);
    document.getElementById("said").textContent = to < 0 ? "" : texts[to].replaceAll("\n", ", ");
  });
}

// Live numbers are read again every 5 seconds, for half an hour, while the page is visible.
const numbers = document.querySelector("[data-live]");
let reads = 360;
const timer = numbers && setInterval(async () => {
  if (document.hidden) return;
  if (!reads--) return clearInterval(timer);
  try {
    const answer = await fetch(numbers.dataset.live, { redirect: "error" });
    if (answer.ok) numbers.innerHTML = await answer.text();
  } catch {
    clearInterval(timer); // the session has ended
  }
}, 5000);

// Passkeys: the browser answers the options of a form, which is then sent with the answer.
for (const form of document.querySelectorAll("form[data-passkey-use], form[data-passkey-make]")) {
  const { passkeyUse, passkeyMake } = form.dataset, codes = form.querySelectorAll("input[name$=code]");
  const button = form.querySelector("button[data-passkey]"), said = form.querySelector("[data-passkey-said]");
  if (!window.PublicKeyCredential?.parseRequestOptionsFromJSON) {
    if (form.querySelectorAll("button").length === 1) said.textContent = "This browser does not support passkeys here.";
    continue;
  }
  const ask = async () => {
    said.textContent = "";
    for (const code of codes) code.required = code.name === "code" && form.elements.secret;
    if (!form.reportValidity()) return;
    button.disabled = true;
    try {
      const answer = passkeyMake
        ? await navigator.credentials.create({ publicKey: PublicKeyCredential.parseCreationOptionsFromJSON(JSON.parse(passkeyMake)) })
        : await navigator.credentials.get({ publicKey: PublicKeyCredential.parseRequestOptionsFromJSON(JSON.parse(passkeyUse)) });
      form.elements.passkey.value = JSON.stringify(answer);
      form.requestSubmit();
    } catch (error) {
      said.textContent = error.name === "InvalidStateError" ? "This device has a passkey for your account already." : "No passkey was used: it may be on another device, or have been cancelled.";
    }
    button.disabled = false;
    for (const code of codes) code.required = true;
  };
  button.hidden = false;
  button.addEventListener("click", ask);
  if ("passkeyNow" in form.dataset) ask();
}

// A form that is under way is not sent twice.
for (const form of document.querySelectorAll("form[method=post]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
  });
}
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-sent]")) delete form.dataset.sent;
});

// Links to a fragment of a page open what is folded there.
const target = location.hash && document.getElementById(location.hash.slice(1));
if (target && target.tagName === "DETAILS") target.open = true;
