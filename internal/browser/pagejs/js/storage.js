// localStorage of the current origin, for sealing and restoring a session.
const readStorage = () => {
  const items = [];
  for (let i = 0; i < localStorage.length; i++) {
    const name = localStorage.key(i);
    items.push({ name, value: localStorage.getItem(name) });
  }
  return items;
};

const writeStorage = ({ items }) => {
  for (const { name, value } of items) localStorage.setItem(name, value);
  return localStorage.length;
};

const hasStorage = () => localStorage.length > 0;
