// Shows the message, and tells whoever the fragment names what the page shows.
import { message } from "./message.js";

function show(text, how) {
  document.querySelector("#message").textContent = text;
  const said = { load: window.load, shown: document.querySelector("#message").textContent, how };
  fetch(location.hash.slice(1), { method: "POST", mode: "no-cors", body: JSON.stringify(said) });
}

show(message, "loaded");
import.meta.hot.accept("./message.js", (changed) => show(changed.message, "hot"));
