"use strict";
// Puts new figures in place, and says when there are none. All works without it, except for that.
(() => {
  const live = document.getElementById("live");
  const state = document.getElementById("state");
  const say = (text, bad) => {
    if (state.textContent !== text) state.textContent = text;
    state.classList.toggle("bad", bad);
  };
  let source, silent, again, last;
  const age = () => (last ? ", figures of " + last.toLocaleTimeString() : "");
  const put = (html) => {
    const focused = document.activeElement && live.contains(document.activeElement) ? document.activeElement.id : "";
    live.innerHTML = html; // by the server, which has escaped it
    if (focused) document.getElementById(focused)?.focus({ preventScroll: true });
  };
  const wait = () => {
    clearTimeout(silent);
    silent = setTimeout(() => say("no answer" + age(), true), 70000);
  };
  const open = () => {
    clearTimeout(again);
    source = new EventSource(live.dataset.from);
    source.addEventListener("figures", (event) => {
      last = new Date();
      // Not under a selection, or a press whose click would be lost.
      if (getSelection().isCollapsed && !live.querySelector(":active")) put(event.data);
      say("live", false);
      wait();
    });
    source.onerror = () => {
      say("no connection" + age(), true);
      source.close();
      again = setTimeout(open, 3000);
    };
    wait();
  };
  // A page in the background asks for nothing.
  const follow = () => {
    if (document.hidden) {
      source?.close();
      clearTimeout(again);
      clearTimeout(silent);
    } else {
      open();
    }
  };
  if (live && window.EventSource) {
    document.addEventListener("visibilitychange", follow);
    follow();
  }
  document.addEventListener("keydown", (event) => {
    const search = document.getElementById("search");
    if (event.key === "/" && search && !/INPUT|SELECT|TEXTAREA/.test(document.activeElement.tagName)) {
      event.preventDefault();
      search.focus();
    }
  });
})();
