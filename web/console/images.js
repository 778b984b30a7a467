// Pictures: what a page showed around an element, and the images that an agent
// may upload. They are drawn on a canvas, so that the policy of these pages
// still lets no image in.
import { bytes, get } from "./api.js";
import { el } from "./dom.js";

// surroundings is the picture of an open question with the element outlined;
// undefined when there is none.
export async function surroundings(id) {
  const p = await get(`/v1/approvals/${encodeURIComponent(id)}/picture`).catch(() => undefined);
  if (!p) return undefined;
  const bitmap = await decode(Uint8Array.from(atob(p.jpeg), (c) => c.charCodeAt(0)), "image/jpeg");
  if (!bitmap) return undefined;
  const canvas = el("canvas", { width: p.width, height: p.height, role: "img", "aria-label": "The page around the element, which is outlined. The words above say the same." });
  const ink = canvas.getContext("2d");
  ink.drawImage(bitmap, 0, 0, p.width, p.height);
  bitmap.close();
  for (const [width, colour] of [[7, "#fff"], [3, "#c2185b"]]) {
    ink.lineWidth = width;
    ink.strokeStyle = colour;
    ink.strokeRect(p.box.x - 4, p.box.y - 4, p.box.width + 8, p.box.height + 8);
  }
  return el("figure", { class: "picture" }, canvas, el("figcaption", {}, "The page when the agent asked; the outline is ours"));
}

// thumbnail is an attached image; undefined when it is gone.
export async function thumbnail(session, image) {
  const data = await bytes(`/v1/agent-sessions/${encodeURIComponent(session)}/images/${encodeURIComponent(image.id)}`).catch(() => undefined);
  const bitmap = data && await decode(data, image.type);
  if (!bitmap) return undefined;
  const scale = Math.min(1, 320 / bitmap.width, 240 / bitmap.height);
  const canvas = el("canvas", {
    width: Math.max(1, Math.round(bitmap.width * scale)), height: Math.max(1, Math.round(bitmap.height * scale)), role: "img", "aria-label": "The image that would be uploaded",
  });
  canvas.getContext("2d").drawImage(bitmap, 0, 0, canvas.width, canvas.height);
  bitmap.close();
  return canvas;
}

const decode = (data, type) => createImageBitmap(new Blob([data], { type })).catch(() => undefined);
