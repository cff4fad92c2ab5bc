// Ages go on while nothing else happens.
const units = [[60, 1, "s"], [3600, 60, "min"], [86400, 3600, "h"], [Infinity, 86400, "days"]];

function words(seconds) {
  const [, unit, name] = units.find(([limit]) => seconds < limit);
  const count = Math.floor(seconds / unit);
  return `${count} ${count === 1 ? name.replace("days", "day") : name}`;
}

export function tick() {
  for (const one of document.querySelectorAll("[data-since]")) {
    const seconds = (Date.now() - Date.parse(one.dataset.since)) / 1000;
    if (seconds >= 0) one.textContent = words(seconds);
  }
}

export function start() {
  setInterval(tick, 1000);
}
