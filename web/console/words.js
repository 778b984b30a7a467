// Our words for what the API names, and for times.

const profileStates = {
  provisioning: ["Being set up", ""],
  authentication_required: ["Sign-in needed", "warn"],
  ready: ["Ready", "good"],
  needs_user: ["Needs you", "warn"],
  revoked: ["Revoked", "bad"],
};

export const profileState = (status) => profileStates[status] ?? [status, ""];

const approvalStates = {
  pending: "Waiting for you",
  approved: "Approved. The agent may do this once.",
  used: "Approved, and used once.",
  denied: "Denied. Nothing was sent to the website.",
  expired: "Expired. Nothing was sent to the website.",
  cancelled: "Withdrawn. The page that it was about has changed, or its session or sign-in has ended.",
};

export const approvalState = (status) => approvalStates[status] ?? status;

const outcomes = {
  ready: "Signed in. The session is sealed.",
  expired: "The sign-in was not finished in time. Nothing was changed.",
  cancelled: "The sign-in was cancelled. Nothing was changed.",
};

export const ceremonyOutcome = (status) => outcomes[status];

const kinds = {
  "browser.profile.created": "Profile created",
  "browser.profile.changed": "Profile changed",
  "browser.profile.revoked": "Profile revoked",
  "browser.profile.deleted": "Profile deleted",
  "browser.authentication.begun": "Sign-in opened",
  "browser.authentication.ended": "Sign-in ended",
  "session.started": "Agent session started",
  "session.ended": "Agent session ended",
  "image.attached": "Image attached to a session",
  "image.removed": "Image removed from a session",
  "approval.requested": "Agent asked for approval",
  "approval.resolved": "Approval answered",
  "tool.call.authorized": "Call let through",
  "tool.call.denied": "Call refused",
  "tool.call.completed": "Call done",
  "tool.call.failed": "Call failed; nothing was sent",
  "tool.call.uncertain": "Call possibly sent; outcome unknown",
  "tool.call.recovered_uncertain": "Call interrupted by a restart; outcome unknown",
  "device.paired": "Device paired",
  "device.revoked": "Device revoked",
  "console.login.refused": "Console login refused",
  "owner.stopped": "You stopped all agents",
};

export const auditKind = (kind) => kinds[kind] ?? kind;

const tools = { "browser.navigate": "open a page", "browser.observe": "read the page", "browser.act": "act on the page", "browser.upload": "upload an image" };

export const toolWord = (tool) => tools[tool] ?? tool;

const ids = /^[0-9a-f]{8}-[0-9a-f-]{27}$/;

// detail is the audit trail's one word or number, in ours; ids are shortened.
export function detailWord(detail) {
  if (!detail) return undefined;
  if (ids.test(detail)) return detail.slice(0, 8);
  return profileStates[detail]?.[0].toLowerCase() ?? detail.replaceAll("_", " ");
}

const consequences = {
  payment: ["May pay money", "bad"],
  purchase: ["May buy or order something", "bad"],
  authentication_change: ["May change how you sign in", "bad"],
  account_recovery: ["May reset the access to your account", "bad"],
  security_change: ["May change your account or its security", "warn"],
  permission_change: ["May change who may do what", "bad"],
  legal_acceptance: ["May accept terms in your name", "bad"],
  publication: ["May send or publish something", "warn"],
  destructive: ["May delete or cancel something", "bad"],
  file_transfer: ["May transfer a file", "warn"],
};

// consequence is what an action may lead to, by its words; undefined when they
// say nothing.
export const consequence = (name) => consequences[name];

const units = new Intl.NumberFormat(undefined, { maximumFractionDigits: 1 });

export const size = (n) => (n < 1e6 ? `${units.format(n / 1e3)} kB` : `${units.format(n / 1e6)} MB`);

const imageTypes = { "image/png": "PNG", "image/jpeg": "JPEG", "image/webp": "WebP" };

export const imageWords = (i) => `${imageTypes[i.type] ?? i.type}, ${i.width} × ${i.height}, ${size(i.size)}`;

const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
const date = new Intl.DateTimeFormat(undefined, { weekday: "long", day: "numeric", month: "long" });
const both = new Intl.DateTimeFormat(undefined, { day: "numeric", month: "short", hour: "2-digit", minute: "2-digit" });

export const timeOfDay = (iso) => clock.format(new Date(iso));
export const dayOf = (iso) => date.format(new Date(iso));

// ago says how long ago something was, and the date when that is long.
export function ago(iso) {
  if (!iso) return undefined;
  const seconds = (Date.now() - new Date(iso)) / 1000;
  if (seconds < 60) return "just now";
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ago`;
  if (seconds < 86400) return `${Math.floor(seconds / 3600)} h ago`;
  return both.format(new Date(iso));
}

// left says how long is left until then.
export function left(iso) {
  const seconds = Math.max(0, Math.round((new Date(iso) - Date.now()) / 1000));
  if (seconds >= 3600) return `${Math.floor(seconds / 3600)} h ${Math.floor((seconds % 3600) / 60)} min`;
  if (seconds >= 60) return `${Math.floor(seconds / 60)} min ${String(seconds % 60).padStart(2, "0")} s`;
  return `${seconds} s`;
}

export const host = (origin) => origin.replace(/^https:\/\//, "");
